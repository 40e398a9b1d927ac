//! `mapper plan`: planned against found wiring.

use std::process::ExitCode;

use super::fabric_argument::FabricArgument;
use super::{CliError, Format, output};
use crate::wiring::Check;

/// The exit status of `check` if anything is not as planned.
const EXIT_DIFFERENT: u8 = 3;

/// Options of `mapper plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Say what to do so that a fabric is cabled as planned, what hurts most first; exit status 3 if anything.
    ///
    /// Nodes are matched by id, address and tag; where most of these are in one of the two only, by the names of
    /// machines and switches, and where these tell little, by structure. The first line says which.
    Check {
        /// The plan: any file of a fabric, a spec, or a CSV of cables (UFM's NDT, NetBox's export, a spreadsheet).
        plan: FabricArgument,
        /// The fabric that is, as a file of any of these formats.
        found: FabricArgument,
    },
}

/// Runs `mapper plan`.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let Command::Check { plan, found } = &args.command;
    let found = found.load()?;
    let plan = plan.load_as_plan_of(&found)?;
    let check = Check::of(&plan, &found);
    output::print(&match format {
        Format::Text => check.to_string(),
        Format::Json => format!("{}\n", check.json()),
    })?;
    Ok(if check.is_as_planned() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DIFFERENT) })
}
