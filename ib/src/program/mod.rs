//! What is to be written: everything that is wanted and was not found so.
//!
//! Writes stand in phases. All writes of a phase are confirmed before the next phase begins, so that only
//! writes of one phase are ever in force in part:
//!
//! 1. ports get their addresses, and those that are up are armed, so that they take packets and send none;
//! 2. entries of tables are emptied that could close a circle together with new ones;
//! 3. all other entries change, which are free of circles in any mixture of old and new, except entries that
//!    no host's packets pass;
//! 4. those entries change, and the entries that were emptied get their new values;
//! 5. ports become active.
//!
//! Between 2, 3 and 4, packets that are under way by old entries get the time to arrive or to be dropped, if
//! that matters. An entry of a multicast table that is only of an old tree may close a circle with the new
//! tree, so it is emptied first: in 2 if other packets are waited for there anyway, and in 3 otherwise, so that
//! no host waits for a tree. The new tree follows in the phase behind it. All trees are in force before ports
//! become active, as an old tree may have entries that lead through these ports.

mod lanes;
pub(crate) mod multicast;
mod ports;
mod tables;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::exchange::Order;
use crate::lids::Lids;
use crate::mad::{
    Attribute, Data, ManagerMethod, MulticastTable, NodeInfo, PortSettings, PortState, Route, SwitchInfo,
};
use crate::manager::inventory::{Inventory, Switch};
use crate::manager::task::{Levels, Routes};
use multicast::{GroupMembers, PartOf};

/// How many entries of a table a datagram has.
pub(crate) const BLOCK: usize = 64;
/// The entry of a table that leads nowhere.
pub(crate) const NO_PORT: u8 = 0xFF;
/// What a write is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Purpose {
    /// A port's address, link, or state.
    Port { guid: u64, port: u8 },
    /// A block of a switch's table.
    Table { switch: u64, block: u16 },
    /// How far a switch's table reaches.
    Reach { switch: u64 },
    /// A part of a switch's multicast table.
    Multicast { part: PartOf },
    /// The lanes of service levels, or how lanes take turns.
    Lanes { guid: u64, attribute: Attribute, modifier: u32 },
}

/// A write, and the route to the node that takes it.
pub(crate) type Write = (Order<Purpose>, Route);

/// Writes that may be carried out in any order.
#[derive(Debug, Default)]
pub(crate) struct Phase {
    pub(crate) writes: Vec<Write>,
    /// Whether packets that are under way by old entries are waited for before the next phase.
    pub(crate) drains: bool,
    /// Whether no packet is under way by an old entry of a table any more once that time has passed.
    pub(crate) ends_old: bool,
}

/// What is wanted of ports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) lids: &'a Lids,
    pub(crate) lmc: u8,
    pub(crate) key: u64,
    pub(crate) routes: &'a Routes,
    pub(crate) groups: &'a GroupMembers,
    /// Whether hosts are asked to join and to subscribe again.
    pub(crate) reregister: bool,
}

/// What is known of switches beyond what a sweep finds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// The tables that they hold, as far as they reach, in whole blocks.
    pub(crate) tables: BTreeMap<u64, Vec<u8>>,
    /// What they said of themselves.
    pub(crate) infos: BTreeMap<u64, SwitchInfo>,
    /// Switches whose mark of a change was cleared since their tables were read. If such a switch started
    /// again just before, nothing else shows that its table is gone, so the table is read anew.
    pub(crate) doubted: BTreeSet<u64>,
    /// The parts of multicast tables that were read or written. A switch has either all that groups need, or none.
    pub(crate) multicast: BTreeMap<PartOf, MulticastTable>,
    /// The service levels that hosts were told with these tables, if this manager told them.
    pub(crate) told: Option<Levels>,
    /// Lanes that were written, by node, attribute and modifier.
    pub(crate) lanes: BTreeMap<(u64, Attribute, u32), Data>,
}

impl Held {
    /// Forgets switches that are not among these nodes any more, as another manager may write to them
    /// meanwhile.
    pub(crate) fn keep_only(&mut self, nodes: &BTreeMap<u64, NodeInfo>) {
        self.tables.retain(|guid, _| nodes.contains_key(guid));
        self.infos.retain(|guid, _| nodes.contains_key(guid));
        self.doubted.retain(|guid| nodes.contains_key(guid));
        self.multicast.retain(|(guid, _, _), _| nodes.contains_key(guid));
        self.lanes.retain(|(guid, _, _), _| nodes.contains_key(guid));
    }

    /// The LIDs for which some table has an entry that leads somewhere.
    pub(crate) fn lids_in_use(&self) -> BTreeSet<u16> {
        let mut leads = vec![false; usize::from(u16::MAX) + 1];
        for table in self.tables.values() {
            for (leads, &port) in leads.iter_mut().zip(table) {
                *leads |= port != NO_PORT;
            }
        }
        (0..=u16::MAX).zip(leads).filter(|&(_, leads)| leads).map(|(lid, _)| lid).collect()
    }
}

/// All phases in their order. Some may be empty.
#[derive(Debug)]
pub(crate) struct Phases {
    addresses: Phase,
    tables: [Phase; 3],
    multicast: [Phase; 2],
    activation: Phase,
}

impl Phases {
    /// Whether blocks of tables are written, apart from multicast tables.
    pub(crate) fn change_tables(&self) -> bool {
        self.tables.iter().any(|phase| !phase.writes.is_empty())
    }

    /// Whether trees of multicast groups can follow when all else is written, and nobody else waits for them.
    pub(crate) fn can_put_trees_off(&self) -> bool {
        let is_empty = |phase: &Phase| phase.writes.is_empty();
        is_empty(&self.activation) && !self.multicast.iter().all(is_empty)
    }

    /// The same phases without the trees of multicast groups.
    pub(crate) fn without_trees(mut self) -> Self {
        self.multicast = Default::default();
        self
    }

    /// The phases in the order in which they are to be carried out, those of multicast groups beside those of tables.
    pub(crate) fn in_order(self) -> VecDeque<Phase> {
        let Self { addresses, tables: [mut empty, mut change, mut fill], multicast, activation } = self;
        let trees = if empty.drains { [&mut empty, &mut change] } else { [&mut change, &mut fill] };
        for (phase, of_trees) in trees.into_iter().zip(multicast) {
            phase.writes.extend(of_trees.writes);
            phase.drains |= of_trees.drains;
        }
        change.ends_old = true;
        [addresses, empty, change, fill, activation].into()
    }
}

/// What is to be written, so that switches and ports hold what is wanted.
pub(crate) fn phases(inventory: &Inventory, wanted: Wanted<'_>, held: &Held) -> Phases {
    let mut addresses = Phase::default();
    let mut activation = Phase::default();
    ports::program(inventory, wanted, &mut addresses, &mut activation);
    if wanted.routes.layers > 1 {
        lanes::program(inventory, wanted.routes.layers, held, &mut addresses);
    }
    let tables = tables::program(inventory, wanted.routes, held);
    Phases { addresses, tables, multicast: multicast::program(inventory, wanted.groups, held), activation }
}

/// What is to be written for the trees of multicast groups alone.
pub(crate) fn phases_of_groups(inventory: &Inventory, groups: &GroupMembers, held: &Held) -> VecDeque<Phase> {
    multicast::program(inventory, groups, held).into()
}

/// Routes that leave the entries that are to change last as they are, for a later time.
pub(crate) fn without_last(inventory: &Inventory, mut routes: Routes, held: &Held) -> Routes {
    let last = std::mem::take(&mut routes.last);
    let switches: BTreeMap<u64, &Switch> =
        inventory.switches.iter().map(|switch| (switch.guid, switch)).collect();
    for (guid, lid) in last {
        let port = held.tables.get(&guid).and_then(|table| table.get(usize::from(lid))).copied();
        let is_known = |node: u64| is_known(inventory, &routes, node);
        // An entry that leads to a node whose table is unknown is emptied.
        let port = port
            .filter(|&port| switches.get(&guid).is_some_and(|switch| !leads_astray(switch, port, is_known)));
        let table = routes.tables.get_mut(&guid);
        if let Some(entry) = table.and_then(|table| table.get_mut(usize::from(lid))) {
            *entry = port.unwrap_or(NO_PORT);
        }
    }
    routes
}

/// Whether a node has a table of these routes, or is an adapter or a router.
fn is_known(inventory: &Inventory, routes: &Routes, node: u64) -> bool {
    routes.tables.contains_key(&node) || inventory.adapters.iter().any(|adapter| adapter.node_guid == node)
}

/// Whether packets that leave by a port come to a node for which no table was computed, such as one that did
/// not answer. It may go on forwarding by a table that is not known, so what was proved of all others does
/// not hold for packets that pass it.
fn leads_astray(switch: &Switch, port: u8, is_known: impl Fn(u64) -> bool) -> bool {
    if port == NO_PORT || port == 0 {
        return false;
    }
    match switch.cables.get(&port) {
        Some(&(peer, _)) => !is_known(peer),
        None => switch.ports.get(&port).is_none_or(|settings| settings.state() != PortState::Down),
    }
}

/// Whether a write took effect, from the attribute as it was answered.
pub(crate) fn is_taken(order: &Order<Purpose>, now: &Data) -> bool {
    if order.method != ManagerMethod::Set {
        return true;
    }
    match order.purpose {
        Purpose::Table { .. } | Purpose::Multicast { .. } => order.data == *now,
        Purpose::Reach { .. } => {
            SwitchInfo::parse(&order.data).linear_top() == SwitchInfo::parse(now).linear_top()
        }
        Purpose::Lanes { attribute: Attribute::SlToVl, .. } => order.data[..8] == now[..8],
        Purpose::Lanes { .. } => {
            let given = order.data.chunks_exact(2).filter(|entry| entry[1] != 0).count() * 2;
            order.data[..given] == now[..given]
        }
        Purpose::Port { .. } => {
            let (wanted, now) = (PortSettings::parse(&order.data), PortSettings::parse(now));
            let is_as = |port: &PortSettings| (port.lid(), port.manager_lid(), port.lmc(), port.lanes());
            // An armed link may become active before it is told to, as soon as a packet comes.
            let state = order.data[32] & 0xF;
            is_as(&wanted) == is_as(&now) && (state == 0 || wanted.state() <= now.state())
        }
    }
}
