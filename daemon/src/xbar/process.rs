//! A crossbar as a process of its own.

use std::process::ExitCode;
use std::rc::Rc;

use mapper_machine::clock::Clock;
use mapper_machine::interface_lock::InterfaceLockError;
use mapper_machine::kernel::Ability;
use mapper_machine::link::LinkError;
use mapper_machine::link::interface::{InterfaceChange, InterfaceMonitor};
use mapper_machine::log;
use mapper_machine::metrics::{Exporter, MetricsError};
use mapper_machine::notify::Notifier;
use mapper_machine::options::{DataPathChoice, ServiceConfig};
use mapper_machine::privileges::{self, Needs};
use mapper_machine::process::Starter;
use mapper_machine::service::{self, Ran, ServiceError};
use mapper_machine::signals::{Signal, Signals};
use mapper_machine::status::StatusSocketError;
use mapper_proto::wire::CrossbarKind;
use thiserror::Error;
use tracing::info;

use super::forwarding::ForwardingError;
use super::kernel_crossbar::{self, KernelCrossbar};
use super::metrics;
use super::options::{XbarConfigError, XbarSource};
use super::port_table::PortTable;
use super::ports::Numbered;
use super::{PortStatus, Switch, socket};

/// The configuration of a crossbar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XbarConfig {
    /// The crossbar's name on this machine.
    pub name: String,
    /// The options that daemons of any kind have.
    pub service: ServiceConfig,
    /// Port numbers and the interfaces behind them, in rising order.
    pub interfaces: Numbered,
    /// Patterns of interface names. An interface that matches one becomes a port when it appears.
    pub patterns: Vec<String>,
    /// The number of the first port.
    pub first_port: u8,
    /// How many ports it has, with an interface or without.
    pub ports: u8,
    /// Whether the crossbar gets more ports when interfaces appear that match.
    pub grows: bool,
    /// Which route elements it understands.
    pub kind: XbarKind,
    /// What it has users' packets go by, beside its own forwarding of frames.
    pub data_path: DataPathChoice,
    /// Which abilities of the kernel are not used.
    pub kernel_avoid: Vec<Ability>,
}

/// Which route elements a crossbar understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XbarKind {
    /// The crossbar is anonymous, and understands relative route elements only.
    Plain,
    /// The crossbar understands all route elements. If no tag is given, its tag is the address of its first
    /// port's interface.
    Tagged(Option<u64>),
}

/// Why a crossbar cannot run.
#[derive(Debug, Error)]
pub enum XbarError {
    /// An interface cannot be used.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The status socket cannot be made.
    #[error(transparent)]
    Status(#[from] StatusSocketError),
    /// An interface belongs to another daemon.
    #[error(transparent)]
    Lock(#[from] InterfaceLockError),
    /// The kernel cannot be used for users' packets as it was chosen.
    #[error("users' packets cannot go by the kernel")]
    Forwarding(#[from] ForwardingError),
    /// Metrics cannot be had where they were wanted.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The process cannot become a daemon.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// There is no interface to derive a tag from.
    #[error(
        "a tagged crossbar takes its identity from interface `{0}`, which does not exist; name one: --tag HEX"
    )]
    NoTag(String),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] XbarConfigError),
}

/// Runs a crossbar until it is told to stop (SIGTERM, SIGINT). On SIGHUP it reads the configuration again,
/// and adds and removes ports. On SIGUSR1 it opens the log file again.
///
/// # Errors
/// If it cannot start, or the kernel no longer tells about interfaces.
pub fn run(source: &XbarSource) -> Result<ExitCode, XbarError> {
    let config = source.read(&[])?;
    let ServiceConfig { daemon_pid_file, log, .. } = &config.service;
    let serve = |starter| serve(source, &config, starter);
    Ok(match service::run::<(), XbarError, _>(daemon_pid_file.as_deref(), log, serve)? {
        Ran::Background(status) => status,
        Ran::Ended(()) => ExitCode::SUCCESS,
    })
}

async fn serve(source: &XbarSource, config: &XbarConfig, starter: Option<Starter>) -> Result<(), XbarError> {
    let mut signals = Signals::new().map_err(ServiceError::Runtime)?;
    // The monitor is opened before the interfaces are looked at, so that no change between the two is missed.
    let monitor = InterfaceMonitor::new()?;
    let server = socket::bind(&config.service.run_dir, &config.name, config.service.group.as_deref())?;
    let mut ports = PortTable::open(config)?;
    let switch = Rc::clone(ports.switch());
    let mut kernel = KernelCrossbar::open(config, &switch)?;
    // The daemon keeps the privilege for raw sockets, since an interface that comes back later needs a new
    // one. What the kernel is to hold changes with the neighbours.
    privileges::give_up_all_but(Needs {
        raw_sockets: true,
        network_administration: kernel.is_ok(),
        files: false,
    })
    .map_err(ServiceError::from)?;
    // The exporter is made after the privileges are given up, so that a metrics file that cannot be written
    // without them is refused now.
    let mut exporter = Exporter::new(&config.service)?;
    tokio::task::spawn_local(Rc::clone(&switch).run());
    tokio::task::spawn_local(socket::serve(server, Rc::clone(&switch)));
    match switch.kind() {
        CrossbarKind::Plain => info!(name = config.name, ports = config.ports, "a plain crossbar runs"),
        CrossbarKind::Tagged { tag } => {
            let tag = format_args!("{tag:#018x}");
            info!(name = config.name, ports = config.ports, tag, "a tagged crossbar runs");
        }
    }
    let data_path = kernel_crossbar::data_path(&kernel);
    info!("users' packets go by {}: {}", data_path.kind, data_path.why);
    switch.set_data_path(data_path);
    let mut notifier = Notifier::new();
    notifier.ready();
    if let Some(starter) = starter {
        starter.ready().map_err(ServiceError::from)?;
    }
    let watched =
        Watched { monitor: &monitor, signals: &mut signals, exporter: &mut exporter, kernel: &mut kernel };
    let ended = watch(source, &mut ports, watched, &mut notifier).await;
    if let Ok(kernel) = kernel {
        kernel.close();
    }
    log_traffic(&switch);
    ended
}

/// What a running crossbar waits for.
struct Watched<'a> {
    monitor: &'a InterfaceMonitor,
    signals: &'a mut Signals,
    exporter: &'a mut Exporter,
    kernel: &'a mut Result<KernelCrossbar, String>,
}

/// Follows interfaces and signals until a signal tells the crossbar to stop.
async fn watch(
    source: &XbarSource,
    ports: &mut PortTable,
    Watched { monitor, signals, exporter, kernel }: Watched<'_>,
    notifier: &mut Notifier,
) -> Result<(), XbarError> {
    let clock = Clock::start();
    // All interfaces are looked at once more, for those that changed before the monitor was first heard.
    ports.apply(&InterfaceChange::Missed);
    loop {
        if let Ok(kernel) = kernel.as_mut() {
            kernel.follow(ports.interfaces());
        }
        ports.switch().set_data_path(kernel_crossbar::data_path(kernel));
        tokio::select! {
            changes = monitor.changes() => {
                changes?.iter().for_each(|change| ports.apply(change));
                if let Ok(kernel) = kernel.as_mut() {
                    kernel.interfaces_changed();
                }
            }
            () = kernel_crossbar::due(kernel) => {}
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
                let text = metrics::render(&ports.switch().status(), request.dialect());
                request.answer(text);
            }
            () = clock.sleep_until(notifier.feed_at()) => notifier.feed_if_due(clock.now()),
        }
    }
}

/// Logs how many frames went over all ports together.
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
