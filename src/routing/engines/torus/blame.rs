//! Which missing links keep frames from a destination.

use super::grid::place;
use super::heading::Heading;
use super::lattice::Lattice;
use super::rules::{Aim, choose, wanted};
use super::serve::Fabric;

/// Most links that are named.
const MOST_LINKS: usize = 8;

/// A pair that the rules cannot connect, in words: its routers, and the missing links that frames meet.
///
/// A frame is sent by the rules until they know no way or it comes back, and every missing link next to
/// its way along which it would go by default, or around, is to blame.
pub(super) fn explain(fabric: &Fabric<'_>, source: u32, destination: u32) -> String {
    let lattice = fabric.lattice;
    let name = |router: u32| format!("xbar {router} {}", place(&lattice.coordinates(router)));
    let links: Vec<String> = missing_on_the_way(fabric, source, destination)
        .into_iter()
        .map(|(router, heading)| format!("{heading} of {}", name(router)))
        .collect();
    let (shown, more) = links.split_at(links.len().min(MOST_LINKS));
    let blamed = match (shown, more.len()) {
        ([], _) => "no single link is to blame".to_owned(),
        (shown, 0) => format!("missing there: {}", shown.join(", ")),
        (shown, more) => format!("missing there: {} and {more} more", shown.join(", ")),
    };
    format!("the rules know no way from {} to {}; {blamed}", name(source), name(destination))
}

/// The missing links that frames meet, in the order in which they do.
fn missing_on_the_way(fabric: &Fabric<'_>, source: u32, destination: u32) -> Vec<(u32, Heading)> {
    let lattice = fabric.lattice;
    let aim = Aim::router(lattice.coordinates(destination));
    let mut met = Vec::new();
    let mut passed = vec![false; lattice.router_count()];
    let mut at = source;
    while !std::mem::replace(&mut passed[at as usize], true) {
        let Some(default) = wanted(lattice, at, &aim) else { break };
        let is_missing = |&heading: &Heading| lattice.is_missing(at, heading);
        // The ways round count only where there is something to go round.
        let around = [default, Heading::Y_PLUS, Heading::Z_PLUS];
        let here = around.into_iter().filter(is_missing).take(if is_missing(&default) { 3 } else { 0 });
        for link in here.map(|heading| (at, heading)) {
            if !met.contains(&link) {
                met.push(link);
            }
        }
        if default == Heading::Z_MINUS {
            met.extend(first_break(lattice, at, &aim).filter(|link| !met.contains(link)));
        }
        let next = choose(lattice, &fabric.regions, at, &aim).and_then(|heading| lattice.next(at, heading));
        let Some(next) = next else { break };
        at = next;
    }
    met
}

/// The first break of a z- run.
fn first_break(lattice: &Lattice, router: u32, aim: &Aim) -> Option<(u32, Heading)> {
    let mut at = router;
    for _ in 0..lattice.sizes[2] {
        if aim.contains(lattice.coordinates(at)) {
            return None;
        }
        match lattice.next(at, Heading::Z_MINUS) {
            Some(below) => at = below,
            None => return Some((at, Heading::Z_MINUS)),
        }
    }
    None
}
