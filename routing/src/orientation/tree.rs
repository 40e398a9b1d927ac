//! Up and down a tree that is no folded Clos.

use std::cmp::Reverse;

use rayon::prelude::*;

use super::reach::{BLOCK, legal_steps};
use super::{Orientation, Shape, positions, updown};
use crate::tiers::{Tiers, leaves_apart, with_one_top};
use crate::{RouteOptions, Topology};

/// The orientation by tiers, if every cable joins neighbouring tiers and there are several.
///
/// Where no way up and then down joins two leaves, one leaf is put above all, by which they are joined. Then some routes are
/// longer than from a root in the middle, and far fewer meet. If the longest is too long for agents that nobody told
/// how long routes may be, and one from such a root is not, it is none.
pub(super) fn orient(topology: &Topology) -> Option<Orientation> {
    let tiers = Tiers::of(topology);
    let count = tiers.count_if_stepwise(topology).filter(|&count| count > 1)?;
    let by_height = positions(topology.xbar_count(), |xbar| Reverse(tiers.heights()[xbar as usize]));
    let mut joined = leaves_apart(topology, &tiers);
    joined.extend(tiers.served());
    let position =
        if joined.is_empty() { by_height } else { with_one_top(topology, &tiers, &by_height, &joined) };
    let tree = Orientation::by_position(topology, Shape::Tree { tiers: count }, position);
    let longest = |orientation: &Orientation| {
        let steps = |sources: &[u32]| legal_steps(topology, orientation, sources, tiers.leaves());
        tiers.leaves().par_chunks(BLOCK).map(steps).max().unwrap_or_default()
    };
    let steps = longest(&tree);
    let fits = steps < RouteOptions::default().max_hops.into() || steps <= longest(&updown::orient(topology));
    fits.then_some(tree)
}
