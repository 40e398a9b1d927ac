//! Which missing links keep frames from a destination.

use super::grid::place;
use super::heading::Heading;
use super::lattice::Lattice;
use super::placements::Unconnected;
use super::rules::{Aim, choose, wanted};
use super::serve::Fabric;
use mapper_fabric::names::Names;

/// Most links that are named.
const MOST_LINKS: usize = 8;

/// A pair that the rules do not connect, in words: its routers, and the missing links that frames meet where
/// the fabric's datelines are.
///
/// A frame is followed by the rules until they know no way or it comes back. Every missing link next to its
/// way that it would take by default, or to go round another one, is to blame.
pub(super) fn explain(fabric: &Fabric<'_>, names: &Names, unconnected: Unconnected) -> String {
    let Unconnected { source, destination, anywhere, lost } = unconnected;
    let lattice = fabric.lattice;
    let name = |router: u32| router_name(lattice, names, router);
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
    let pair = format!("from {} to {}", name(source), name(destination));
    let ways = match (anywhere, datelines(lattice)) {
        (_, None) => format!("the rules know no way {pair}"),
        (true, Some(_)) => format!("the rules know no way {pair}, wherever the datelines are"),
        (false, Some(at)) => format!(
            "the rules cannot connect all pairs, wherever the datelines are; with those from {at} they know \
             no way {pair}"
        ),
    };
    let all = if lost > 1 { format!("; {lost} such pairs in all") } else { String::new() };
    format!("{ways}; {blamed}{all}")
}

/// A router by its number, its place and what people call it.
pub(super) fn router_name(lattice: &Lattice, names: &Names, router: u32) -> String {
    format!("xbar {router} {} '{}'", place(&lattice.coordinates(router)), names.xbar(router))
}

/// Where the datelines are, in words: between which coordinates of each ring of Y and Z. The X dateline bars
/// nothing.
fn datelines(lattice: &Lattice) -> Option<String> {
    let rings = (1..3).filter(|&dimension| lattice.rings[dimension]);
    let words: Vec<String> = rings.map(|dimension| dateline(lattice, dimension)).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Between which coordinates a ring's dateline is.
pub(super) fn dateline(lattice: &Lattice, dimension: usize) -> String {
    let at = lattice.datelines[dimension];
    format!("{} {at} to {}", ["x", "y", "z"][dimension], (at + 1) % lattice.sizes[dimension])
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
