//! `mapper acm query`: asks services, with the options and the words of `ib_acme`.

mod ask;
mod probe;
mod words;

use std::process::ExitCode;

use clap::ValueEnum;
use mapper_acm::wire::Address;
use mapper_acm_client::ServiceAddress;
use serde::Serialize;

use super::{CliError, Format};
use crate::cli::output;
use ask::{AskedService, ask};
pub use ask::{CounterList, EndpointShown, PathShown, ResolvedShown};

/// The exit status of a query that was not answered, as `ib_acme` has it.
const FAILED: u8 = 255;
/// Where clients look for the service of this machine.
const LOCAL: &str = "/run/ibacm.sock";

/// Options of `mapper acm query`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How addresses are written that -s and -d name: i for addresses of IP, n for names, l for LIDs, g for GIDs, u for what
    /// they look like.
    #[arg(short = 'f', value_enum, default_value_t = AddressFormat::Unspecified, value_name = "FORMAT")]
    address_format: AddressFormat,
    /// The source of the path.
    #[arg(short = 's', value_name = "ADDRESS")]
    source: Option<String>,
    /// The destination. Numbers in brackets make several, as in node[1-3,5].
    #[arg(short = 'd', value_name = "ADDRESS")]
    destination: Option<String>,
    /// Have the service compare the path with its map and its routes in force.
    #[arg(short = 'v')]
    verify: bool,
    /// Send probes along the path and back, and say where they stopped. The agents of this machine send them.
    #[arg(long = "verify")]
    probe: bool,
    /// Directory of the agents' sockets, for --verify [default: $MAPPER_RUN_DIR, or /run/mapper].
    #[arg(long, value_name = "DIR", requires = "probe")]
    run_dir: Option<std::path::PathBuf>,
    /// Take what is known at once, and do not wait for more.
    #[arg(short = 'c')]
    cached_only: bool,
    /// Show one endpoint of the service, or all for none or 0.
    #[arg(short = 'e', value_name = "N", num_args = 0..=1, default_missing_value = "0")]
    endpoints: Option<u8>,
    /// Show counters: of all endpoints together, in a row or in a column (col); of one endpoint (N) or each (all); of the one
    /// that has the address that -s names (s).
    #[arg(short = 'P', value_name = "col|N|all|s", num_args = 0..=1, default_missing_value = "row")]
    counters: Option<CounterChoice>,
    /// The service: a unix socket, or a host with a service of TCP. Numbers in brackets make several [default:
    /// /run/ibacm.sock].
    #[arg(short = 'S', value_name = "SERVICE")]
    service: Option<String>,
    /// Ask this many times, to see how fast the service answers.
    #[arg(short = 'C', value_name = "N", default_value_t = 1)]
    repetitions: u32,
}

/// How an address is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AddressFormat {
    /// An address of IP.
    #[value(name = "i")]
    Ip,
    /// A name.
    #[value(name = "n")]
    Name,
    /// A LID.
    #[value(name = "l")]
    Lid,
    /// A GID.
    #[value(name = "g")]
    Gid,
    /// What it looks like.
    #[value(name = "u")]
    Unspecified,
}

/// Which counters are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CounterChoice {
    /// The counters of all endpoints together, in a row.
    Row,
    /// The counters of all endpoints together, in a column.
    Column,
    /// The counters of each endpoint.
    Each,
    /// The counters of the endpoint with the source's address.
    OfSource,
    /// The counters of the endpoint with this number.
    Of(u8),
}

impl std::str::FromStr for CounterChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "row" | "0" => Ok(Self::Row),
            "col" => Ok(Self::Column),
            "all" => Ok(Self::Each),
            "s" => Ok(Self::OfSource),
            number => {
                number.parse().map(Self::Of).map_err(|_| "expected col, all, s, or a number".to_owned())
            }
        }
    }
}

/// What came of all queries.
#[derive(Serialize)]
struct AcmQueryJson {
    schema: &'static str,
    services: Vec<AskedService>,
}

/// Runs `mapper acm query`. The exit status is 255 if the last question was not answered, as that of `ib_acme` is.
///
/// # Errors
/// If the command line makes no sense. The error is worded for the user.
pub fn run(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    if args.destination.is_none() && args.counters.is_none() && args.endpoints.is_none() {
        return Err(usage(
            "nothing is asked: name a destination with -d, or take -P for counters or -e for endpoints",
        ));
    }
    let needs_source = args.counters == Some(CounterChoice::OfSource);
    match args.source {
        None if needs_source => return Err(usage("-P s needs the address that -s names")),
        Some(_) if args.destination.is_none() && !needs_source => {
            return Err(usage("-s is the source of a path: name its destination with -d"));
        }
        _ => {}
    }
    let services = expanded(args.service.as_deref().unwrap_or(LOCAL));
    let (mut all, mut labels) = (Vec::new(), words::Labels::default());
    for service in services {
        let asked = ask(args, &ServiceAddress::parse(&service), &service);
        if format == Format::Text {
            output::print(&words::of_service(args, &asked, &mut labels))?;
        }
        all.push(asked);
    }
    let is_done = all.last().is_some_and(AskedService::is_done);
    match format {
        Format::Json => {
            let answer = AcmQueryJson { schema: "mapper.acm-query/1", services: all };
            output::print(&(serde_json::to_string_pretty(&answer)? + "\n"))?;
        }
        Format::Text => output::print(&format!("return status {:#x}\n", if is_done { 0 } else { u32::MAX }))?,
    }
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn usage(text: &str) -> CliError {
    crate::cli::UsageError(text.to_owned()).into()
}

/// The names that a text with numbers in brackets stands for: `node[1-3,5]` is node1, node2, node3 and node5. A text
/// without such brackets stands for itself.
fn expanded(text: &str) -> Vec<String> {
    const MOST: usize = 65_536;
    let inside = text.split_once('[').and_then(|(base, rest)| Some((base, rest.strip_suffix(']')?)));
    let Some((base, list)) = inside else { return vec![text.to_owned()] };
    let mut all = Vec::new();
    for range in list.split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let width = from.len();
        let (Ok(first), Ok(last)) = (from.parse::<u32>(), to.parse::<u32>()) else {
            return vec![text.to_owned()];
        };
        all.extend((first..=last).take(MOST).map(|number| format!("{base}{number:0width$}")));
    }
    all.truncate(MOST);
    all
}

/// What an address stands for by its look: an address of IP, or a name.
fn address(text: &str) -> Address {
    text.parse().map_or_else(|_| Address::Name(text.to_owned()), |ip: std::net::IpAddr| ip.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_stand_for_many_names() {
        assert_eq!(expanded("node[1-3,5]"), ["node1", "node2", "node3", "node5"]);
        assert_eq!(expanded("n[08-10]"), ["n08", "n09", "n10"]);
        for alone in ["node1", "[::1]", "n[a-b]", "n[1", "10.0.0.1"] {
            assert_eq!(expanded(alone), [alone]);
        }
        assert_eq!(expanded("n[0-4294967295]").len(), 65_536);
    }
}
