//! What every daemon is told, with all defaults filled in.

use std::path::PathBuf;

use thiserror::Error;

use super::{LogFormat, LogLevel, MetricsAddress};
use crate::link::ethernet::Marking;

/// Frames that are to go to no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "destination 00:00:00:00:00:00 is no address: switches between the hosts drop such frames; leave it \
     out, or give a group address"
)]
pub struct ZeroDestination;

/// What every daemon is told: how it runs, and who hears of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceConfig {
    /// Directory of the status sockets.
    pub run_dir: PathBuf,
    /// Group that may ask the status socket.
    pub group: Option<String>,
    /// Run in the background, with the process id here.
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
    /// What a daemon that began with `self` goes on with, now that its configuration says `new`; and the keys
    /// that differ and count only at start.
    pub fn read_again(&self, new: Self) -> (Self, Vec<&'static str>) {
        // Without `..`: a new option shall not compile before it is decided whether it counts only at start.
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

/// The keys beside which it stands that they changed.
pub fn changed_keys<const N: usize>(keys: [(&'static str, bool); N]) -> Vec<&'static str> {
    keys.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| key).collect()
}

/// What a daemon logs, how and where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogOptions {
    /// The least severe lines that are logged.
    pub level: LogLevel,
    /// How they are written.
    pub format: LogFormat,
    /// Write them there, too, with all that `debug` shows.
    pub file: Option<PathBuf>,
}

impl LogOptions {
    /// With defaults where nothing was said; a level that was said counts before `verbose`.
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
