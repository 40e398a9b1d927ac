//! Which manager is master. Managers exchange SMInfo, so that there is only one.

use std::cmp::Reverse;

use mapper_proto::time::Instant;

use super::{Event, Stage, SubnetCount, SubnetManager, WrongKeys, manner};
use crate::exchange::{Done, Exchange, Order};
use crate::mad::{
    Attribute, Command, Data, MAD_BYTES, MANAGERS_KEY, ManagerMethod, Route, SmInfo, SmState, Smp,
};

/// The highest priority of a manager.
pub(super) const MAX_PRIORITY: u8 = 15;

/// How many retries another master that ranks lower is waited for before this one writes beside it.
const MOST_WAITS: u8 = 5;

/// Another manager.
#[derive(Clone, Debug)]
pub(super) struct Manager {
    /// The GUID of the port behind which it runs.
    pub(super) port: u64,
    pub(super) info: SmInfo,
    pub(super) route: Route,
}

/// A command that another manager was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) command: Command,
    pub(super) to: u64,
}

/// The questions that a manager asks again and again while it stands by.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// Whether the master lives.
    Master,
    /// The state of the port behind which this manager runs, which shows whether the master has brought the
    /// subnet up.
    OwnPort { node: u64, port: u8 },
}

/// The questions under way while standing by.
#[derive(Debug)]
pub(super) struct Polling {
    exchange: Box<Exchange<Asked>>,
    /// What the master said.
    answer: Option<Data>,
}

impl Polling {
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<[u8; MAD_BYTES]> {
        self.exchange.poll_transmit(now)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.exchange.poll_timeout()
    }
}

impl SubnetManager {
    /// What this manager says of itself.
    pub(super) fn info(&self) -> SmInfo {
        SmInfo {
            guid: self.inventory.own,
            key: MANAGERS_KEY,
            activity: self.activity,
            priority: self.settings.priority.unwrap_or_default().min(MAX_PRIORITY),
            state: self.role,
            is_agent: true,
        }
    }

    /// Decides which manager is to be master, once all others are known.
    pub(super) fn elect(&mut self, now: Instant) {
        let own = self.info();
        let highest = |state: &dyn Fn(SmState) -> bool| {
            let fitting = self.others.iter().filter(|other| state(other.info.state));
            fitting.max_by_key(|other| (other.info.priority, Reverse(other.info.guid))).cloned()
        };
        let master = highest(&|state| state == SmState::Master);
        let contested = std::mem::take(&mut self.contested);
        let waiting = highest(&|state| matches!(state, SmState::Standby | SmState::Discovering));
        match (master, waiting) {
            (Some(master), _) if self.role != SmState::Master => self.stand_by(Some(master), now),
            (Some(master), _) if master.info.outranks(&own) => self.hand_over(&master, now),
            (Some(master), _) => {
                let (other, priority) = (master.info.guid, master.info.priority);
                self.tell(Event::SecondMaster { other, priority });
                // The other master gives way when it hears of this one, and perhaps only this command tells
                // it. Looking again shows whether it has done so.
                self.command(Command::Discover, master.port, master.route.clone());
                self.is_stale = true;
                if contested >= MOST_WAITS {
                    return self.become_master(now);
                }
                // The other master gets time to end its writes and give way. What it wrote is not known here.
                self.contested = contested + 1;
                self.held = crate::program::Held::default();
                self.retry(now);
            }
            (None, _) if self.settings.priority.is_none() => self.stand_by(None, now),
            (None, Some(other)) if other.info.outranks(&own) => match (self.role, other.info.state) {
                (SmState::Master, SmState::Standby) => self.hand_over(&other, now),
                // A manager that explores is not ready to take over, and will say so when it is.
                (SmState::Master, _) => self.become_master(now),
                _ => self.stand_by(Some(other), now),
            },
            // If two managers start together and one loses the other's answers, both would write, so this one
            // looks once more. It does not wait if it takes over from a master that is silent now.
            (None, _)
                if self.counts[SubnetCount::Sweeps] == 1
                    && (self.is_somebody_silent || self.has_silent_manager) =>
            {
                self.begin_sweep(now);
            }
            (None, _) => self.become_master(now),
        }
    }

    fn become_master(&mut self, now: Instant) {
        if self.role != SmState::Master {
            self.role = SmState::Master;
            self.look_for_administration();
            self.reregister = true;
            self.tell(Event::Master);
        }
        self.master = None;
        self.compute(now);
    }

    /// Begins to stand by, until the other manager goes or, if there is none, until one comes.
    fn stand_by(&mut self, other: Option<Manager>, now: Instant) {
        let known = |manager: &Option<Manager>| manager.as_ref().map(|manager| manager.info.guid);
        if let Some(other) = &other
            && (self.role != SmState::Standby || known(&self.master) != Some(other.info.guid))
        {
            self.tell(Event::StandsBy { other: other.info.guid, priority: other.info.priority });
        }
        self.role = SmState::Standby;
        self.is_up = false;
        self.told_up = None;
        self.unwritten.clear();
        self.wrong_keys = WrongKeys::default();
        self.routing_failure = None;
        self.administration.end();
        self.look_for_administration();
        // The master writes to switches, so what was known of them does not count any more.
        self.held = crate::program::Held::default();
        self.master = other;
        self.share = None;
        self.share_seen = None;
        self.polls_without_share = 0;
        self.stage = Stage::Waiting { until: now + self.settings.poll_interval };
    }

    fn hand_over(&mut self, other: &Manager, now: Instant) {
        self.command(Command::Handover, other.port, other.route.clone());
        self.tell(Event::HandedOver { to: other.info.guid });
        self.stand_by(Some(other.clone()), now);
    }

    /// Hands the subnet over to the highest manager that stands by, if there is one.
    pub(super) fn hand_over_at_the_end(&mut self) {
        if self.role != SmState::Master {
            return;
        }
        let waiting = self.others.iter().filter(|other| other.info.state == SmState::Standby);
        let next = waiting.max_by_key(|other| (other.info.priority, Reverse(other.info.guid))).cloned();
        if let Some(next) = next {
            self.command(Command::Handover, next.port, next.route);
            self.tell(Event::HandedOver { to: next.info.guid });
        }
    }

    fn command(&mut self, command: Command, to: u64, route: Route) {
        let data = self.info().emit();
        let told = Told { command, to };
        self.commands.order(Order::set(told, Attribute::SmInfo, command.modifier(), data), route);
    }

    pub(super) fn command_ended(&mut self, done: &Done<Told>, now: Instant) {
        let Told { command, to } = done.order.purpose;
        if done.result.is_err() && command == Command::Handover && !self.leaving {
            self.tell(Event::MasterGone { other: to });
            self.discover(now);
        }
    }

    /// Explores anew, as the master may be gone.
    fn discover(&mut self, now: Instant) {
        if self.role == SmState::Standby {
            self.role = SmState::Discovering;
            self.share = None;
            self.look_for_administration();
            self.master = None;
            self.begin_sweep(now);
        }
    }

    pub(super) fn begin_polling(&mut self, master: &Manager) {
        let mut exchange = Exchange::new(manner(&self.settings), self.next_tid);
        if let Some(own) = self.inventory.own_adapter() {
            let asked = Asked::OwnPort { node: own.node_guid, port: own.port };
            exchange.order(Order::get(asked, Attribute::PortInfo, own.port.into()), Route::LOCAL);
        }
        exchange.order(Order::get(Asked::Master, Attribute::SmInfo, 0), master.route.clone());
        self.stage = Stage::Polling(Polling { exchange: Box::new(exchange), answer: None });
    }

    pub(super) fn time_polling(&mut self, now: Instant) {
        while let Stage::Polling(polling) = &mut self.stage {
            let Some(done) = polling.exchange.handle_timeout(now) else { break };
            self.polled(&done, now);
        }
    }

    pub(super) fn answer_polling(&mut self, smp: &Smp<ManagerMethod>, now: Instant) {
        let Stage::Polling(polling) = &mut self.stage else { return };
        if let Some(done) = polling.exchange.handle(smp, |_, _| true) {
            self.polled(&done, now);
        }
    }

    fn polled(&mut self, done: &Done<Asked>, now: Instant) {
        let Stage::Polling(polling) = &mut self.stage else { return };
        match (done.order.purpose, &done.result) {
            (Asked::Master, Ok(data)) => polling.answer = Some(*data),
            (Asked::OwnPort { node, port }, Ok(data)) => self.inventory.take_note(node, port, data),
            (_, Err(_)) => {}
        }
        if !polling.exchange.is_empty() {
            return;
        }
        let (answer, next) = (polling.answer, polling.exchange.next_tid());
        self.take_tids(next);
        self.look_for_administration();
        let own = self.info();
        let Some(master) = &mut self.master else { return };
        let info = answer.map(|data| SmInfo::parse(&data)).filter(|info| info.guid == master.info.guid);
        let goes_on = info.filter(|info| match info.state {
            SmState::Master => true,
            SmState::Standby | SmState::Discovering => info.outranks(&own),
            SmState::NotActive => false,
        });
        match goes_on {
            Some(info) => {
                master.info = info;
                let port = master.port;
                if let Some(known) = self.others.iter_mut().find(|other| other.port == port) {
                    known.info = info;
                }
                self.stage = Stage::Waiting { until: now + self.settings.poll_interval };
                self.ask_for_share();
            }
            None => {
                let other = master.info.guid;
                self.tell(Event::MasterGone { other });
                self.discover(now);
            }
        }
    }

    /// Does what another manager commands. `sender` is what that manager said of itself.
    pub(super) fn obey(&mut self, command: Command, sender: &SmInfo, now: Instant) {
        if sender.key != MANAGERS_KEY {
            return;
        }
        match (command, self.role) {
            (Command::Handover, SmState::Standby | SmState::Discovering)
                if self.settings.priority.is_some() =>
            {
                self.role = SmState::Master;
                self.share = None;
                self.look_for_administration();
                self.reregister = true;
                let before =
                    self.others.iter().chain(&self.master).find(|other| other.info.guid == sender.guid);
                let back = before.map(|other| (other.port, other.route.clone()));
                if let Some((port, route)) = back {
                    self.command(Command::Acknowledge, port, route);
                }
                self.master = None;
                self.tell(Event::Master);
                self.begin_sweep(now);
            }
            // Another master has found this one and gives way. What it wrote is not known here.
            (Command::Handover, SmState::Master) => {
                self.held = crate::program::Held::default();
                if let Some(other) = self.others.iter().find(|other| other.info.guid == sender.guid) {
                    let (port, route) = (other.port, other.route.clone());
                    self.command(Command::Acknowledge, port, route);
                }
                match self.stage {
                    // What was read so far is forgotten as well, so nothing is computed of the rest, and no writing goes on.
                    Stage::Reading(_) | Stage::Computing { .. } | Stage::Writing(_) | Stage::Glancing(_) => {
                        self.retry(now);
                    }
                    _ => self.suspect(now),
                }
            }
            (Command::Disable, SmState::Standby) => {
                self.role = SmState::NotActive;
                self.share = None;
                self.look_for_administration();
                self.master = None;
                self.stage = Stage::Waiting { until: Instant::FAR };
            }
            (Command::Standby, SmState::NotActive) => {
                self.role = SmState::Standby;
                self.stage = Stage::Waiting { until: now };
            }
            (Command::Discover, SmState::Standby) => self.discover(now),
            (Command::Discover, SmState::Master) => self.suspect(now),
            _ => {}
        }
    }
}
