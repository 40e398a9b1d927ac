//! The start and the end of a daemon's process.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mapper_fabric::wording::with_causes;
use thiserror::Error;
use tokio::task::LocalSet;
use tracing::error;

use crate::log;
use crate::options::LogOptions;
use crate::privileges::PrivilegesError;
use crate::process::{self, Detached, PidFile, ProcessError, Starter};

/// Why a daemon cannot start.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The daemon cannot run in the background.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The daemon cannot give up privileges that it does not need.
    #[error(transparent)]
    Privileges(#[from] PrivilegesError),
    /// The log file cannot be opened.
    #[error("cannot open {}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The kernel refused.
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
}

/// Which process returns from [`run`], and why.
#[derive(Debug)]
pub enum Ran<T> {
    /// The process that was started. The daemon runs in the background, or has failed and said so. This
    /// process is to exit with this status.
    Background(ExitCode),
    /// The daemon itself, which has come to its end.
    Ended(T),
}

/// Runs a daemon on one thread, and starts its log. With a pid file the daemon runs in the background, and
/// the process that was started returns as soon as the daemon says by the [`Starter`] that it is ready. To be
/// called while the process has one thread.
///
/// # Errors
/// If the daemon cannot start, or `serve` fails. An error of `serve` is also the last line of the log file.
pub fn run<T, E, F>(
    daemon_pid_file: Option<&Path>,
    log_options: &LogOptions,
    serve: impl FnOnce(Option<Starter>) -> F,
) -> Result<Ran<T>, E>
where
    F: Future<Output = Result<T, E>>,
    E: std::error::Error + From<ServiceError>,
{
    let detached = daemon_pid_file.is_some().then(process::detach).transpose().map_err(ServiceError::from)?;
    let starter = match detached {
        Some(Detached::Parent(status)) => return Ok(Ran::Background(status)),
        Some(Detached::Daemon(starter)) => Some(starter),
        None => None,
    };
    log::start(log_options).map_err(|source| ServiceError::Log {
        path: log_options.file.clone().unwrap_or_else(|| "standard error".into()),
        source,
    })?;
    let _pid_file = daemon_pid_file.map(PidFile::create).transpose().map_err(ServiceError::from)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServiceError::Runtime)?;
    let result = LocalSet::new().block_on(&runtime, async {
        log::attend();
        serve(starter).await
    });
    // Work on other threads, such as a computation of routes, is not waited for.
    runtime.shutdown_background();
    if let Err(error) = &result {
        // This line is for the log file, as the command line prints the error to standard error.
        error!(target: log::FAILURE, "{}", with_causes(error));
    }
    result.map(Ran::Ended)
}
