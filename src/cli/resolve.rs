//! `mapper resolve`: says which host a name, a MAC or an address of IP stands for, by what this machine's agents know.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mapper_daemon::agent::status::{
    AgentRequest, MAX_RESOLVED_BYTES, Resolved, ResolvedHost, requests_socket_path, units,
};
use mapper_machine::options::default_run_dir;
use mapper_machine::status as sockets;
use serde::Serialize;

use super::nobody_there::no_agent;
use super::{CliError, Format, output};

/// How long an agent may take to answer. It answers at once unless it hangs.
const PATIENCE: Duration = Duration::from_secs(5);

/// Options of `mapper resolve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What a host is called, its MAC, or an address of IP that it has.
    #[arg(value_name = "NAME|MAC|ADDRESS")]
    host: String,
    /// Ask the agent of this board number alone [default: all of this machine].
    #[arg(short = 'b', long, value_name = "BOARD")]
    unit: Option<u8>,
    /// Directory of the status sockets.
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
}

#[derive(Serialize)]
struct ResolveJson {
    schema: &'static str,
    boards: Vec<ResolvedByBoard>,
}

/// What one agent knows.
#[derive(Serialize)]
struct ResolvedByBoard {
    unit: u8,
    #[serde(flatten)]
    resolved: Resolved,
}

/// Runs `mapper resolve`. The exit status is 1 if no agent knows such a host.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let run_dir = args.run_dir.clone().unwrap_or_else(default_run_dir);
    let asked = args.unit.map_or_else(|| units(&run_dir), |unit| Ok(vec![unit]))?;
    let mut boards = Vec::new();
    for unit in asked {
        let Some(question) = sockets::ask::<Resolved>(requests_socket_path(&run_dir, unit))? else {
            continue;
        };
        let question = question.request(&AgentRequest::Resolve(args.host.clone()))?;
        let wanted = "a host that was asked for";
        let resolved = question.answer_json(Instant::now() + PATIENCE, MAX_RESOLVED_BYTES, wanted)?;
        boards.push(ResolvedByBoard { unit, resolved });
    }
    if boards.is_empty() {
        return Err(no_agent(args.unit, &run_dir).into());
    }
    let is_known = boards.iter().any(|board| !board.resolved.hosts.is_empty());
    match format {
        Format::Json => {
            let answer = ResolveJson { schema: "mapper.resolve/1", boards };
            output::print(&(serde_json::to_string_pretty(&answer)? + "\n"))?;
        }
        Format::Text if is_known => output::print(&describe(&boards))?,
        Format::Text => {
            let why = "no host of the map is called so, or has that address; `mapper board-info` names those that do not answer";
            return Err(format!("{}: {why}", args.host).into());
        }
    }
    Ok(if is_known { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn describe(boards: &[ResolvedByBoard]) -> String {
    let hosts = |board: &ResolvedByBoard| {
        board.resolved.hosts.iter().map(|host| describe_host(board.unit, host)).collect::<String>()
    };
    boards.iter().map(hosts).collect()
}

fn describe_host(unit: u8, host: &ResolvedHost) -> String {
    let ResolvedHost { mac, name, addresses, in_map, place, via } = host;
    let name =
        name.as_ref().map_or_else(|| "without a name".to_owned(), |name| name.escape_debug().to_string());
    let place = match (in_map, place) {
        (true, Some(place)) => format!("at port {place}"),
        (true, None) => "on the same cable".to_owned(),
        (false, _) => "not in the map any more".to_owned(),
    };
    let via = match via {
        Some(via) if via.is_empty() => ", by the cable".to_owned(),
        Some(via) => format!(", by {}", via.join(" ")),
        None => String::new(),
    };
    let addresses: String = addresses.iter().map(|address| format!(", {address}")).collect();
    format!("{name} {mac} {place}{via}{addresses} (unit {unit})\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_line_with_all_that_is_known_of_it() {
        let host = ResolvedHost {
            mac: "02:00:00:00:00:01".to_owned(),
            name: Some("node1\u{1b}".to_owned()),
            addresses: vec!["10.1.0.1/24".to_owned(), "fd00::1/64".to_owned()],
            in_map: true,
            place: Some("0x0000000000000007:3".to_owned()),
            via: Some(vec!["xbar0:1".to_owned(), "0x0000000000000007:3".to_owned()]),
        };
        assert_eq!(
            describe_host(2, &host),
            "node1\\u{1b} 02:00:00:00:00:01 at port 0x0000000000000007:3, by xbar0:1 0x0000000000000007:3, \
             10.1.0.1/24, fd00::1/64 (unit 2)\n"
        );
        let gone =
            ResolvedHost { in_map: false, name: None, addresses: Vec::new(), place: None, via: None, ..host };
        assert_eq!(
            describe_host(0, &gone),
            "without a name 02:00:00:00:00:01 not in the map any more (unit 0)\n"
        );
    }
}
