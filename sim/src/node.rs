//! What sits at a host: all that ships, or something that stands in for it.

use std::sync::Arc;

use mapper_host::names::HostName;
use mapper_host::{Computed, Host, HostEvent, Task, UserFrames};
use mapper_proto::Instant;
use mapper_proto::agent::{Settings, Status, Transmit};
use mapper_proto::map::Map;
use mapper_routing::Options;

/// What sits at a host, as the world drives it. After each `handle_*` the world drains what there is to
/// poll, and asks for the next timeout.
///
/// Whatever has a [`Host`] in it is honest, unless it says otherwise, and does by default what that does.
pub trait SimulatedHost: Send {
    /// A frame arrived: what is left of the route, then the frame.
    fn handle_frame(&mut self, now: Instant, payload: &[u8]);
    /// The moment that [`Self::poll_timeout`] named has come.
    fn handle_timeout(&mut self, now: Instant);
    /// What ships, if that is in it.
    fn host(&self) -> Option<&Host> {
        None
    }
    /// The same, to be changed.
    fn host_mut(&mut self) -> Option<&mut Host> {
        None
    }
    /// Routes were computed.
    fn handle_computed(&mut self, now: Instant, computed: Computed) {
        if let Some(host) = self.host_mut() {
            host.handle_computed(now, computed);
        }
    }
    /// The next frame to send.
    fn poll_transmit(&mut self) -> Option<Transmit> {
        None
    }
    /// Puts the next frame to send, route first, behind what is in `payload`. Whether there was one.
    fn append_transmit(&mut self, payload: &mut Vec<u8>) -> bool {
        if let Some(Transmit { route, frame }) = self.poll_transmit() {
            payload.extend_from_slice(route.as_bytes());
            payload.extend_from_slice(&frame);
            return true;
        }
        let outgoing = self.host_mut().and_then(Host::poll_transmit);
        outgoing.inspect(|outgoing| payload.extend([outgoing.route, outgoing.frame].concat())).is_some()
    }
    /// When to call [`Self::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant> {
        self.host().and_then(Host::poll_timeout)
    }
    /// The next frame for the user.
    fn poll_user_frame(&mut self) -> Option<&[u8]> {
        self.host_mut().and_then(Host::poll_user_frame)
    }
    /// What happened.
    fn poll_event(&mut self) -> Option<HostEvent> {
        self.host_mut().and_then(Host::poll_event)
    }
    /// Routes to be computed.
    fn poll_task(&mut self) -> Option<Task> {
        self.host_mut().and_then(Host::poll_task)
    }
    /// Whether it does what hosts should. Others count for nothing when all is looked at.
    fn is_honest(&self) -> bool {
        self.host().is_some()
    }
    /// A picture of the agent; `None` if this counts for nothing.
    fn status(&self) -> Option<Status> {
        self.host().map(|host| host.agent().status())
    }
    /// The map that the agent holds. Costly.
    fn map(&self) -> Option<Arc<Map>> {
        self.host()?.agent().map()
    }
    /// Entries in the agent's queues and tables.
    fn load(&self) -> usize {
        self.host().map_or(0, |host| host.agent().load())
    }
    /// A digest of the map that the agent holds, equal for equal maps. Cheap.
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
    /// Its routes.
    pub routes: Options,
    /// Whether it carries users' frames, and how.
    pub users: Option<UserFrames>,
    /// What it is called.
    pub name: Option<HostName>,
    /// Differs for each host and each start.
    pub seed: u64,
    /// When.
    pub now: Instant,
}

impl Start {
    /// What ships, started so.
    pub fn real(self) -> Host {
        let mut host = Host::new(self.settings, self.routes, self.users, self.seed, self.now);
        if let Some(name) = self.name {
            // As a machine's clock would have it.
            let revision = u32::try_from(self.now.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
            host.set_name(self.now, name, revision);
        }
        host
    }
}

/// Starts the software of a host.
pub trait Spawn {
    /// What runs at a host that starts so.
    fn spawn(&mut self, start: Start) -> Box<dyn SimulatedHost>;
}

/// Starts what ships.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealHosts;

impl Spawn for RealHosts {
    fn spawn(&mut self, start: Start) -> Box<dyn SimulatedHost> {
        Box::new(start.real())
    }
}

/// An agent that hangs: its host's wire has carrier, and nothing ever answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mute;

impl SimulatedHost for Mute {
    fn handle_frame(&mut self, _now: Instant, _payload: &[u8]) {}

    fn handle_timeout(&mut self, _now: Instant) {}
}
