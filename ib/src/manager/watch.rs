//! A look at all switches, which shows whether anything changed since they were written to.
//!
//! Agents that stand by each look at a share of the switches, and report (`share`). The master itself looks
//! at switches on which they do not report in time, and at those that do not answer them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use mapper_proto::time::Instant;

use super::share::MANAGEMENT_PAIR;
use super::{Event, Stage, SubnetCount, SubnetManager, manner};
use crate::exchange::{Done, Exchange, Order};
use crate::mad::{
    AgentWord, Attribute, MAD_BYTES, MAX_SHARE, ManagerMethod, PortSettings, PortState, ShareSwitch, SmInfo,
    SmState, Smp, SwitchInfo,
};
use crate::packet::{Address, Packet};

/// For how many looks an agent that did not report is given no share. An exploration of the subnet ends this
/// earlier.
const RESTS: u8 = 10;

/// What is looked at.
#[derive(Clone, Copy, Debug)]
enum Look {
    /// A switch. `instead_of` is the GUID of the port of an agent that the switch did not answer by LID, if
    /// there is one.
    Switch { guid: u64, instead_of: Option<u64> },
    /// Another manager.
    Manager { port: u64 },
}

/// Switches that an agent looks at.
#[derive(Debug)]
struct Given {
    /// The GUID of the agent's port.
    agent: u64,
    number: u32,
    /// The GUIDs of the switches.
    switches: Vec<u64>,
    /// The datagram that gave the share to the agent. It is sent again, as it may have been lost, or the
    /// report was.
    packet: Packet,
    is_told_again: bool,
    /// Until when its report is waited for.
    until: Instant,
}

/// A look at all switches that is under way.
#[derive(Debug)]
pub(super) struct Watch {
    exchange: Exchange<Look>,
    /// The GUIDs of the switches that are still to be looked at or given to an agent.
    rest: VecDeque<u64>,
    /// How many switches an agent is given at a time.
    portion: usize,
    given: Vec<Given>,
    /// How many switches each agent reported on, by the GUID of its port.
    reported: BTreeMap<u64, usize>,
}

impl Watch {
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<[u8; MAD_BYTES]> {
        self.exchange.poll_transmit(now)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.given.iter().map(|given| given.until).chain(self.exchange.poll_timeout()).min()
    }
}

impl SubnetManager {
    pub(super) fn begin_watch(&mut self, now: Instant) {
        self.activity = self.activity.wrapping_add(1);
        self.resting.retain(|_, looks| {
            *looks -= 1;
            *looks > 0
        });
        let (others, switches) = (&self.others, &self.inventory.switches);
        let is_there = |&(agent, guid): &(u64, u64)| {
            let is_switch = || switches.iter().any(|switch| switch.guid == guid);
            others.iter().any(|other| other.port == agent) && (guid == agent || is_switch())
        };
        self.unreached.retain(|pair, _| is_there(pair));
        let helpers = self.helpers();
        let mut switches: VecDeque<u64> = self.inventory.switches.iter().map(|switch| switch.guid).collect();
        // Each look begins at another switch, so that in time each agent looks at each switch.
        let first = self.activity as usize % switches.len().max(1);
        switches.rotate_left(first);
        let own = switches.len().div_ceil(helpers.len() + 1);
        let rest = switches.split_off(own);
        let mut watch = Box::new(Watch {
            exchange: Exchange::new(manner(&self.settings), self.next_tid),
            portion: rest.len().div_ceil(helpers.len().max(1)).min(MAX_SHARE),
            rest,
            given: Vec::new(),
            reported: BTreeMap::new(),
        });
        for guid in switches {
            self.look_at(&mut watch, guid, None);
        }
        for other in &self.others {
            let look = Look::Manager { port: other.port };
            watch.exchange.order(Order::get(look, Attribute::SmInfo, 0), other.route.clone());
        }
        for agent in helpers {
            self.give(&mut watch, agent, now);
        }
        if watch.exchange.is_empty() && watch.given.is_empty() {
            // If there is no switch, for instance because the manager's own cable failed, nothing can show
            // what changed.
            return self.begin_sweep(now);
        }
        self.stage = Stage::Watching(watch);
    }

    /// The GUIDs of the ports of agents that can look at switches: those that stand by and know this master.
    fn helpers(&self) -> Vec<u64> {
        let own = self.lids.of(self.inventory.own);
        let knows_master = |settings: &PortSettings| {
            settings.state() == PortState::Active && Some(settings.manager_lid()) == own
        };
        let agents = self.others.iter().filter(|other| {
            other.info.is_agent
                && other.info.state == SmState::Standby
                && !self.resting.contains_key(&other.port)
        });
        let agents = agents.filter(|other| self.inventory.settings_of(other.port).is_some_and(knows_master));
        agents.map(|other| other.port).filter(|_| self.is_up).collect()
    }

    fn look_at(&self, watch: &mut Watch, guid: u64, instead_of: Option<u64>) {
        let switch = self.inventory.switches.iter().find(|switch| switch.guid == guid);
        if let Some(switch) = switch {
            let look = Look::Switch { guid, instead_of };
            watch.exchange.order(Order::get(look, Attribute::SwitchInfo, 0), switch.route.clone());
        }
    }

    /// Gives an agent the next switches, if there are any left.
    fn give(&mut self, watch: &mut Watch, agent: u64, now: Instant) {
        let (Some(own), Some(lid)) = (self.lids.of(self.inventory.own), self.lids.of(agent)) else { return };
        let mut told = Vec::new();
        let mut switches = Vec::new();
        while switches.len() < watch.portion {
            let Some(guid) = watch.rest.pop_front() else { break };
            match self.share_switch(guid) {
                Some(switch) => {
                    switches.push(guid);
                    told.push(switch);
                }
                None => self.look_at(watch, guid, None),
            }
        }
        if switches.is_empty() {
            return;
        }
        self.next_share = self.next_share.wrapping_add(1);
        let number = self.next_share;
        let mad = self.to_agent(self.version(), number, AgentWord::Share(told));
        let level = self.routes.as_ref().map_or(0, |routes| routes.level(own, lid));
        let address = Address::Lid { lid, queue_pair: MANAGEMENT_PAIR, level };
        let packet = Packet { address, mad };
        self.out.push_back(packet.clone());
        let until = now + self.patience();
        watch.given.push(Given { agent, number, switches, packet, is_told_again: false, until });
    }

    /// How long a report is waited for before the share is sent again or the master looks at it. That is as
    /// long as a look at a switch that does not answer takes.
    fn patience(&self) -> Duration {
        let sweep = &self.settings.sweep;
        sweep.timeout.saturating_mul(sweep.retries + 1)
    }

    /// A switch as it is described to an agent.
    fn share_switch(&self, guid: u64) -> Option<ShareSwitch> {
        let switch = self.inventory.switches.iter().find(|switch| switch.guid == guid)?;
        let linear_top = self.held.infos.get(&guid)?.linear_top();
        Some(ShareSwitch { lid: self.lids.of(switch.port_guid)?, linear_top })
    }

    /// Takes an agent's report on its share: the LIDs of switches that changed, and of those that did not
    /// answer.
    pub(super) fn take_report(
        &mut self,
        agent: u64,
        lid: u16,
        number: u32,
        [changed, silent]: [&[u16]; 2],
        now: Instant,
    ) {
        let is_its_lid = self.lids.of(agent) == Some(lid);
        self.with_watch(|manager, watch| {
            let is_it = |given: &Given| (given.agent, given.number) == (agent, number);
            let Some(at) = watch.given.iter().position(is_it).filter(|_| is_its_lid) else { return };
            let given = watch.given.swap_remove(at);
            *watch.reported.entry(agent).or_default() += given.switches.len();
            manager.unreached.remove(&(agent, agent));
            manager.is_stale |= !changed.is_empty();
            for guid in given.switches {
                match manager.share_switch(guid) {
                    Some(switch) if silent.contains(&switch.lid) => {
                        manager.look_at(watch, guid, Some(agent));
                    }
                    _ => drop(manager.unreached.remove(&(agent, guid))),
                }
            }
            manager.give(watch, agent, now);
        });
        self.end_watch(now);
    }

    /// Changes the look under way, if there is one.
    fn with_watch(&mut self, change: impl FnOnce(&mut Self, &mut Watch)) {
        let stage = std::mem::replace(&mut self.stage, Stage::Waiting { until: Instant::FAR });
        self.stage = match stage {
            Stage::Watching(mut watch) => {
                change(self, &mut watch);
                Stage::Watching(watch)
            }
            other => other,
        };
    }

    pub(super) fn time_watch(&mut self, now: Instant) {
        while let Stage::Watching(watch) = &mut self.stage {
            let Some(done) = watch.exchange.handle_timeout(now) else { break };
            self.looked(&done);
        }
        self.with_watch(|manager, watch| {
            let late: Vec<Given> = watch.given.extract_if(.., |given| given.until <= now).collect();
            for given in late {
                if !given.is_told_again {
                    manager.out.push_back(given.packet.clone());
                    let until = now + manager.patience();
                    watch.given.push(Given { is_told_again: true, until, ..given });
                    continue;
                }
                manager.not_reached(given.agent, given.agent);
                manager.counts.count(SubnetCount::SharesReturned);
                manager.resting.insert(given.agent, RESTS);
                manager.tell(Event::ShareReturned { agent: given.agent, switches: given.switches.len() });
                given.switches.into_iter().for_each(|guid| manager.look_at(watch, guid, None));
            }
        });
        self.end_watch(now);
    }

    pub(super) fn answer_watch(&mut self, smp: &Smp<ManagerMethod>, now: Instant) {
        let Stage::Watching(watch) = &mut self.stage else { return };
        if let Some(done) = watch.exchange.handle(smp, |_, _| true) {
            self.looked(&done);
            self.end_watch(now);
        }
    }

    fn looked(&mut self, done: &Done<Look>) {
        let is_as_before = match (done.order.purpose, &done.result) {
            (_, Err(_)) => false,
            (Look::Switch { guid, instead_of }, Ok(data)) => {
                let now = SwitchInfo::parse(data);
                let before = self.held.infos.get(&guid);
                let is_as_before = !now.state_changed()
                    && before.is_some_and(|before| before.linear_top() == now.linear_top());
                if let Some(agent) = instead_of {
                    self.not_reached(agent, guid);
                }
                is_as_before
            }
            (Look::Manager { port }, Ok(data)) => {
                let now = SmInfo::parse(data);
                let before = self.others.iter().find(|other| other.port == port);
                before.is_some_and(|before| {
                    (before.info.guid, before.info.priority, before.info.state)
                        == (now.guid, now.priority, now.state)
                })
            }
        };
        self.is_stale |= !is_as_before;
    }

    /// Takes in that an agent's share, or the question to a switch or its answer, does not get through by
    /// LID, although the switch answers the master along a directed route. Some switch may hold another table
    /// than was written to it, so all tables are read anew. If it happens again, tables are not the reason,
    /// and it is told as a problem.
    fn not_reached(&mut self, agent: u64, which: u64) {
        let times = self.unreached.entry((agent, which)).or_default();
        *times = times.saturating_add(1);
        if *times == 1 {
            self.held.doubted.extend(self.inventory.switches.iter().map(|switch| switch.guid));
            self.is_stale = true;
        }
    }

    /// Ends the look once all is known, or if something else is to be done.
    pub(super) fn end_watch(&mut self, now: Instant) {
        // Switches that were not looked at have their turn the next time.
        let is_more = self.is_more();
        self.with_watch(|manager, watch| {
            if watch.given.is_empty() && !is_more {
                for guid in std::mem::take(&mut watch.rest) {
                    manager.look_at(watch, guid, None);
                }
            }
        });
        let Stage::Watching(watch) = &mut self.stage else { return };
        if !watch.exchange.is_empty() || !(watch.given.is_empty() || is_more) {
            return;
        }
        let next = watch.exchange.next_tid();
        self.reported = std::mem::take(&mut watch.reported);
        self.take_tids(next);
        if self.is_stale {
            self.begin_sweep(now);
        } else {
            self.wait_for_more(now);
        }
    }
}
