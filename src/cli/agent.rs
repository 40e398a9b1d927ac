//! `mapper agent`.

use std::path::PathBuf;
use std::process::ExitCode;

use super::{CliError, Format};
use crate::daemon::driver;
use crate::daemon::options::{Options, Source};

/// Options of `mapper agent`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Read options from this file, in the manner of mapper.toml. Of a directory, read mapper.toml and
    /// over it IF.toml of the interface, if they are there. The command line wins.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// Runs it.
///
/// # Errors
/// In words for the user.
pub fn run(args: Args, _format: Format) -> Result<ExitCode, CliError> {
    Ok(driver::run(Source::agent(args.options, args.config))?)
}
