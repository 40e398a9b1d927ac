//! `mapper board-info`.

use std::process::ExitCode;

use super::{CliError, Format};

/// Options of `mapper board-info`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs it.
///
/// # Errors
/// In words for the user.
pub fn run(_args: Args, _format: Format) -> Result<ExitCode, CliError> {
    Err("not there yet".into())
}
