//! The layers of pairs of hosts, where hosts of one xbar may have different ones.

use super::Layers;
use crate::Subnet;

/// The service levels that hosts of an xbar use to a destination, as they are given to single hosts.
///
/// Tables lead all frames from an xbar to a destination the same way, whatever their level. So it is enough
/// to know the set of levels for each xbar with hosts and each slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceLevels {
    /// The place of each xbar with hosts in `sets`; `u32::MAX` for others.
    place: Vec<u32>,
    slots: usize,
    /// The levels (a bit each) of each xbar with hosts, by slot.
    sets: Vec<u16>,
}

impl ServiceLevels {
    /// Begins without any level.
    pub fn new(subnet: &Subnet) -> Self {
        let slots = subnet.destinations.slot_count();
        let mut place = vec![u32::MAX; subnet.topology.xbar_count()];
        let mut count = 0;
        for leaf in (0..subnet.topology.xbar_count()).filter(|&xbar| subnet.is_leaf(xbar as u32)) {
            place[leaf] = count;
            count += 1;
        }
        Self { place, slots, sets: vec![0; count as usize * slots] }
    }

    /// Adds a level, 0 to 15, of frames from hosts of an xbar to a slot. For an xbar without hosts it does
    /// nothing.
    pub fn add(&mut self, source: u32, slot: u32, level: u8) {
        let place = self.place[source as usize];
        if place != u32::MAX {
            self.sets[place as usize * self.slots + slot as usize] |= 1 << level;
        }
    }

    /// The levels (a bit each) of frames from hosts of an xbar to a slot; none for an xbar without hosts.
    pub fn of(&self, source: u32, slot: u32) -> u16 {
        match self.place[source as usize] {
            u32::MAX => 0,
            place => self.sets[place as usize * self.slots + slot as usize],
        }
    }

    /// All levels in use, a bit each.
    pub fn in_use(&self) -> u16 {
        self.sets.iter().fold(0, |all, set| all | set)
    }

    /// These levels as a layer for each pair of xbars, if each pair has one level only.
    pub fn by_pair(&self, subnet: &Subnet) -> Option<Layers> {
        let xbars = subnet.topology.xbar_count();
        let in_use = self.in_use();
        if in_use == 0 {
            return Some(Layers::single());
        }
        let first = in_use.trailing_zeros() as u8;
        let count = (u16::BITS - in_use.leading_zeros()) as u8 - first;
        let mut layers = vec![0; xbars * xbars];
        for source in 0..xbars as u32 {
            for to in 0..xbars as u32 {
                let slots = subnet.destinations.host_slots_of(to);
                let set = slots.fold(0, |all, slot| all | self.of(source, slot));
                match set.count_ones() {
                    0 => {}
                    1 => layers[to as usize * xbars + source as usize] = set.trailing_zeros() as u8 - first,
                    _ => return None,
                }
            }
        }
        Some(Layers::by_destination(count, first, layers, xbars))
    }
}
