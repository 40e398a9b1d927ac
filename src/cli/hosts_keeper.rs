//! `mapper hosts-keeper`, which daemons start: see [`mapper_daemon::hosts_file::keeper`].

use std::path::PathBuf;
use std::process::ExitCode;

use mapper_daemon::hosts_file::keeper;

use super::CliError;

/// Options of `mapper hosts-keeper`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file of hosts' names.
    #[arg(long, value_name = "PATH")]
    file: PathBuf,
    /// What marks the daemon's part of the file.
    #[arg(long, value_name = "NAME")]
    mark: String,
}

/// Runs `mapper hosts-keeper`.
///
/// # Errors
/// If no daemon is at the other end of standard input.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    keeper::run(&args.file, &args.mark)?;
    Ok(ExitCode::SUCCESS)
}
