//! `mapper xbar`.

mod status;

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clap::ValueEnum;
use mapper_proto::Mac;
use thiserror::Error;

use super::{CliError, Format};
use crate::daemon::options::{EtherType, LogFormat, LogLevel, LogOptions, Text, default_run_dir};
use crate::link::ethernet::Marking;
use crate::xbar::{self, Config, Kind};

/// Options of `mapper xbar`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// An interface, or a port number and an interface. Without a number it is the next port.
    /// It need not exist yet.
    #[arg(long = "port", value_name = "[N=]IF", required_unless_present = "status")]
    interfaces: Vec<PortArg>,
    /// The crossbar's name on this machine [default: its first interface].
    #[arg(long, value_name = "NAME")]
    name: Option<Name>,
    /// Show the crossbars of this machine, and what went over their ports, instead of running one.
    #[arg(long, conflicts_with = "interfaces")]
    status: bool,
    /// Directory of the status sockets. [default: $MAPPER_RUN_DIR, or /run/mapper]
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Group that may ask the status socket, by name or number [default: this process's].
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Number of the first port [default: the lower of 1 and the lowest port named].
    #[arg(long, value_name = "N")]
    first_port: Option<u8>,
    /// How many ports it has [default: up to the highest port named].
    #[arg(long, value_name = "N")]
    ports: Option<u8>,
    /// What it understands.
    #[arg(long, value_enum, default_value_t = KindArg::Tagged)]
    kind: KindArg,
    /// Identity of a tagged crossbar, in hexadecimal [default: the first port's address].
    #[arg(long, value_name = "HEX")]
    tag: Option<TagArg>,
    /// EtherType of the fabric's frames; must be that of the agents.
    #[arg(long, value_name = "HEX")]
    ethertype: Option<Text<EtherType>>,
    /// Destination address of the fabric's frames; must be that of the agents.
    #[arg(long, value_name = "MAC")]
    destination: Option<Mac>,
    /// Run as a daemon, and store its process id in this file.
    #[arg(long, value_name = "PATH")]
    daemon_pid_file: Option<PathBuf>,
    /// Least severe lines to log.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<LogLevel>,
    /// How log lines are written.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// Verbose output, as --log-level debug.
    #[arg(short = 'v', long)]
    verbose: bool,
    /// Write verbose output to this file.
    #[arg(long, value_name = "PATH")]
    verbose_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindArg {
    /// Anonymous: knows relative route elements only.
    Plain,
    /// Knows all route elements and has an identity.
    Tagged,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PortArg {
    number: Option<u8>,
    interface: String,
}

impl FromStr for PortArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, interface) = match text.split_once('=') {
            None => (None, text),
            Some((number, interface)) => {
                let number = number.parse().map_err(|_| format!("`{number}` is no port from 0 to 255"))?;
                (Some(number), interface)
            }
        };
        if interface.is_empty() {
            return Err("expected an interface, or N=interface".to_owned());
        }
        Ok(Self { number, interface: interface.to_owned() })
    }
}

/// A name that can be part of a file's.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name(String);

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = !text.is_empty() && text.len() <= 64 && !text.contains(['/', '\0']);
        plain.then(|| Self(text.to_owned())).ok_or_else(|| "expected 1 to 64 bytes without `/`".to_owned())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TagArg(u64);

impl FromStr for TagArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let tag = u64::from_str_radix(digits, 16);
        tag.map(Self).map_err(|_| "expected up to 16 hexadecimal digits".to_owned())
    }
}

/// Ports that do not go together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
enum PortsError {
    #[error("port {0} is named twice")]
    PortTwice(u8),
    #[error("interface `{0}` is named twice")]
    InterfaceTwice(String),
    #[error("there is no port number left for interface `{0}`; the highest is 255")]
    NoNumberLeft(String),
    #[error("port {port} is outside the crossbar, whose {ports} ports begin at {first_port}")]
    Outside { port: u8, first_port: u8, ports: u8 },
    #[error("{ports} ports from {first_port} on end beyond port 255")]
    TooMany { first_port: u8, ports: u8 },
    #[error("a crossbar has at most 255 ports; these numbers need {0}")]
    TooWide(usize),
}

/// Runs it.
///
/// # Errors
/// In words for the user.
pub fn run(args: Args, format: Format) -> Result<ExitCode, CliError> {
    if args.status {
        let run_dir = args.run_dir.unwrap_or_else(default_run_dir);
        return status::show(&run_dir, args.name.as_ref().map(|Name(name)| name.as_str()), format);
    }
    let config = args.into_config()?;
    Ok(xbar::run(&config)?)
}

impl Args {
    fn into_config(self) -> Result<Config, PortsError> {
        let interfaces = number_ports(self.interfaces)?;
        let numbers = || interfaces.iter().map(|&(number, _)| number);
        let first_port = self.first_port.unwrap_or_else(|| numbers().fold(1, u8::min));
        let needed = numbers().fold(0, |most, port| {
            let nth = usize::from(port).saturating_sub(usize::from(first_port));
            most.max(nth + 1)
        });
        let ports = match self.ports {
            Some(ports) => ports,
            None => u8::try_from(needed).map_err(|_| PortsError::TooWide(needed))?,
        };
        if usize::from(first_port) + usize::from(ports) > 256 {
            return Err(PortsError::TooMany { first_port, ports });
        }
        let inside = |port: u8| port >= first_port && usize::from(port - first_port) < usize::from(ports);
        if let Some(port) = numbers().find(|&port| !inside(port)) {
            return Err(PortsError::Outside { port, first_port, ports });
        }
        let defaults = Marking::default();
        let first_interface = || interfaces.first().map(|(_, name)| name.clone()).unwrap_or_default();
        Ok(Config {
            name: self.name.map_or_else(first_interface, |Name(name)| name),
            run_dir: self.run_dir.unwrap_or_else(default_run_dir),
            group: self.group,
            first_port,
            ports,
            kind: match self.kind {
                KindArg::Plain => Kind::Plain,
                KindArg::Tagged => Kind::Tagged(self.tag.map(|TagArg(tag)| tag)),
            },
            marking: Marking {
                ethertype: self.ethertype.map_or(defaults.ethertype, |text| text.value().number()),
                destination: self.destination.unwrap_or(defaults.destination),
            },
            interfaces,
            daemon_pid_file: self.daemon_pid_file,
            log: LogOptions::new(self.log_level, self.log_format, self.verbose, self.verbose_file),
        })
    }
}

/// Gives each interface its port: the one named, or the one after the port before it.
fn number_ports(args: Vec<PortArg>) -> Result<Vec<(u8, String)>, PortsError> {
    let mut next = Some(1);
    let mut numbered: Vec<(u8, String)> = Vec::with_capacity(args.len());
    for PortArg { number, interface } in args {
        let Some(number) = number.or(next) else { return Err(PortsError::NoNumberLeft(interface)) };
        if numbered.iter().any(|(other, _)| *other == number) {
            return Err(PortsError::PortTwice(number));
        }
        if numbered.iter().any(|(_, other)| *other == interface) {
            return Err(PortsError::InterfaceTwice(interface));
        }
        numbered.push((number, interface));
        next = number.checked_add(1);
    }
    numbered.sort_unstable();
    Ok(numbered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn config(line: &str) -> Result<Config, PortsError> {
        let words = std::iter::once("xbar").chain(line.split_whitespace());
        Command::try_parse_from(words).unwrap().args.into_config()
    }

    #[test]
    fn ports_are_numbered_in_order_from_1() {
        let config = config("--port a --port b --port 7=c --port d").unwrap();
        let interfaces: Vec<_> = config.interfaces.iter().map(|(n, name)| (*n, name.as_str())).collect();
        assert_eq!(interfaces, [(1, "a"), (2, "b"), (7, "c"), (8, "d")]);
        assert_eq!((config.first_port, config.ports), (1, 8));
        assert_eq!(config.kind, Kind::Tagged(None));
    }

    #[test]
    fn a_crossbar_may_count_from_0_and_have_more_ports_than_interfaces() {
        let config = config("--port 0=a --port 3=b --ports 16 --kind plain").unwrap();
        assert_eq!((config.first_port, config.ports, config.kind), (0, 16, Kind::Plain));
    }

    #[test]
    fn ports_that_do_not_go_together_are_refused() {
        assert_eq!(config("--port 1=a --port 1=b"), Err(PortsError::PortTwice(1)));
        assert_eq!(config("--port a --port a"), Err(PortsError::InterfaceTwice("a".to_owned())));
        assert_eq!(config("--port 255=a --port b"), Err(PortsError::NoNumberLeft("b".to_owned())));
        assert_eq!(config("--port 0=a --port 255=b"), Err(PortsError::TooWide(256)));
        let outside = PortsError::Outside { port: 9, first_port: 1, ports: 8 };
        assert_eq!(config("--port 9=a --ports 8"), Err(outside));
        let many = PortsError::TooMany { first_port: 200, ports: 100 };
        assert_eq!(config("--port 200=a --first-port 200 --ports 100"), Err(many));
    }
}
