//! Why a daemon cannot run.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use mapper_machine::interface_lock::InterfaceLockError;
use mapper_machine::metrics::MetricsError;
use mapper_machine::service::ServiceError;
use mapper_machine::status::StatusSocketError;

use super::options::ConfigError;
use mapper_host::data::MtuTooSmall;
use mapper_machine::link::LinkError;
use mapper_machine::link::tap::TapError;

/// Why a daemon cannot run, or ended before it had done what it was asked for.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The interface cannot be used.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The interface has an agent already.
    #[error(transparent)]
    Lock(#[from] InterfaceLockError),
    /// The tap interface cannot be made.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// The MTU of the link leaves too little of a frame for users.
    #[error("no tap interface")]
    TapMtu(#[from] MtuTooSmall),
    /// The tap interface is gone.
    #[error("the tap interface is gone: somebody removed it; start again to have it made anew")]
    TapGone,
    /// The process cannot become a daemon.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The status socket cannot be served.
    #[error(transparent)]
    Status(#[from] StatusSocketError),
    /// Metrics cannot be had where they were wanted.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// Maps cannot be stored.
    #[error("cannot store maps in {}", path.display())]
    MapFile {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// With `--map-once`, mapping was not complete within its time limit.
    #[error("mapping was not complete everywhere within {} s: this agent is {state}, {missing}", limit.as_secs())]
    MapOnceLimit {
        /// The time limit.
        limit: Duration,
        /// Where the agent is in its life.
        state: &'static str,
        /// Which hosts are missing, in words.
        missing: String,
    },
}
