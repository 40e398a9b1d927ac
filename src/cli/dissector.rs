//! `mapper dissector`.

use std::process::ExitCode;

use serde::Serialize;

use super::{CliError, Format, output};
use crate::dissector;

/// Options of `mapper dissector`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Show the frames of a simulated run:\n\
                  \n  mapper dissector > mapper.lua\
                  \n  mapper sim clos:hosts=8,ports=4 --pcapng run.pcapng\
                  \n  tshark -X lua_script:mapper.lua -r run.pcapng\n\n\
                  On the interfaces of agents, nodes and crossbars, dumpcap and tcpdump record such frames. \
                  Wireshark loads the script at every start from its folder of Lua plugins (Help, About, \
                  Folders).")]
pub struct Args {}

#[derive(Serialize)]
struct DissectorJson {
    schema: &'static str,
    lua: String,
}

/// Runs `mapper dissector`.
///
/// # Errors
/// If standard output cannot be written. The error is worded for the user.
pub fn run(_args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let lua = dissector::lua();
    match format {
        Format::Text => output::print(&lua)?,
        Format::Json => {
            let object = serde_json::to_string(&DissectorJson { schema: "mapper.dissector/1", lua })?;
            output::print(&format!("{object}\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
