//! What a board counts since the daemon's start.

use enum_map::Enum;
use mapper_host::directory::Refusal;
use mapper_host::healing::HealingCount;
use mapper_host::resolution::Refused;
use mapper_machine::link::port::LinkCount;
use mapper_proto::Tally;
use mapper_proto::agent::{FrameDrop, LivenessCount, MappingCost, Purpose};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::agent::metrics::CauseCounters;

/// Counters since the daemon's start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Frames on the interface.
    pub frames: Tally<FrameCount>,
    /// Messages sent, counted by what they are for.
    pub sent: Tally<Purpose>,
    /// Frames dropped, counted by the reason.
    pub dropped: Tally<FrameDrop>,
    /// What others told of names and addresses and was not taken, counted by the reason.
    pub directory_refused: Tally<Refusal>,
    /// Questions of others for names and addresses, and answers to them, that were not taken, counted by the reason.
    pub resolution_refused: Tally<Refused>,
    /// What the last mapping by this agent cost; `None` if it finished none.
    pub mapping: Option<MappingCounters>,
    /// How often maps were given up and made, counted by the cause.
    pub causes: Vec<CauseCounters>,
    /// What watching the paths in use costs and finds.
    pub liveness: Tally<LivenessCount>,
    /// How often routes were changed before there was a new map.
    pub repairs: Tally<HealingCount>,
    /// Lines of the daemon's log that were lost, since nobody read them or they could not be written.
    pub log_lines_lost: u64,
}

/// What is counted of the frames on the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FrameCount {
    /// Frames that arrived.
    Received,
    /// Frames that the kernel took.
    Sent,
    /// Frames that the kernel did not take.
    Unsent,
    /// Frames that the kernel lost, as they arrived faster than they were taken.
    Overruns,
    /// Hellos of the neighbour of an agent alone, which are for the other end of the cable only.
    Hellos,
    /// Hellos that make no sense, are of another version, or do not come from the interface that they name.
    BadHellos,
    /// Frames that were dropped because more than two interfaces shared the cable of an agent alone.
    SharedWire,
}

impl FrameCount {
    /// The kind under which a board shows what a link counts; it shows no bytes.
    pub const fn of_link(kind: LinkCount) -> Option<Self> {
        match kind {
            LinkCount::Received => Some(Self::Received),
            LinkCount::Sent => Some(Self::Sent),
            LinkCount::Unsent => Some(Self::Unsent),
            LinkCount::Overruns => Some(Self::Overruns),
            LinkCount::ReceivedBytes | LinkCount::SentBytes => None,
        }
    }
}

/// What a mapping cost: see [`MappingCost`].
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct MappingCounters {
    /// Loopback and identify probes sent.
    pub switch_probes: u64,
    /// Scouts sent.
    pub scouts: u64,
    /// Compare probes sent.
    pub compares: u64,
    /// How long the mapping took, in milliseconds.
    pub took_ms: f64,
}

impl From<MappingCost> for MappingCounters {
    fn from(cost: MappingCost) -> Self {
        let MappingCost { switch_probes, scouts, compares, began, ended } = cost;
        let took_ms = ended.since(began).as_secs_f64() * 1e3;
        Self { switch_probes, scouts, compares, took_ms }
    }
}
