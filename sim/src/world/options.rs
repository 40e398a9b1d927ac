//! What may be set of a run.

use std::time::Duration;

use mapper_proto::agent::Settings;
use mapper_proto::{Instant, Mac};
use serde::{Deserialize, Serialize};

use crate::fabric::{Noise, Timing};

/// What may be set of a run. Together with the fabric and the faults it decides the run, bit for
/// bit.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Decides everything that is random.
    pub seed: u64,
    /// How long things take.
    pub timing: Timing,
    /// How often things go wrong from the start.
    pub noise: Noise,
    /// All agents start at random moments within this.
    pub power_on_spread: Duration,
    /// What every agent is set to. Address, level and host type are the host's own, and
    /// `plain_ports` is the largest port count among the fabric's plain xbars.
    pub agent: Settings,
    /// What hosts' routes are set to.
    pub routes: mapper_routing::RouteOptions,
    /// What users send; `None` where hosts carry no users' frames.
    pub traffic: Option<TrafficOptions>,
    /// Whether each host that has a tagged xbar to itself is a node, which is one machine with that xbar and
    /// sees its carriers.
    pub nodes: bool,
    /// Whether users' packets between nodes go through the kernels, as far as these can.
    pub kernels: bool,
    /// What packets go by in the kernels.
    pub kernel_choice: KernelChoice,
    /// Whether agents sign what they say with a key that all have. Each start has another salt.
    pub signed: bool,
    /// How often a hostile agent sends a frame.
    pub hostile_interval: Duration,
    /// What errors call the file that the faults are from.
    pub fault_file: String,
}

impl Default for Options {
    fn default() -> Self {
        let mut agent = Settings::new(Mac::default());
        agent.probe_timeout = Duration::from_millis(1);
        Self {
            seed: 1,
            timing: Timing::default(),
            noise: Noise::default(),
            power_on_spread: Duration::from_millis(10),
            agent,
            routes: mapper_routing::RouteOptions::default(),
            traffic: None,
            nodes: false,
            kernels: false,
            kernel_choice: KernelChoice::default(),
            signed: false,
            hostile_interval: Duration::from_micros(500),
            fault_file: "faults".to_owned(),
        }
    }
}

/// What users' packets go by in the kernels, by the settings of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelChoice {
    /// By segments where a kernel knows them, which is drawn from the seed, and otherwise by destination. Where one knows none
    /// and all hosts are nodes, all go by destination.
    #[default]
    Auto,
    /// By segments at all hosts, whose kernels all know those of several elements.
    Segments,
    /// By destination at all hosts.
    Routes,
    /// By destination at some hosts, and as with [`Self::Auto`] at the others.
    Mixed,
}

/// What users send.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrafficOptions {
    /// Frames a second at each host, to others in turn.
    pub rate: f64,
    /// To how many other hosts each host sends.
    pub partners: usize,
    /// When users begin to send; `None` for when all are configured.
    pub from: Option<Instant>,
    /// How many flows the frames from one host to another belong to, in turn; at least one.
    pub flows: u64,
    /// Whether each host also sends broadcasts: one after each [`Self::BROADCAST_EVERY`] other frames.
    pub broadcasts: bool,
}

impl TrafficOptions {
    /// After how many other frames a host that sends broadcasts sends one.
    pub const BROADCAST_EVERY: u64 = 8;
}

/// A stream of seeds: the `n`th seed for `purpose` in a run of this seed.
///
/// It is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), so seeds of neighbouring numbers have
/// nothing in common.
pub(crate) fn derive_seed(seed: u64, purpose: u64, n: u64) -> u64 {
    let mut z = seed ^ purpose.rotate_left(32) ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for _ in 0..2 {
        z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
    }
    z
}
