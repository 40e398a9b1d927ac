//! Multicast tables: a tree of cables for each group, and the parts of switches' tables that differ.
//!
//! A tree is changed so that packets never go round. If old and new cables of a group together close a
//! circle, or old ones lead to a node whose table is not known, all entries that only the old tree has are
//! removed before any entry of the new one is added.

mod tree;

use std::collections::{BTreeMap, BTreeSet};

use super::{Held, Phase, Purpose, leads_astray};
use crate::exchange::Order;
use crate::mad::{Attribute, MulticastTable, SwitchInfo};
use crate::manager::inventory::{Inventory, Switch};
use tree::{Leads, Trees};

/// The first multicast LID.
pub(crate) const FIRST_MULTICAST_LID: u16 = 0xC000;
/// The last multicast LID.
const LAST_MULTICAST_LID: u16 = 0xFFFE;

/// The ports that get the packets of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Members {
    /// All ports of adapters and routers.
    All,
    /// The ports with these GUIDs.
    Ports(BTreeSet<u64>),
}

/// The multicast groups of a subnet, as its administration keeps them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupMembers {
    /// A number that changes whenever groups may have changed.
    pub generation: u64,
    /// The members, by multicast LID (0xC000 to 0xFFFE; others are ignored).
    pub members: BTreeMap<u16, Members>,
}

/// The groups before an administration tells which there are: only the broadcast group of IPoIB, with all
/// hosts in it.
impl Default for GroupMembers {
    fn default() -> Self {
        Self { generation: 0, members: BTreeMap::from([(FIRST_MULTICAST_LID, Members::All)]) }
    }
}

impl GroupMembers {
    /// The groups with a multicast LID.
    fn all(&self) -> impl Iterator<Item = (u16, &Members)> {
        let range = self.members.range(FIRST_MULTICAST_LID..=LAST_MULTICAST_LID);
        range.map(|(&lid, members)| (lid, members))
    }

    /// The blocks of multicast tables in which there are groups.
    pub(crate) fn blocks(&self) -> BTreeSet<u16> {
        self.all().map(|(lid, _)| block_of(lid)).collect()
    }
}

/// A part of a switch's table: the switch, the block of LIDs, and the position of its ports.
pub(crate) type PartOf = (u64, u16, u8);

/// The parts of a switch's table in which groups have entries, as far as it has room for them.
pub(crate) fn parts(switch: &Switch, capacity: u16, blocks: &BTreeSet<u16>) -> Vec<(u16, u8)> {
    let has_room = |block: &&u16| capacity / MulticastTable::LIDS > **block;
    let positions = 0..=switch.port_count / MulticastTable::PORTS;
    blocks
        .iter()
        .filter(has_room)
        .flat_map(|&block| positions.clone().map(move |position| (block, position)))
        .collect()
}

fn block_of(lid: u16) -> u16 {
    (lid - FIRST_MULTICAST_LID) / MulticastTable::LIDS
}

/// The phases of multicast tables: what is to be gone first, and then what differs.
pub(super) fn program(inventory: &Inventory, groups: &GroupMembers, held: &Held) -> [Phase; 2] {
    let (mut empty, mut fill) = (Phase::default(), Phase::default());
    let blocks = groups.blocks();
    let has_room = |switch: &&Switch| {
        let capacity = held.infos.get(&switch.guid).map_or(0, SwitchInfo::multicast_capacity);
        let wanted = parts(switch, capacity, &blocks);
        !wanted.is_empty()
            && wanted
                .iter()
                .all(|&(block, position)| held.multicast.contains_key(&(switch.guid, block, position)))
    };
    let trees = Trees::new(inventory, inventory.switches.iter().filter(has_room));
    let leads: BTreeMap<u16, Leads> =
        groups.all().map(|(lid, members)| (lid, trees.of(lid, members))).collect();
    let adapters: BTreeSet<u64> = inventory.adapters.iter().map(|adapter| adapter.node_guid).collect();
    let is_known = |node: u64| trees.has(node) || adapters.contains(&node);
    let is_dangerous = |lid: u16, leads: &Leads| {
        let old = |guid, port| leads_by(held, guid, lid, port);
        let astray = |switch: &Switch| {
            (1..=switch.port_count).any(|port| old(switch.guid, port) && leads_astray(switch, port, is_known))
        };
        trees.closes_a_circle(|guid, port| leads.contains(&(guid, port)) || old(guid, port))
            || inventory.switches.iter().any(astray)
    };
    let dangerous = leads.iter().filter(|&(&lid, leads)| is_dangerous(lid, leads));
    let dangerous: BTreeSet<u16> = dangerous.map(|(&lid, _)| lid).collect();
    for switch in inventory.switches.iter().filter(|switch| trees.has(switch.guid)) {
        for (&(guid, block, position), &old) in
            held.multicast.range((switch.guid, 0, 0)..=(switch.guid, u16::MAX, u8::MAX))
        {
            let (mut new, mut between) = (MulticastTable::EMPTY, old);
            for place in 0..MulticastTable::LIDS {
                let lid = FIRST_MULTICAST_LID + block * MulticastTable::LIDS + place;
                let ports = leads.get(&lid).map_or(0, |leads| ports_at(leads, guid, position));
                new.set(place, ports);
                if dangerous.contains(&lid) {
                    between.set(place, ports & old.ports(place));
                }
            }
            let part = (guid, block, position);
            if between != old {
                empty.drains = true;
                write(switch, part, between, &mut empty);
            }
            if new != between {
                write(switch, part, new, &mut fill);
            }
        }
    }
    [empty, fill]
}

/// Whether by the table that a switch holds packets to a multicast LID leave by a port.
fn leads_by(held: &Held, guid: u64, lid: u16, port: u8) -> bool {
    let part = held.multicast.get(&(guid, block_of(lid), port / MulticastTable::PORTS));
    let ports = part.map_or(0, |part| part.ports(lid % MulticastTable::LIDS));
    ports >> (port % MulticastTable::PORTS) & 1 == 1
}

/// The ports at a position of a switch by which packets of a group leave.
fn ports_at(leads: &Leads, guid: u64, position: u8) -> u16 {
    let first = position * MulticastTable::PORTS;
    let ports = leads.range((guid, first)..=(guid, first + (MulticastTable::PORTS - 1)));
    ports.fold(0, |ports, &(_, port)| ports | 1 << (port - first))
}

fn write(switch: &Switch, part: PartOf, table: MulticastTable, phase: &mut Phase) {
    let (_, block, position) = part;
    let modifier = MulticastTable::modifier(block, position);
    let order = Order::set(Purpose::Multicast { part }, Attribute::MulticastTable, modifier, table.emit());
    phase.writes.push((order, switch.route.clone()));
}
