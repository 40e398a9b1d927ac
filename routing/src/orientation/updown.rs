//! Up*/down*: up is towards a root in the middle of the fabric.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::reach::{BLOCK, eccentricities};
use super::{Orientation, Shape, positions};
use crate::Topology;
use crate::tiers::distances;

/// Most xbars of which the eccentricity is found. In a larger fabric every n-th is a candidate.
const MAX_CANDIDATES: usize = 2_048;

/// Orients by steps from a root, ties by number. Each connected part has a root of its own.
pub(super) fn orient(topology: &Topology) -> Orientation {
    let roots = roots(topology);
    let levels = distances(topology, &roots);
    let position = positions(topology.xbar_count(), |xbar| levels[xbar as usize]);
    Orientation::by_position(topology, Shape::UpDown { roots }, position)
}

/// The root of each part: the candidate nearest to all (least eccentricity), then the one with most
/// cables, as all long routes meet there, then the first.
fn roots(topology: &Topology) -> Vec<u32> {
    let count = topology.xbar_count();
    let stride = count.div_ceil(MAX_CANDIDATES).max(1);
    let candidates: Vec<u32> = (0..count as u32).step_by(stride).collect();
    let mut best: BTreeMap<u32, (usize, Reverse<usize>, u32)> = BTreeMap::new();
    for block in candidates.chunks(BLOCK) {
        for (&xbar, eccentricity) in block.iter().zip(eccentricities(topology, block)) {
            let key = (eccentricity, Reverse(topology.channels_of(xbar).len()), xbar);
            best.entry(topology.component(xbar)).and_modify(|b| *b = key.min(*b)).or_insert(key);
        }
    }
    // A part without a candidate is small, so any root will do. It is the xbar by which the part is named.
    let parts = (0..count as u32).filter(|&xbar| topology.component(xbar) == xbar);
    parts.map(|part| best.get(&part).map_or(part, |&(_, _, xbar)| xbar)).collect()
}
