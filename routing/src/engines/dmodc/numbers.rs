//! The numbers of destinations: near leaves stand together, and hosts before service adapters.

use super::costs::Costs;
use crate::Subnet;

/// The numbers of each leaf's addresses: those of its hosts follow each other in the order of slots, and so do those of
/// its service adapters, behind all hosts of all leaves. So hosts are numbered as if there were no adapters.
pub(super) struct Numbers {
    /// By xbar, the number of the first address of its hosts.
    hosts: Vec<u32>,
    /// By xbar, the number of the first address of its service adapters.
    adapters: Vec<u32>,
}

impl Numbers {
    /// Each leaf that has no number yet is followed by all those that are nearest to it.
    pub(super) fn new(subnet: &Subnet, leaves: &[u32], costs: &[Costs<'_>]) -> Self {
        let (mut hosts, mut adapters) =
            (vec![0; subnet.topology.xbar_count()], vec![0; subnet.topology.xbar_count()]);
        let order = in_order(leaves, costs);
        let mut number = 0;
        for (first, wanted) in [(&mut hosts, false), (&mut adapters, true)] {
            for &leaf in &order {
                first[leaf as usize] = number;
                let slots = subnet.destinations.host_slots_of(leaf);
                number +=
                    slots.filter(|&slot| subnet.leads_to_service_adapter(slot) == wanted).count() as u32;
            }
        }
        Self { hosts, adapters }
    }

    /// The number of the first address of a leaf's hosts, and that of its service adapters.
    pub(super) fn of(&self, leaf: u32) -> (u32, u32) {
        (self.hosts[leaf as usize], self.adapters[leaf as usize])
    }
}

/// The leaves, near ones together.
fn in_order(leaves: &[u32], costs: &[Costs<'_>]) -> Vec<u32> {
    let mut order = Vec::with_capacity(leaves.len());
    let mut is_there = vec![false; leaves.len()];
    for (at, &leaf) in leaves.iter().enumerate() {
        if is_there[at] {
            continue;
        }
        let others = leaves.iter().filter(|&&other| other != leaf);
        let nearest = others.map(|&other| costs[at].hops(other)).min();
        for (other, &there) in leaves.iter().enumerate() {
            let is_near = other == at || nearest == Some(costs[at].hops(there));
            if is_near && !std::mem::replace(&mut is_there[other], true) {
                order.push(there);
            }
        }
    }
    order
}
