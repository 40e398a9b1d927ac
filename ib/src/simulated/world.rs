//! A subnet with its managers in virtual time, and what becomes of datagrams between them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use mapper_proto::time::Instant;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::model::Model;
use super::{Engines, Violation};
use crate::lids::Lids;
use crate::mad::{
    AGENT_CLASS, Attribute, MAD_BYTES, ManagerMethod, Notice, PortState, Route, RoutedByLid, SmState, Smp,
};
use crate::manager::{Routes, Settings, Status, SubnetManager};
use crate::packet::{Address, Packet};
use crate::sweep::PortOf;

/// How long a datagram takes that is not late.
const FLIGHT: Duration = Duration::from_micros(20);
/// How long the engines take.
const COMPUTATION: Duration = Duration::from_millis(3);

/// Something that goes wrong, or is put right. Nodes are counted from 0, hosts before switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A cable is cut, named by one of its ends.
    Cut(PortOf),
    /// It is mended, as far as its ends are free.
    Mend([PortOf; 2]),
    /// A switch starts again, and knows nothing.
    Reset(usize),
    /// A switch answers nobody, and forwards on.
    Silent(usize, bool),
    /// A switch takes no writes.
    Refuse(usize, bool),
    /// A manager ends without a word.
    Kill(usize),
    /// It starts again, with the LIDs that it kept.
    Start(usize),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Cut((node, port)) => write!(f, "cut node {node} port {port}"),
            Self::Mend([(a, from), (b, to)]) => write!(f, "mend node {a} port {from} to node {b} port {to}"),
            Self::Reset(switch) => write!(f, "reset node {switch}"),
            Self::Silent(switch, true) => write!(f, "silence node {switch}"),
            Self::Silent(switch, false) => write!(f, "node {switch} answers again"),
            Self::Refuse(switch, true) => write!(f, "node {switch} takes no writes"),
            Self::Refuse(switch, false) => write!(f, "node {switch} takes writes again"),
            Self::Kill(manager) => write!(f, "kill manager {manager}"),
            Self::Start(manager) => write!(f, "start manager {manager}"),
        }
    }
}

/// How often datagrams meet with something.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noise {
    pub(crate) lost: f64,
    pub(crate) twice: f64,
    pub(crate) late: f64,
    /// An answer to a write says something else.
    pub(crate) garbled: f64,
}

/// What is under way.
#[derive(Debug)]
enum Coming {
    /// From the manager of this number, who lived for the nth time, to a node.
    Request { from: usize, life: u32, packet: Packet },
    /// To a manager.
    Arrival { to: usize, life: u32, packet: Packet },
    /// Tables that were computed for a manager.
    Computed { to: usize, life: u32, number: u64, routes: Result<Routes, String> },
}

/// A manager, where it runs, and how often it was started.
struct Place {
    manager: Option<SubnetManager>,
    host: usize,
    priority: u8,
    life: u32,
    lids: Lids,
}

/// A subnet with its managers.
pub(crate) struct World<'a> {
    pub(crate) model: Model,
    engines: Engines<'a>,
    places: Vec<Place>,
    noise: Noise,
    rng: ChaCha8Rng,
    pub(crate) now: Instant,
    coming: BTreeMap<(Instant, u64), Coming>,
    next: u64,
    silent: BTreeSet<usize>,
    refusing: BTreeSet<usize>,
    /// The first thing that must not be.
    wrong: Option<Violation>,
}

impl<'a> World<'a> {
    /// A subnet with managers behind these hosts, with their priorities.
    pub(crate) fn new(
        model: Model,
        engines: Engines<'a>,
        managers: &[(usize, u8)],
        noise: Noise,
        seed: u64,
    ) -> Self {
        let place = |&(host, priority): &(usize, u8)| Place {
            manager: None,
            host,
            priority,
            life: 0,
            lids: Lids::default(),
        };
        let mut world = Self {
            model,
            engines,
            places: managers.iter().map(place).collect(),
            noise,
            rng: ChaCha8Rng::seed_from_u64(seed ^ 0xD06F00D),
            now: Instant::ZERO,
            coming: BTreeMap::new(),
            next: 0,
            silent: BTreeSet::new(),
            refusing: BTreeSet::new(),
            wrong: None,
        };
        (0..managers.len()).for_each(|number| world.start(number));
        world
    }

    /// How many blocks of tables were written so far.
    pub(crate) fn writes(&self) -> u64 {
        self.model.table_writes
    }

    fn start(&mut self, number: usize) {
        let place = &mut self.places[number];
        if place.manager.is_none() {
            let settings = Settings {
                priority: Some(place.priority),
                watch_interval: Duration::from_secs(2),
                ..super::settings()
            };
            place.life += 1;
            place.manager = Some(SubnetManager::new(settings, place.lids.clone(), self.now));
            self.model.set_manager(place.host, true);
        }
    }

    fn kill(&mut self, number: usize) {
        let place = &mut self.places[number];
        if let Some(manager) = place.manager.take() {
            // What it kept in its file outlives it.
            place.lids = manager.lids().clone();
            self.model.set_manager(place.host, false);
        }
    }

    pub(crate) fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Cut(end) => {
                if !self.model.is_bridge(end) {
                    let ends = self.model.cables.get(&end).map(|&far| [end, far]);
                    self.model.cut(end);
                    ends.into_iter().flatten().for_each(|end| self.trap(end.0));
                }
            }
            Fault::Mend([a, b]) => {
                if !self.model.cables.contains_key(&a) && !self.model.cables.contains_key(&b) {
                    self.model.cable(a, b);
                    [a, b].into_iter().for_each(|end| self.trap(end.0));
                }
            }
            Fault::Reset(switch) => self.model.reset(switch),
            Fault::Silent(switch, is_so) => {
                let _was = if is_so { self.silent.insert(switch) } else { self.silent.remove(&switch) };
            }
            Fault::Refuse(switch, is_so) => {
                let _was = if is_so { self.refusing.insert(switch) } else { self.refusing.remove(&switch) };
            }
            Fault::Kill(number) => self.kill(number),
            Fault::Start(number) => self.start(number),
        }
    }

    /// A switch tells all managers that a port changed; only the master takes note.
    fn trap(&mut self, node: usize) {
        let Some(own) = self.model.nodes[node].ports.get(&0) else { return };
        let packet = trap_of(Notice::LINK_STATE, own.lid());
        for number in 0..self.places.len() {
            if !self.rng.random_bool(self.noise.lost) {
                let life = self.places[number].life;
                self.send(Coming::Arrival { to: number, life, packet: packet.clone() });
            }
        }
    }

    /// Puts everything right: the cables as they were, no noise, all managers at work.
    pub(crate) fn heal(&mut self, whole: &Model) {
        for (&a, &b) in &whole.cables {
            if a < b {
                self.strike(Fault::Mend([a, b]));
            }
        }
        self.silent.clear();
        self.refusing.clear();
        self.noise = Noise::default();
        (0..self.places.len()).for_each(|number| self.start(number));
    }

    fn send(&mut self, coming: Coming) {
        let delay = match coming {
            Coming::Computed { .. } => COMPUTATION,
            // A request that is late still comes before it is sent again: who writes cannot defend itself against writes of
            // its own that come after later ones.
            Coming::Request { .. } if self.rng.random_bool(self.noise.late) => Duration::from_millis(60),
            Coming::Arrival { .. } if self.rng.random_bool(self.noise.late) => {
                Duration::from_millis(self.rng.random_range(1..250))
            }
            _ => FLIGHT,
        };
        self.next += 1;
        self.coming.insert((self.now + delay, self.next), coming);
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// If something is that must not be.
    pub(crate) fn run_until(&mut self, end: Instant) -> Result<(), Violation> {
        while self.wrong.is_none() {
            for number in 0..self.places.len() {
                self.drain(number);
            }
            let managers = self.places.iter().filter_map(|place| place.manager.as_ref());
            let timeouts = managers.filter_map(SubnetManager::poll_timeout);
            let arrivals = self.coming.keys().map(|&(at, _)| at).next();
            let Some(at) = timeouts.chain(arrivals).min().filter(|&at| at <= end) else { break };
            self.now = self.now.max(at);
            while let Some(first) = self.coming.first_entry().filter(|first| first.key().0 <= self.now) {
                let coming = first.remove();
                self.take(coming);
            }
            for place in &mut self.places {
                if let Some(manager) = &mut place.manager {
                    manager.handle_timeout(self.now);
                }
            }
        }
        self.now = self.now.max(end);
        self.wrong.take().map_or(Ok(()), Err)
    }

    /// Takes what a manager has to send and to have computed.
    fn drain(&mut self, number: usize) {
        let life = self.places[number].life;
        let now = self.now;
        while let Some(packet) = self.places[number].manager.as_mut().and_then(|it| it.poll_transmit(now)) {
            self.carry(number, life, &packet);
        }
        let Some(manager) = &mut self.places[number].manager else { return };
        while manager.poll_event().is_some() {}
        if let Some(task) = manager.poll_task() {
            let (number_of_task, routes) = (task.number, (self.engines)(&task));
            self.send(Coming::Computed { to: number, life, number: number_of_task, routes });
        }
    }

    /// Puts a manager's datagram on its way. Its number has that of the manager in its upper half, which answers bring back.
    fn carry(&mut self, from: usize, life: u32, packet: &Packet) {
        let mark = |tid: u64| tid & u64::from(u32::MAX) | (from as u64 + 1) << 32;
        let mad = match Smp::<ManagerMethod>::parse(&packet.mad) {
            Ok(smp) if smp.method == ManagerMethod::GetResponse => {
                // It answers another manager, whose number came with the question.
                let to = (smp.tid >> 32) as usize - 1;
                if self.model.walk(self.places[to].host, &smp.route).is_some() {
                    self.answer(
                        to,
                        self.places[to].life,
                        Packet { address: Address::Directed, mad: packet.mad },
                    );
                }
                return;
            }
            Ok(smp) => Smp { tid: mark(smp.tid), ..smp }.emit(),
            Err(_) => match RoutedByLid::<ManagerMethod>::parse(&packet.mad) {
                Ok(RoutedByLid(smp)) => RoutedByLid(Smp { tid: mark(smp.tid), ..smp }).emit(),
                Err(_) => packet.mad,
            },
        };
        if self.rng.random_bool(self.noise.lost) {
            return;
        }
        let packet = Packet { address: packet.address, mad };
        if self.rng.random_bool(self.noise.twice) {
            self.send(Coming::Request { from, life, packet: packet.clone() });
        }
        self.send(Coming::Request { from, life, packet });
    }

    fn answer(&mut self, to: usize, life: u32, packet: Packet) {
        if self.rng.random_bool(self.noise.lost) {
            return;
        }
        if self.rng.random_bool(self.noise.twice) {
            self.send(Coming::Arrival { to, life, packet: packet.clone() });
        }
        self.send(Coming::Arrival { to, life, packet });
    }

    fn take(&mut self, coming: Coming) {
        let now = self.now;
        let alive = |place: &mut Place, life: u32| place.life == life;
        match coming {
            Coming::Request { from, life, packet } => match packet.address {
                Address::Directed => self.take_request(from, life, &packet.mad),
                Address::Lid { lid, .. } => self.take_by_lid(from, life, lid, &packet.mad),
            },
            Coming::Arrival { to, life, packet } if alive(&mut self.places[to], life) => {
                if let Some(manager) = &mut self.places[to].manager {
                    manager.handle_packet(&packet, now);
                }
            }
            Coming::Computed { to, life, number, routes } if alive(&mut self.places[to], life) => {
                if let Some(manager) = &mut self.places[to].manager {
                    manager.handle_routes(number, routes, now);
                }
            }
            Coming::Arrival { .. } | Coming::Computed { .. } => {}
        }
    }

    /// A request comes to the node at the end of its route. What switches hold is looked at after each write.
    fn take_request(&mut self, from: usize, life: u32, mad: &[u8; MAD_BYTES]) {
        let Ok(asked) = Smp::<ManagerMethod>::parse(mad) else { return };
        let host = self.places[from].host;
        let Some((node, _)) = self.model.walk(host, &asked.route) else { return };
        if self.silent.contains(&node) {
            return;
        }
        if asked.attribute == Attribute::SmInfo {
            let mut there = self.places.iter().enumerate();
            let Some((to, place)) = there.find(|(_, place)| place.host == node) else { return };
            let (life, packet) = (place.life, Packet { address: Address::Directed, mad: *mad });
            return self.take(Coming::Arrival { to, life, packet });
        }
        let refuse = self.refusing.contains(&node);
        let Some(mut answer) = self.model.answer(host, &asked, refuse) else { return };
        if asked.method == ManagerMethod::Set {
            let checked = self.model.check_circles().and_then(|()| self.model.check_storms());
            if let Err(why) = checked {
                self.wrong.get_or_insert(Violation { at: self.now, why });
            }
            if self.rng.random_bool(self.noise.garbled) {
                answer.data[self.rng.random_range(0..64)] ^= 0x41;
            }
        }
        self.answer(from, life, Packet { address: Address::Directed, mad: answer.emit() });
    }

    /// A datagram goes to a LID by the tables in force, and so does what answers it: a question to a switch, or word from one
    /// agent to another.
    fn take_by_lid(&mut self, from: usize, life: u32, lid: u16, mad: &[u8; MAD_BYTES]) {
        let host = self.places[from].host;
        let own = self.model.nodes[host].ports[&1].lid();
        let Some(end) = self.model.reached(host, lid) else { return };
        let from_lid = |lid: u16| Address::Lid { lid, queue_pair: 1, level: 0 };
        if mad[1] == AGENT_CLASS {
            let mut there = self.places.iter().enumerate();
            let Some((to, place)) = there.find(|(_, place)| place.host == end.0) else { return };
            let (life, packet) = (place.life, Packet { address: from_lid(own), mad: *mad });
            return self.take(Coming::Arrival { to, life, packet });
        }
        let Ok(RoutedByLid(asked)) = RoutedByLid::<ManagerMethod>::parse(mad) else { return };
        if asked.method != ManagerMethod::Get {
            // Word that a trap came, which nobody waits for here.
            return;
        }
        let is_back = self.model.reached(end.0, own).is_some_and(|(back, _)| back == host);
        if is_back && !self.silent.contains(&end.0) {
            let answer = RoutedByLid(self.model.answer_at(end, &asked, false));
            self.answer(from, life, Packet { address: from_lid(lid), mad: answer.emit() });
        }
    }

    /// What the managers that run know and do.
    pub(crate) fn statuses(&self) -> Vec<Status> {
        self.places.iter().filter_map(|place| place.manager.as_ref()).map(SubnetManager::status).collect()
    }

    /// Whether the subnet is up and has one master.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn check_well(&self) -> Result<(), Violation> {
        let wrong = |why| Violation { at: self.now, why };
        let roles: Vec<SmState> = self.statuses().iter().map(|status| status.role).collect();
        if roles.iter().filter(|&&role| role == SmState::Master).count() != 1 {
            return Err(wrong(format!("managers are {roles:?}, and one is to be master")));
        }
        self.model.check_up().and_then(|()| self.model.check_circles()).map_err(wrong)?;
        let ports = self.model.nodes.iter().flat_map(|node| node.ports.range(1..));
        let is_half = |state| matches!(state, PortState::Initialize | PortState::Armed);
        match ports.filter(|(_, port)| is_half(port.state())).count() {
            0 => Ok(()),
            half => Err(wrong(format!("{half} ports are on their way up"))),
        }
    }

    /// How many shares of switches agents looked at for their master so far.
    pub(crate) fn shares(&self) -> u64 {
        self.statuses().iter().map(|status| status.counts.shares).sum()
    }

    /// Whether all switches are looked at, and the agents that do so know the subnet as its master brought it up.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn check_shares(&self) -> Result<(), Violation> {
        let wrong = |why| Err(Violation { at: self.now, why });
        let statuses = self.statuses();
        let Some(master) = statuses.iter().find(|status| status.role == SmState::Master) else {
            return wrong("there is no master".to_owned());
        };
        let looks =
            |agent: &&Status| master.others.iter().any(|other| other.guid == agent.guid && other.share > 0);
        if let Some(agent) = statuses.iter().filter(looks).find(|agent| agent.version != master.version) {
            return wrong(format!(
                "agent {:#x} looks at switches of {:?}, and its master brought up {:?}",
                agent.guid, agent.version, master.version
            ));
        }
        let shared: usize = master.others.iter().map(|other| other.share).sum();
        if shared + master.share != master.switches {
            return wrong(format!(
                "{shared} and {} of {} switches are looked at",
                master.share, master.switches
            ));
        }
        if master.problems.is_empty() { Ok(()) } else { wrong(master.problems.join("; ")) }
    }
}

/// A switch with a LID tells that something happened.
pub(crate) fn trap_of(number: u16, lid: u16) -> Packet {
    let notice = Notice { number: Some(number), issuer: lid, subject: lid };
    let smp = Smp {
        method: ManagerMethod::Trap,
        status: 0,
        tid: 77,
        attribute: Attribute::Notice,
        modifier: 0,
        key: 0,
        route: Route::LOCAL,
        data: notice.emit(),
    };
    let address = Address::Lid { lid, queue_pair: 0, level: 0 };
    Packet { address, mad: RoutedByLid(smp).emit() }
}
