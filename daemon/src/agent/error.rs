//! Why a daemon cannot run.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use mapper_formats::FormatError;
use mapper_machine::interface_lock::InterfaceLockError;
use mapper_machine::metrics::MetricsError;
use mapper_machine::service::ServiceError;
use mapper_machine::status::StatusSocketError;

use super::options::ConfigError;
use crate::xbar::forwarding::ForwardingError;
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
    /// No interface that matches a pattern of a node can be its port, in words.
    #[error("{0}; name interfaces that are cabled to the fabric, as `ip link` lists them, or free those")]
    NoPort(String),
    /// The interface has an agent already.
    #[error(transparent)]
    Lock(#[from] InterfaceLockError),
    /// The tap interface cannot be made.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// The MTU of the link leaves too little of a frame for users.
    #[error("no tap interface")]
    TapMtu(#[from] MtuTooSmall),
    /// The kernel cannot be used for users' packets as it was chosen.
    #[error("users' packets cannot go by the kernel")]
    Forwarding(#[from] ForwardingError),
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
    /// The plan of the wiring cannot be read.
    #[error("cannot use the plan")]
    Plan(#[from] FormatError),
    /// Nobody can be told of changes.
    #[error("cannot start what tells of changes")]
    OnChange(#[source] io::Error),
    /// The process that keeps the file of hosts' names cannot be started.
    #[error("cannot start the process that keeps the file of hosts' names")]
    HostsFile(#[source] io::Error),
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
