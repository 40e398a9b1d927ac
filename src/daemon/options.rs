//! What the user may set of an agent: on the command line, in a configuration file, or not at all.
//!
//! One type is both: every option of `mapper agent` is a key of the file, by the same name and
//! with the same values. The command line wins.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use mapper_proto::Mac;
use mapper_proto::agent::Settings;
use mapper_proto::map::host_type;
use serde::de::{self, Deserialize, Deserializer};
use thiserror::Error;

use crate::link::ethernet::{MIN_ETHERTYPE, Marking};

/// Where status sockets are, unless the user says otherwise.
pub const DEFAULT_RUN_DIR: &str = "/run/mapper";
/// The environment variable that overrides [`DEFAULT_RUN_DIR`].
pub const RUN_DIR_VARIABLE: &str = "MAPPER_RUN_DIR";

/// The run directory that holds where neither command line nor file names one.
pub fn default_run_dir() -> PathBuf {
    std::env::var_os(RUN_DIR_VARIABLE).map_or_else(|| DEFAULT_RUN_DIR.into(), PathBuf::from)
}

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounded<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> FromStr for Bounded<MIN, MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number: i64 = text.parse().map_err(|_| format!("expected a whole number from {MIN} to {MAX}"))?;
        Self::try_from(number)
    }
}

impl<const MIN: u32, const MAX: u32> TryFrom<i64> for Bounded<MIN, MAX> {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        let number = u32::try_from(number).ok().filter(|number| (MIN..=MAX).contains(number));
        number.map(Self).ok_or_else(|| format!("expected a whole number from {MIN} to {MAX}"))
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Bounded<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i64::deserialize(deserializer).and_then(|number| Self::try_from(number).map_err(de::Error::custom))
    }
}

/// A value that is text on the command line and in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<T>(T);

impl<T> Text<T> {
    /// The value.
    pub fn value(self) -> T {
        self.0
    }
}

impl<T: FromStr<Err: fmt::Display>> FromStr for Text<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: T::Err| error.to_string())
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(de::Error::custom)
    }
}

/// An EtherType, written `0x88b5` or `88b5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtherType(u16);

impl EtherType {
    /// Its number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl FromStr for EtherType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let number = u16::from_str_radix(digits, 16).ok().filter(|&number| number >= MIN_ETHERTYPE);
        number.map(Self).ok_or_else(|| "expected an EtherType from 0x0600 to 0xffff".to_owned())
    }
}

/// What a host runs, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostType(u8);

impl FromStr for HostType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number =
            match text {
                "gm" => host_type::GM,
                "xm" => host_type::XM,
                "mx" => host_type::MX,
                "ethernet" => host_type::ETHERNET,
                "infiniband" => host_type::INFINIBAND,
                number => number.parse().ok().filter(|&number| number != host_type::PHANTOM).ok_or(
                    "expected gm, xm, mx, ethernet, infiniband, or another type's number from 1 to 255",
                )?,
            };
        Ok(Self(number))
    }
}

/// The options of an agent. What is `None` was not set.
#[derive(Debug, Clone, Default, PartialEq, clap::Args, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Options {
    /// The network interface that is cabled to the fabric.
    #[arg(long, value_name = "IF")]
    pub interface: Option<String>,
    /// Board number: which of this machine's agents this is.
    #[arg(short = 'b', short_alias = 'B', long, value_name = "BOARD")]
    pub unit: Option<u8>,
    /// Run as a daemon, and store its process id in this file.
    #[arg(long, value_name = "PATH")]
    pub daemon_pid_file: Option<PathBuf>,
    /// Directory of the status sockets, which board-info reads.
    #[arg(long, value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
    /// Level in the election of the mapper; 0 for never map.
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<u8>,
    /// What this host runs: gm, xm, mx, ethernet, infiniband, or a number.
    #[arg(long, value_name = "TYPE")]
    pub host_type: Option<Text<HostType>>,
    /// Number of route computation passes: how many routes to each destination.
    #[arg(long, value_name = "N")]
    pub num_passes: Option<Bounded<1, 64>>,
    /// Store each new map in this file, as mapper.map/1 JSON.
    #[arg(long, value_name = "PATH")]
    pub map_file: Option<PathBuf>,
    /// Route any fabric as one that is not a Clos: by up*/down*.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub non_clos: Option<bool>,
    /// Skip the check of the cables between xbars in verification.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub no_xbar_check: Option<bool>,
    /// Terminate once mapping is complete everywhere.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub map_once: Option<bool>,
    /// With --map-once: fail after this many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub map_once_limit_s: Option<Bounded<1, 86_400>>,
    /// Re-map incrementally: probe only what changed.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub map_incrementally: Option<bool>,
    /// Pause all other mappers while this one maps.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub pause: Option<bool>,
    /// Debugging feature: accept network printfs.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub printeur: Option<bool>,
    /// Debugging feature: keep remapping.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub thrash: Option<bool>,
    /// Debugging feature: make an artificially inflated map, with this many phantom hosts.
    #[arg(long, value_name = "COUNT")]
    pub extra_hosts: Option<Bounded<0, 10_000>>,
    /// Most ports that a plain xbar of this fabric can have.
    #[arg(long, value_name = "N")]
    pub plain_ports: Option<Bounded<2, 32>>,
    /// Longest way, in xbars, that exploration follows and routes take.
    #[arg(long, value_name = "N")]
    pub max_hops: Option<Bounded<1, 23>>,
    /// How long an agent sleeps before its first mapping, in milliseconds. Asleep it answers.
    #[arg(long, value_name = "MS")]
    pub start_delay_ms: Option<Bounded<0, 60_000>>,
    /// How long to wait for the answer to a probe or scout, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub probe_timeout_ms: Option<Bounded<1, 10_000>>,
    /// How often an unanswered probe or scout is sent in all.
    #[arg(long, value_name = "N")]
    pub probe_tries: Option<Bounded<1, 100>>,
    /// Most probes under way at once.
    #[arg(long, value_name = "N")]
    pub probe_window: Option<Bounded<1, 4_096>>,
    /// How often a passive agent asks its parent for its map version, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub query_interval_ms: Option<Bounded<10, 60_000>>,
    /// How long a parent may stay silent before this agent maps again, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub silence_limit_ms: Option<Bounded<10, 600_000>>,
    /// Pause at the end of each cycle of verification, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub verify_pause_ms: Option<Bounded<1, 600_000>>,
    /// Most bytes in a piece of a map.
    #[arg(long, value_name = "BYTES")]
    pub piece_bytes: Option<Bounded<256, 8_192>>,
    /// Most requests for pieces under way at once.
    #[arg(long, value_name = "N")]
    pub piece_window: Option<Bounded<1, 256>>,
    /// EtherType of the fabric's frames.
    #[arg(long, value_name = "HEX")]
    pub ethertype: Option<Text<EtherType>>,
    /// Destination address of the fabric's frames.
    #[arg(long, value_name = "MAC")]
    pub destination: Option<Text<Mac>>,
    /// Seed of this agent's random choices; drawn by the system if not set.
    #[arg(long, value_name = "N")]
    pub seed: Option<Bounded<0, { u32::MAX }>>,
    /// Verbose output.
    #[arg(short = 'v', long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub verbose: Option<bool>,
    /// Write verbose output to this file.
    #[arg(long, value_name = "PATH")]
    pub verbose_file: Option<PathBuf>,
}

/// A configuration file that cannot be used.
#[derive(Debug, Error)]
pub enum ConfigFileError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It says something wrong.
    #[error("{}:{line}: {message}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
}

/// No interface was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "name the interface that is cabled to the fabric: --interface IF, or `interface = \"IF\"` in the file"
)]
pub struct NoInterface;

/// What an agent's daemon needs to know: the options, with defaults where nothing was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The network interface.
    pub interface: String,
    /// How frames are marked.
    pub marking: Marking,
    /// The agent's settings; the address is not known before the interface is opened.
    pub settings: Settings,
    /// Seed of the agent's random choices.
    pub seed: Option<u64>,
    /// Routes to each destination.
    pub num_passes: u8,
    /// Whether to route by up*/down* whatever the fabric looks like.
    pub non_clos: bool,
    /// Board number.
    pub unit: u8,
    /// Directory of the status sockets.
    pub run_dir: PathBuf,
    /// Run in the background, with the process id here.
    pub daemon_pid_file: Option<PathBuf>,
    /// Where each new map is stored.
    pub map_file: Option<PathBuf>,
    /// Leave once the network is complete, and fail after this time.
    pub map_once: Option<Duration>,
    /// Log more.
    pub verbose: bool,
    /// Log there.
    pub verbose_file: Option<PathBuf>,
}

impl Options {
    /// Reads a configuration file: TOML, each key an option.
    ///
    /// # Errors
    /// If it cannot be read, or has an unknown key or wrong value; names the line.
    pub fn read(path: &Path) -> Result<Self, ConfigFileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigFileError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|(line, message)| ConfigFileError::Wrong {
            path: path.to_owned(),
            line,
            message,
        })
    }

    fn parse(text: &str) -> Result<Self, (usize, String)> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let at = error.span().map_or(text.len(), |span| span.start);
            let line = 1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count();
            (line, error.message().trim_end().replace('\n', ", "))
        })
    }

    /// These options, and where they are not set, those of `file`.
    pub fn or(self, file: Self) -> Self {
        Self {
            interface: self.interface.or(file.interface),
            unit: self.unit.or(file.unit),
            daemon_pid_file: self.daemon_pid_file.or(file.daemon_pid_file),
            run_dir: self.run_dir.or(file.run_dir),
            level: self.level.or(file.level),
            host_type: self.host_type.or(file.host_type),
            num_passes: self.num_passes.or(file.num_passes),
            map_file: self.map_file.or(file.map_file),
            non_clos: self.non_clos.or(file.non_clos),
            no_xbar_check: self.no_xbar_check.or(file.no_xbar_check),
            map_once: self.map_once.or(file.map_once),
            map_once_limit_s: self.map_once_limit_s.or(file.map_once_limit_s),
            map_incrementally: self.map_incrementally.or(file.map_incrementally),
            pause: self.pause.or(file.pause),
            printeur: self.printeur.or(file.printeur),
            thrash: self.thrash.or(file.thrash),
            extra_hosts: self.extra_hosts.or(file.extra_hosts),
            plain_ports: self.plain_ports.or(file.plain_ports),
            max_hops: self.max_hops.or(file.max_hops),
            start_delay_ms: self.start_delay_ms.or(file.start_delay_ms),
            probe_timeout_ms: self.probe_timeout_ms.or(file.probe_timeout_ms),
            probe_tries: self.probe_tries.or(file.probe_tries),
            probe_window: self.probe_window.or(file.probe_window),
            query_interval_ms: self.query_interval_ms.or(file.query_interval_ms),
            silence_limit_ms: self.silence_limit_ms.or(file.silence_limit_ms),
            verify_pause_ms: self.verify_pause_ms.or(file.verify_pause_ms),
            piece_bytes: self.piece_bytes.or(file.piece_bytes),
            piece_window: self.piece_window.or(file.piece_window),
            ethertype: self.ethertype.or(file.ethertype),
            destination: self.destination.or(file.destination),
            seed: self.seed.or(file.seed),
            verbose: self.verbose.or(file.verbose),
            verbose_file: self.verbose_file.or(file.verbose_file),
        }
    }

    /// Fills in the defaults.
    ///
    /// # Errors
    /// If no interface was named: there is no default.
    pub fn resolve(self) -> Result<Config, NoInterface> {
        let settings = self.settings();
        let defaults = Marking::default();
        let limit_s = self.map_once_limit_s.map_or(DEFAULT_MAP_ONCE_LIMIT_S, |n| u64::from(n.0));
        Ok(Config {
            interface: self.interface.ok_or(NoInterface)?,
            marking: Marking {
                ethertype: self.ethertype.map_or(defaults.ethertype, |Text(EtherType(number))| number),
                destination: self.destination.map_or(defaults.destination, |Text(mac)| mac),
            },
            settings,
            seed: self.seed.map(|n| u64::from(n.0)),
            num_passes: self.num_passes.map_or(DEFAULT_NUM_PASSES, |n| n.0 as u8),
            non_clos: self.non_clos.unwrap_or(false),
            unit: self.unit.unwrap_or(0),
            run_dir: self.run_dir.unwrap_or_else(default_run_dir),
            daemon_pid_file: self.daemon_pid_file,
            map_file: self.map_file,
            map_once: self.map_once.unwrap_or(false).then(|| Duration::from_secs(limit_s)),
            verbose: self.verbose.unwrap_or(false),
            verbose_file: self.verbose_file,
        })
    }

    /// The agent's own settings.
    fn settings(&self) -> Settings {
        let defaults = Settings::new(Mac::default());
        Settings {
            mac: defaults.mac,
            level: self.level.unwrap_or(defaults.level),
            host_type: self.host_type.map_or(defaults.host_type, |Text(HostType(number))| number),
            plain_ports: self.plain_ports.map_or(defaults.plain_ports, |n| n.0 as u8),
            max_hops: self.max_hops.map_or(defaults.max_hops, |n| n.0 as usize),
            start_delay: millis(self.start_delay_ms, defaults.start_delay),
            probe_timeout: millis(self.probe_timeout_ms, defaults.probe_timeout),
            probe_tries: self.probe_tries.map_or(defaults.probe_tries, |n| n.0 as u8),
            probe_window: self.probe_window.map_or(defaults.probe_window, |n| n.0 as usize),
            query_interval: millis(self.query_interval_ms, defaults.query_interval),
            silence_limit: millis(self.silence_limit_ms, defaults.silence_limit),
            verify_pause: millis(self.verify_pause_ms, defaults.verify_pause),
            piece_bytes: self.piece_bytes.map_or(defaults.piece_bytes, |n| n.0 as usize),
            piece_window: self.piece_window.map_or(defaults.piece_window, |n| n.0 as usize),
            printeur: self.printeur.unwrap_or(defaults.printeur),
            thrash: self.thrash.unwrap_or(defaults.thrash),
            extra_hosts: self.extra_hosts.map_or(defaults.extra_hosts, |n| n.0),
            pause: self.pause.unwrap_or(defaults.pause),
            map_incrementally: self.map_incrementally.unwrap_or(defaults.map_incrementally),
            xbar_check: self.no_xbar_check.map_or(defaults.xbar_check, |skip| !skip),
        }
    }
}

/// Routes to each destination, as in GM-2.
const DEFAULT_NUM_PASSES: u8 = 8;
const DEFAULT_MAP_ONCE_LIMIT_S: u64 = 300;

fn millis<const MIN: u32, const MAX: u32>(value: Option<Bounded<MIN, MAX>>, default: Duration) -> Duration {
    value.map_or(default, |Bounded(ms)| Duration::from_millis(ms.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args;

    const DEFAULTS: &str = include_str!("../../mapper.toml");

    /// The defaults file with every key set, also those that it only mentions.
    fn defaults_with_all_keys() -> String {
        let example = |line: &str| {
            let (key, _) = line.strip_prefix("# ")?.split_once(" = ")?;
            key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-').then(|| line[2..].to_owned())
        };
        DEFAULTS.lines().map(|line| example(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
    }

    #[test]
    fn the_file_of_defaults_is_the_defaults() {
        let interface = Some("eth1".to_owned());
        let read = Options { interface: interface.clone(), ..Options::parse(DEFAULTS).unwrap() };
        let unset = Options { interface, run_dir: Some(DEFAULT_RUN_DIR.into()), ..Options::default() };
        assert_eq!(read.resolve(), unset.resolve());
    }

    #[test]
    fn the_file_of_defaults_lists_every_option() {
        let text = defaults_with_all_keys();
        Options::parse(&text).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let command = Options::augment_args(clap::Command::new("agent"));
        let options: Vec<_> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        assert!(options.len() > 30);
        for option in &options {
            assert!(table.contains_key(*option), "mapper.toml does not mention `{option}`");
        }
        assert_eq!(table.len(), options.len());
    }

    #[test]
    fn a_wrong_file_is_refused_with_its_line() {
        for (text, line, needle) in [
            ("level = 1\nlevle = 2\n", 2, "levle"),
            ("\n\nlevel = 256\n", 3, "256"),
            ("level = \"high\"\n", 1, "string"),
            ("# so\nprobe-tries = 0\n", 2, "from 1 to 100"),
            ("ethertype = \"0x05ff\"\n", 1, "0x0600"),
            ("destination = \"01:80\"\n", 1, "MAC"),
            ("host-type = \"vax\"\n", 1, "infiniband"),
            ("level = 1\nlevel = 1\n", 2, "duplicate"),
            ("level = \n", 1, ""),
            ("unit = 1\n[agent]\n", 2, "agent"),
        ] {
            let (found, message) = Options::parse(text).unwrap_err();
            assert_eq!(found, line, "{text:?}: {message}");
            assert!(message.contains(needle), "{text:?}: {message}");
        }
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let line = Options { level: Some(3), pause: Some(false), ..Options::default() };
        let file = Options::parse("level = 1\npause = true\nunit = 4\ninterface = \"eth1\"\n").unwrap();
        let config = line.or(file).resolve().unwrap();
        assert_eq!((config.settings.level, config.settings.pause, config.unit), (3, false, 4));
    }

    #[test]
    fn without_an_interface_there_is_no_configuration() {
        assert_eq!(Options::default().resolve(), Err(NoInterface));
    }
}
