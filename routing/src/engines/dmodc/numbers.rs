//! The numbers of destinations: near leaves stand together.

use super::costs::Costs;
use crate::Subnet;

/// The number of the first address of each leaf's hosts; the others follow, in the order of slots.
pub(super) struct Numbers {
    first: Vec<u32>,
}

impl Numbers {
    /// Each leaf that has no number yet is followed by all those that are nearest to it.
    pub(super) fn new(subnet: &Subnet, leaves: &[u32], costs: &[Costs]) -> Self {
        let mut first = vec![0; subnet.topology.xbar_count()];
        let mut is_numbered = vec![false; leaves.len()];
        let mut number = 0;
        for (at, &leaf) in leaves.iter().enumerate() {
            if is_numbered[at] {
                continue;
            }
            let others = leaves.iter().filter(|&&other| other != leaf);
            let nearest = others.map(|&other| costs[at].hops(other)).min();
            for (other, &there) in leaves.iter().enumerate() {
                let is_near = other == at || nearest == Some(costs[at].hops(there));
                if is_near && !std::mem::replace(&mut is_numbered[other], true) {
                    first[there as usize] = number;
                    number += subnet.destinations.host_slots_of(there).len() as u32;
                }
            }
        }
        Self { first }
    }

    /// The number of an xbar's first address.
    pub(super) fn first_of(&self, xbar: u32) -> u32 {
        self.first[xbar as usize]
    }
}
