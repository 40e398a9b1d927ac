//! Reads what a sweep does not ask for: what switches hold, and which other managers there are.

use std::collections::{BTreeMap, BTreeSet};

use mapper_proto::time::Instant;

use super::election::Manager;
use super::inventory::Switch;
use super::{Event, Stage, SubnetManager, manner, why};
use crate::exchange::{Done, Exchange, Order};
use crate::lids::LAST_LID;
use crate::mad::{
    Attribute, Data, MAD_BYTES, ManagerMethod, MulticastTable, PortSettings, Route, SmInfo, Smp, SwitchInfo,
};
use crate::program::multicast::{self, PartOf};
use crate::program::{BLOCK, NO_PORT};

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadingQuestion {
    /// What a switch says of itself.
    Switch { guid: u64 },
    /// A block of its table.
    Block { guid: u64, block: u16 },
    /// A part of its multicast table.
    Multicast { part: PartOf },
    /// What the manager behind a port says of itself.
    Manager { guid: u64 },
}

/// The questions that are open.
#[derive(Debug)]
pub(super) struct Reading {
    exchange: Exchange<ReadingQuestion>,
    /// Switches that did not tell what is needed of them.
    left_out: BTreeSet<u64>,
    managers: Vec<Manager>,
    /// What was known of switches' tables, for those that are read again.
    before: BTreeMap<u64, Vec<u8>>,
}

impl Reading {
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<[u8; MAD_BYTES]> {
        self.exchange.poll_transmit(now)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.exchange.poll_timeout()
    }
}

impl SubnetManager {
    pub(super) fn begin_reading(&mut self, now: Instant) {
        let mut exchange = Exchange::new(manner(&self.settings), self.next_tid);
        for switch in &self.inventory.switches {
            let question = ReadingQuestion::Switch { guid: switch.guid };
            exchange.order(Order::get(question, Attribute::SwitchInfo, 0), switch.route.clone());
        }
        for (guid, route) in self.ports_of_managers() {
            exchange.order(Order::get(ReadingQuestion::Manager { guid }, Attribute::SmInfo, 0), route);
        }
        let reading =
            Reading { exchange, left_out: BTreeSet::new(), managers: Vec::new(), before: BTreeMap::new() };
        self.stage = Stage::Reading(Box::new(reading));
        self.left_out.clear();
        self.has_silent_manager = false;
        self.end_reading(now);
    }

    /// The ports of others that say that a manager runs behind them.
    fn ports_of_managers(&self) -> Vec<(u64, Route)> {
        let own = self.inventory.own;
        let switches = self.inventory.switches.iter().filter_map(|switch| {
            let is_manager = switch.ports.get(&0).is_some_and(PortSettings::is_manager);
            is_manager.then(|| (switch.port_guid, switch.route.clone()))
        });
        let there = self.inventory.adapters.iter().filter(|adapter| !adapter.is_away);
        let adapters = there.filter(|adapter| adapter.settings.is_manager());
        let adapters = adapters.map(|adapter| (adapter.port_guid, adapter.route.clone()));
        switches.chain(adapters).filter(|&(guid, _)| guid != own).collect()
    }

    pub(super) fn time_reading(&mut self, now: Instant) {
        while let Stage::Reading(reading) = &mut self.stage {
            let Some(done) = reading.exchange.handle_timeout(now) else { break };
            self.read(done);
        }
        self.end_reading(now);
    }

    pub(super) fn answer_reading(&mut self, smp: &Smp<ManagerMethod>, now: Instant) {
        let Stage::Reading(reading) = &mut self.stage else { return };
        if let Some(done) = reading.exchange.handle(smp, |_, _| true) {
            self.read(done);
            self.end_reading(now);
        }
    }

    fn read(&mut self, done: Done<ReadingQuestion>) {
        let Stage::Reading(reading) = &mut self.stage else { return };
        let data = match (done.order.purpose, done.result) {
            // A manager that does not answer may be about to end, so its port is not left out. It may also be
            // master, and is asked again later.
            (ReadingQuestion::Manager { .. }, Err(_)) => {
                self.has_silent_manager = true;
                return;
            }
            // A switch whose multicast table is not known still carries everything else.
            (ReadingQuestion::Multicast { part: (guid, _, _) }, Err(failure)) => {
                self.held.multicast.retain(|&(known, _, _), _| known != guid);
                if self.without_groups.insert(guid) {
                    let told = format!("{} takes no multicast groups: {}", self.name_of(guid), why(failure));
                    self.left_out.push(told.clone());
                    self.tell(Event::Problem(told));
                }
                return;
            }
            (ReadingQuestion::Switch { guid } | ReadingQuestion::Block { guid, .. }, Err(failure)) => {
                if reading.left_out.insert(guid) {
                    self.held.tables.remove(&guid);
                    let (name, asked) = (self.name_of(guid), done.order.attribute.name());
                    let told = format!(
                        "{name} is left out: {asked}: {} (directed route {})",
                        why(failure),
                        done.route
                    );
                    self.left_out.push(told.clone());
                    self.tell(Event::Problem(told));
                }
                return;
            }
            (_, Ok(data)) => data,
        };
        match done.order.purpose {
            ReadingQuestion::Manager { guid } => {
                let info = SmInfo::parse(&data);
                reading.managers.push(Manager { port: guid, info, route: done.route });
            }
            ReadingQuestion::Switch { guid } => self.read_switch(guid, SwitchInfo::parse(&data), &done.route),
            ReadingQuestion::Block { guid, block } => self.read_block(guid, block, &data),
            ReadingQuestion::Multicast { part } => {
                self.without_groups.remove(&part.0);
                self.held.multicast.insert(part, MulticastTable::parse(&data));
            }
        }
    }

    /// Asks a switch for its table, unless the table is known.
    fn read_switch(&mut self, guid: u64, info: SwitchInfo, route: &Route) {
        let before = self.held.infos.insert(guid, info);
        let is_known = self.held.tables.contains_key(&guid)
            && !self.held.doubted.remove(&guid)
            && before.is_some_and(|before| before.linear_top() == info.linear_top());
        if !is_known {
            self.held.multicast.retain(|&(known, _, _), _| known != guid);
        }
        self.ask_for_multicast(guid, route);
        if is_known {
            return;
        }
        let blocks = match info.linear_top().min(LAST_LID) {
            0 => 0,
            top => top / BLOCK as u16 + 1,
        };
        let before = self.held.tables.insert(guid, vec![NO_PORT; usize::from(blocks) * BLOCK]);
        let Stage::Reading(reading) = &mut self.stage else { return };
        reading.before.insert(guid, before.unwrap_or_default());
        for block in 0..blocks {
            let question = ReadingQuestion::Block { guid, block };
            reading.exchange.order(Order::get(question, Attribute::LinearTable, block.into()), route.clone());
        }
    }

    /// Asks a switch for those parts of its multicast table that groups need and that are not known.
    fn ask_for_multicast(&mut self, guid: u64, route: &Route) {
        let switch = self.inventory.switches.iter().find(|switch| switch.guid == guid);
        let parts = switch.map(|switch| self.unknown_parts(switch)).unwrap_or_default();
        let Stage::Reading(reading) = &mut self.stage else { return };
        for (block, position) in parts {
            let question = ReadingQuestion::Multicast { part: (guid, block, position) };
            let modifier = MulticastTable::modifier(block, position);
            reading.exchange.order(Order::get(question, Attribute::MulticastTable, modifier), route.clone());
        }
    }

    /// The parts of a switch's multicast table that groups need and that are not known, by block and
    /// position.
    pub(super) fn unknown_parts(&self, switch: &Switch) -> Vec<(u16, u8)> {
        let capacity = self.held.infos.get(&switch.guid).map_or(0, SwitchInfo::multicast_capacity);
        let mut parts = multicast::parts(switch, capacity, &self.groups.blocks());
        parts.retain(|&(block, position)| !self.held.multicast.contains_key(&(switch.guid, block, position)));
        parts
    }

    fn read_block(&mut self, guid: u64, block: u16, data: &Data) {
        let top = self.held.infos.get(&guid).map_or(0, SwitchInfo::linear_top);
        let first = usize::from(block) * BLOCK;
        let Some(table) = self.held.tables.get_mut(&guid) else { return };
        let Some(part) = table.get_mut(first..first + BLOCK) else { return };
        part.copy_from_slice(data);
        // Entries beyond the top are not in force.
        let reach = (usize::from(top) + 1).saturating_sub(first).min(BLOCK);
        part[reach..].fill(NO_PORT);
    }

    fn end_reading(&mut self, now: Instant) {
        let Stage::Reading(reading) = &mut self.stage else { return };
        if !reading.exchange.is_empty() {
            return;
        }
        let next = reading.exchange.next_tid();
        let (left_out, managers) =
            (std::mem::take(&mut reading.left_out), std::mem::take(&mut reading.managers));
        for (guid, before) in std::mem::take(&mut reading.before) {
            // A switch that has lost its table has lost its lanes as well.
            if self.held.tables.get(&guid) != Some(&before) {
                self.held.lanes.retain(|&(node, _, _), _| node != guid);
            }
        }
        self.take_tids(next);
        if !left_out.is_empty() {
            self.inventory.leave_out(&left_out);
            self.is_stale = true;
        }
        self.others = managers;
        self.resting.clear();
        self.elect(now);
    }

    /// A node by its description and GUID.
    pub(super) fn name_of(&self, guid: u64) -> String {
        let switches = self.inventory.switches.iter().map(|switch| (switch.guid, &switch.description));
        let adapters =
            self.inventory.adapters.iter().map(|adapter| (adapter.node_guid, &adapter.description));
        let description = switches.chain(adapters).find(|&(known, _)| known == guid).map(|(_, name)| name);
        match description {
            Some(name) if !name.is_empty() => format!("{} ({guid:#x})", mapper_proto::quote::quoted(name)),
            _ => format!("node {guid:#x}"),
        }
    }
}
