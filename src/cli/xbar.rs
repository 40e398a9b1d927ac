//! `mapper xbar`: runs a software crossbar, or shows those that run.

mod status;

use std::path::PathBuf;
use std::process::ExitCode;

use mapper_daemon::agent::options::Options;
use mapper_daemon::xbar;
use mapper_daemon::xbar::options::{Name, XbarOptions, XbarSource};

use super::{CliError, Format};
use mapper_machine::options::{Text, default_run_dir};
pub(super) use status::describe_data_path;

/// Options of `mapper xbar`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("ports", |arg| arg.required_unless_present_any(["status", "config"])))]
pub struct Args {
    #[command(flatten)]
    options: XbarOptions,
    /// Read options from this file, each a key like `ports = ["eth1", "7=eth2"]`. Of a directory, read
    /// mapper.toml, which agents read too, and over it xbar-NAME.toml of --name NAME. The command line
    /// wins. SIGHUP reads it again: ports come and go, and the others go on.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Show the crossbars of this machine, and what went over their ports, instead of running one.
    #[arg(long, conflicts_with = "ports")]
    status: bool,
}

/// Runs `mapper xbar`.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: Args, format: Format) -> Result<ExitCode, CliError> {
    let Args { options, config, status } = args;
    if status {
        let run_dir = options.process.run_dir.unwrap_or_else(default_run_dir);
        let name = options.name.map(Text::value);
        return status::show(&run_dir, name.as_ref().map(Name::as_str), format);
    }
    Ok(xbar::run(&XbarSource::new(options, config, Options::read_shared))?)
}
