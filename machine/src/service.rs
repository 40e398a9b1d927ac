//! The start and the end of a process that is a daemon.

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

/// A daemon that cannot start.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// It cannot run in the background.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// It would run with more privileges than it needs.
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
    /// The one that was started: the daemon goes on in the background, or failed there and has said so. Leave
    /// with this status.
    Background(ExitCode),
    /// The daemon itself, which has come to its end.
    Ended(T),
}

/// Runs a daemon on one thread. With a pid file it runs in the background, and the process that was started
/// returns as soon as the daemon uses what `serve` gets, to say that it is ready. The log begins here. Call it
/// while the process has one thread.
///
/// # Errors
/// If it cannot start, or `serve` fails: the last line of the log file says so.
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
    // What still runs on other threads, such as a computation of routes, is not waited for.
    runtime.shutdown_background();
    if let Err(error) = &result {
        // The command line prints it; this line is for the file.
        error!(target: log::FAILURE, "{}", with_causes(error));
    }
    result.map(Ran::Ended)
}
