//! The escape trees: routes that can be used for any destination, whatever turns all others use.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::turns::Turns;
use crate::engines::filling::NO_CHANNEL;
use crate::{Subnet, Topology};

/// The hops to an xbar to which no way leads.
pub(super) const NO_WAY: u32 = u32::MAX;

/// A spanning tree of each connected part, from an xbar in its middle.
pub(super) struct EscapeTrees {
    /// The channel from each xbar to the one above it; [`NO_CHANNEL`] at roots.
    up: Vec<u32>,
    /// All xbars, each after the one above it.
    order: Vec<u32>,
    depths: Vec<u32>,
}

impl EscapeTrees {
    /// The trees, each from the xbar that is nearest to all leaves of its part together.
    pub(super) fn new(subnet: &Subnet) -> Self {
        let topology = &subnet.topology;
        let xbars = topology.xbar_count();
        let mut trees = Self { up: vec![NO_CHANNEL; xbars], order: Vec::new(), depths: vec![0; xbars] };
        let mut seen = vec![false; xbars];
        for root in roots(subnet) {
            let mut next = trees.order.len();
            trees.order.push(root);
            seen[root as usize] = true;
            while let Some(&xbar) = trees.order.get(next) {
                next += 1;
                for channel in topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel)) {
                    let below = topology.head(channel).xbar;
                    if !std::mem::replace(&mut seen[below as usize], true) {
                        trees.up[below as usize] = topology.reverse(channel);
                        trees.depths[below as usize] = trees.depths[xbar as usize] + 1;
                        trees.order.push(below);
                    }
                }
            }
        }
        trees
    }

    /// Places for all channels: those that lead up come first, from the deepest on, then those that lead down.
    /// So the turns of the trees agree with the order, and so do all routes that go up and then down.
    pub(super) fn places(&self, topology: &Topology) -> Vec<u32> {
        let rank = |xbar: u32| (self.depths[xbar as usize], xbar);
        let key = |channel: u32| {
            let (tail, head) = (rank(topology.tail(channel).xbar), rank(topology.head(channel).xbar));
            let upward = (head < tail).then_some(Reverse(tail));
            (upward.is_none(), upward, tail, channel)
        };
        let mut order: Vec<u32> = (0..topology.channel_count() as u32).collect();
        order.sort_by_cached_key(|&channel| key(channel));
        let mut places = vec![0; order.len()];
        (0..).zip(order).for_each(|(place, channel)| places[channel as usize] = place);
        places
    }

    /// Uses all turns that routes of the trees make between xbars that send or receive.
    pub(super) fn use_turns(&self, topology: &Topology, is_end: &[bool], turns: &mut Turns<'_>) {
        // An xbar without senders or receivers below is not on any route.
        let mut is_needed = is_end.to_vec();
        for &xbar in self.order.iter().rev().filter(|&&xbar| self.up[xbar as usize] != NO_CHANNEL) {
            let above = topology.head(self.up[xbar as usize]).xbar;
            is_needed[above as usize] |= is_needed[xbar as usize];
        }
        let mut below = vec![Vec::new(); topology.xbar_count()];
        for &xbar in self.order.iter().filter(|&&xbar| is_needed[xbar as usize]) {
            let up = self.up[xbar as usize];
            if up != NO_CHANNEL {
                below[topology.head(up).xbar as usize].push(up);
            }
        }
        for &xbar in &self.order {
            let up = self.up[xbar as usize];
            for &child in &below[xbar as usize] {
                let others = below[xbar as usize].iter().filter(|&&other| other != child);
                for &other in others {
                    turns.make_used(child, topology.reverse(other));
                }
                if up != NO_CHANNEL {
                    turns.make_used(child, up);
                    turns.make_used(topology.reverse(up), topology.reverse(child));
                }
            }
        }
    }

    /// Writes the channel by which each xbar's frames go on to a destination, along the trees.
    pub(super) fn lead_to(&self, topology: &Topology, end: u32, next: &mut [u32]) {
        next.copy_from_slice(&self.up);
        next[end as usize] = NO_CHANNEL;
        let mut at = end;
        while self.up[at as usize] != NO_CHANNEL {
            let up = self.up[at as usize];
            at = topology.head(up).xbar;
            next[at as usize] = topology.reverse(up);
        }
    }
}

/// Finds the hops on the shortest ways between an xbar and each other one, [`NO_WAY`] for those that no cables join with it.
/// `reached` becomes that xbar and those that are joined with it, from near to far.
pub(super) fn find_hops(topology: &Topology, from: u32, hops: &mut [u32], reached: &mut Vec<u32>) {
    hops.fill(NO_WAY);
    hops[from as usize] = 0;
    reached.clear();
    reached.push(from);
    let mut next = 0;
    while let Some(&xbar) = reached.get(next) {
        next += 1;
        for channel in topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel)) {
            let there = topology.head(channel).xbar;
            if hops[there as usize] == NO_WAY {
                hops[there as usize] = hops[xbar as usize] + 1;
                reached.push(there);
            }
        }
    }
}

/// The xbar of each part that is nearest to all leaves there; among equals the one with most cables.
pub(super) fn roots(subnet: &Subnet) -> Vec<u32> {
    let topology = &subnet.topology;
    let xbars = topology.xbar_count();
    let mut sums = vec![0_u64; xbars];
    let mut hops = vec![NO_WAY; xbars];
    let mut queue = Vec::with_capacity(xbars);
    for leaf in (0..xbars as u32).filter(|&xbar| subnet.is_leaf(xbar)) {
        find_hops(topology, leaf, &mut hops, &mut queue);
        queue.iter().for_each(|&xbar| sums[xbar as usize] += u64::from(hops[xbar as usize]));
    }
    let key = |xbar: u32| (sums[xbar as usize], Reverse(topology.channels_of(xbar).len()), xbar);
    let mut best: BTreeMap<u32, u32> = BTreeMap::new();
    for xbar in 0..xbars as u32 {
        let root = best.entry(topology.component(xbar)).or_insert(xbar);
        if key(xbar) < key(*root) {
            *root = xbar;
        }
    }
    best.into_values().collect()
}
