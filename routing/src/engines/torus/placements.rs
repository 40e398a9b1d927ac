//! Where the datelines go: the first place at which the rules connect all pairs, or a pair that shows that
//! there is none.

use crate::Subnet;
use crate::engines::Settings;

use super::engine::fabric;
use super::lattice::Lattice;
use super::reach::RouterReach;
use super::rules::place_datelines;
use super::serve::Fabric;
use super::trees::TorusTrees;

/// Most states that are looked at to find a pair that no place of the datelines connects, once it is known
/// that no place connects all. That takes about a second, and far less in small fabrics.
const MOST_STATES: usize = 100_000_000;

/// A pair that the rules do not connect, in a fabric in which they do not connect all pairs, wherever the
/// datelines are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unconnected {
    /// Where frames come from.
    pub(super) source: u32,
    /// Where they are to get to.
    pub(super) destination: u32,
    /// Whether no place of the datelines connects this pair. If false, some place connects it, but not some
    /// other pair.
    pub(super) anywhere: bool,
    /// How many pairs are not connected where R4 would have the datelines.
    pub(super) lost: usize,
}

/// The trees of the first place of the datelines, in the order of R4, that connects all pairs. The lattice
/// then has these datelines, or if there are none, those that R4 prefers.
///
/// All places are looked at, but for most of them a few pairs are enough: a pair that was lost elsewhere
/// often is lost here, too, and one search of R0 to R3 shows it.
///
/// # Errors
/// A pair that is not connected, if there is no such place.
pub(super) fn best_trees(
    subnet: &Subnet,
    settings: &Settings,
    lattice: &mut Lattice,
    stated: [Option<u8>; 3],
) -> Result<TorusTrees, Unconnected> {
    let places = place_datelines(lattice, stated);
    let mut reach = RouterReach::new(lattice.router_count());
    let mut witnesses: Vec<(u32, u32)> = Vec::new();
    let mut first: Option<TorusTrees> = None;
    for &datelines in &places {
        lattice.datelines = datelines;
        if witnesses.iter().any(|&(source, destination)| !reach.joins(lattice, source, destination)) {
            continue;
        }
        let fabric = fabric(subnet, settings, lattice);
        let trees = TorusTrees::new(&fabric);
        let Some(lost) = lost_pairs(&fabric, &trees).next() else { return Ok(trees) };
        witnesses.push(lost);
        first.get_or_insert(trees);
    }
    let mut unconnected = Unconnected { source: 0, destination: 0, anywhere: false, lost: 0 };
    if let Some(trees) = first {
        lattice.datelines = places.first().copied().unwrap_or(lattice.datelines);
        let lost: Vec<(u32, u32)> = lost_pairs(&fabric(subnet, settings, lattice), &trees).collect();
        let hopeless = hopeless(lattice, &places, &lost);
        (unconnected.source, unconnected.destination) =
            hopeless.or_else(|| lost.first().copied()).unwrap_or_default();
        unconnected.anywhere = hopeless.is_some();
        unconnected.lost = lost.len();
    }
    Err(unconnected)
}

/// The pairs without a route that should have one.
fn lost_pairs<'a>(fabric: &'a Fabric<'_>, trees: &'a TorusTrees) -> impl Iterator<Item = (u32, u32)> + 'a {
    // Most fabrics have no such pairs, and then there is no need to look for them.
    let routers = if trees.lost == 0 { 0..0 } else { 0..fabric.lattice.router_count() as u32 };
    let pairs = routers.clone().flat_map(move |source| routers.clone().map(move |end| (source, end)));
    pairs.filter(|&(source, end)| fabric.wants(source, end) && trees.heading(source, end).is_none())
}

/// The first of these pairs, by source, that no place of the datelines connects.
fn hopeless(lattice: &Lattice, places: &[[u8; 3]], lost: &[(u32, u32)]) -> Option<(u32, u32)> {
    let mut reach = RouterReach::new(lattice.router_count());
    let mut moved = lattice.clone();
    let mut states = 0;
    for of_source in lost.chunk_by(|one, other| one.0 == other.0) {
        let mut left = of_source.to_vec();
        for &datelines in places {
            if left.is_empty() || states > MOST_STATES {
                break;
            }
            moved.datelines = datelines;
            states += reach.search(&moved, of_source[0].0);
            left.retain(|&(_, destination)| !reach.contains(destination));
        }
        if states > MOST_STATES {
            return None;
        }
        if let Some(&pair) = left.first() {
            return Some(pair);
        }
    }
    None
}
