//! The options that agents, nodes and crossbars share, in groups. Each group is one type, which is flattened
//! into the options of each kind of daemon.

use std::path::PathBuf;

use mapper_proto::Mac;
use serde::de::{Error, MapAccess};

use super::{
    EtherType, LogFormat, LogLevel, LogOptions, MetricsAddress, ServiceConfig, Text, ZeroDestination,
    default_run_dir,
};
use crate::link::ethernet::Marking;

/// How a daemon runs, and where it answers.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
pub struct ProcessKeys {
    /// Run as a daemon, and store its process id in this file.
    #[arg(long, value_name = "PATH")]
    pub daemon_pid_file: Option<PathBuf>,
    /// Directory of the status sockets, which board-info reads.
    #[arg(long, value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
    /// Group that may ask the status socket, by name or number [default: this process's].
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
}

impl ProcessKeys {
    /// These options, and those of `file` where these are not set.
    #[must_use]
    pub fn or(self, file: Self) -> Self {
        Self {
            daemon_pid_file: self.daemon_pid_file.or(file.daemon_pid_file),
            run_dir: self.run_dir.or(file.run_dir),
            group: self.group.or(file.group),
        }
    }
}

/// How the fabric's frames are marked.
#[derive(Debug, Clone, Copy, Default, PartialEq, clap::Args)]
pub struct FrameKeys {
    /// EtherType of the fabric's frames.
    #[arg(long, value_name = "HEX")]
    pub ethertype: Option<Text<EtherType>>,
    /// Destination address of the fabric's frames.
    #[arg(long, value_name = "MAC")]
    pub destination: Option<Text<Mac>>,
}

impl FrameKeys {
    /// These options, and those of `file` where these are not set.
    pub fn or(self, file: Self) -> Self {
        Self {
            ethertype: self.ethertype.or(file.ethertype),
            destination: self.destination.or(file.destination),
        }
    }

    /// The marks of frames, with defaults where nothing is set.
    fn resolve(self) -> Result<Marking, ZeroDestination> {
        let defaults = Marking::default();
        let marking = Marking {
            ethertype: self.ethertype.map_or(defaults.ethertype, |text| text.value().number()),
            destination: self.destination.map_or(defaults.destination, Text::value),
        };
        if marking.destination == Mac::default() { Err(ZeroDestination) } else { Ok(marking) }
    }
}

/// Where metrics are to be had.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
pub struct MetricsKeys {
    /// Serve OpenMetrics text over HTTP there: a loopback address and port, or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_listen: Option<Text<MetricsAddress>>,
    /// Write OpenMetrics text to this file every 15 seconds, for node_exporter.
    #[arg(long, value_name = "PATH")]
    pub metrics_file: Option<PathBuf>,
}

impl MetricsKeys {
    /// These options, and those of `file` where these are not set.
    pub fn or(self, file: Self) -> Self {
        Self {
            metrics_listen: self.metrics_listen.or(file.metrics_listen),
            metrics_file: self.metrics_file.or(file.metrics_file),
        }
    }
}

/// What is logged, how and where.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
pub struct LogKeys {
    /// Least severe lines to log: error, warn, info, debug or trace.
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<LogLevel>,
    /// How log lines are written: text or json.
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Verbose output, as --log-level debug. The environment variable RUST_LOG=trace shows every frame.
    #[arg(short = 'v', long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub verbose: Option<bool>,
    /// Write verbose output to this file.
    #[arg(long, value_name = "PATH")]
    pub verbose_file: Option<PathBuf>,
}

impl LogKeys {
    /// These options, and those of `file` where these are not set.
    pub fn or(self, file: Self) -> Self {
        Self {
            log_level: self.log_level.or(file.log_level),
            log_format: self.log_format.or(file.log_format),
            verbose: self.verbose.or(file.verbose),
            verbose_file: self.verbose_file.or(file.verbose_file),
        }
    }

    /// The options of the log, with defaults where nothing is set.
    fn resolve(self) -> LogOptions {
        let Self { log_level, log_format, verbose, verbose_file } = self;
        LogOptions::new(log_level, log_format, verbose.unwrap_or(false), verbose_file)
    }
}

/// The options of all groups.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shared {
    /// How the daemon runs, and where it answers.
    pub process: ProcessKeys,
    /// How frames are marked.
    pub frames: FrameKeys,
    /// Where metrics are to be had.
    pub metrics: MetricsKeys,
    /// What is logged.
    pub log: LogKeys,
}

impl Shared {
    /// The settings of the daemon, with defaults where nothing is set.
    ///
    /// # Errors
    /// If the destination address of frames is zero.
    pub fn resolve(self) -> Result<ServiceConfig, ZeroDestination> {
        let Self { process, frames, metrics, log } = self;
        let ProcessKeys { daemon_pid_file, run_dir, group } = process;
        let MetricsKeys { metrics_listen, metrics_file } = metrics;
        Ok(ServiceConfig {
            run_dir: run_dir.unwrap_or_else(default_run_dir),
            group,
            daemon_pid_file,
            marking: frames.resolve()?,
            metrics_listen: metrics_listen.map(Text::value),
            metrics_file,
            log: log.resolve(),
        })
    }
}

/// Lists the keys of each group, and the field that each sets.
macro_rules! keys {
    ($($list:ident of $group:ident: $($key:literal => $field:ident),+;)+) => {
        impl Shared {
            $(pub(super) const $list: &'static [&'static str] = &[$($key),+];)+

            /// Whether a key is one of a group.
            pub(super) fn has(key: &str) -> bool {
                [$(Self::$list),+].concat().contains(&key)
            }

            /// Reads the value of a key into its field.
            pub(super) fn take<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
                match key {
                    $($($key => self.$group.$field = map.next_value()?,)+)+
                    _ => return Err(A::Error::unknown_field(key, &[])),
                }
                Ok(())
            }
        }
    };
}

keys! {
    PROCESS of process: "daemon-pid-file" => daemon_pid_file, "run-dir" => run_dir, "group" => group;
    FRAMES of frames: "ethertype" => ethertype, "destination" => destination;
    METRICS of metrics: "metrics-listen" => metrics_listen, "metrics-file" => metrics_file;
    LOG of log: "log-level" => log_level, "log-format" => log_format, "verbose" => verbose,
        "verbose-file" => verbose_file;
}
