//! Tells the agent which paths carry users' frames, as it watches those.

use std::time::Duration;

use mapper_proto::Instant;
use mapper_proto::agent::{Agent, CableCause, PathId, PathUse};
use mapper_proto::map::PortRef;

use super::Host;
use crate::data::{DataPath, PathInUse};

/// How often the agent is told which paths are in use: well before it forgets them.
const WATCH_INTERVAL: Duration = Duration::from_millis(400);

/// When the agent is told next which paths are in use.
#[derive(Debug, Default)]
pub(super) struct Watching {
    /// When the agent is told next; `None` while no path is in use.
    at: Option<Instant>,
    /// How many paths were in use when the agent was told last.
    told: u64,
    /// When the host looks next which paths the kernel sends packets along.
    kernel_at: Instant,
}

impl Watching {
    /// Takes in that a frame was sent. If a path came into use by it, the agent is told at once.
    pub(super) fn see(&mut self, now: Instant, data: &DataPath) {
        if data.routes_in_use() > self.told {
            self.at = Some(now);
        }
    }

    /// Has the agent told at once which paths are in use, as it is a new one that knows of none.
    pub(super) const fn tell_anew(&mut self, now: Instant) {
        (self.at, self.kernel_at) = (Some(now), now);
    }

    /// Has the host look at once which paths the kernel sends packets along.
    pub(super) const fn look_at_kernel(&mut self, now: Instant) {
        self.kernel_at = now;
    }

    /// Whether it is time to look which paths the kernel sends packets along.
    pub(super) fn is_due_for_kernel(&mut self, now: Instant) -> bool {
        let is_due = now >= self.kernel_at;
        if is_due {
            self.kernel_at = now + WATCH_INTERVAL;
        }
        is_due
    }

    /// When [`Self::tell`] has something to say.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.at
    }

    /// Tells the agent of at most `limit` paths in use, if it is time to.
    pub(super) fn tell(&mut self, now: Instant, data: &mut DataPath, agent: &mut Agent, limit: usize) {
        if self.at.is_none_or(|at| now < at) {
            return;
        }
        let paths = data.paths_in_use(now, limit);
        self.told = data.routes_in_use();
        self.at = (!paths.is_empty()).then(|| now + WATCH_INTERVAL);
        for path in paths {
            let PathInUse { id, way, to, longest_bytes } = path;
            agent.watch_path(now, id, PathUse { way, to, longest_bytes });
        }
    }
}

/// These commands are for whoever sends users' frames by this host's routes, but not through this host.
impl Host {
    /// Has the agent watch a path that carries frames: see [`Agent::watch_path`].
    pub fn watch_path(&mut self, now: Instant, path: PathId, used: PathUse) {
        self.agent.watch_path(now, path, used);
        self.settle(now);
    }

    /// Tells the agent that the cable in this port of the newest map is dead: see [`Agent::cable_down`].
    pub fn cable_down(&mut self, now: Instant, at: PortRef, cause: CableCause) {
        self.agent.cable_down(now, at, cause);
        self.settle(now);
    }
}
