//! The log: where its lines go, and how many are written.
//!
//! A line's kind is the place in the program that it comes from. Of each kind a limited number of lines is
//! written in a minute, and then one line says how many were not. Lines of level `trace` are not limited, as
//! whoever asks for them wants every frame.
//!
//! Threads of their own write the lines, so a reader that stops does not hold up the daemon. Lines that
//! cannot be written are lost and counted, and a line tells how many once lines can be written again.

mod file;
mod limit;
mod peers;
mod queue;

pub use peers::RateLimit;

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};
use tracing::level_filters::LevelFilter;
use tracing::{error, warn};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use self::file::{LogFile, StandardError};
use self::limit::{Limited, Limiter, WINDOW};
use self::queue::LineQueue;
use crate::options::{LogFormat, LogLevel, LogOptions};

/// The target of a failed daemon's last line in its log file. Standard error does not show this line, as the
/// command line prints the error there.
pub const FAILURE: &str = "mapper::failure";
/// The target of lines that say how many lines were not written.
const SUPPRESSED: &str = "mapper::suppressed";
/// How long to wait at the end until the last lines are written.
const LAST_LINES_LIMIT: Duration = Duration::from_secs(1);

type Handle = reload::Handle<Targets, Registry>;

/// This process's log, as far as it can be changed while the process runs.
static LOG: OnceLock<Log> = OnceLock::new();

#[derive(Debug)]
struct Log {
    stderr: Arc<LineQueue>,
    file: Option<Arc<LineQueue>>,
    to_stderr: Handle,
    to_file: Option<Handle>,
    /// The limiter of the file's lines, or without a file that of standard error's lines.
    limiter: Arc<Limiter>,
    /// Whether `RUST_LOG` was set, in which case it decides what is logged.
    fixed: bool,
}

/// Starts this process's log, which goes to standard error and to the file, if there is one. The file gets at
/// least all lines of level `debug`. The environment variable `RUST_LOG` overrides what is logged; `trace`
/// shows every frame.
///
/// # Errors
/// If the file cannot be opened, `RUST_LOG` is malformed, or no thread can be started.
pub fn start(options: &LogOptions) -> io::Result<()> {
    let wanted = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let wanted = wanted.map(|text| text.parse::<Targets>()).transpose();
    let wanted = wanted.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let (stderr_filter, file_filter) = match &wanted {
        Some(wanted) => (without_failure(wanted.clone()), wanted.clone()),
        None => filters(options.level),
    };

    let mut limiter = Arc::new(Limiter::default());
    let (filter, to_stderr) = reload::Layer::new(stderr_filter);
    let stderr = Arc::new(LineQueue::start("standard error", StandardError)?);
    let sink = sink(options.format, io::stderr().is_terminal(), Arc::clone(&stderr), &limiter);
    let mut sinks = vec![sink.with_filter(filter).boxed()];
    let mut to_file = None;
    let file = options.file.as_deref().map(LogFile::open).transpose()?;
    let file = file.map(|file| LineQueue::start("the log file", file)).transpose()?.map(Arc::new);
    if let Some(file) = &file {
        limiter = Arc::new(Limiter::default());
        let (filter, handle) = reload::Layer::new(file_filter);
        let sink = self::sink(options.format, false, Arc::clone(file), &limiter);
        sinks.push(sink.with_filter(filter).boxed());
        to_file = Some(handle);
    }
    tracing_subscriber::registry().with(sinks).init();
    // This is always the first call: a second start would fail at `init`.
    let _first = LOG.set(Log { stderr, file, to_stderr, to_file, limiter, fixed: wanted.is_some() });
    Ok(())
}

/// The filters of standard error and of the file at this level.
fn filters(level: LogLevel) -> (Targets, Targets) {
    let level = LevelFilter::from(level);
    let targets = |level| Targets::new().with_default(level);
    (without_failure(targets(level)), targets(level.max(LevelFilter::DEBUG)))
}

fn without_failure(targets: Targets) -> Targets {
    targets.with_target(FAILURE, LevelFilter::OFF)
}

fn sink<W>(
    format: LogFormat,
    colours: bool,
    writer: W,
    limiter: &Arc<Limiter>,
) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let limiter = Arc::clone(limiter);
    // With internal errors a full disk would fill standard error as well.
    let layer =
        fmt::layer().with_target(false).with_ansi(colours).with_writer(writer).log_internal_errors(false);
    match format {
        LogFormat::Text => layer.map_event_format(|inner| Limited { inner, limiter }).boxed(),
        LogFormat::Json => {
            layer.json().flatten_event(true).map_event_format(|inner| Limited { inner, limiter }).boxed()
        }
    }
}

/// Opens the log file anew by its name, after it was moved away. If it cannot be opened, the old one stays in
/// use, which is logged.
pub fn reopen() {
    if let Some(file) = LOG.get().and_then(|log| log.file.as_ref()) {
        file.reopen();
    }
}

/// How many lines of this process were lost since its start, as nobody read them or they could not be
/// written.
pub fn lines_lost() -> u64 {
    LOG.get().map_or(0, |log| log.stderr.lost() + log.file.as_ref().map_or(0, |file| file.lost()))
}

/// Writes text that is no log line to standard error, behind the log lines that wait, if there is a log.
///
/// # Errors
/// If it cannot be written.
pub fn say(text: &str) -> io::Result<()> {
    match LOG.get() {
        Some(log) => (&*log.stderr).write_all(text.as_bytes()),
        None => io::stderr().write_all(text.as_bytes()),
    }
}

/// Waits until all lines so far are written, but not for long if nobody reads them. To be called before the
/// program ends or gives up its standard error.
pub fn flush() {
    let Some(log) = LOG.get() else { return };
    let deadline = Instant::now() + LAST_LINES_LIMIT;
    for queue in std::iter::once(&log.stderr).chain(&log.file) {
        // Lines that nobody has read by the deadline are lost.
        let _written = queue.flush(deadline);
    }
}

/// Sets the least severe lines that are logged from now on, unless `RUST_LOG` decides.
pub fn set_level(level: LogLevel) {
    let Some(log) = LOG.get().filter(|log| !log.fixed) else { return };
    let (stderr_filter, file_filter) = filters(level);
    let mut changed = log.to_stderr.reload(stderr_filter);
    if let Some(to_file) = &log.to_file {
        changed = changed.and(to_file.reload(file_filter));
    }
    if let Err(error) = changed {
        error!(%error, "cannot change what is logged");
    }
}

/// Begins to log every minute how many lines were not written. Needs a tokio runtime.
pub(crate) fn attend() {
    drop(tokio::spawn(async {
        let mut minute = interval(WINDOW);
        minute.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            minute.tick().await;
            tell_suppressed(Instant::now());
        }
    }));
}

fn tell_suppressed(now: Instant) {
    let kinds = LOG.get().map(|log| log.limiter.take_suppressed(now)).unwrap_or_default();
    for kind in kinds {
        warn!(target: SUPPRESSED, lines = kind.lines, like = kind.like, "similar lines were not written");
    }
}

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
