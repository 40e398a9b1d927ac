//! What is counted in a run.

use mapper_proto::Tally;
use mapper_proto::agent::{Purpose, Status};

/// What was counted in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Frames that agents sent.
    pub sent: u64,
    /// Frames that agents received.
    pub received: u64,
    /// Frames sent into ports without carrier, or onto cables that swallow frames.
    pub lost_on_dead_cables: u64,
    /// Frames lost at random.
    pub lost_to_noise: u64,
    /// Frames longer than the interface of the host that sent them, or that they came to, carries.
    pub too_long: u64,
    /// Frames that xbars dropped.
    pub misrouted: u64,
    /// Frames that found a host's receive queue full.
    pub overflowed: u64,
    /// Frames that reached a host without an agent.
    pub unheard: u64,
    /// Users' packets that arrived through the kernels.
    pub by_kernel: u64,
    /// Routes that could not be computed.
    pub routing_failures: u64,
    /// Events taken from the queue.
    pub events: u64,
    /// The longest receive queue.
    pub peak_receive_queue: usize,
    /// The most frames under way at once.
    pub peak_in_flight: usize,
}

/// What all agents counted together, including those that run no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Messages sent, by what they are for.
    pub sent: Tally<Purpose>,
    /// Frames dropped by agents.
    pub dropped: u64,
}

impl Totals {
    pub(super) fn add(&mut self, status: &Status) {
        self.sent += &status.sent;
        self.dropped += status.dropped.total();
    }
}
