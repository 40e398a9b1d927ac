//! A crossbar as a process of its own.

use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use mapper_proto::Instant;
use mapper_proto::wire::CrossbarKind;
use thiserror::Error;
use tokio::task::LocalSet;
use tracing::{error, info};

use super::options::{XbarConfigError, XbarSource};
use super::port_table::PortTable;
use super::ports::Numbered;
use super::{PortStatus, Switch, socket};
use crate::daemon::interface_lock::InterfaceLockError;
use crate::daemon::log;
use crate::daemon::metrics::{self, Exporter, MetricsError};
use crate::daemon::notify::Notifier;
use crate::daemon::options::{LogOptions, MetricsAddress};
use crate::daemon::privileges::{self, Needs, PrivilegesError};
use crate::daemon::process::{self, Detached, PidFile, ProcessError, Starter};
use crate::daemon::signals::{Signal, Signals};
use crate::daemon::status::StatusSocketError;
use crate::link::LinkError;
use crate::link::ethernet::Marking;
use crate::link::interface::{Change, Monitor};

/// What a crossbar is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Its name on this machine.
    pub name: String,
    /// Directory of the status socket.
    pub run_dir: PathBuf,
    /// Group that may ask the status socket.
    pub group: Option<String>,
    /// Port numbers and the interfaces behind them, in rising order.
    pub interfaces: Numbered,
    /// Interfaces that match one of these are ports, too, as they come.
    pub patterns: Vec<String>,
    /// The number of the first port.
    pub first_port: u8,
    /// How many ports it has, with an interface or without.
    pub ports: u8,
    /// Whether it may have more as they come.
    pub grows: bool,
    /// What it understands.
    pub kind: Kind,
    /// How frames are marked.
    pub marking: Marking,
    /// Run in the background, with the process id here.
    pub daemon_pid_file: Option<PathBuf>,
    /// Where metrics are served.
    pub metrics_listen: Option<MetricsAddress>,
    /// Where metrics are written for node_exporter.
    pub metrics_file: Option<PathBuf>,
    /// What is logged, how and where.
    pub log: LogOptions,
}

/// What a crossbar understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Anonymous: relative elements only.
    Plain,
    /// All elements. Without a tag it takes the address of its first port's interface.
    Tagged(Option<u64>),
}

/// A crossbar that cannot run.
#[derive(Debug, Error)]
pub enum XbarError {
    /// An interface cannot be used.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Its status socket cannot be made.
    #[error(transparent)]
    Status(#[from] StatusSocketError),
    /// An interface belongs to another daemon.
    #[error(transparent)]
    Lock(#[from] InterfaceLockError),
    /// Metrics cannot be had where they were wanted.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// It cannot run in the background.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// It cannot give up what it does not need.
    #[error(transparent)]
    Privileges(#[from] PrivilegesError),
    /// There is nothing to derive a tag from.
    #[error(
        "a tagged crossbar takes its identity from interface `{0}`, which does not exist; name one: --tag HEX"
    )]
    NoTag(String),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] XbarConfigError),
    /// The log file cannot be opened.
    #[error("cannot open the log file")]
    Log(#[source] io::Error),
    /// The kernel refused.
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
}

/// Runs a crossbar until it is told to stop (SIGTERM, SIGINT). SIGHUP reads the configuration again:
/// ports come and go. SIGUSR1 opens the log file again.
///
/// # Errors
/// If it cannot start, or the kernel no longer tells about interfaces.
pub fn run(source: &XbarSource) -> Result<ExitCode, XbarError> {
    let config = source.read(&[])?;
    let starter = match config.daemon_pid_file.is_some().then(process::detach).transpose()? {
        Some(Detached::Parent(status)) => return Ok(status),
        Some(Detached::Daemon(starter)) => Some(starter),
        None => None,
    };
    log::start(&config.log).map_err(XbarError::Log)?;
    let _pid_file = config.daemon_pid_file.as_deref().map(PidFile::create).transpose()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(XbarError::Runtime)?;
    LocalSet::new().block_on(&runtime, serve(source, &config, starter))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(source: &XbarSource, config: &Config, starter: Option<Starter>) -> Result<(), XbarError> {
    log::attend();
    let mut signals = Signals::new().map_err(XbarError::Runtime)?;
    // The monitor first: then no change is missed between looking and listening.
    let monitor = Monitor::new()?;
    let server = socket::bind(&config.run_dir, &config.name, config.group.as_deref())?;
    let mut ports = PortTable::open(config)?;
    let switch = Rc::clone(ports.switch());
    // An interface that comes back later needs a new socket.
    privileges::give_up_all_but(Needs { raw_sockets: true, ..Needs::default() })?;
    // As it will be written: without the privileges.
    let mut exporter = Exporter::new(config.metrics_listen.as_ref(), config.metrics_file.as_deref())?;
    tokio::task::spawn_local(Rc::clone(&switch).run());
    tokio::task::spawn_local(socket::serve(server, Rc::clone(&switch)));
    match switch.kind() {
        CrossbarKind::Plain => info!(name = config.name, ports = config.ports, "a plain crossbar runs"),
        CrossbarKind::Tagged { tag } => {
            let tag = format_args!("{tag:#018x}");
            info!(name = config.name, ports = config.ports, tag, "a tagged crossbar runs");
        }
    }
    let mut notifier = Notifier::new();
    notifier.ready();
    if let Some(starter) = starter {
        starter.ready()?;
    }
    watch(source, &mut ports, &monitor, &mut signals, &mut notifier, &mut exporter).await?;
    log_traffic(&switch);
    Ok(())
}

/// Follows interfaces and signals until told to stop.
async fn watch(
    source: &XbarSource,
    ports: &mut PortTable,
    monitor: &Monitor,
    signals: &mut Signals,
    notifier: &mut Notifier,
    exporter: &mut Exporter,
) -> Result<(), XbarError> {
    let start = tokio::time::Instant::now();
    let now = || Instant::ZERO + start.elapsed();
    // What changed before the monitor was heard for the first time.
    ports.apply(&Change::Missed);
    loop {
        tokio::select! {
            changes = monitor.changes() => match changes {
                Ok(changes) => changes.iter().for_each(|change| ports.apply(change)),
                Err(error) => {
                    error!(target: log::FAILURE, error = &error as &dyn std::error::Error, "cannot follow the interfaces any more");
                    return Err(error.into());
                }
            },
            signal = signals.next() => match signal {
                Signal::Stop => {
                    notifier.stopping();
                    return Ok(());
                }
                Signal::Reload => {
                    notifier.reloading();
                    ports.reload(source);
                    notifier.ready();
                }
                Signal::ReopenLog => log::reopen(),
            },
            request = exporter.requested() => {
                let text = metrics::render_xbar(&ports.switch().status(), request.dialect());
                request.answer(text);
            }
            () = sleep_until(start, notifier.feed_at()) => notifier.feed_if_due(now()),
        }
    }
}

/// Waits until `at`, for ever if there is none.
async fn sleep_until(start: tokio::time::Instant, at: Option<Instant>) {
    match at.and_then(|at| start.checked_add(at.since(Instant::ZERO))) {
        Some(at) => tokio::time::sleep_until(at).await,
        None => pending().await,
    }
}

/// Logs what went over all ports together.
fn log_traffic(switch: &Switch) {
    let ports = switch.status().ports;
    let sum = |count: fn(&PortStatus) -> u64| ports.iter().map(count).sum::<u64>();
    info!(
        received = sum(|port| port.received),
        forwarded = sum(|port| port.forwarded),
        dropped = sum(|port| port.dropped.total()),
        overruns = sum(|port| port.overruns),
        "traffic"
    );
}
