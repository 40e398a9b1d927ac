//! `mapper topology discover`: explores a fabric of InfiniBand, and never writes to it.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant as Clock};

use mapper_fabric::{MAX_HOSTS, MAX_XBARS};
use mapper_ib::sweep::{Found, Settings, Sweep};
use mapper_machine::mad_port::{AskingPort, PortName};
use mapper_proto::map::Fabric;
use mapper_proto::time::Instant;

use super::super::output;
use super::{CliError, Format};
use crate::formats::{self, FileFormat, discovered};

/// Longest wait in one go.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Options of `mapper topology discover`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The port to ask by: umad0 or another device of /dev/infiniband, or ibsim:NODE for ibsim, attached to the node
    /// of this id or description.
    #[arg(long, value_name = "PORT")]
    interface: PortName,
    /// The file to write; `-` for standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Most questions under way at a time.
    #[arg(long, value_name = "N", default_value = "8")]
    window: NonZeroUsize,
    /// How long an answer may take, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    timeout: u32,
    /// How often a question without an answer is asked again.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(..=100))]
    retries: u32,
}

/// Runs `mapper topology discover`.
pub(super) fn run(args: &Args, format: Format) -> Result<(), CliError> {
    let fabric = explore(args)?;
    for left_out in &fabric.left_out {
        output::print_aside(&format!("mapper: {}: {left_out}\n", args.interface))?;
    }
    let text = formats::write(
        &fabric,
        match format {
            Format::Text => FileFormat::Ibnetdiscover,
            Format::Json => FileFormat::Json,
        },
    );
    output::write_file(&args.output, &text)
}

fn explore(args: &Args) -> Result<Fabric, CliError> {
    let timeout = Duration::from_millis(args.timeout.into());
    let settings = Settings {
        window: args.window,
        timeout,
        retries: args.retries,
        max_nodes: (MAX_HOSTS + MAX_XBARS) as usize,
        key: 0,
    };
    // The kernel hands on an answer to a question that was asked again as well, so it waits for all of them.
    let port = AskingPort::open(&args.interface, timeout.saturating_mul(args.retries + 1))?;
    let found = drive(Sweep::new(settings), &port).map_err(|error| format!("{}: {error}", args.interface))?;
    if found.nodes.is_empty() {
        let why = found.problems.first().map(|problem| found.tell(problem)).unwrap_or_default();
        return Err(format!("{}: nothing was found: {why}", args.interface).into());
    }
    Ok(discovered::fabric(&args.interface.to_string(), &found)?)
}

/// Sends what the sweep asks, and hands it what comes, until it is done.
fn drive(mut sweep: Sweep, port: &AskingPort) -> std::io::Result<Found> {
    let start = Clock::now();
    let now = || Instant::ZERO + start.elapsed();
    while !sweep.is_done() {
        while let Some(question) = sweep.poll_transmit(now()) {
            port.send(&question)?;
        }
        let wait = sweep.poll_timeout().map_or(MAX_WAIT, |deadline| deadline.since(now()));
        if let Some(mad) = port.receive(wait.min(MAX_WAIT))? {
            sweep.handle_mad(&mad);
        }
        sweep.handle_timeout(now());
    }
    Ok(sweep.finish())
}
