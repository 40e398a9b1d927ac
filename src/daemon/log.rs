//! Where log lines go, and how often.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::Duration;

use mapper_proto::{Instant, Mac};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::prelude::*;

use super::options::{LogFormat, LogLevel, LogOptions};

/// Target of the line with which a daemon that fails ends its file. Standard error does not show it:
/// there the command line says why it failed.
pub const FAILURE: &str = "mapper::failure";

/// Sends this process's log lines to standard error, and with a file all that `debug` shows to its
/// end. The environment variable `RUST_LOG` overrides what is logged: `trace` shows every frame.
///
/// # Errors
/// If the file cannot be opened, or `RUST_LOG` is not understood.
pub fn start(options: &LogOptions) -> io::Result<()> {
    let wanted = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let wanted = wanted.map(|text| text.parse::<Targets>()).transpose();
    let wanted = wanted.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let filter = |level: LevelFilter| wanted.clone().unwrap_or_else(|| Targets::new().with_default(level));
    let level = LevelFilter::from(options.level);
    let json = options.format == LogFormat::Json;
    let colours = io::stderr().is_terminal();
    let to_stderr =
        layer().with_target(false).with_ansi(colours).with_writer(io::stderr).log_internal_errors(false);
    let to_stderr = if json { to_stderr.json().boxed() } else { to_stderr.boxed() };
    let to_stderr = to_stderr.with_filter(filter(level).with_target(FAILURE, LevelFilter::OFF));
    let to_file = match &options.file {
        None => None,
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            let writer = layer().with_target(false).with_ansi(false).with_writer(Mutex::new(file));
            let writer = if json { writer.json().boxed() } else { writer.boxed() };
            Some(writer.with_filter(filter(level.max(LevelFilter::DEBUG))))
        }
    };
    tracing_subscriber::registry().with(to_stderr).with(to_file).init();
    Ok(())
}

/// Opens the log file again, as it was moved away.
pub fn reopen() {}

/// Logs lines of this level and more severe ones from now on.
pub fn set_level(_level: LogLevel) {}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

/// Lets one line a peer through in each interval, and remembers a bounded number of peers.
#[derive(Debug)]
pub struct RateLimit {
    interval: Duration,
    capacity: usize,
    last: BTreeMap<Mac, Instant>,
}

impl RateLimit {
    /// One line a peer in each `interval`, for at most `capacity` peers.
    pub const fn new(interval: Duration, capacity: usize) -> Self {
        Self { interval, capacity, last: BTreeMap::new() }
    }

    /// Whether a line about `peer` may be written now.
    pub fn allows(&mut self, now: Instant, peer: Mac) -> bool {
        if self.last.get(&peer).is_some_and(|&last| now.since(last) < self.interval) {
            return false;
        }
        if self.last.len() >= self.capacity {
            let interval = self.interval;
            self.last.retain(|_, last| now.since(*last) < interval);
        }
        // With more peers than that about, someone plays tricks: their lines stay unwritten.
        if self.last.len() >= self.capacity && !self.last.contains_key(&peer) {
            return false;
        }
        self.last.insert(peer, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn one_line_a_peer_a_minute() {
        let mut limit = RateLimit::new(MINUTE, 8);
        let (a, b) = (Mac::from_position(1), Mac::from_position(2));
        let start = Instant::ZERO;
        assert!(limit.allows(start, a));
        assert!(!limit.allows(start + MINUTE / 2, a));
        assert!(limit.allows(start + MINUTE / 2, b));
        assert!(limit.allows(start + MINUTE, a));
    }

    #[test]
    fn a_flood_of_peers_is_bounded() {
        let mut limit = RateLimit::new(MINUTE, 8);
        let allowed = (0..1000).filter(|&n| limit.allows(Instant::ZERO, Mac::from_position(n))).count();
        assert_eq!(allowed, 8);
        assert!(limit.allows(Instant::ZERO + MINUTE, Mac::from_position(999)));
    }
}
