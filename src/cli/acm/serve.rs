//! `mapper acm serve`: runs the service.

use std::path::PathBuf;
use std::process::ExitCode;

use mapper_daemon::acm::{self, AcmSource};
use mapper_daemon::agent::options::Options;
use mapper_machine::options::{AcmKeys, LogKeys, ProcessKeys};

use super::CliError;

/// Options of `mapper acm serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    keys: AcmKeys,
    /// Run as a daemon, and store its process id in this file.
    #[arg(long, value_name = "PATH")]
    daemon_pid_file: Option<PathBuf>,
    /// Directory of the agents' sockets [default: $MAPPER_RUN_DIR, or /run/mapper].
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    #[command(flatten)]
    log: LogKeys,
    /// Read options from `[acm]` of this file, or of mapper.toml in this directory. The command line wins. SIGHUP reads it
    /// and all other files again.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
}

/// Runs `mapper acm serve`.
///
/// # Errors
/// If the service cannot start. The error is worded for the user.
pub fn run(args: Args) -> Result<ExitCode, CliError> {
    let Args { keys, daemon_pid_file, run_dir, log, config } = args;
    let process = ProcessKeys { daemon_pid_file, run_dir, group: None };
    Ok(acm::run(&AcmSource::new(keys, process, log, config, Options::read_acm))?)
}
