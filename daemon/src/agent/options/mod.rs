//! What the user may set of an agent: on the command line, in a configuration file, or not at all.
//!
//! One type serves the command line and the file: every option of `mapper agent` is a key of the file, by the
//! same name and with the same values. The command line wins.

mod addresses;
mod config;
mod effect;
mod error;
mod host_type;
mod node_ports;
mod resolve;
mod source;
mod subnet;
#[cfg(test)]
mod tests;

pub use addresses::{FabricPrefix, WantedAddress, WrongAddress};
pub use config::{Config, PlanConfig};
pub use error::OptionsError;
pub use host_type::HostType;
pub use source::{ConfigError, Source};
pub use subnet::{EngineNames, SubnetConfig};

use std::path::{Path, PathBuf};

use mapper_host::directory::HostName;
use mapper_machine::kernel::Ability;
use mapper_machine::options::{
    self, AcmKeys, Bounded, ConfigFileError, DataPathChoice, FileOptions, FrameKeys, LogKeys, MetricsKeys,
    PlanKeys, ProcessKeys, Shared, Text,
};

/// The options of an agent. What is `None` was not set.
#[derive(Debug, Clone, Default, PartialEq, clap::Args, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Options {
    /// The network interface that is cabled to the fabric.
    #[arg(long, value_name = "IF")]
    pub interface: Option<String>,
    /// The interfaces of a node, which are the ports of its own crossbar.
    #[arg(skip)]
    pub ports: Option<Vec<String>>,
    /// Board number: which of this machine's agents this is [default: the first that is free].
    #[arg(short = 'b', short_alias = 'B', long, value_name = "BOARD")]
    pub unit: Option<u8>,
    /// How the daemon runs, and where it answers.
    #[command(flatten)]
    #[serde(skip)]
    pub process: ProcessKeys,
    /// Give this host an Ethernet interface of this name over the fabric; none for no interface [default: of
    /// a node fabric0, of an agent none].
    #[arg(long, value_name = "NAME")]
    pub tap: Option<String>,
    /// Give that interface this address of IP, or of a network of IPv4, as 10.1.0.0/24, one that no other host
    /// has. May be repeated, or several with commas between them.
    #[arg(long, value_name = "ADDRESS/PREFIX", value_delimiter = ',')]
    #[serde(deserialize_with = "options::one_or_more")]
    pub address: Option<Vec<Text<WantedAddress>>>,
    /// What users' packets go by: auto, srv6, routes or tap [default: auto].
    #[arg(long, value_name = "KIND")]
    pub data_path: Option<DataPathChoice>,
    /// Do without this ability of the kernel, as if it lacked it: nexthops, segments, compression, marks,
    /// force-forwarding or shortcuts. May be repeated, or several with commas between them.
    #[arg(long, value_name = "ABILITY", value_delimiter = ',')]
    #[serde(deserialize_with = "options::one_or_more")]
    pub kernel_avoid: Option<Vec<Text<Ability>>>,
    /// Leave the kernel's routes as they are when the agent ends.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub keep_routes: Option<bool>,
    /// Give that interface the address that this network of IPv6 and the host's MAC make; none for no such
    /// address [default: fd6d:6170:7065:7200::/64].
    #[arg(long, value_name = "PREFIX/64")]
    pub fabric_prefix: Option<Text<FabricPrefix>>,
    /// Keep the names and addresses of all hosts of the fabric in a marked part of this file, as /etc/hosts.
    #[arg(long, value_name = "PATH")]
    pub hosts_file: Option<PathBuf>,
    /// Keys that sign and check all messages of the mapper; see `mapper key`.
    #[arg(long, value_name = "PATH")]
    pub key_file: Option<PathBuf>,
    /// Level in the election of the mapper; 0 for never map.
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<u8>,
    /// What this host runs: gm, xm, mx, ethernet, infiniband, or a number.
    #[arg(long, value_name = "TYPE")]
    pub host_type: Option<Text<HostType>>,
    /// What this host is called on all boards, in maps and logs [default: the name of the machine].
    #[arg(long, value_name = "NAME")]
    pub host_name: Option<Text<HostName>>,
    /// Number of route computation passes: how many routes to each destination.
    #[arg(long, value_name = "N")]
    pub num_passes: Option<Bounded<1, 64>>,
    /// Store each new map in this file, as mapper.map/1 JSON.
    #[arg(long, value_name = "PATH")]
    pub map_file: Option<PathBuf>,
    /// Route any fabric by up*/down*, also a Clos or a torus. The global mapper's setting counts for all
    /// hosts; a board names those that are set otherwise.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub non_clos: Option<bool>,
    /// Skip the check of the cables between xbars in verification.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub no_xbar_check: Option<bool>,
    /// Terminate once mapping is complete everywhere.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub map_once: Option<bool>,
    /// With --map-once: fail after this many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub map_once_limit_s: Option<Bounded<1, 86_400>>,
    /// Re-map incrementally: probe only what changed.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub map_incrementally: Option<bool>,
    /// Pause all other mappers while this one maps.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub pause: Option<bool>,
    /// Debugging feature: accept network printfs.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub printeur: Option<bool>,
    /// Debugging feature: keep remapping.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub thrash: Option<bool>,
    /// Debugging feature: make an artificially inflated map, with this many phantom hosts.
    #[arg(long, value_name = "COUNT")]
    pub extra_hosts: Option<Bounded<0, 10_000>>,
    /// Most ports that a plain xbar of this fabric has. Set it truly: more than that costs probes
    /// and time, fewer leaves cables unfound.
    #[arg(long, value_name = "N")]
    pub plain_ports: Option<Bounded<2, 32>>,
    /// Longest route, in xbars; a host that needs a longer one gets none, and says so.
    #[arg(long, value_name = "N")]
    pub max_hops: Option<Bounded<1, 23>>,
    /// How long an agent sleeps at least before its first mapping, in milliseconds; up to half as long again.
    /// Asleep it answers.
    #[arg(long, value_name = "MS")]
    pub start_delay_ms: Option<Bounded<0, 60_000>>,
    /// How long to wait for the answer to a probe or scout, in milliseconds; up to eight times as long where answers come late.
    #[arg(long, value_name = "MS")]
    pub probe_timeout_ms: Option<Bounded<1, 10_000>>,
    /// How often an unanswered probe or scout is sent in all.
    #[arg(long, value_name = "N")]
    pub probe_tries: Option<Bounded<1, 100>>,
    /// Most probes under way at once.
    #[arg(long, value_name = "N")]
    pub probe_window: Option<Bounded<1, 4_096>>,
    /// How often a passive agent asks its parent for its map version, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub query_interval_ms: Option<Bounded<10, 60_000>>,
    /// How long a parent may stay silent before this agent maps again, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub silence_limit_ms: Option<Bounded<10, 600_000>>,
    /// Pause at the end of each cycle of verification, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub verify_pause_ms: Option<Bounded<1, 600_000>>,
    /// Time between two checks of a path that carries data, in milliseconds; 0 for no checks.
    #[arg(long, value_name = "MS")]
    pub liveness_interval_ms: Option<Bounded<0, 60_000>>,
    /// Silent for so many of these, a path is left for another.
    #[arg(long, value_name = "N")]
    pub liveness_misses: Option<Bounded<1, 255>>,
    /// Most paths that are checked; more in use are counted and not checked.
    #[arg(long, value_name = "N")]
    pub liveness_limit: Option<Bounded<1, 4_096>>,
    /// Most bytes in a piece of a map.
    #[arg(long, value_name = "BYTES")]
    pub piece_bytes: Option<Bounded<256, 8_192>>,
    /// Most requests for pieces under way at once.
    #[arg(long, value_name = "N")]
    pub piece_window: Option<Bounded<1, 256>>,
    /// How frames are marked.
    #[command(flatten)]
    #[serde(skip)]
    pub frames: FrameKeys,
    /// At a port of InfiniBand: the engines that compute tables, tried in this order; best for the best of all that
    /// are proved [default: best].
    #[arg(long, value_name = "NAME[,NAME..]")]
    pub engine: Option<EngineNames>,
    /// At a port of InfiniBand: most layers that tables may use, each a service level with a virtual lane.
    #[arg(long, value_name = "N")]
    pub max_layers: Option<Bounded<1, 15>>,
    /// At a port of InfiniBand: hosts have 2^LMC addresses.
    #[arg(long, value_name = "LMC")]
    pub lmc: Option<Bounded<0, 7>>,
    /// At a port of InfiniBand: keep the LIDs that were given in this file, in the format of OpenSM's guid2lid.
    #[arg(long, value_name = "PATH")]
    pub lid_file: Option<PathBuf>,
    /// At a port of InfiniBand: a file with the key of management (M_Key), which is set in all ports: who does not have
    /// it cannot write to them.
    #[arg(long, value_name = "PATH")]
    pub m_key_file: Option<PathBuf>,
    /// At a port of InfiniBand: the time from one look at all switches to the next, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub watch_interval_ms: Option<Bounded<10, 600_000>>,
    /// At a port of InfiniBand: how long the answer to a datagram may take, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub mad_timeout_ms: Option<Bounded<1, 60_000>>,
    /// At a port of InfiniBand: most datagrams under way at once.
    #[arg(long, value_name = "N")]
    pub mad_window: Option<Bounded<1, 256>>,
    /// At a port of InfiniBand: write each datagram into this file as it is sent or comes, a line each, with its bytes and what
    /// they mean. It has the key of management, so only its owner may read it.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Seed of this agent's random choices; drawn by the system if not set.
    #[arg(long, value_name = "N")]
    pub seed: Option<Bounded<0, { u32::MAX }>>,
    /// Where metrics are to be had.
    #[command(flatten)]
    #[serde(skip)]
    pub metrics: MetricsKeys,
    /// What is logged.
    #[command(flatten)]
    #[serde(skip)]
    pub log: LogKeys,
    /// The table of the ACM service, which an agent only looks through for mistakes.
    #[arg(skip)]
    pub acm: Option<AcmKeys>,
    /// The table of the plan of the fabric's wiring.
    #[arg(skip)]
    pub plan: Option<PlanKeys>,
}

impl FileOptions for Options {
    const PROCESS_FOLLOWS: &'static str = "unit";
    const FRAMES_FOLLOW: &'static str = "piece-window";
    const EXAMPLES: &'static str = include_str!("../../../../mapper.toml");

    fn with(self, Shared { process, frames, metrics, log }: Shared) -> Self {
        Self { process, frames, metrics, log, ..self }
    }

    fn or(self, file: Self) -> Self {
        Self {
            interface: self.interface.or(file.interface),
            ports: self.ports.or(file.ports),
            unit: self.unit.or(file.unit),
            process: self.process.or(file.process),
            tap: self.tap.or(file.tap),
            address: self.address.or(file.address),
            data_path: self.data_path.or(file.data_path),
            kernel_avoid: self.kernel_avoid.or(file.kernel_avoid),
            keep_routes: self.keep_routes.or(file.keep_routes),
            fabric_prefix: self.fabric_prefix.or(file.fabric_prefix),
            hosts_file: self.hosts_file.or(file.hosts_file),
            key_file: self.key_file.or(file.key_file),
            level: self.level.or(file.level),
            host_type: self.host_type.or(file.host_type),
            host_name: self.host_name.or(file.host_name),
            num_passes: self.num_passes.or(file.num_passes),
            map_file: self.map_file.or(file.map_file),
            non_clos: self.non_clos.or(file.non_clos),
            no_xbar_check: self.no_xbar_check.or(file.no_xbar_check),
            map_once: self.map_once.or(file.map_once),
            map_once_limit_s: self.map_once_limit_s.or(file.map_once_limit_s),
            map_incrementally: self.map_incrementally.or(file.map_incrementally),
            pause: self.pause.or(file.pause),
            printeur: self.printeur.or(file.printeur),
            thrash: self.thrash.or(file.thrash),
            extra_hosts: self.extra_hosts.or(file.extra_hosts),
            plain_ports: self.plain_ports.or(file.plain_ports),
            max_hops: self.max_hops.or(file.max_hops),
            start_delay_ms: self.start_delay_ms.or(file.start_delay_ms),
            probe_timeout_ms: self.probe_timeout_ms.or(file.probe_timeout_ms),
            probe_tries: self.probe_tries.or(file.probe_tries),
            probe_window: self.probe_window.or(file.probe_window),
            query_interval_ms: self.query_interval_ms.or(file.query_interval_ms),
            silence_limit_ms: self.silence_limit_ms.or(file.silence_limit_ms),
            verify_pause_ms: self.verify_pause_ms.or(file.verify_pause_ms),
            liveness_interval_ms: self.liveness_interval_ms.or(file.liveness_interval_ms),
            liveness_misses: self.liveness_misses.or(file.liveness_misses),
            liveness_limit: self.liveness_limit.or(file.liveness_limit),
            piece_bytes: self.piece_bytes.or(file.piece_bytes),
            piece_window: self.piece_window.or(file.piece_window),
            frames: self.frames.or(file.frames),
            engine: self.engine.or(file.engine),
            max_layers: self.max_layers.or(file.max_layers),
            lmc: self.lmc.or(file.lmc),
            lid_file: self.lid_file.or(file.lid_file),
            m_key_file: self.m_key_file.or(file.m_key_file),
            watch_interval_ms: self.watch_interval_ms.or(file.watch_interval_ms),
            mad_timeout_ms: self.mad_timeout_ms.or(file.mad_timeout_ms),
            mad_window: self.mad_window.or(file.mad_window),
            record: self.record.or(file.record),
            seed: self.seed.or(file.seed),
            metrics: self.metrics.or(file.metrics),
            log: self.log.or(file.log),
            acm: self.acm.or(file.acm),
            plan: self.plan.or(file.plan),
        }
    }
}

impl Options {
    /// Reads a configuration file, which is TOML with an option for each key.
    ///
    /// # Errors
    /// If the file cannot be read, or has an unknown key or a wrong value. The error names the line.
    pub fn read(path: &Path) -> Result<Self, ConfigFileError> {
        options::read_toml(path)
    }

    /// Reads from the file of all daemons, which may have keys of agents, what it says to daemons of any
    /// kind.
    ///
    /// # Errors
    /// If [`Self::read`] fails.
    pub fn read_shared(path: &Path) -> Result<Shared, ConfigFileError> {
        let Self { process, frames, metrics, log, .. } = options::read_if_there(path)?;
        Ok(Shared { process, frames, metrics, log })
    }

    /// Reads from the file of all daemons, or from such a file in a directory, what it says to the ACM service, and to
    /// daemons of any kind.
    ///
    /// # Errors
    /// If [`Self::read`] fails.
    pub fn read_acm(path: &Path) -> Result<(AcmKeys, Shared), ConfigFileError> {
        let Self { acm, process, frames, metrics, log, .. } =
            options::read_file_or_dir(path, None, options::read_if_there)?;
        Ok((acm.unwrap_or_default(), Shared { process, frames, metrics, log }))
    }
}
