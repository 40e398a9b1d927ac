//! `mapper topology discover`: explores a fabric of InfiniBand, and never writes to it; or prints the map of an agent.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mapper_daemon::agent::status::{AgentRequest, MAX_ROUTES_BYTES, requests_socket_path};
use mapper_formats::json::MapJson;
use mapper_formats::{self as formats, FileFormat, discovered};
use mapper_machine::mad_port::PortName;
use mapper_machine::options::default_run_dir;
use mapper_machine::status;
use mapper_proto::map::Fabric;

use super::super::asking::{Asker, AskingOptions};
use super::super::nobody_there::no_agent;
use super::super::{output, places};
use super::{CliError, Format};

/// How long an agent may take to tell its map. On the largest map and a busy machine that takes some seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Options of `mapper topology discover`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The port to ask by: umad0 or another device of /dev/infiniband, or ibsim:NODE for ibsim, attached to the node
    /// of this id or description.
    #[arg(long, value_name = "PORT", required_unless_present = "unit", conflicts_with = "unit")]
    interface: Option<PortName>,
    /// Ask nobody but the agent of this board on this machine, and print the map that it holds.
    #[arg(long, value_name = "BOARD")]
    unit: Option<u8>,
    /// Directory of the status sockets. [default: $MAPPER_RUN_DIR, or /run/mapper]
    #[arg(long, value_name = "DIR", requires = "unit")]
    run_dir: Option<PathBuf>,
    /// The file to write; `-` for standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    asking: AskingOptions,
}

/// Runs `mapper topology discover`.
pub(super) fn run(args: &Args, format: Format) -> Result<(), CliError> {
    places::check(&[("--output", &args.output)], &args.asking.places())?;
    let fabric = match (&args.interface, args.unit) {
        (Some(interface), _) => explored(interface, &args.asking)?,
        (None, unit) => {
            map_of(&args.run_dir.clone().unwrap_or_else(default_run_dir), unit.unwrap_or_default())?
        }
    };
    let text = formats::write(
        &fabric,
        match format {
            Format::Text => FileFormat::Ibnetdiscover,
            Format::Json => FileFormat::Json,
        },
    );
    output::write_file(&args.output, &text)
}

fn explored(interface: &PortName, asking: &AskingOptions) -> Result<Fabric, CliError> {
    let found = Asker::open(interface, asking)?.explore()?;
    let fabric = discovered::fabric(&interface.to_string(), &found)?;
    for left_out in &fabric.left_out {
        output::print_aside(&format!("mapper: {interface}: {left_out}\n"))?;
    }
    Ok(fabric)
}

/// The map that the agent of a board holds.
fn map_of(run_dir: &Path, unit: u8) -> Result<Fabric, CliError> {
    let place = requests_socket_path(run_dir, unit);
    let question = status::ask::<MapJson>(place)?;
    let question = question.ok_or_else(|| no_agent(Some(unit), run_dir))?;
    let map = question.request(&AgentRequest::Map)?.answer_json(
        Instant::now() + PATIENCE,
        MAX_ROUTES_BYTES,
        "map",
    )?;
    if map.hosts.is_empty() {
        return Err(format!("unit {unit} holds no map; ask again when it is configured").into());
    }
    Ok(formats::parse(&format!("unit {unit}"), &serde_json::to_string(&map)?)?)
}
