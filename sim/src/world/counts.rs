//! What is counted in a run.

use enum_map::Enum;
use mapper_proto::Tally;
use mapper_proto::agent::{Purpose, Status};
use strum::IntoStaticStr;

/// What becomes of a frame in the simulated fabric, by which frames are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FabricCount {
    /// An agent sent it.
    Sent,
    /// An agent received it.
    Received,
    /// It was sent into a port without carrier, or onto a cable that swallows frames.
    LostOnDeadCables,
    /// It was lost at random.
    LostToNoise,
    /// It was longer than the interface of the host that sent it, or that it came to, carries.
    TooLong,
    /// An xbar dropped it.
    Misrouted,
    /// It found a host's receive queue full.
    Overflowed,
    /// It reached a host without an agent.
    Unheard,
}

/// What was counted in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Frames, by what became of them.
    pub frames: Tally<FabricCount>,
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
