//! The description of a run, which can be written to a file and run again.

use std::time::Duration;

use mapper_proto::Instant;
use mapper_proto::agent::Settings;
use mapper_proto::map::Fabric;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::fabric::{Noise, Plant, PlantError, Timing, Xbars};
use crate::faults::{FaultError, FaultPlan, Timed};
use crate::world::{KernelChoice, Options, TrafficOptions, Until, World};

/// All that decides a run, besides the fabric.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The seed of everything that is random.
    pub seed: u64,
    /// Which kind of xbars the fabric is made of.
    pub xbars: Xbars,
    /// How long things take.
    pub timing: Timing,
    /// How often things go wrong from the start.
    pub noise: Noise,
    /// All agents start at random moments within this.
    pub power_on_spread: Duration,
    /// What the agents are set to.
    pub agents: AgentSetup,
    /// How hosts compute their routes.
    pub routes: RouteSetup,
    /// What users send, if hosts carry users' frames.
    #[serde(default)]
    pub users: Option<UserSetup>,
    /// Whether each host that shares its tagged xbar with no other host is a node, which is one machine with
    /// that xbar and sees its carriers.
    #[serde(default)]
    pub nodes: bool,
    /// Whether users' packets go through the kernels of nodes, as far as these can.
    #[serde(default)]
    pub kernels: bool,
    /// What packets go by in the kernels: segments or the destination.
    #[serde(default)]
    pub kernel_choice: KernelChoice,
    /// Whether agents sign their messages with a key that all have.
    #[serde(default)]
    pub signed: bool,
    /// The fault file.
    pub faults: FaultFile,
    /// What the run waits for.
    pub until: Until,
    /// The virtual time after which the run ends even if what it waits for has not come.
    pub limit: Duration,
}

/// What the agents of a run are set to: see [`mapper_proto::agent::Settings`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "each is the setting of its name")]
pub struct AgentSetup {
    pub probe_timeout: Duration,
    pub probe_tries: u8,
    pub probe_window: usize,
    pub max_hops: usize,
    pub map_incrementally: bool,
    pub xbar_check: bool,
    pub liveness_interval: Duration,
    pub liveness_misses: u8,
    pub verify_pause: Duration,
    pub piece_bytes: usize,
    pub piece_window: usize,
    pub pause: bool,
    pub query_interval: Duration,
    pub silence_limit: Duration,
}

impl AgentSetup {
    fn of(agent: &Settings) -> Self {
        Self {
            probe_timeout: agent.probe_timeout,
            probe_tries: agent.probe_tries,
            probe_window: agent.probe_window,
            max_hops: agent.max_hops,
            map_incrementally: agent.map_incrementally,
            xbar_check: agent.xbar_check,
            liveness_interval: agent.liveness_interval,
            liveness_misses: agent.liveness_misses,
            verify_pause: agent.verify_pause,
            piece_bytes: agent.piece_bytes,
            piece_window: agent.piece_window,
            pause: agent.pause,
            query_interval: agent.query_interval,
            silence_limit: agent.silence_limit,
        }
    }
}

impl Default for AgentSetup {
    fn default() -> Self {
        Self::of(&Options::default().agent)
    }
}

/// How hosts compute their routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSetup {
    /// How many routes are computed for a destination.
    pub passes: u8,
    /// Whether agents use up*/down* routes on a torus or a Clos too. All agents are set alike.
    pub non_clos: bool,
}

/// What users send.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserSetup {
    /// How many frames each host sends in a second, to its partners in turn.
    pub rate: f64,
    /// To how many other hosts each host sends.
    pub partners: usize,
    /// When users begin to send; `None` for when all hosts are configured.
    pub from: Option<Duration>,
    /// How many flows each host's frames to another belong to, in turn.
    #[serde(default = "one")]
    pub flows: u64,
    /// Whether each host also sends broadcasts.
    #[serde(default)]
    pub broadcasts: bool,
}

impl UserSetup {
    /// The longest time from one frame of a host to another to its next to the same one.
    pub(crate) fn turn(&self) -> Duration {
        Duration::from_secs_f64(self.partners as f64 / self.rate)
    }
}

const fn one() -> u64 {
    1
}

/// A fault file: its name for errors, and its text.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultFile {
    /// The name by which errors call the file.
    pub name: String,
    /// The text, in the language of [`crate::faults`].
    pub text: String,
}

/// Why a run cannot begin.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The fabric cannot be built.
    #[error(transparent)]
    Plant(#[from] PlantError),
    /// The fault file is wrong.
    #[error(transparent)]
    Faults(#[from] FaultError),
}

impl Default for Setup {
    fn default() -> Self {
        let options = Options::default();
        Self {
            seed: options.seed,
            xbars: Xbars::default(),
            timing: options.timing,
            noise: options.noise,
            power_on_spread: options.power_on_spread,
            agents: AgentSetup::of(&options.agent),
            routes: RouteSetup { passes: 8, non_clos: false },
            users: None,
            nodes: false,
            kernels: false,
            kernel_choice: KernelChoice::default(),
            signed: false,
            faults: FaultFile::default(),
            until: Until::Configured,
            limit: Duration::from_secs(60),
        }
    }
}

impl Setup {
    /// The world of this run before anything is powered on.
    ///
    /// # Errors
    /// If the fabric cannot be built or the fault file is wrong.
    pub fn world(&self, fabric: &Fabric) -> Result<World, SetupError> {
        let plant = Plant::new(fabric, self.xbars, self.seed)?;
        let faults = self.faults(&plant)?;
        Ok(World::new(fabric, plant, self.options(), faults))
    }

    /// How much longer than by default it takes until routes are computed that a host wants while it computes others.
    pub(crate) fn computing(&self) -> Duration {
        2 * self.timing.compute.saturating_sub(Timing::default().compute)
    }

    /// The moment after which the run ends even if what it waits for has not come.
    pub fn limit_at(&self) -> Instant {
        Instant::ZERO + self.limit
    }

    fn faults(&self, plant: &Plant) -> Result<Vec<Timed>, FaultError> {
        Ok(FaultPlan::parse(&self.faults.name, &self.faults.text, plant)?.draw(plant, self.seed))
    }

    fn options(&self) -> Options {
        let mut options = Options {
            seed: self.seed,
            timing: self.timing,
            noise: self.noise,
            power_on_spread: self.power_on_spread,
            fault_file: self.faults.name.clone(),
            ..Options::default()
        };
        let AgentSetup {
            probe_timeout,
            probe_tries,
            probe_window,
            max_hops,
            map_incrementally,
            xbar_check,
            liveness_interval,
            liveness_misses,
            verify_pause,
            piece_bytes,
            piece_window,
            pause,
            query_interval,
            silence_limit,
        } = self.agents;
        options.agent.liveness_interval = liveness_interval;
        options.agent.liveness_misses = liveness_misses;
        options.agent.verify_pause = verify_pause;
        options.agent.piece_bytes = piece_bytes;
        options.agent.piece_window = piece_window;
        options.agent.pause = pause;
        options.agent.query_interval = query_interval;
        options.agent.silence_limit = silence_limit;
        options.agent.probe_timeout = probe_timeout;
        options.agent.probe_tries = probe_tries;
        options.agent.probe_window = probe_window;
        options.agent.max_hops = max_hops;
        options.agent.map_incrementally = map_incrementally;
        options.agent.xbar_check = xbar_check;
        options.agent.non_clos = self.routes.non_clos;
        options.traffic = self.users.map(|users| {
            let from = users.from.map(|from| Instant::ZERO + from);
            let UserSetup { rate, partners, flows, broadcasts, .. } = users;
            TrafficOptions { rate, partners, from, flows: flows.max(1), broadcasts }
        });
        (options.nodes, options.signed) = (self.nodes, self.signed);
        (options.kernels, options.kernel_choice) = (self.kernels, self.kernel_choice);
        let max_hops = u8::try_from(max_hops).unwrap_or(u8::MAX);
        options.routes = mapper_routing::RouteOptions { passes: self.routes.passes, max_hops };
        options
    }
}
