//! A look at the ports of a switch that told of a change, so that a cable that failed is healed without a whole sweep.
//!
//! Only cables that are gone are acted upon, as whatever is new has to be explored. Only that switch is
//! asked: the way to the other end may have gone by the cable that failed, and a cable with one dead end is
//! dead. A sweep finds what a glance cannot show.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mapper_proto::time::Instant;

use super::inventory::Inventory;
use super::{Stage, SubnetCount, SubnetManager, manner};
use crate::exchange::{Done, Exchange, Order};
use crate::mad::{Attribute, MAD_BYTES, ManagerMethod, PortSettings, PortState, Route, Smp};

/// A question about a port of a switch, which is named by its GUID.
#[derive(Clone, Copy, Debug)]
struct Glance {
    guid: u64,
    port: u8,
}

/// The ports that are looked at.
#[derive(Debug)]
pub(super) struct Glances {
    exchange: Exchange<Glance>,
    /// What the ports told.
    told: BTreeMap<(u64, u8), PortSettings>,
}

impl Glances {
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<[u8; MAD_BYTES]> {
        self.exchange.poll_transmit(now)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.exchange.poll_timeout()
    }
}

impl SubnetManager {
    /// Takes in that the switch with a LID told that a port changed.
    pub(super) fn switch_changed(&mut self, lid: u16, now: Instant) {
        let mut switches = self.inventory.switches.iter();
        let switch = switches.find(|switch| lid != 0 && self.lids.of(switch.port_guid) == Some(lid));
        let Some(guid) = switch.map(|switch| switch.guid) else { return self.suspect(now) };
        match &mut self.stage {
            // Answers to what was asked may be from before the change.
            Stage::Sweeping(_) | Stage::Reading(_) => self.suspect(now),
            Stage::Waiting { until } => {
                self.changed.insert(guid);
                *until = now;
            }
            _ => {
                self.changed.insert(guid);
                self.end_watch(now);
            }
        }
    }

    /// Looks at the switches that told of a change. It is no reason to explore first that a switch may have
    /// lost its table: entries that are lost lead nowhere, so what is proved of the table holds for any part
    /// of it, and the sweep that follows reads the table anew.
    ///
    /// Both ends of a cable that failed tell of it, and the way to the farther one may have gone by that
    /// cable. It is looked at once there are ways around the cables of which the nearer one told.
    pub(super) fn begin_glance(&mut self, now: Instant) {
        let told = self.inventory.switches.iter().filter(|switch| self.changed.contains(&switch.guid));
        let told: Vec<(u64, &[u8])> = told.map(|switch| (switch.guid, switch.route.ports())).collect();
        let is_behind_another = |ports: &[u8]| {
            told.iter().any(|(_, nearer)| nearer.len() < ports.len() && ports.starts_with(nearer))
        };
        let (later, changed): (Vec<_>, Vec<_>) = told.iter().partition(|(_, ports)| is_behind_another(ports));
        let changed: BTreeSet<u64> = changed.into_iter().map(|(guid, _)| guid).collect();
        self.changed = later.into_iter().map(|(guid, _)| guid).collect();
        let mut exchange = Exchange::new(manner(&self.settings), self.next_tid);
        for switch in self.inventory.switches.iter().filter(|switch| changed.contains(&switch.guid)) {
            for &port in switch.cables.keys() {
                let glance = Glance { guid: switch.guid, port };
                exchange.order(Order::get(glance, Attribute::PortInfo, port.into()), switch.route.clone());
            }
        }
        if exchange.is_empty() || self.routes.is_none() {
            return self.begin_sweep(now);
        }
        self.activity = self.activity.wrapping_add(1);
        self.began = now;
        self.sent_before = self.datagrams.sent;
        self.counts.count(SubnetCount::Glances);
        self.stage = Stage::Glancing(Box::new(Glances { exchange, told: BTreeMap::new() }));
    }

    pub(super) fn time_glance(&mut self, now: Instant) {
        let Stage::Glancing(glances) = &mut self.stage else { return };
        if let Some(done) = glances.exchange.handle_timeout(now) {
            self.glanced(&done, now);
        }
    }

    pub(super) fn answer_glance(&mut self, smp: &Smp<ManagerMethod>, now: Instant) {
        let Stage::Glancing(glances) = &mut self.stage else { return };
        if let Some(done) = glances.exchange.handle(smp, |_, _| true) {
            self.glanced(&done, now);
        }
    }

    fn glanced(&mut self, done: &Done<Glance>, now: Instant) {
        let Stage::Glancing(glances) = &mut self.stage else { return };
        let next = glances.exchange.next_tid();
        let Glance { guid, port } = done.order.purpose;
        let Ok(data) = &done.result else {
            self.take_tids(next);
            return self.begin_sweep(now);
        };
        glances.told.insert((guid, port), PortSettings::parse(data));
        if !glances.exchange.is_empty() {
            return;
        }
        let told = std::mem::take(&mut glances.told);
        self.take_tids(next);
        match self.inventory.without_dead(&told) {
            Some(inventory) if !inventory.dead.is_empty() => {
                self.inventory = inventory.rest;
                for other in &mut self.others {
                    let mut adapters = self.inventory.adapters.iter();
                    if let Some(adapter) = adapters.find(|adapter| adapter.port_guid == other.port) {
                        other.route = adapter.route.clone();
                    }
                }
                self.is_urgent = true;
                self.compute(now);
            }
            Some(_) => self.wait_for_more(now),
            None => self.begin_sweep(now),
        }
    }
}

/// What is left of a subnet without cables that are gone.
pub(super) struct Left {
    rest: Inventory,
    /// The ends of cables that are gone.
    dead: BTreeSet<(u64, u8)>,
}

impl Inventory {
    /// This inventory without the cables whose ends are down now, and with ways around these. Hosts keep
    /// their places. `None` if a port changed in any other way, or a switch is cut off.
    pub(super) fn without_dead(&self, told: &BTreeMap<(u64, u8), PortSettings>) -> Option<Left> {
        let mut rest = self.clone();
        let mut dead = BTreeSet::new();
        let places: BTreeMap<u64, usize> =
            self.switches.iter().enumerate().map(|(place, switch)| (switch.guid, place)).collect();
        for (&(guid, port), now) in told {
            let switch = &self.switches[*places.get(&guid)?];
            let before = switch.ports.get(&port)?.state();
            if now.state() == before {
                continue;
            }
            if now.state() != PortState::Down {
                return None;
            }
            let peer = *switch.cables.get(&port)?;
            for (node, port) in [(guid, port), peer] {
                dead.insert((node, port));
                let Some(&place) = places.get(&node) else { continue };
                let switch = &mut rest.switches[place];
                let settings = switch.ports.entry(port).or_default();
                *settings = settings.with_state(PortState::Down);
                if places.contains_key(&peer.0) {
                    switch.cables.remove(&port);
                }
            }
        }
        for adapter in &mut rest.adapters {
            adapter.is_away |= dead.contains(&(adapter.node_guid, adapter.port));
        }
        if !dead.is_empty() {
            rest.find_ways()?;
        }
        Some(Left { rest, dead })
    }

    /// Gives all nodes the shortest ways by the cables that are left; `None` if a switch cannot be reached.
    fn find_ways(&mut self) -> Option<()> {
        let own = self.adapters.iter().find(|adapter| adapter.port_guid == self.own);
        let mut ways: BTreeMap<u64, Route> = BTreeMap::new();
        let first = match own {
            Some(own) if own.is_away => return None,
            Some(own) => {
                let (switch, _) = own.at?;
                ways.insert(switch, Route::LOCAL.through(own.port)?);
                switch
            }
            None => {
                let own = self.switches.iter().find(|switch| switch.port_guid == self.own)?;
                ways.insert(own.guid, Route::LOCAL);
                own.guid
            }
        };
        let switches: BTreeMap<u64, &super::inventory::Switch> =
            self.switches.iter().map(|switch| (switch.guid, switch)).collect();
        let mut next = VecDeque::from([first]);
        while let Some(guid) = next.pop_front() {
            let way = ways.get(&guid)?.clone();
            for (&port, &(peer, _)) in &switches.get(&guid)?.cables {
                if switches.contains_key(&peer) && !ways.contains_key(&peer) {
                    ways.insert(peer, way.through(port)?);
                    next.push_back(peer);
                }
            }
        }
        for switch in &mut self.switches {
            switch.route = ways.get(&switch.guid)?.clone();
        }
        for adapter in self.adapters.iter_mut().filter(|adapter| adapter.port_guid != self.own) {
            let Some((switch, port)) = adapter.at else { continue };
            adapter.route = ways.get(&switch)?.through(port)?;
        }
        Some(())
    }
}
