//! Which leaves no way up through the tiers and then down joins.

use super::{Tiers, neighbours};
use crate::Topology;

/// The leaves that some other leaf of their part is not reached from by going up through the tiers and then down.
pub(crate) fn leaves_apart(topology: &Topology, tiers: &Tiers) -> Vec<u32> {
    let leaves = tiers.leaves();
    let words = leaves.len().div_ceil(64);
    let mut xbars: Vec<u32> =
        (0..topology.xbar_count() as u32).filter(|&xbar| tiers.height(xbar).is_some()).collect();
    xbars.sort_by_key(|&xbar| tiers.heights()[xbar as usize]);
    // By xbar the leaves that ways down lead to, and then those that ways up and down lead to, a bit each.
    let mut reached = vec![0_u64; topology.xbar_count() * words];
    let mut of_part = vec![0; topology.xbar_count()];
    for (bit, &leaf) in leaves.iter().enumerate() {
        reached[leaf as usize * words + bit / 64] |= 1 << (bit % 64);
        of_part[topology.component(leaf) as usize] += 1;
    }
    let higher = |xbar: u32, other: u32| tiers.heights()[xbar as usize] > tiers.heights()[other as usize];
    let mut join = |xbar: u32, other: u32| {
        for word in 0..words {
            reached[xbar as usize * words + word] |= reached[other as usize * words + word];
        }
    };
    for &xbar in &xbars {
        neighbours(topology, xbar).filter(|&other| higher(xbar, other)).for_each(|other| join(xbar, other));
    }
    for &xbar in xbars.iter().rev() {
        neighbours(topology, xbar).filter(|&other| higher(other, xbar)).for_each(|other| join(xbar, other));
    }
    let count = |leaf: u32| -> u32 {
        reached[leaf as usize * words..][..words].iter().map(|word| word.count_ones()).sum()
    };
    let is_apart = |&leaf: &u32| count(leaf) < of_part[topology.component(leaf) as usize];
    leaves.iter().copied().filter(is_apart).collect()
}
