//! `mapper topology discover`: explores a fabric of InfiniBand, and never writes to it.

use std::path::PathBuf;

use mapper_machine::mad_port::PortName;

use super::super::asking::{Asker, AskingOptions};
use super::super::output;
use super::{CliError, Format};
use crate::formats::{self, FileFormat, discovered};

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
    #[command(flatten)]
    asking: AskingOptions,
}

/// Runs `mapper topology discover`.
pub(super) fn run(args: &Args, format: Format) -> Result<(), CliError> {
    let found = Asker::open(&args.interface, &args.asking)?.explore()?;
    let fabric = discovered::fabric(&args.interface.to_string(), &found)?;
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
