//! The agent of a port of InfiniBand: a subnet manager as a process.
//!
//! - [`mapper_ib::manager`] decides what is asked and written; here are its port, its clock, its log and its files.
//! - `tables`: the engines, which compute and prove what it is to write.
//! - `lid_file`: the LIDs that it gave, for the next start.
//! - `record_file`: all datagrams, if they are to be recorded.
//! - `paths`: what a service of names and paths is told.
//! - `shown`: what programs of this machine are told; `ways`: the ways to other hosts among it.

mod driver;
mod lid_file;
mod paths;
mod record_file;
mod settings;
mod shown;
pub mod tables;
mod told;
mod ways;

use std::io;
use std::path::PathBuf;

use mapper_machine::interface_lock::InterfaceLockError;
use mapper_machine::mad_port::{ManagerPortError, PortName};
use mapper_machine::metrics::MetricsError;
use mapper_machine::options::ServiceConfig;
use mapper_machine::service::{self, Ran, ServiceError};
use mapper_machine::status::StatusSocketError;
use thiserror::Error;

use crate::agent::driver::DaemonEnd;
use crate::agent::options::Config;
pub use lid_file::LidFileError;
pub use settings::read_key;

/// Why an agent of InfiniBand cannot run, or ended before it had done what it was asked for.
#[derive(Debug, Error)]
pub enum SubnetAgentError {
    /// The port cannot be used.
    #[error(transparent)]
    Port(#[from] ManagerPortError),
    /// Another daemon has the port.
    #[error(transparent)]
    Lock(#[from] InterfaceLockError),
    /// The port is gone.
    #[error("{port} is gone")]
    Gone {
        /// Its name.
        port: String,
        /// What the system says.
        source: io::Error,
    },
    /// The process cannot become a daemon.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The status socket cannot be served.
    #[error(transparent)]
    Status(#[from] StatusSocketError),
    /// Metrics cannot be served or written.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The file of LIDs is wrong, or cannot be read.
    #[error(transparent)]
    Lids(#[from] LidFileError),
    /// The file for the record of datagrams cannot be made.
    #[error("cannot record datagrams in {}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file of the key of management is wrong, or cannot be read.
    #[error("cannot take the key of management from {}: {why}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// With `--map-once`, the subnet was not up within its time limit.
    #[error("the subnet was not up within {limit_s} s: {why}")]
    MapOnceLimit {
        /// The time limit in seconds.
        limit_s: u64,
        /// What was told last of what is wrong.
        why: String,
    },
}

/// Runs the agent of a port of InfiniBand until it is told to stop (SIGTERM, SIGINT), or with `map_once` until the subnet
/// is up. SIGUSR1 opens the log file again.
///
/// # Errors
/// If it cannot start, loses its port, or `map_once` ran out of time.
pub fn run(config: Config, port: PortName) -> Result<DaemonEnd, SubnetAgentError> {
    let ServiceConfig { daemon_pid_file, log, .. } = config.service.clone();
    let serve = |starter| driver::serve(config, port, starter);
    Ok(match service::run(daemon_pid_file.as_deref(), &log, serve)? {
        Ran::Background(status) => DaemonEnd::Background(status),
        Ran::Ended(end) => end,
    })
}
