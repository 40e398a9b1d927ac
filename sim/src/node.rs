//! The software of a simulated host: the [`Host`] that daemons run, or something that stands in for it.

use std::sync::Arc;

use mapper_host::directory::HostName;
use mapper_host::{Computed, Host, HostEvent, Task, UserFrames};
use mapper_proto::Instant;
use mapper_proto::agent::{Settings, Status, Transmit};
use mapper_proto::map::Map;
use mapper_routing::RouteOptions;

/// The software of a host, as the world drives it. After each `handle_*` the world polls until there is
/// nothing left, and asks for the next timeout.
///
/// By default all methods but the first two do what the [`Host`] in [`Self::host`] does, and software with a
/// [`Host`] in it counts as honest.
pub trait SimulatedHost: Send {
    /// Takes a frame that arrived. `payload` is what is left of its route, then the frame.
    fn handle_frame(&mut self, now: Instant, payload: &[u8]);
    /// Does what is due at the moment that [`Self::poll_timeout`] named.
    fn handle_timeout(&mut self, now: Instant);
    /// The [`Host`] in this software, if there is one.
    fn host(&self) -> Option<&Host> {
        None
    }
    /// The same [`Host`], so that it can be changed.
    fn host_mut(&mut self) -> Option<&mut Host> {
        None
    }
    /// Takes routes that were computed.
    fn handle_computed(&mut self, now: Instant, computed: Computed) {
        if let Some(host) = self.host_mut() {
            host.handle_computed(now, computed);
        }
    }
    /// The next frame to send.
    fn poll_transmit(&mut self) -> Option<Transmit> {
        None
    }
    /// Appends the next frame to send, route first, to `payload`. Returns whether there was one.
    fn append_transmit(&mut self, payload: &mut Vec<u8>) -> bool {
        if let Some(Transmit { route, frame }) = self.poll_transmit() {
            payload.extend_from_slice(route.as_bytes());
            payload.extend_from_slice(&frame);
            return true;
        }
        let Some(outgoing) = self.host_mut().and_then(Host::poll_transmit) else { return false };
        payload.extend_from_slice(outgoing.route);
        payload.extend_from_slice(outgoing.frame);
        true
    }
    /// When to call [`Self::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant> {
        self.host().and_then(Host::poll_timeout)
    }
    /// The next frame for the user.
    fn poll_user_frame(&mut self) -> Option<&[u8]> {
        self.host_mut().and_then(Host::poll_user_frame)
    }
    /// The next event.
    fn poll_event(&mut self) -> Option<HostEvent> {
        self.host_mut().and_then(Host::poll_event)
    }
    /// The next task of computing routes.
    fn poll_task(&mut self) -> Option<Task> {
        self.host_mut().and_then(Host::poll_task)
    }
    /// Whether the host does what hosts should. Checks of the whole world leave out others.
    fn is_honest(&self) -> bool {
        self.host().is_some()
    }
    /// Whether the crossbar of a node goes on, which is in one process with this software.
    fn runs_crossbar(&self) -> bool {
        true
    }
    /// Whether the host may send again what it received, other hosts' frames too, as hostile ones do.
    fn replays(&self) -> bool {
        false
    }
    /// The status of the agent; `None` without an agent to be checked.
    fn status(&self) -> Option<Status> {
        self.host().map(|host| host.agent().status())
    }
    /// The map that the agent holds. This is costly.
    fn map(&self) -> Option<Arc<Map>> {
        self.host()?.agent().map()
    }
    /// How many entries there are in the queues and tables of the agent, and in those of names that were
    /// asked for.
    fn load(&self) -> usize {
        self.host().map_or(0, |host| host.agent().load() + host.resolution_load())
    }
    /// A digest of the map that the agent holds, equal for equal maps. This is cheap.
    fn map_digest(&self) -> Option<u64> {
        self.host()?.agent().map_digest()
    }
}

impl SimulatedHost for Host {
    fn handle_frame(&mut self, now: Instant, payload: &[u8]) {
        Self::handle_frame(self, now, payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        Self::handle_timeout(self, now);
    }

    fn host(&self) -> Option<&Host> {
        Some(self)
    }

    fn host_mut(&mut self) -> Option<&mut Host> {
        Some(self)
    }
}

/// How a host starts.
#[derive(Debug, Clone)]
pub struct Start {
    /// Which host.
    pub host: u32,
    /// What its agent is set to.
    pub settings: Settings,
    /// How its routes are computed.
    pub routes: RouteOptions,
    /// Whether it carries users' frames, and how.
    pub users: Option<UserFrames>,
    /// The name that it tells others, if it has one.
    pub name: Option<HostName>,
    /// The seed of everything random at this host, which differs for each host and each start.
    pub seed: u64,
    /// The moment of the start.
    pub now: Instant,
}

impl Start {
    /// A [`Host`] that starts in this way.
    pub fn real(self) -> Host {
        let mut host = Host::new(self.settings, self.routes, self.users, self.seed, self.now);
        if let Some(name) = self.name {
            // The revision is taken from virtual time, which rises from start to start as the clock of a
            // daemon does.
            let revision = u32::try_from(self.now.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
            host.set_name(self.now, name, revision);
        }
        host
    }
}

/// Starts the software of a host.
pub trait Spawn {
    /// The software of a host that starts in this way.
    fn spawn(&mut self, start: Start) -> Box<dyn SimulatedHost>;
}

/// Starts a [`Host`] at every host.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealHosts;

impl Spawn for RealHosts {
    fn spawn(&mut self, start: Start) -> Box<dyn SimulatedHost> {
        Box::new(start.real())
    }
}

/// A host whose agent hangs, and with it the crossbar of a node: its cable has carrier, and it never answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mute;

impl SimulatedHost for Mute {
    fn handle_frame(&mut self, _now: Instant, _payload: &[u8]) {}

    fn handle_timeout(&mut self, _now: Instant) {}

    fn runs_crossbar(&self) -> bool {
        false
    }
}
