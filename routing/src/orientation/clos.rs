//! Recognises a folded Clos, whatever cables it lost.

use std::cmp::Reverse;

use rayon::prelude::*;

use super::reach::{BLOCK, UNREACHED, distances, legal_is_shortest};
use super::{Orientation, Shape, positions};
use crate::Topology;

/// The orientation by tiers, if the topology is a Clos as [`Orientation::new`] defines it.
pub(super) fn recognise(topology: &Topology) -> Option<Orientation> {
    let leaves: Vec<u32> =
        (0..topology.xbar_count() as u32).filter(|&xbar| !topology.hosts_of(xbar).is_empty()).collect();
    // Steps from each xbar to the nearest one that has hosts.
    let tiers = distances(topology, &leaves);
    for channel in 0..topology.channel_count() as u32 {
        let (tail, head) = (topology.tail(channel).xbar, topology.head(channel).xbar);
        // Parts without hosts have no tiers, and need none.
        let (a, b) = (tiers[tail as usize], tiers[head as usize]);
        if tail != head && a != UNREACHED && a.abs_diff(b) != 1 {
            return None;
        }
    }
    let count = tiers.iter().filter(|&&tier| tier != UNREACHED).max().map_or(0, |&top| top + 1);
    let position = positions(topology.xbar_count(), |xbar| Reverse(tiers[xbar as usize]));
    let orientation = Orientation::by_position(topology, Shape::Clos { tiers: count }, position);
    leaves
        .par_chunks(BLOCK)
        .all(|sources| legal_is_shortest(topology, &orientation, sources, &leaves))
        .then_some(orientation)
}
