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
    let count = tiers.count_if_stepwise(topology)?;
    let by_height = positions(topology.xbar_count(), |xbar| Reverse(tiers.heights()[xbar as usize]));
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
