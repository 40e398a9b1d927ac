//! Filling tables: what every engine writes, whatever routes it has chosen.
//!
//! A *block* is the rows of all slots of one destination xbar: the xbar's own first, then those of each address
//! of its hosts. These rows lead to the same xbar, so they are computed together.

use mapper_proto::map::PortRef;
use rayon::prelude::*;

use crate::tables::Tables;
use crate::{Far, Subnet, Topology};

/// The value that stands for no channel.
pub(super) const NO_CHANNEL: u32 = u32::MAX;

/// The least number of blocks for which a thread is worth its cost.
const MIN_BLOCKS: usize = 16;

/// Tables whose blocks are computed in parallel: `fill` gets a destination xbar and its block, which is empty
/// ([`Tables::NONE`] throughout). A block depends on its destination alone, so threads change no entry.
pub(super) fn by_block(subnet: &Subnet, fill: impl Fn(u32, &mut [u8]) + Sync) -> Tables {
    let xbars = subnet.topology.xbar_count();
    let mut ports = vec![0; xbars * subnet.destinations.slot_count()];
    let mut blocks = Vec::with_capacity(xbars);
    let mut rest = &mut ports[..];
    for end in 0..xbars as u32 {
        let length = subnet.destinations.slots_of(end).len() * xbars;
        let (block, others) = rest.split_at_mut(length);
        blocks.push((end, block));
        rest = others;
    }
    blocks.into_par_iter().with_min_len(MIN_BLOCKS).for_each(|(end, block)| {
        // The thread that computes a block also empties it, which is faster than to empty all by one thread.
        block.fill(Tables::NONE);
        fill(end, block);
    });
    Tables::from_ports(xbars, ports)
}

/// The row of a slot of xbar `end`, whose frames go along a tree: `next` is the channel by which each xbar sends
/// them, or [`NO_CHANNEL`]. Xbars that no cable joins with `end` get no entry, whatever `next` says. The entry of
/// `end` itself is the host's port.
pub(super) fn row_along(subnet: &Subnet, slot: u32, end: u32, next: &[u32]) -> Vec<u8> {
    let topology = &subnet.topology;
    let part = topology.component(end);
    let port = |(xbar, &channel): (u32, &u32)| {
        let leads_on = channel != NO_CHANNEL && topology.component(xbar) == part;
        if leads_on { topology.tail(channel).port } else { Tables::NONE }
    };
    let mut row: Vec<u8> = (0..).zip(next).map(port).collect();
    row[end as usize] = subnet.port_of_slot(slot);
    row
}

/// The tree that a slot's frames go along: the channel by which each xbar sends them, or [`NO_CHANNEL`].
pub(super) fn read_tree(topology: &Topology, row: &[u8], next: &mut [u32]) {
    for ((xbar, &port), next) in (0..).zip(row).zip(next) {
        *next = match topology.far(PortRef { xbar, port }) {
            Far::Channel(channel) => channel,
            Far::Host(_) | Far::Nothing => NO_CHANNEL,
        };
    }
}
