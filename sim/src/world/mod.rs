//! The world: a clock, a plant, and at every host the software that daemons run.
//!
//! [`World::run`] takes events in the order of their time until all is configured or time is up.
//! A seed, a fabric, options and faults decide a run bit for bit; [`World::digest`] sums it up.

mod capture;
mod carriers;
mod check;
mod counts;
mod events;
mod frames;
mod host_slot;
mod kernels;
mod keys;
mod names;
mod options;
mod queue;
mod readings;
mod reload;
mod routes;
mod safety;
mod start;
mod strike;
mod tap_mtu;
mod trace;
mod traffic;
mod union;

pub use capture::{CapturedFrame, Direction, FrameSink};
pub use check::{Leader, Verdict};
pub use counts::{FabricCount, Stats, Totals};
pub(crate) use keys::KeyStep;
pub use options::{KernelChoice, Options, TrafficOptions};
pub use trace::{TraceError, TraceEvent, TraceSink};
pub use traffic::{FaultEffect, LOST_AFTER, PairGap, TrafficReport};
pub use union::{Circle, CircleCause};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mapper_host::resolution::Wanted;
use mapper_host::routes::RouteTable;
use mapper_proto::agent::{CableCause, PathId, PathUse};
use mapper_proto::map::{Fabric, PortRef};
use mapper_proto::wire::Route;
use mapper_proto::{Instant, Mac};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::fabric::{ChangeError, Noise, Plant, PlantNode, PlantPort};
use crate::faults::Timed;
use crate::node::{RealHosts, Spawn};
use host_slot::HostSlot;
use options::derive_seed;
use queue::{Flights, Queue, What};
use routes::SharedMaps;
use traffic::Traffic;

/// Why a run cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorldError {
    /// A fault that the file demands and the plant does not allow.
    #[error("{file}:{line}: the fault cannot strike: {source}")]
    Fault {
        /// The fault file.
        file: String,
        /// The line of the fault file.
        line: usize,
        /// Why not.
        source: ChangeError,
    },
    /// An agent asks for timeout after timeout without letting time pass.
    #[error("the agent of {host} does not let time pass at {at_ms} ms (a bug of the agent)")]
    Livelock {
        /// The host.
        host: String,
        /// When.
        at_ms: f64,
    },
    /// The trace cannot be written, or this run is not the one that it records.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// When to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Until {
    /// When all faults have struck and every live host is configured, each part of the fabric under its own
    /// leader. With faults or noise, the maps must also match the fabric: agents stay configured until they
    /// notice a fault, and noise can hide nodes from a map.
    Configured,
    /// After this long.
    After(Duration),
}

/// Why a run stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// What [`Until`] asks for is reached.
    Reached,
    /// The limit was reached first.
    Limit,
}

/// A fabric with an agent at every host, in virtual time.
pub struct World {
    options: Options,
    spawn: Box<dyn Spawn>,
    plant: Plant,
    noise: Noise,
    /// Frames that are to be lost, by their number among all that are sent, and whether frames that follow
    /// them the same way are lost, too.
    to_lose: BTreeMap<u64, bool>,
    /// Ways on which a host's frames are lost, and until when.
    deaf_ways: Vec<(u32, Route, Instant)>,
    now: Instant,
    queue: Queue,
    flights: Flights,
    hosts: Vec<HostSlot>,
    shared_maps: SharedMaps,
    faults: Vec<Timed>,
    faults_left: usize,
    /// The random numbers of latency and noise. Agents have their own.
    rng: ChaCha8Rng,
    stats: Stats,
    /// What was counted by agents that run no more.
    retired: Totals,
    /// Whether anything happened since the last check that may make all configured.
    worth_checking: bool,
    /// Hosts that were not powered on yet.
    waiting_for_power: usize,
    matches: check::MatchCache,
    trace: trace::Recorder,
    capture: capture::Capture,
    /// The moment from which on all have been configured; see [`World::configured_at`].
    configured_at: Option<Instant>,
    /// Whether some agent has been configured since that was last looked at.
    newly_configured: bool,
    /// What came of questions for names that are not announced, by host and name.
    found: BTreeMap<(u32, Wanted), Vec<Mac>>,
    /// Whether some host has been hostile.
    was_hostile: bool,
    /// Whether agents that map once leave their routes in the kernels when they end.
    keeps_kernel_routes: bool,
    /// The hosts that ever had a name that is not announced.
    ever_named: BTreeMap<Wanted, BTreeSet<Mac>>,
    /// Users' frames, if users send some.
    traffic: Option<Traffic>,
    /// The kernels of nodes, if users' packets go through them.
    kernels: kernels::Kernels,
    /// All tables in use, if they are searched for circles.
    united: union::United,
    /// The tables of each part that were last proved together.
    proved: Vec<Vec<Arc<RouteTable>>>,
}

/// Names the seed of the world's own randomness.
const WORLD: u64 = 3;

impl World {
    /// Most timeouts that an agent may ask for without letting time pass.
    const MAX_TIMEOUTS_NOW: u32 = 10_000;

    /// A world that is about to be powered on. Levels and types of the hosts are the fabric's;
    /// `faults` stand in the order of their times.
    pub fn new(fabric: &Fabric, plant: Plant, options: Options, faults: Vec<Timed>) -> Self {
        Self::with_nodes(fabric, plant, options, faults, Box::new(RealHosts))
    }

    /// A world that is about to be powered on, with other software than real agents at the hosts.
    pub fn with_nodes(
        fabric: &Fabric,
        mut plant: Plant,
        options: Options,
        faults: Vec<Timed>,
        spawn: Box<dyn Spawn>,
    ) -> Self {
        let mut queue = Queue::default();
        let mut rng = ChaCha8Rng::seed_from_u64(derive_seed(options.seed, WORLD, 0));
        let spread = u64::try_from(options.power_on_spread.as_nanos()).unwrap_or(u64::MAX);
        let mut hosts = Vec::with_capacity(fabric.map.hosts.len());
        for (i, host) in fabric.map.hosts.iter().enumerate() {
            let mut settings = options.agent.clone();
            (settings.mac, settings.level, settings.host_type) = (host.mac, host.level, host.host_type);
            settings.plain_ports = plant.plain_ports().unwrap_or(settings.plain_ports);
            let own_xbar = plant.own_xbar(i as u32).filter(|_| options.nodes).map(|port| port.node);
            let own_crossbar = own_xbar.and_then(PlantNode::xbar);
            hosts.push(HostSlot::new(settings, options.routes, own_crossbar));
            let at = Instant::from_nanos(rng.random_range(0..=spread));
            queue.push(at, What::PowerOn { host: i as u32 });
        }
        // Crossbars of nodes start with their agents.
        hosts.iter().filter_map(|slot| slot.own_crossbar).for_each(|xbar| plant.set_running(xbar, false));
        for (i, timed) in faults.iter().enumerate() {
            queue.push(timed.at, What::Fault { index: i as u32 });
        }
        let traffic = options.traffic.map(|rate| Traffic::new(&rate, hosts.len(), options.seed));
        if let Some(from) = options.traffic.and_then(|traffic| traffic.from) {
            queue.push(from, What::StartUsers);
        }
        let kernels = if options.kernels && options.nodes && options.traffic.is_some() {
            kernels::Kernels::new(hosts.len(), options.kernel_choice, options.seed)
        } else {
            kernels::Kernels::default()
        };
        let mut world = Self {
            noise: options.noise,
            to_lose: BTreeMap::new(),
            deaf_ways: Vec::new(),
            options,
            spawn,
            plant,
            now: Instant::ZERO,
            queue,
            flights: Flights::default(),
            hosts,
            shared_maps: SharedMaps::default(),
            faults_left: faults.len(),
            faults,
            rng,
            stats: Stats::default(),
            retired: Totals::default(),
            worth_checking: false,
            waiting_for_power: fabric.map.hosts.len(),
            matches: check::MatchCache::default(),
            trace: trace::Recorder::default(),
            capture: capture::Capture::default(),
            configured_at: None,
            newly_configured: false,
            found: BTreeMap::new(),
            was_hostile: false,
            keeps_kernel_routes: false,
            ever_named: BTreeMap::new(),
            traffic,
            kernels,
            united: union::United::default(),
            proved: Vec::new(),
        };
        world.note_disturbances();
        world
    }

    /// Writes all that happens from now on to `sink`, or compares it with what is there.
    pub fn record(&mut self, sink: Box<dyn TraceSink>) {
        self.trace.set_sink(sink);
    }

    /// Hands all frames at the interfaces of hosts to `sink` from now on.
    pub fn capture(&mut self, sink: Box<dyn FrameSink>) {
        self.capture.set_sink(sink);
    }

    /// Ends the record, and the capture of frames.
    ///
    /// # Errors
    /// If one of them cannot be written, or the recorded run ended otherwise.
    pub fn end_record(&mut self) -> Result<(), TraceError> {
        self.trace.end(self.now)?;
        self.capture.end()
    }

    /// Runs until what `until` asks for or until `limit`, whichever is first. Can be called again
    /// to go on.
    ///
    /// # Errors
    /// If a fault cannot strike, an agent does not let time pass, or the trace fails.
    pub fn run(&mut self, until: Until, limit: Instant) -> Result<Stopped, WorldError> {
        let asked = match until {
            Until::After(time) => Some(Instant::ZERO + time),
            Until::Configured => None,
        };
        let end = asked.map_or(limit, |asked| asked.min(limit));
        while let Some(at) = self.queue.next_at().filter(|&at| at <= end) {
            self.step()?;
            // Everything is settled only between two moments.
            let moment_over = self.queue.next_at() != Some(at);
            if moment_over {
                self.follow_users();
                self.follow_routes();
            }
            match until {
                Until::Configured if moment_over && self.is_done() => return Ok(Stopped::Reached),
                Until::After(_) if moment_over => self.note_configured(),
                _ => {}
            }
        }
        self.now = self.now.max(end);
        let reached = asked.is_some_and(|asked| asked <= limit);
        if reached {
            self.worth_checking = true;
            self.note_configured();
        }
        // If all are configured already, a run that goes on until they are must not wait for an event to find
        // that out.
        self.worth_checking |= asked.is_some();
        Ok(if reached { Stopped::Reached } else { Stopped::Limit })
    }

    fn step(&mut self) -> Result<(), WorldError> {
        let Some((at, what)) = self.queue.pop() else { return Ok(()) };
        self.now = at;
        self.stats.events += 1;
        match what {
            What::PowerOn { host } if self.hosts[host as usize].powered_on => {}
            What::PowerOn { host } => self.power_on(host),
            What::Frame { flight } => self.arrive(flight),
            What::Serve { host } => self.serve(host),
            What::Timeout { host } => self.time_out(host)?,
            What::Routes { host } => self.finish_routes(host),
            What::Fault { index } => self.strike(index as usize)?,
            What::StartUsers => self.start_users(),
            What::User { host } => self.send_user_frame(host),
            What::Packet { number } => self.take_packet(number),
            What::Kernel { host } => self.look_at_kernel(host),
        }
        let error = self.trace.take_error().or_else(|| self.capture.take_error());
        error.map_or(Ok(()), |error| Err(error.into()))
    }

    fn time_out(&mut self, host: u32) -> Result<(), WorldError> {
        let slot = &mut self.hosts[host as usize];
        if slot.timeout_at != self.now {
            // Another entry has taken this one's place.
            return Ok(());
        }
        slot.timeout_at = Instant::FAR;
        if let Some(node) = &mut slot.node
            && node.poll_timeout().is_some_and(|at| at <= self.now)
        {
            slot.timeouts_now += 1;
            if slot.timeouts_now > Self::MAX_TIMEOUTS_NOW {
                let host = self.plant.name(crate::fabric::PlantNode::Host(host)).to_owned();
                return Err(WorldError::Livelock { host, at_ms: self.now.as_millis_f64() });
            }
            node.handle_timeout(self.now);
        }
        self.drain(host);
        Ok(())
    }

    /// Says for a driver that carries users' frames beside a host that a path is in use: see
    /// [`Host::watch_path`](mapper_host::Host::watch_path).
    pub fn watch_path(&mut self, host: u32, path: PathId, used: PathUse) {
        if let Some(real) = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut()) {
            real.watch_path(self.now, path, used);
        }
        self.drain(host);
    }

    /// Says for a driver that carries users' frames beside a host that the cable at this end, which is in its
    /// map, is dead: see [`Host::cable_down`](mapper_host::Host::cable_down). This has no effect unless the
    /// end's xbar is tagged.
    pub fn cable_down(&mut self, host: u32, end: PlantPort, cause: CableCause) {
        let PlantNode::Xbar(xbar) = end.node else { return };
        let tag = self.plant.tag(xbar);
        let Some(map) = self.map(host).filter(|_| tag.is_some()) else { return };
        let Some(index) = map.xbars.iter().position(|xbar| xbar.tag == tag) else { return };
        if let Some(real) = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut()) {
            real.cable_down(self.now, PortRef { xbar: index as u32, port: end.port }, cause);
        }
        self.drain(host);
    }
}

#[cfg(test)]
mod tests;
