//! Hosts with several addresses: each address is to be reached by another system, or else by another xbar, or
//! else by another port.

use super::ports::XbarPorts;
use super::ranks::each_bit;
use super::sweep::Slots;
use crate::Subnet;
use crate::tables::SlotEnd;

/// Which slots are of the same host.
pub(super) struct Spread<'a> {
    subnet: &'a Subnet,
    /// For each slot how many earlier ones are of the same host.
    earlier: Vec<usize>,
}

impl<'a> Spread<'a> {
    /// `None` if each host has one address.
    pub(super) fn of(subnet: &'a Subnet, slots: Slots) -> Option<Self> {
        if subnet.destinations.lmc() == 0 {
            return None;
        }
        let path = |lane: usize| match subnet.destinations.end(slots.first + lane as u32) {
            SlotEnd::Host { path, .. } => usize::from(path).min(lane),
            SlotEnd::Xbar(_) => 0,
        };
        Some(Self { subnet, earlier: (0..slots.lanes).map(path).collect() })
    }

    /// How much a step is like those of earlier slots of the same host at this xbar: 0 if it is to another
    /// system, 1 to another xbar of the same system, 2 to the same xbar by another port, 3 by the same port.
    /// `entry` gives the entry of each slot there.
    pub(super) fn likeness(
        &self,
        ports: &XbarPorts,
        entry: impl Fn(usize) -> u8,
        lane: usize,
        number: usize,
    ) -> u8 {
        let base = ports.xbar_of(number) as usize * ports.words * 64;
        let systems = &self.subnet.xbar_systems;
        let like = |earlier: usize| {
            let other = base + ports.bit_of_port(entry(earlier))?;
            let (head, other_head) = (ports.heads[number], ports.heads[other]);
            Some(if other == number {
                3
            } else if head == other_head {
                2
            } else {
                u8::from(systems[head as usize] == *systems.get(other_head as usize)?)
            })
        };
        (lane - self.earlier[lane]..lane).filter_map(like).max().unwrap_or_default()
    }

    /// The numbers of the ports of a set.
    pub(super) fn numbers(set: &[u64], base: usize) -> impl Iterator<Item = usize> {
        let mut numbers = Vec::new();
        for (word, &mask) in set.iter().enumerate() {
            each_bit(mask, |bit| numbers.push(base + word * 64 + bit));
        }
        numbers.into_iter()
    }
}
