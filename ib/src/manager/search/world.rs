//! A subnet with its managers in virtual time, and what becomes of datagrams between them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mapper_proto::time::Instant;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::super::model::Model;
use super::super::tests::{routes, settings, trap_of};
use super::super::{Routes, Settings, SubnetManager};
use crate::lids::Lids;
use crate::mad::{Attribute, MAD_BYTES, ManagerMethod, Notice, PortState, SmState, Smp};
use crate::packet::{Address, Packet};
use crate::sweep::PortOf;

/// How long a datagram takes that is not late.
const FLIGHT: Duration = Duration::from_micros(20);
/// How long the engines take.
const COMPUTATION: Duration = Duration::from_millis(3);

/// Something that goes wrong, or is put right.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Cut(PortOf),
    Mend([PortOf; 2]),
    Reset(usize),
    /// A switch answers nobody, and forwards on.
    Silent(usize, bool),
    /// A switch takes no writes.
    Refuse(usize, bool),
    Kill(usize),
    Start(usize),
}

/// How often datagrams meet with something.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noise {
    pub(super) lost: f64,
    pub(super) twice: f64,
    pub(super) late: f64,
    /// An answer to a write says something else.
    pub(super) garbled: f64,
}

/// What is under way.
#[derive(Debug)]
enum Coming {
    /// From the manager of this number, who lived for the nth time, to a node.
    Request { from: usize, life: u32, mad: [u8; MAD_BYTES] },
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
pub(super) struct World {
    model: Model,
    places: Vec<Place>,
    noise: Noise,
    rng: ChaCha8Rng,
    now: Instant,
    coming: BTreeMap<(Instant, u64), Coming>,
    next: u64,
    silent: BTreeSet<usize>,
    refusing: BTreeSet<usize>,
}

impl World {
    pub(super) fn new(model: Model, managers: &[(usize, u8)], noise: Noise, seed: u64) -> Self {
        let place = |&(host, priority): &(usize, u8)| Place {
            manager: None,
            host,
            priority,
            life: 0,
            lids: Lids::default(),
        };
        let mut world = Self {
            model,
            places: managers.iter().map(place).collect(),
            noise,
            rng: ChaCha8Rng::seed_from_u64(seed ^ 0xD06F00D),
            now: Instant::ZERO,
            coming: BTreeMap::new(),
            next: 0,
            silent: BTreeSet::new(),
            refusing: BTreeSet::new(),
        };
        (0..managers.len()).for_each(|number| world.start(number));
        world
    }

    /// How many blocks of tables were written so far.
    pub(super) fn writes(&self) -> u64 {
        self.model.table_writes
    }

    fn start(&mut self, number: usize) {
        let place = &mut self.places[number];
        if place.manager.is_none() {
            let base = settings();
            let settings =
                Settings { priority: Some(place.priority), watch_interval: Duration::from_secs(2), ..base };
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

    pub(super) fn strike(&mut self, fault: Fault) {
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
    pub(super) fn heal(&mut self, whole: &Model) {
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

    pub(super) fn run_until(&mut self, end: Instant) {
        loop {
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
            let (number_of_task, routes) = (task.number, routes(&task));
            self.send(Coming::Computed { to: number, life, number: number_of_task, routes });
        }
    }

    /// Puts a manager's datagram on its way. Its number has that of the manager in its upper half, which answers bring back.
    fn carry(&mut self, from: usize, life: u32, packet: &Packet) {
        let Ok(mut smp) = Smp::<ManagerMethod>::parse(&packet.mad) else { return };
        if smp.method == ManagerMethod::GetResponse {
            // It answers another manager, whose number came with the question.
            let to = (smp.tid >> 32) as usize - 1;
            if self.model.walk(self.places[to].host, &smp.route).is_some() {
                self.answer(to, self.places[to].life, packet.mad);
            }
            return;
        }
        smp.tid = smp.tid & u64::from(u32::MAX) | (from as u64 + 1) << 32;
        if self.rng.random_bool(self.noise.lost) {
            return;
        }
        let mad = smp.emit();
        if self.rng.random_bool(self.noise.twice) {
            self.send(Coming::Request { from, life, mad });
        }
        self.send(Coming::Request { from, life, mad });
    }

    fn answer(&mut self, to: usize, life: u32, mad: [u8; MAD_BYTES]) {
        if self.rng.random_bool(self.noise.lost) {
            return;
        }
        let packet = Packet { address: Address::Directed, mad };
        if self.rng.random_bool(self.noise.twice) {
            self.send(Coming::Arrival { to, life, packet: packet.clone() });
        }
        self.send(Coming::Arrival { to, life, packet });
    }

    fn take(&mut self, coming: Coming) {
        let now = self.now;
        let alive = |place: &mut Place, life: u32| place.life == life;
        match coming {
            Coming::Request { from, life, mad } => self.take_request(from, life, &mad),
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
            self.model.assert_no_circle();
            self.model.assert_no_storm();
            if self.rng.random_bool(self.noise.garbled) {
                answer.data[self.rng.random_range(0..64)] ^= 0x41;
            }
        }
        self.answer(from, life, answer.emit());
    }

    /// Fails unless the subnet is up and has one master.
    pub(super) fn assert_well(&self) {
        let managers = self.places.iter().filter_map(|place| place.manager.as_ref());
        let roles: Vec<SmState> = managers.map(SubnetManager::role).collect();
        let masters = roles.iter().filter(|&&role| role == SmState::Master).count();
        assert_eq!(masters, 1, "{roles:?}");
        self.model.assert_up();
        self.model.assert_no_circle();
        let ports = self.model.nodes.iter().flat_map(|node| node.ports.range(1..));
        let half = ports.filter(|(_, port)| matches!(port.state(), PortState::Initialize | PortState::Armed));
        assert_eq!(half.count(), 0, "ports are on their way up");
    }
}
