//! What the user may set of a crossbar: on the command line, in a configuration file, or not at all.
//!
//! One type serves the command line and the file: every option of `mapper xbar` is a key of the file, by the
//! same name and with the same values. The command line wins.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

use super::ports::{self, PortName, PortsError};
use super::process::{Config, Kind};
use mapper_machine::kernel::Ability;
use mapper_machine::options::{
    self, ConfigFileError, DataPathChoice, FileOptions, FrameKeys, LogKeys, MetricsKeys, ProcessKeys, Shared,
    Text, ZeroDestination,
};

/// The longest name of a crossbar: it is part of the path of a unix socket, which has at most 107 bytes.
const MAX_NAME_BYTES: usize = 64;

/// The options of a crossbar. What is `None` was not set.
#[derive(Debug, Clone, Default, PartialEq, clap::Args, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[command(mut_args(in_words_of_a_crossbar))]
pub struct XbarOptions {
    /// The interfaces, each as IF or N=IF with the number of its port; without a number it is the next
    /// port. An interface need not exist yet. A pattern such as 'eth*' takes all that match, now and
    /// as they come.
    // The option was once called `--port`, while `--ports` meant how many ports there are. Both are still
    // taken.
    #[arg(long, alias = "port", value_name = "[N=]IF,..", value_delimiter = ',')]
    pub ports: Option<Vec<Text<PortWord>>>,
    /// The crossbar's name on this machine [default: its first interface].
    #[arg(long, value_name = "NAME")]
    pub name: Option<Text<Name>>,
    /// How the daemon runs, and where it answers.
    #[command(flatten)]
    #[serde(skip)]
    pub process: ProcessKeys,
    /// Number of the first port [default: the lower of 1 and the lowest port named].
    #[arg(long, value_name = "N")]
    pub first_port: Option<u8>,
    /// How many ports it has, with an interface or without [default: up to the highest port named, and
    /// more as they come].
    #[arg(long, value_name = "N")]
    pub port_count: Option<u8>,
    /// What it understands [default: tagged].
    #[arg(long, value_enum)]
    pub kind: Option<KindName>,
    /// Identity of a tagged crossbar, in hexadecimal [default: the first port's address].
    #[arg(long, value_name = "HEX")]
    pub tag: Option<Text<TagText>>,
    /// What it has users' packets go by, beside its own forwarding of frames: auto, srv6 or tap [default: auto].
    #[arg(long, value_name = "KIND")]
    pub data_path: Option<DataPathChoice>,
    /// Do without this ability of the kernel, as if it lacked it: nexthops, segments, compression or
    /// force-forwarding. May be repeated, or several with commas between them.
    #[arg(long, value_name = "ABILITY", value_delimiter = ',')]
    #[serde(deserialize_with = "options::one_or_more")]
    pub kernel_avoid: Option<Vec<Text<Ability>>>,
    /// How frames are marked.
    #[command(flatten)]
    #[serde(skip)]
    pub frames: FrameKeys,
    /// Where metrics are to be had.
    #[command(flatten)]
    #[serde(skip)]
    pub metrics: MetricsKeys,
    /// What is logged.
    #[command(flatten)]
    #[serde(skip)]
    pub log: LogKeys,
}

/// Changes the help of an option that agents have, too, where it must say something else for a crossbar. The
/// option keeps its place in the help.
fn in_words_of_a_crossbar(option: clap::Arg) -> clap::Arg {
    let help = match option.get_id().as_str() {
        "run_dir" => "Directory of the status sockets [default: $MAPPER_RUN_DIR, or /run/mapper]",
        "ethertype" => "EtherType of the fabric's frames; must be that of the agents",
        "destination" => "Destination address of the fabric's frames; must be that of the agents",
        "metrics_file" => {
            "Write metrics to this file every 15 seconds, for node_exporter, which reads *.prom"
        }
        "log_level" => "Least severe lines to log",
        "log_format" => "How log lines are written",
        "verbose" => "Verbose output, as --log-level debug",
        _ => return option,
    };
    option.help(help)
}

/// A word in the list of ports that the user gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortWord {
    /// A port.
    Port(PortName),
    /// A number alone, which says how many ports there are.
    Count(u8),
}

impl FromStr for PortWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(count) => Ok(Self::Count(count)),
            Err(_) => text.parse().map(Self::Port),
        }
    }
}

/// What a crossbar understands, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KindName {
    /// Anonymous: knows relative route elements only.
    Plain,
    /// Knows all route elements and has an identity.
    Tagged,
}

/// A crossbar's name, which can be part of the name of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = !text.is_empty() && text.len() <= MAX_NAME_BYTES && !text.contains(['/', '\0']);
        plain.then(|| Self(text.to_owned())).ok_or_else(|| "expected 1 to 64 bytes without `/`".to_owned())
    }
}

/// The identity of a tagged crossbar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagText(u64);

impl FromStr for TagText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let tag = u64::from_str_radix(digits, 16);
        tag.map(Self).map_err(|_| "expected up to 16 hexadecimal digits".to_owned())
    }
}

/// Why the configuration of a crossbar cannot be used.
#[derive(Debug, Error)]
pub enum XbarConfigError {
    /// The configuration file cannot be read, or is wrong.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// The ports do not go together.
    #[error(transparent)]
    Ports(#[from] PortsError),
    /// The crossbar was given no ports.
    #[error("name the interfaces of the crossbar: --ports IF,IF, or `ports = [..]` in the file")]
    NoPorts,
    /// The destination address of frames is zero, which no interface has.
    #[error(transparent)]
    Destination(#[from] ZeroDestination),
    /// The crossbar was to have routes by destination, which come of a map.
    #[error(
        "--data-path routes: a crossbar alone has no map, and so no routes by destination; run `mapper node` on this \
         machine, or choose auto, srv6 or tap"
    )]
    NoMap,
}

/// A function that reads what the file of all daemons says to daemons of any kind; it returns nothing if
/// there is no such file. The caller passes it in because the file may have keys of agents, which a crossbar
/// does not know.
pub type ReadShared = fn(&Path) -> Result<Shared, ConfigFileError>;

/// A command line and the configuration file that it names, which can be read again.
#[derive(Debug, Clone)]
pub struct XbarSource {
    line: XbarOptions,
    file: Option<PathBuf>,
    read_shared: ReadShared,
}

impl XbarSource {
    /// The source of a crossbar's configuration. The command line wins over the file.
    pub const fn new(line: XbarOptions, file: Option<PathBuf>, read_shared: ReadShared) -> Self {
        Self { line, file, read_shared }
    }

    /// Reads the file, if there is one, and puts both together. Interfaces that are in `current` keep
    /// their numbers.
    ///
    /// # Errors
    /// If the file cannot be read or is wrong, or the options do not make a configuration.
    pub fn read(&self, current: &[(u8, String)]) -> Result<Config, XbarConfigError> {
        let file = self.file.as_deref().map(|path| self.read_files(path)).transpose()?.unwrap_or_default();
        self.line.clone().or(file).resolve(current)
    }

    /// Reads a configuration file. If the path is a directory, reads its file for all daemons and, over it,
    /// the file of this crossbar.
    fn read_files(&self, path: &Path) -> Result<XbarOptions, ConfigFileError> {
        let own = match &self.line.name {
            Some(name) => format!("xbar-{}", name.clone().value().0),
            None => "xbar".to_owned(),
        };
        options::read_file_or_dir(path, Some(&own), |path| {
            (self.read_shared)(path).map(XbarOptions::of_all_daemons)
        })
    }
}

impl FileOptions for XbarOptions {
    const PROCESS_FOLLOWS: &'static str = "name";
    const FRAMES_FOLLOW: &'static str = "kernel-avoid";

    fn with(self, Shared { process, frames, metrics, log }: Shared) -> Self {
        Self { process, frames, metrics, log, ..self }
    }

    fn or(self, file: Self) -> Self {
        Self {
            ports: self.ports.or(file.ports),
            name: self.name.or(file.name),
            process: self.process.or(file.process),
            first_port: self.first_port.or(file.first_port),
            port_count: self.port_count.or(file.port_count),
            kind: self.kind.or(file.kind),
            tag: self.tag.or(file.tag),
            data_path: self.data_path.or(file.data_path),
            kernel_avoid: self.kernel_avoid.or(file.kernel_avoid),
            frames: self.frames.or(file.frames),
            metrics: self.metrics.or(file.metrics),
            log: self.log.or(file.log),
        }
    }
}

impl XbarOptions {
    /// The options of a crossbar that the file of all daemons sets.
    fn of_all_daemons(Shared { process, frames, log, .. }: Shared) -> Self {
        Self {
            process: ProcessKeys { daemon_pid_file: None, ..process },
            frames,
            log: LogKeys { verbose_file: None, ..log },
            ..Self::default()
        }
    }

    /// Fills in the defaults.
    fn resolve(self, current: &[(u8, String)]) -> Result<Config, XbarConfigError> {
        let mut names = Vec::new();
        let mut port_count = self.port_count;
        for word in self.ports.into_iter().flatten().map(Text::value) {
            match word {
                PortWord::Port(port) => names.push(port),
                PortWord::Count(count) => port_count = port_count.or(Some(count)),
            }
        }
        let first_name = names.first().ok_or(XbarConfigError::NoPorts)?.interface.clone();
        let data_path = self.data_path.unwrap_or_default();
        if data_path == DataPathChoice::Routes {
            return Err(XbarConfigError::NoMap);
        }
        let shared =
            Shared { process: self.process, frames: self.frames, metrics: self.metrics, log: self.log };
        let service = shared.resolve()?;
        let (patterns, names): (Vec<_>, Vec<_>) = names.into_iter().partition(PortName::is_pattern);
        let interfaces = ports::number(&names, current)?;
        let (first_port, ports) = extent(&interfaces, self.first_port, port_count)?;
        let plain_name = || first_name.replace(['*', '?', '/'], "");
        Ok(Config {
            name: match self.name {
                Some(name) => name.value().0,
                None if plain_name().is_empty() => "xbar".to_owned(),
                None => plain_name(),
            },
            service,
            interfaces,
            patterns: patterns.into_iter().map(|pattern| pattern.interface).collect(),
            first_port,
            ports,
            grows: port_count.is_none(),
            kind: match self.kind {
                Some(KindName::Plain) => Kind::Plain,
                Some(KindName::Tagged) | None => Kind::Tagged(self.tag.map(|text| text.value().0)),
            },
            data_path,
            kernel_avoid: self.kernel_avoid.into_iter().flatten().map(Text::value).collect(),
        })
    }
}

/// The number of the first port, and how many there are.
fn extent(
    interfaces: &[(u8, String)],
    first_port: Option<u8>,
    ports: Option<u8>,
) -> Result<(u8, u8), PortsError> {
    let numbers = || interfaces.iter().map(|&(number, _)| number);
    let first_port = first_port.unwrap_or_else(|| numbers().fold(1, u8::min));
    let needed = numbers().fold(0, |most, port| {
        let nth = usize::from(port).saturating_sub(usize::from(first_port));
        most.max(nth + 1)
    });
    let ports = match ports {
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
    Ok((first_port, ports))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        options: XbarOptions,
    }

    /// The options of a daemon of another kind, which has a key that crossbars do not know.
    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct OfAgents {
        level: u8,
        tap: String,
        #[serde(skip)]
        shared: Shared,
    }

    impl FileOptions for OfAgents {
        const PROCESS_FOLLOWS: &'static str = "level";
        const FRAMES_FOLLOW: &'static str = "tap";

        fn with(self, shared: Shared) -> Self {
            Self { shared, ..self }
        }

        fn or(self, _file: Self) -> Self {
            self
        }
    }

    fn of_agents(path: &Path) -> Result<Shared, ConfigFileError> {
        let OfAgents { level: 3, tap, shared } = options::read_if_there(path)? else {
            panic!("the keys of agents are not read");
        };
        assert_eq!(tap, "fabric0");
        Ok(shared)
    }

    fn read(line: &str) -> Result<Config, XbarConfigError> {
        let words = std::iter::once("xbar").chain(line.split_whitespace());
        XbarSource::new(Command::try_parse_from(words).unwrap().options, None, of_agents).read(&[])
    }

    fn refusal(line: &str) -> PortsError {
        match read(line) {
            Err(XbarConfigError::Ports(error)) => error,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn ports_are_numbered_in_order_from_1_in_either_spelling() {
        for line in ["--port a --port b --port 7=c --port d", "--ports a,b,7=c,d"] {
            let config = read(line).unwrap();
            let interfaces: Vec<_> = config.interfaces.iter().map(|(n, name)| (*n, name.as_str())).collect();
            assert_eq!(interfaces, [(1, "a"), (2, "b"), (7, "c"), (8, "d")]);
            assert_eq!((config.first_port, config.ports, config.name.as_str()), (1, 8, "a"));
            assert_eq!(config.kind, Kind::Tagged(None));
        }
    }

    #[test]
    fn a_crossbar_may_count_from_0_and_have_more_ports_than_interfaces() {
        for line in
            ["--port 0=a --port 3=b --ports 16 --kind plain", "--ports 0=a,3=b --port-count 16 --kind plain"]
        {
            let config = read(line).unwrap();
            assert_eq!((config.first_port, config.ports, config.kind), (0, 16, Kind::Plain));
            assert!(!config.grows);
        }
    }

    #[test]
    fn ports_that_do_not_go_together_are_refused() {
        assert_eq!(refusal("--port 1=a --port 1=b"), PortsError::PortTwice(1));
        assert_eq!(refusal("--port a --port a"), PortsError::InterfaceTwice("a".to_owned()));
        assert_eq!(refusal("--port 255=a --port b"), PortsError::NoNumberLeft("b".to_owned()));
        assert_eq!(refusal("--port 0=a --port 255=b"), PortsError::TooWide(256));
        let outside = PortsError::Outside { port: 9, first_port: 1, ports: 8 };
        assert_eq!(refusal("--port 9=a --ports 8"), outside);
        let many = PortsError::TooMany { first_port: 200, ports: 100 };
        assert_eq!(refusal("--port 200=a --first-port 200 --ports 100"), many);
    }

    #[test]
    fn frames_go_to_no_zero_address_and_a_crossbar_has_ports() {
        let zero = read("--ports a --destination 00:00:00:00:00:00");
        assert!(matches!(zero, Err(XbarConfigError::Destination(ZeroDestination))), "{zero:?}");
        assert!(matches!(read("--ports 8"), Err(XbarConfigError::NoPorts)));
    }

    #[test]
    fn a_pattern_has_no_number_yet() {
        let config = read("--ports up1,eth*").unwrap();
        assert_eq!((config.interfaces.len(), config.patterns.as_slice()), (1, &["eth*".to_owned()][..]));
        assert_eq!(read("--ports eth*").unwrap().name, "eth");
        assert_eq!(read("--ports *").unwrap().name, "xbar");
    }

    #[test]
    fn every_option_is_a_key_and_wrong_keys_are_told_all_of_them_in_order() {
        use clap::Args;
        let command = XbarOptions::augment_args(clap::Command::new("xbar"));
        let options = command.get_arguments().filter_map(clap::Arg::get_long);
        let all: Vec<_> = options.map(|option| format!("`{option}`")).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            options::read_toml::<XbarOptions>(file.path()).map_err(|error| error.to_string())
        };
        for wrong in ["frames", "log", "log_level", "prots"] {
            let error = read(&format!("verbose = true\n{wrong} = 1\n")).unwrap_err();
            let expected = format!(":2: unknown field `{wrong}`, expected one of {}", all.join(", "));
            assert!(error.ends_with(&expected), "{error}");
        }
        let shared = "ethertype = \"0x88b6\"\ndestination = \"02:00:00:00:00:01\"\nmetrics-listen = \"127.0.0.1:1\"\n\
                      metrics-file = \"m\"\nlog-level = \"warn\"\nlog-format = \"json\"\nverbose = true\nverbose-file = \"v\"\n";
        let words = [
            "--ethertype=0x88b6",
            "--destination=02:00:00:00:00:01",
            "--metrics-listen=127.0.0.1:1",
            "--metrics-file=m",
            "--log-level=warn",
            "--log-format=json",
            "--verbose",
            "--verbose-file=v",
        ];
        let line = Command::try_parse_from([&["xbar"], &words[..]].concat()).unwrap().options;
        assert_eq!(read(shared).unwrap(), line);
        assert!(
            read("ethertype = \"0x88b6\"\nlog-level = \"loud\"\n")
                .unwrap_err()
                .contains(":2: unknown variant")
        );
    }

    #[test]
    fn a_directory_has_a_file_for_each_crossbar_and_one_for_all_daemons() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("mapper.toml", "level = 3\ntap = \"fabric0\"\nethertype = \"0x88b6\"\n");
        write("xbar-rack1.toml", "ports = [\"eth1\", \"7=eth2\"]\nkind = \"plain\"\n");
        let line = Command::try_parse_from(["xbar", "--name", "rack1"]).unwrap().options;
        let source = XbarSource::new(line, Some(dir.path().to_owned()), of_agents);
        let config = source.read(&[]).unwrap();
        assert_eq!(
            (config.name.as_str(), config.kind, config.service.marking.ethertype),
            ("rack1", Kind::Plain, 0x88b6)
        );
        write("xbar-rack1.toml", "ports = [\"eth3\", \"eth1\"]\n");
        let again = source.read(&config.interfaces).unwrap();
        assert_eq!(again.interfaces, [(1, "eth1".to_owned()), (2, "eth3".to_owned())]);
        write("xbar-rack1.toml", "\nprots = [\"eth3\"]\n");
        let error = source.read(&[]).unwrap_err().to_string();
        assert!(error.contains("xbar-rack1.toml:2: unknown field `prots`"), "{error}");
    }
}
