//! Starts and drives one agent or node.

mod attachment;
mod computation;
mod crossbar_tag;
mod event_loop;
mod happenings;
mod identity;
mod names;
mod outer_ports;
mod reload;
mod shown;
mod user_interface;
mod warnings;

use std::io;
use std::process::ExitCode;
use std::rc::Rc;

use mapper_machine::link::interface::Monitor;
use mapper_machine::metrics::Exporter;
use mapper_machine::options::ServiceConfig;
use mapper_machine::privileges::{self, Needs};
use mapper_machine::process::Starter;
use mapper_machine::service::{self, Ran, ServiceError};
use mapper_machine::signals::Signals;
use mapper_machine::status::{StatusServer, StatusSocketError};
use tracing::{info, warn};

use super::DaemonError;
use super::map_file;
use super::options::{Config, Source};
use super::status::{self, requests_socket_path};
use crate::xbar;
use attachment::Attachment;
use event_loop::Driver;
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

async fn serve(
    source: Source,
    mut config: Config,
    starter: Option<Starter>,
) -> Result<DaemonEnd, DaemonError> {
    let mut signals = Signals::new().map_err(ServiceError::Runtime)?;
    // The monitor is opened before the interfaces are looked at, so that no change falls between.
    let monitor = Monitor::new()?;
    let attachment = Attachment::open(&config)?;
    let server = bind_status(&mut config)?;
    let ServiceConfig { run_dir, group, .. } = &config.service;
    let requests_path = requests_socket_path(run_dir, config.unit);
    let requests_server = status::bind_at(requests_path, config.unit, group.as_deref())?;
    let users = UserInterface::open(&config, attachment.mac, attachment.mtu)?;
    privileges::give_up_all_but(Needs { raw_sockets: true, ..Needs::default() })
        .map_err(ServiceError::from)?;
    // This check comes after the privileges were given up, as the file will be written without them.
    if let Some(path) = &config.map_file {
        map_file::check(path).map_err(|source| DaemonError::MapFile { path: path.clone(), source })?;
    }
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
    let mut driver = Driver::new(source, config, attachment, users, (seed, secret), exporter);
    info!(interface = driver.attachment.link.name(), mac = %driver.host.own(), unit = driver.config.unit, seed, "the agent runs");
    if !driver.attachment.link.carrier() {
        warn!(interface = driver.attachment.link.name(), "no carrier: is the cable plugged in?");
    }
    if let Some(starter) = starter {
        starter.ready().map_err(ServiceError::from)?;
    }
    driver.notifier.ready();
    driver.drive(&monitor, [&server, &requests_server], &mut signals).await
}

/// Serves the status socket of the unit that was asked for, or of the first that is free.
fn bind_status(config: &mut Config) -> Result<StatusServer, StatusSocketError> {
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
