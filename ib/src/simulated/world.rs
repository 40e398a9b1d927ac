//! A subnet with its managers in virtual time, and what becomes of datagrams between them.

mod checks;
mod delivery;
mod fault;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mapper_proto::time::Instant;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::model::Model;
use super::{Engines, Violation};
use crate::lids::Lids;
use crate::mad::{Attribute, ManagerMethod, Notice, Route, RoutedByLid, Smp};
use crate::manager::{ManagerSettings, Routes, SubnetManager};
use crate::packet::{Address, Packet};
pub use fault::Fault;

/// The shares of datagrams that are lost, come twice, are late or are garbled, each from 0 to 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noise {
    pub(crate) lost: f64,
    pub(crate) twice: f64,
    pub(crate) late: f64,
    /// The share of answers to writes whose data is changed on the way.
    pub(crate) garbled: f64,
}

/// What is under way, and will arrive at its moment.
#[derive(Debug)]
enum Coming {
    /// A request to a node, from the manager of this number in its run of the number `life`.
    Request { from: usize, life: u32, packet: Packet },
    /// A datagram to a manager, which counts only while that is in the same run.
    Arrival { to: usize, life: u32, packet: Packet },
    /// Tables that were computed for a manager.
    Computed { to: usize, life: u32, number: u64, routes: Result<Routes, String> },
}

/// A manager, where it runs, and how often it was started.
struct ManagerPlace {
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
    places: Vec<ManagerPlace>,
    noise: Noise,
    rng: ChaCha8Rng,
    pub(crate) now: Instant,
    coming: BTreeMap<(Instant, u64), Coming>,
    next: u64,
    silent: BTreeSet<usize>,
    refusing: BTreeSet<usize>,
    /// Whether managers hear nothing of each other.
    are_apart: bool,
    /// Managers that hear nothing.
    deaf: BTreeSet<usize>,
    /// The first violation that was found.
    wrong: Option<Violation>,
}

impl<'a> World<'a> {
    /// A subnet with a manager of this priority behind each of these hosts.
    pub(crate) fn new(
        model: Model,
        engines: Engines<'a>,
        managers: &[(usize, u8)],
        noise: Noise,
        seed: u64,
    ) -> Self {
        let place = |&(host, priority): &(usize, u8)| ManagerPlace {
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
            are_apart: false,
            deaf: BTreeSet::new(),
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
            let settings = ManagerSettings {
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
            // The LIDs that it kept in its file are still there.
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
            Fault::Apart(is_so) => self.are_apart = is_so,
            Fault::Deaf(number, is_so) => {
                let _was = if is_so { self.deaf.insert(number) } else { self.deaf.remove(&number) };
            }
            Fault::Kill(number) => self.kill(number),
            Fault::Start(number) => self.start(number),
        }
    }

    /// Has a switch send all managers a trap that a port changed. Only the master acts on it.
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
        self.are_apart = false;
        self.deaf.clear();
        self.noise = Noise::default();
        (0..self.places.len()).for_each(|number| self.start(number));
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// If the subnet came into a state that it must never be in.
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

    /// Sends what a manager has to send, and begins the computation that it asks for.
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
}

/// A trap of the switch with a LID.
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
