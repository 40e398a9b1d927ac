//! Starts and drives one agent or node.

mod addresses;
mod attachment;
mod computation;
mod direct_cable;
mod event_loop;
mod followers;
mod given_addresses;
mod happenings;
mod history;
mod hosts_file;
mod identity;
mod interface_changes;
mod kept_addresses;
mod kept_identity;
mod kernel_side;
mod map_once;
mod names;
mod outer_ports;
mod patterns;
mod plan;
mod rates;
mod reload;
mod resolution;
mod shown;
mod soundings;
mod state;
mod user_interface;
mod warnings;

use std::io;
use std::net::IpAddr;
use std::process::ExitCode;
use std::rc::Rc;

use mapper_host::EndOnceMapped;
use mapper_machine::link::LinkError;
use mapper_machine::link::held_address::AddressMonitor;
use mapper_machine::link::interface::InterfaceMonitor;
use mapper_machine::metrics::Exporter;
use mapper_machine::options::{DataPathChoice, ServiceConfig};
use mapper_machine::privileges::{self, Needs};
use mapper_machine::process::Starter;
use mapper_machine::service::{self, Ran, ServiceError};
use mapper_machine::signals::Signals;
use mapper_machine::status::{StatusServer, StatusSocketError};
use mapper_proto::Instant;
use tracing::{info, warn};

pub(crate) use followers::Followers;

use super::DaemonError;
use super::map_file;
use super::options::{Config, Source};
use super::status::{self, PathsNumber, paths_number_path, requests_socket_path};
use crate::hosts_file::told::HostsFile;
use crate::xbar;
use attachment::Attachment;
use kernel_side::KernelSide;
use plan::PlanWatch;
use state::Driver;
use user_interface::UserInterface;

/// How a daemon that did not fail came to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DaemonEnd {
    /// The daemon runs in the background, or has failed there and said so. This process is to exit with this
    /// status.
    Background(ExitCode),
    /// The daemon was told to stop.
    Stopped,
    /// Mapping is complete everywhere, which `map_once` waited for.
    Complete {
        /// How many hosts the map has.
        hosts: usize,
    },
}

/// Runs the agent of one interface, or a node, until it is told to stop (SIGTERM, SIGINT), or with `map_once`
/// until mapping is complete everywhere. SIGHUP reads the configuration again, SIGUSR1 opens the
/// log file again.
///
/// # Errors
/// If it cannot start, or `map_once` ran out of time.
pub fn run(source: Source) -> Result<DaemonEnd, DaemonError> {
    let config = source.read()?;
    let ServiceConfig { daemon_pid_file, log, .. } = config.service.clone();
    let serve = |starter| serve(source, config, starter);
    Ok(match service::run(daemon_pid_file.as_deref(), &log, serve)? {
        Ran::Background(status) => DaemonEnd::Background(status),
        Ran::Ended(end) => end,
    })
}

/// An interface that matches a pattern of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchingInterface {
    /// Its name.
    pub interface: String,
    /// Why it is no port all the same, in words; `None` if it is one.
    pub why_not: Option<&'static str>,
}

/// The interfaces that match a pattern of this configuration now and are not named in it.
///
/// # Errors
/// If the kernel does not tell of its interfaces.
pub fn matching_interfaces(config: &Config) -> Result<Vec<MatchingInterface>, LinkError> {
    if config.patterns.is_empty() {
        return Ok(Vec::new());
    }
    let candidates = patterns::Candidates::now()?;
    let matching = candidates.matching(config);
    Ok(matching.map(|(it, why_not)| MatchingInterface { interface: it.name.clone(), why_not }).collect())
}

async fn serve(
    source: Source,
    mut config: Config,
    mut starter: Option<Starter>,
) -> Result<DaemonEnd, DaemonError> {
    let mut signals = Signals::new().map_err(ServiceError::Runtime)?;
    // The monitor is opened before the interfaces are looked at, so that no change falls between.
    let monitor = InterfaceMonitor::new()?;
    let address_monitor = AddressMonitor::new()?;
    if !config.patterns.is_empty() {
        // Whoever started the daemon does not wait for an interface that comes later.
        if let Some(starter) = starter.take() {
            starter.ready().map_err(ServiceError::from)?;
        }
        if !patterns::wait_for_port(&config, &monitor, &mut signals).await? {
            return Ok(DaemonEnd::Stopped);
        }
    }
    let attachment = Attachment::open(&config)?;
    let server = bind_status(&mut config)?;
    let ServiceConfig { run_dir, group, .. } = &config.service;
    let requests_path = requests_socket_path(run_dir, config.unit);
    let requests_server = status::bind_at(requests_path, config.unit, group.as_deref())?;
    let paths_number = PathsNumber::open(&paths_number_path(run_dir, config.unit));
    let users = UserInterface::open(&config, attachment.mac, attachment.mtu)?;
    if let Some(users) = &users {
        // Addresses of networks from which this run picks may be picked again, so they stay.
        let picks_from = |left: IpAddr| config.networks.iter().any(|network| network.contains(left));
        users.take_away_left(|left| !picks_from(left.ip()));
    }
    attachment.keep_identity(&config);
    let kernel = KernelSide::open(&config, &attachment)?;
    // What the kernel is to hold changes with every map, an address that is picked may have to be given up for another,
    // ports that come later are set up, and the tap interface has the MTU that cables carry, as long as the daemon runs. Who
    // chose the tap interface alone for users' packets is given a process without that privilege, which says on the board if
    // the MTU should be another.
    let picks = users.is_some() && !config.networks.is_empty();
    let sets_mtu = users.is_some() && config.data_path != DataPathChoice::Tap;
    let network_administration = picks || sets_mtu || kernel.is_ok() || !config.patterns.is_empty();
    let hosts_file = config.hosts_file.as_deref().map(|path| HostsFile::open(path, config.mark()));
    let hosts_file = hosts_file.transpose().map_err(DaemonError::HostsFile)?;
    privileges::give_up_all_but(Needs { raw_sockets: true, network_administration, files: false })
        .map_err(ServiceError::from)?;
    // This check comes after the privileges were given up, as the file will be written without them.
    if let Some(path) = &config.map_file {
        map_file::check(path).map_err(|source| DaemonError::MapFile { path: path.clone(), source })?;
    }
    // The plan will be read again with each map, and without privileges.
    let plan = PlanWatch::begin(config.plan.as_ref())?;
    let exporter = Exporter::new(&config.service)?;
    let seed = match config.seed {
        Some(seed) => seed,
        None => random_seed().map_err(ServiceError::Runtime)?,
    };
    let secret = random_seed().map_err(ServiceError::Runtime)?;
    if let Some(switch) = &attachment.crossbar {
        tokio::task::spawn_local(Rc::clone(switch).run());
        let asked = xbar::socket::bind(run_dir, &config.interface, group.as_deref())?;
        tokio::task::spawn_local(xbar::socket::serve(asked, Rc::clone(switch)));
    }
    let mut driver = Driver::new(source, config, attachment, (users, kernel), (seed, secret), exporter);
    driver.begin_with_kernel(random_seed().map_err(ServiceError::Runtime)?);
    if let Some(limit) = driver.config.map_once {
        let (until, keeps_kernel_routes) = (Instant::ZERO + limit, driver.config.keep_routes);
        driver.host.end_once_mapped(driver.now(), EndOnceMapped { until, keeps_kernel_routes });
    }
    match paths_number {
        Ok(number) => driver.followers.tell_of_paths(number),
        Err(error) => {
            warn!(%error, "programs hear of new paths a moment late, as the file with their number cannot be made");
        }
    }
    driver.hosts_file = hosts_file;
    driver.plan = plan;
    driver.keep_history();
    info!(interface = driver.attachment.link.name(), mac = %driver.host.own(), unit = driver.config.unit, seed, "the agent runs");
    if driver.attachment.link.exists() && !driver.attachment.link.carrier() {
        warn!(interface = driver.attachment.link.name(), "no carrier: is the cable plugged in?");
    }
    if let Some(starter) = starter {
        starter.ready().map_err(ServiceError::from)?;
    }
    driver.notifier.ready();
    let end = driver.drive((&monitor, &address_monitor), [&server, &requests_server], &mut signals).await;
    driver.leave_kernel();
    if let Some(file) = driver.hosts_file.take() {
        file.close().await;
    }
    end
}

/// Serves the status socket of the unit that was asked for, or of the first that is free.
///
/// # Errors
/// If another agent has the unit that was asked for, or the socket cannot be made.
pub(crate) fn bind_status(config: &mut Config) -> Result<StatusServer, StatusSocketError> {
    loop {
        let ServiceConfig { run_dir, group, .. } = &config.service;
        match status::bind(run_dir, config.unit, group.as_deref()) {
            Err(StatusSocketError::Taken { .. }) if !config.unit_given && config.unit < u8::MAX => {
                config.unit += 1;
            }
            done => return done,
        }
    }
}

fn random_seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if filled == bytes.len() {
        Ok(u64::from_ne_bytes(bytes))
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}
