//! `mapper plan`: planned against found wiring.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mapper_daemon::agent::options::Options;
use mapper_formats as formats;
use mapper_machine::options::{self, default_run_dir};
use mapper_proto::map::Fabric;
use mapper_wiring::PlanCheck;

use super::fabric_argument::FabricArgument;
use super::{CliError, Format, UsageError, output};
use crate::view::source::agents::live_fabric;

/// The exit status of `check` if anything is not as planned.
const EXIT_DIFFERENT: u8 = 3;
/// Where agents have their configuration.
const CONFIG: &str = "/etc/mapper";

/// Options of `mapper plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Say what to do so that a fabric is cabled as planned, what hurts most first; exit status 3 if there is
    /// anything to do.
    ///
    /// Nodes are matched by id, address and tag; where most of these are in one of the two only, by the names of
    /// machines and switches, and where these tell little, by structure. The first line says which.
    ///
    /// `mapper plan check PLAN FOUND` compares two files; PLAN --live compares with the maps of this machine's agents; FOUND alone is
    /// compared with the plan of mapper.toml, and without both these maps are.
    Check(CheckArgs),
}

/// Options of `mapper plan check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The plan: any file of a fabric, a spec, or a CSV of cables (UFM's NDT, NetBox's export, a spreadsheet). If one of the two
    /// is left out, and --live is not said, this is FOUND.
    #[arg(value_name = "PLAN")]
    plan: Option<FabricArgument>,
    /// The fabric that is, as a file of any of these formats.
    #[arg(value_name = "FOUND", conflicts_with = "live")]
    found: Option<FabricArgument>,
    /// What is found are the maps that the agents of this machine hold.
    #[arg(long)]
    live: bool,
    /// Directory of the status sockets of these agents. [default: $MAPPER_RUN_DIR, or /run/mapper]
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// The configuration file, or the directory of such files, whose [plan] is the plan. [default: /etc/mapper]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Runs `mapper plan`.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let Command::Check(args) = &args.command;
    let (plan, found) = args.sides()?;
    let check = PlanCheck::of(&plan, &found);
    output::print(&match format {
        Format::Text => check.to_string(),
        Format::Json => format!("{}\n", check.json()),
    })?;
    Ok(if check.is_as_planned() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DIFFERENT) })
}

impl CheckArgs {
    /// The plan and the fabric that is.
    fn sides(&self) -> Result<(Fabric, Fabric), CliError> {
        let (plan, found) = match (&self.plan, &self.found) {
            (Some(found), None) if !self.live => (None, Some(found)),
            (plan, found) => (plan.as_ref(), found.as_ref()),
        };
        if plan.is_some() && self.config.is_some() {
            return Err(UsageError(
                "--config names the plan, and so does PLAN: leave one of them out".to_owned(),
            )
            .into());
        }
        if found.is_some() && self.run_dir.is_some() {
            return Err(UsageError(
                "--run-dir is for the maps of agents, and FOUND is none: leave one of them out".to_owned(),
            )
            .into());
        }
        // Whether a plan is named is told before anything is read or anybody asked.
        let configured = if plan.is_none() { Some(self.configured()?) } else { None };
        let found = match found {
            Some(found) => found.load()?,
            None => live_fabric(&self.run_dir.clone().unwrap_or_else(default_run_dir))?,
        };
        let plan = match plan {
            Some(plan) => plan.load_as_plan_of(&found)?,
            None => formats::resolve_plan(&configured.unwrap_or_default(), Some(&found))?,
        };
        Ok((plan, found))
    }

    /// The plan that the configuration of agents names.
    fn configured(&self) -> Result<String, CliError> {
        let path = self.config.as_deref().unwrap_or(Path::new(CONFIG));
        if self.config.is_none() && !path.exists() {
            let path = path.display();
            return Err(format!(
                "no plan is named, and {path}, where agents have their configuration, is not there: name the plan as the argument \
                 PLAN, or as `file` in the table [plan] of a file that --config names"
            )
            .into());
        }
        let options: Options = options::read_file_or_dir(path, Some("node"), options::read_if_there)?;
        options.plan.and_then(|plan| plan.file).ok_or_else(|| {
            let path = path.display();
            format!("{path}: there is no plan in it; name one, as `file` in the table [plan], or as the argument PLAN").into()
        })
    }
}
