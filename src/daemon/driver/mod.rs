//! Drives one agent: what it waits for, and what follows.

mod attachment;
mod computation;
mod crossbar_tag;
mod event_loop;
mod happenings;
mod identity;
mod outer_ports;
mod reload;
mod shown;
mod user_interface;
mod warnings;

use std::io;
use std::process::ExitCode;
use std::rc::Rc;

use mapper_fabric::wording::with_causes;
use tokio::task::LocalSet;
use tracing::{error, info, warn};

use super::DaemonError;
use super::log;
use super::map_file;
use super::metrics::Exporter;
use super::options::{Config, Source};
use super::privileges::{self, Needs};
use super::process::{self, Detached, PidFile, Starter};
use super::signals::Signals;
use super::status::{StatusServer, StatusSocketError, routes_socket_path};
use crate::link::interface::Monitor;
use crate::xbar;
use attachment::Attachment;
use event_loop::Driver;
use user_interface::UserInterface;

/// How a daemon that did not fail came to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// It goes on in the background, or failed there and has said so: leave with this status.
    Background(ExitCode),
    /// It was told to stop.
    Stopped,
    /// With `map_once`: mapping is complete everywhere.
    Complete {
        /// Hosts of the map.
        hosts: usize,
    },
}

/// Runs the agent of one interface, or a node, until it is told to stop (SIGTERM, SIGINT), or with `map_once`
/// until mapping is complete everywhere. SIGHUP reads the configuration again, SIGUSR1 opens the
/// log file again.
///
/// # Errors
/// If it cannot start, or `map_once` ran out of time.
pub fn run(source: Source) -> Result<End, DaemonError> {
    let config = source.read()?;
    let starter = match config.daemon_pid_file.is_some().then(process::detach).transpose()? {
        Some(Detached::Parent(status)) => return Ok(End::Background(status)),
        Some(Detached::Daemon(starter)) => Some(starter),
        None => None,
    };
    log::start(&config.log).map_err(|source| DaemonError::Log {
        path: config.log.file.clone().unwrap_or_else(|| "standard error".into()),
        source,
    })?;
    let _pid_file = config.daemon_pid_file.as_deref().map(PidFile::create).transpose()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(DaemonError::Runtime)?;
    let result = LocalSet::new().block_on(&runtime, serve(source, config, starter));
    // Routes that are still being computed are not waited for.
    runtime.shutdown_background();
    if let Err(error) = &result {
        // The command line prints it; this line is for the file.
        error!(target: log::FAILURE, "{}", with_causes(error));
    }
    result
}

async fn serve(source: Source, mut config: Config, starter: Option<Starter>) -> Result<End, DaemonError> {
    log::attend();
    let mut signals = Signals::new().map_err(DaemonError::Runtime)?;
    // The monitor first: then no change is missed between looking and listening.
    let monitor = Monitor::new()?;
    let attachment = Attachment::open(&config)?;
    let server = bind_status(&mut config)?;
    let routes_path = routes_socket_path(&config.run_dir, config.unit);
    let taken = |path| StatusSocketError::UnitTaken { unit: config.unit, path };
    let routes_server = StatusServer::bind_at(routes_path, config.group.as_deref(), taken)?;
    let users = UserInterface::open(&config, attachment.mac, attachment.mtu)?;
    privileges::give_up_all_but(Needs { raw_sockets: true, ..Needs::default() })?;
    // As it will be written: without the privileges.
    if let Some(path) = &config.map_file {
        map_file::check(path).map_err(|source| DaemonError::MapFile { path: path.clone(), source })?;
    }
    let exporter = Exporter::new(config.metrics_listen.as_ref(), config.metrics_file.as_deref())?;
    let seed = match config.seed {
        Some(seed) => seed,
        None => random_seed().map_err(DaemonError::Runtime)?,
    };
    let secret = random_seed().map_err(DaemonError::Runtime)?;
    if let Some(switch) = &attachment.crossbar {
        tokio::task::spawn_local(Rc::clone(switch).run());
        let asked = xbar::socket::bind(&config.run_dir, &config.interface, config.group.as_deref())?;
        tokio::task::spawn_local(xbar::socket::serve(asked, Rc::clone(switch)));
    }
    let mut driver = Driver::new(source, config, attachment, users, (seed, secret), exporter);
    info!(interface = driver.attachment.link.name(), mac = %driver.host.own(), unit = driver.config.unit, seed, "the agent runs");
    if !driver.attachment.link.carrier() {
        warn!(interface = driver.attachment.link.name(), "no carrier: is the cable plugged in?");
    }
    if let Some(starter) = starter {
        starter.ready()?;
    }
    driver.notifier.ready();
    driver.drive(&monitor, [&server, &routes_server], &mut signals).await
}

/// Serves the status socket of the unit that was asked for, or of the first that is free.
fn bind_status(config: &mut Config) -> Result<StatusServer, StatusSocketError> {
    loop {
        match StatusServer::bind(&config.run_dir, config.unit, config.group.as_deref()) {
            Err(StatusSocketError::UnitTaken { .. }) if !config.unit_given && config.unit < u8::MAX => {
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
