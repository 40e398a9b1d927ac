//! `mapper key`.

use std::process::ExitCode;

use mapper_daemon::agent::keys;
use serde::Serialize;

use super::{CliError, Format, output};

/// Options of `mapper key`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Make a key file that its owner alone can read, and give it to all hosts of a network:\n\
                  \n  (umask 077; mapper key > /etc/mapper/key)\n\n\
                  The first key of the file signs, all are accepted. To change keys: add the new one as \
                  second line on all hosts, then make it the first on all, then remove the old one. After \
                  each step, have the agents read the file again (SIGHUP)."
)]
pub struct Args {
    /// The number of the key, by which hosts name it. [default: a random one]
    #[arg(long, value_name = "NUMBER")]
    id: Option<u32>,
}

#[derive(Serialize)]
struct KeyJson {
    schema: &'static str,
    id: u32,
    secret: String,
}

/// Runs `mapper key`.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let (id, secret) = keys::fresh()?;
    let id = args.id.unwrap_or(id);
    let line = match format {
        Format::Text => format!("{id} {secret}"),
        Format::Json => serde_json::to_string(&KeyJson { schema: "mapper.key/1", id, secret })?,
    };
    output::print(&format!("{line}\n"))?;
    Ok(ExitCode::SUCCESS)
}
