//! What a board shows of paths in use, dead cables, and the host's interface over the fabric.

use mapper_proto::agent::LivenessStatus;
use serde::{Deserialize, Serialize};

use mapper_host::data::DataStatus;

/// What watching the paths in use costs and finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LivenessCounters {
    /// Paths that are being checked.
    pub watched: u64,
    /// Paths in use that are not checked, for want of room.
    pub unwatched: u64,
    /// Checks sent.
    pub checks_sent: u64,
    /// Paths declared down.
    pub failures: u64,
    /// Cables said to be dead that answered when they were checked.
    pub cleared: u64,
}

impl From<LivenessStatus> for LivenessCounters {
    fn from(status: LivenessStatus) -> Self {
        let LivenessStatus { watched, unwatched, checks_sent, failures, cleared } = status;
        Self { watched: watched as u64, unwatched: unwatched as u64, checks_sent, failures, cleared }
    }
}

/// A cable of the map that is known to be dead, named by one of its ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeadCable {
    /// The xbar's number in the map.
    pub xbar: u32,
    /// The xbar's tag in hexadecimal, if it has one.
    pub tag: Option<String>,
    /// The port that the cable is at.
    pub port: u8,
    /// How long the agent has known that the cable is dead, in milliseconds.
    pub since_ms: u64,
    /// How the agent knows that the cable is dead, in words.
    pub why: String,
}

/// How often routes were changed before there was a new map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RepairCounters {
    /// How often routes were computed around dead cables.
    pub repairs: u64,
    /// How often somebody told of a loss of carrier.
    pub carrier_losses: u64,
    /// How many notices came from crossbars that could not send a frame on.
    pub notices: u64,
    /// How many paths in use fell silent.
    pub silent_paths: u64,
}

/// The host's Ethernet interface over the fabric.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tap {
    /// The interface's name.
    pub name: String,
    /// The MTU of the interface, in bytes.
    pub mtu: u32,
    /// How many frames went over the interface, and what became of them.
    pub counters: DataStatus,
    /// Frames from the fabric that the kernel did not take, since the interface was down or memory was short.
    pub refused: u64,
}

impl DeadCable {
    /// The xbar's tag, if it has one.
    pub fn tag_number(&self) -> Option<u64> {
        u64::from_str_radix(self.tag.as_deref()?.trim_start_matches("0x"), 16).ok()
    }
}
