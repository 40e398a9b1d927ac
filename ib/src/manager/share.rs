//! What an agent that stands by does for the master: it looks at the switches of a share, and reports.
//!
//! It asks them by LID, so that the tables in force are tried as well, from another place than the master's.
//! It needs to know nothing of the subnet for this, so it need not explore when the subnet changes.

use mapper_proto::time::Instant;

use super::election::{MAX_PRIORITY, Manager};
use super::{Event, SubnetCount, SubnetManager, manner};
use crate::exchange::{Done, Exchange, Order};
use crate::mad::{
    AgentMad, AgentWord, Attribute, MAD_BYTES, MANAGERS_KEY, ManagerMethod, PortSettings, PortState, Route,
    RoutedByLid, ShareSwitch, SmInfo, SmState, Smp, SubnetVersion, SwitchInfo,
};
use crate::packet::{Address, Packet};

/// The first number of transactions of looks by LID, between those of everything else and those of commands.
pub(super) const FIRST_LOOK: u32 = 1 << 30;
/// The queue pair of all management but that of the subnet.
pub(super) const MANAGEMENT_PAIR: u32 = 1;
/// After so many questions whether the master lives, an agent that is given no share asks the master for one.
const POLLS_TO_ASK: u32 = 30;

/// The switches that are looked at for the master.
#[derive(Debug)]
pub(super) struct Share {
    /// The master to which the report goes.
    master: Address,
    version: SubnetVersion,
    number: u32,
    exchange: Exchange<ShareSwitch>,
    changed: Vec<u16>,
    silent: Vec<u16>,
}

/// The share that is being looked at, or was last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ShareSeen {
    pub(super) version: SubnetVersion,
    pub(super) switches: usize,
}

/// What another agent would say of itself as a manager, as far as its datagrams by LID show it.
fn agent_info(guid: u64, level: u8, state: SmState) -> SmInfo {
    SmInfo { guid, key: MANAGERS_KEY, activity: 0, priority: level.min(MAX_PRIORITY), state, is_agent: true }
}

impl Share {
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let (smp, switch) = self.exchange.next(now)?;
        let address = Address::Lid { lid: switch.lid, queue_pair: 0, level: 0 };
        Some(Packet { address, mad: RoutedByLid(smp).emit() })
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.exchange.poll_timeout()
    }

    fn looked(&mut self, done: &Done<ShareSwitch>) {
        let ShareSwitch { lid, linear_top } = done.order.purpose;
        match &done.result {
            Ok(data) => {
                let info = SwitchInfo::parse(data);
                if info.state_changed() || info.linear_top() != linear_top {
                    self.changed.push(lid);
                }
            }
            Err(_) => self.silent.push(lid),
        }
    }
}

impl SubnetManager {
    /// Takes what another agent tells: the master what to look at, or an agent what it saw.
    pub(super) fn handle_agent(&mut self, packet: &Packet, now: Instant) {
        let (Ok(told), Address::Lid { lid, .. }) = (AgentMad::parse(&packet.mad), packet.address) else {
            return;
        };
        match told.word {
            AgentWord::Share(switches) => {
                // Only the master may give shares, as a stranger could otherwise have one datagram cause
                // many.
                let own = self.inventory.settings_of(self.inventory.own);
                let is_master =
                    self.role == SmState::Standby && own.is_some_and(|own| own.manager_lid() == lid);
                let is_under_way = self
                    .share
                    .as_ref()
                    .is_some_and(|share| (share.version, share.number) == (told.version, told.number));
                if is_master && !is_under_way {
                    self.follow(told.guid, told.level);
                    self.begin_share(packet.address, told.version, told.number, switches);
                }
            }
            AgentWord::Report { changed, silent } if told.version == self.version() => {
                self.take_report(told.guid, lid, told.number, [&changed, &silent], now);
            }
            AgentWord::Report { .. } => {}
            AgentWord::Ask => self.take_ask(&told, lid, now),
        }
    }

    /// Takes in that the master gave a share, so that it is the one that is waited for from now on. Before,
    /// that may have been another manager that stands by, as it ranks higher and was there first.
    fn follow(&mut self, guid: u64, level: u8) {
        if self.master.as_ref().is_some_and(|master| master.port == guid) {
            return;
        }
        let adapter = self.inventory.adapters.iter().find(|adapter| adapter.port_guid == guid);
        let Some(adapter) = adapter else { return };
        let info = agent_info(guid, level, SmState::Master);
        self.master = Some(Manager { port: guid, info, route: adapter.route.clone() });
        self.tell(Event::StandsBy { other: guid, priority: info.priority });
    }

    /// Takes in that an agent stands by and asks for a share. An agent that is not known yet may outrank this
    /// master, or look at switches for it from now on, so all is looked at. An agent that did not report
    /// before is given shares again.
    fn take_ask(&mut self, told: &AgentMad, lid: u16, now: Instant) {
        if self.role != SmState::Master || self.lids.of(told.guid) != Some(lid) {
            return;
        }
        self.resting.remove(&told.guid);
        let is_known = self.others.iter().any(|other| other.port == told.guid);
        let adapter = self.inventory.adapters.iter().find(|adapter| adapter.port_guid == told.guid);
        let Some(adapter) = adapter.filter(|_| !is_known) else { return };
        let info = agent_info(told.guid, told.level, SmState::Standby);
        if info.outranks(&self.info()) {
            return self.suspect(now);
        }
        self.others.push(Manager { port: told.guid, info, route: adapter.route.clone() });
    }

    /// Asks the master for a share, if the master is an agent that has given none for a while, and the subnet
    /// carries packets by LID.
    pub(super) fn ask_for_share(&mut self) {
        let is_agent = self
            .master
            .as_ref()
            .is_some_and(|master| master.info.is_agent && master.info.state == SmState::Master);
        let own = self.inventory.settings_of(self.inventory.own);
        let own = own.filter(|own| own.state() == PortState::Active && own.manager_lid() != 0);
        let Some(lid) = own.map(PortSettings::manager_lid).filter(|_| is_agent) else { return };
        let is_due = self.polls_without_share.is_multiple_of(POLLS_TO_ASK);
        self.polls_without_share = self.polls_without_share.wrapping_add(1);
        if is_due {
            // The share that this agent had has been given to another one.
            self.share_seen = self.share_seen.map(|seen| ShareSeen { switches: 0, ..seen });
            let version = self.share_seen.map(|seen| seen.version).unwrap_or_default();
            let mad = self.to_agent(version, 0, AgentWord::Ask);
            let address = Address::Lid { lid, queue_pair: MANAGEMENT_PAIR, level: 0 };
            self.out.push_back(Packet { address, mad });
        }
    }

    /// A datagram to another agent.
    pub(super) fn to_agent(&self, version: SubnetVersion, number: u32, word: AgentWord) -> [u8; MAD_BYTES] {
        let level = self.info().priority;
        AgentMad { level, guid: self.inventory.own, version, number, word }.emit()
    }

    fn begin_share(
        &mut self,
        master: Address,
        version: SubnetVersion,
        number: u32,
        switches: Vec<ShareSwitch>,
    ) {
        let mut exchange = Exchange::new(manner(&self.settings), self.next_look);
        self.share_seen = Some(ShareSeen { version, switches: switches.len() });
        self.polls_without_share = 1;
        for switch in switches {
            exchange.order(Order::get(switch, Attribute::SwitchInfo, 0), Route::LOCAL);
        }
        // The numbers stay below those of commands.
        self.next_look =
            Some(exchange.next_tid()).filter(|&next| next < FIRST_LOOK * 2 - 1000).unwrap_or(FIRST_LOOK);
        let (changed, silent) = (Vec::new(), Vec::new());
        self.share = Some(Box::new(Share { master, version, number, exchange, changed, silent }));
        self.end_share();
    }

    pub(super) fn answer_share(&mut self, smp: &Smp<ManagerMethod>) {
        let Some(share) = &mut self.share else { return };
        if let Some(done) = share.exchange.handle(smp, |_, _| true) {
            share.looked(&done);
            self.end_share();
        }
    }

    pub(super) fn time_share(&mut self, now: Instant) {
        let Some(share) = &mut self.share else { return };
        while let Some(done) = share.exchange.handle_timeout(now) {
            share.looked(&done);
        }
        self.end_share();
    }

    /// Reports once all switches were looked at.
    fn end_share(&mut self) {
        let Some(share) = self.share.take_if(|share| share.exchange.is_empty()) else { return };
        self.counts.count(SubnetCount::Shares);
        let word = AgentWord::Report { changed: share.changed, silent: share.silent };
        let mad = self.to_agent(share.version, share.number, word);
        self.out.push_back(Packet { address: share.master, mad });
    }

    /// The subnet as this manager brought it up.
    pub(super) fn version(&self) -> SubnetVersion {
        let counter = u32::try_from(self.counts[SubnetCount::Ups]).unwrap_or(u32::MAX);
        SubnetVersion { master: self.inventory.own, counter }
    }
}
