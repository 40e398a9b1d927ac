//! The settings that every daemon has, with all defaults filled in.

use std::path::PathBuf;

use thiserror::Error;

use super::{LogFormat, LogLevel, MetricsAddress};
use crate::link::ethernet::Marking;

/// The error for a destination address of zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "destination 00:00:00:00:00:00 is no address: switches between the hosts drop such frames; leave it \
     out, or give a group address"
)]
pub struct ZeroDestination;

/// The settings that every daemon has: how it runs, and where it reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceConfig {
    /// The directory of the status sockets.
    pub run_dir: PathBuf,
    /// The group that may ask the status socket.
    pub group: Option<String>,
    /// The file for the process id, if the daemon is to run in the background.
    pub daemon_pid_file: Option<PathBuf>,
    /// How frames are marked.
    pub marking: Marking,
    /// Where metrics are served.
    pub metrics_listen: Option<MetricsAddress>,
    /// Where metrics are written for node_exporter.
    pub metrics_file: Option<PathBuf>,
    /// What is logged, how and where.
    pub log: LogOptions,
}

impl ServiceConfig {
    /// The settings of a daemon that started with `self` and whose configuration now says `new`, and the keys
    /// that differ but count only at start.
    pub fn read_again(&self, new: Self) -> (Self, Vec<&'static str>) {
        // There is no `..` here, so that a new option does not compile before it is decided whether it counts
        // only at start.
        let Self { run_dir, group, daemon_pid_file, marking, metrics_listen, metrics_file, log } = new;
        let LogOptions { level, format, file } = log;
        let keys = changed_keys([
            ("ethertype or destination", self.marking != marking),
            ("run-dir", self.run_dir != run_dir),
            ("group", self.group != group),
            ("daemon-pid-file", self.daemon_pid_file != daemon_pid_file),
            ("metrics-listen", self.metrics_listen != metrics_listen),
            ("metrics-file", self.metrics_file != metrics_file),
            ("verbose-file", self.log.file != file),
            ("log-format", self.log.format != format),
        ]);
        let log = LogOptions { level, ..self.log.clone() };
        (Self { log, ..self.clone() }, keys)
    }
}

/// The keys that changed, of a list that says for each whether it did.
pub fn changed_keys<const N: usize>(keys: [(&'static str, bool); N]) -> Vec<&'static str> {
    keys.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| key).collect()
}

/// What a daemon logs, how and where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogOptions {
    /// The least severe lines that are logged.
    pub level: LogLevel,
    /// How lines are written.
    pub format: LogFormat,
    /// The log file, which gets at least all lines of level `debug`.
    pub file: Option<PathBuf>,
}

impl LogOptions {
    /// Log options with defaults for what is `None`. If there is a level, `verbose` does not count.
    pub fn new(
        level: Option<LogLevel>,
        format: Option<LogFormat>,
        verbose: bool,
        file: Option<PathBuf>,
    ) -> Self {
        let unsaid = if verbose { LogLevel::Debug } else { LogLevel::Info };
        Self { level: level.unwrap_or(unsaid), format: format.unwrap_or_default(), file }
    }
}
