//! Recognises a folded Clos, even if it has lost cables.

use std::cmp::Reverse;

use rayon::prelude::*;

use super::reach::{BLOCK, legal_is_shortest};
use super::{Orientation, Shape, positions};
use crate::Topology;
use crate::tiers::{Tiers, with_one_top};

/// The orientation by tiers, if the topology is a Clos as [`Orientation::new`] defines it.
pub(super) fn recognise(topology: &Topology) -> Option<Orientation> {
    let tiers = Tiers::of(topology);
    let heights = tiers.heights();
    for channel in 0..topology.channel_count() as u32 {
        let (tail, head) = (topology.tail(channel).xbar, topology.head(channel).xbar);
        // Parts without hosts have no tiers, and need none.
        let (a, b) = (heights[tail as usize], heights[head as usize]);
        if tail != head && a != Tiers::UNREACHED && a.abs_diff(b) != 1 {
            return None;
        }
    }
    let count = heights.iter().filter(|&&height| height != Tiers::UNREACHED).max().map_or(0, |&top| top + 1);
    let by_height = positions(topology.xbar_count(), |xbar| Reverse(heights[xbar as usize]));
    let position = if tiers.served().is_empty() {
        by_height
    } else {
        with_one_top(topology, &tiers, &by_height, tiers.served())
    };
    let orientation = Orientation::by_position(topology, Shape::Clos { tiers: count }, position);
    let leaves = tiers.leaves();
    leaves
        .par_chunks(BLOCK)
        .all(|sources| legal_is_shortest(topology, &orientation, sources, leaves))
        .then_some(orientation)
}
