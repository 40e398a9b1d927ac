//! What sits at a host: an agent, or something that stands in for one.

use std::sync::Arc;

use mapper_proto::agent::{Agent, Event, PathId, PathUse, Settings, Status, Transmit};
use mapper_proto::map::{Map, MapVersion, PortRef};
use mapper_proto::wire::Route;
use mapper_proto::{Instant, Mac};

/// A host's software, as the world drives it. The methods are those of [`Agent`]: after each
/// `handle_*` the world drains `poll_transmit` and `poll_event` and asks for the next timeout.
pub trait Node: Send {
    /// A frame arrived: what is left of the route, then the frame.
    fn handle_frame(&mut self, now: Instant, payload: &[u8]);
    /// The moment that [`Self::poll_timeout`] named has come.
    fn handle_timeout(&mut self, now: Instant);
    /// Routes for the map of this version are in place; these lead to the neighbours in the tree.
    fn handle_routes(&mut self, _now: Instant, _version: MapVersion, _routes: Vec<(Mac, Route)>) {}
    /// No routes could be had for the map of this version.
    fn handle_routing_failure(&mut self, _now: Instant, _version: MapVersion, _why: String) {}
    /// A path carries data: see [`Agent::watch_path`].
    fn watch_path(&mut self, _now: Instant, _path: PathId, _used: PathUse) {}
    /// A cable is said to be dead: see [`Agent::cable_down`].
    fn cable_down(&mut self, _now: Instant, _at: PortRef, _certain: bool, _cause: &str) {}
    /// The next frame to send.
    fn poll_transmit(&mut self) -> Option<Transmit> {
        None
    }
    /// When to call [`Self::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    /// What happened.
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
    /// Whether it does what agents should. Others count for nothing when all is looked at.
    fn is_honest(&self) -> bool {
        false
    }
    /// A picture of the agent; `None` if this is no honest agent and counts for nothing.
    fn status(&self) -> Option<Status> {
        None
    }
    /// The map that it holds. Costly.
    fn map(&self) -> Option<Arc<Map>> {
        None
    }
    /// Entries in its queues and tables.
    fn load(&self) -> usize {
        0
    }
    /// A digest of the map that it holds, equal for equal maps. Cheap.
    fn map_digest(&self) -> Option<u64> {
        None
    }
}

impl Node for Agent {
    fn handle_frame(&mut self, now: Instant, payload: &[u8]) {
        Self::handle_frame(self, now, payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        Self::handle_timeout(self, now);
    }

    fn handle_routes(&mut self, now: Instant, version: MapVersion, routes: Vec<(Mac, Route)>) {
        Self::handle_routes(self, now, version, routes);
    }

    fn handle_routing_failure(&mut self, now: Instant, version: MapVersion, why: String) {
        Self::handle_routing_failure(self, now, version, why);
    }

    fn watch_path(&mut self, now: Instant, path: PathId, used: PathUse) {
        Self::watch_path(self, now, path, used);
    }

    fn cable_down(&mut self, now: Instant, at: PortRef, certain: bool, cause: &str) {
        Self::cable_down(self, now, at, certain, cause);
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        Self::poll_transmit(self)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }

    fn poll_event(&mut self) -> Option<Event> {
        Self::poll_event(self)
    }

    fn is_honest(&self) -> bool {
        true
    }

    fn load(&self) -> usize {
        Self::load(self)
    }

    fn status(&self) -> Option<Status> {
        Some(Self::status(self))
    }

    fn map(&self) -> Option<Arc<Map>> {
        Self::map(self)
    }

    fn map_digest(&self) -> Option<u64> {
        Self::map_digest(self)
    }
}

/// Starts the software of a host.
pub trait Spawn {
    /// An agent with these settings that starts now. `seed` differs for each host and each start.
    fn agent(&mut self, host: u32, settings: &Settings, seed: u64, now: Instant) -> Box<dyn Node>;
}

/// Starts real agents.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealAgents;

impl Spawn for RealAgents {
    fn agent(&mut self, _host: u32, settings: &Settings, seed: u64, now: Instant) -> Box<dyn Node> {
        Box::new(Agent::new(settings.clone(), seed, now))
    }
}

/// An agent that hangs: its host's wire has carrier, and nothing ever answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mute;

impl Node for Mute {
    fn handle_frame(&mut self, _now: Instant, _payload: &[u8]) {}

    fn handle_timeout(&mut self, _now: Instant) {}
}
