//! What the user may set of a crossbar: on the command line, in a configuration file, or not at all.
//!
//! One type serves the command line and the file: every option of `mapper xbar` is a key of the file, by the
//! same name and with the same values. The command line wins.

mod source;
#[cfg(test)]
mod tests;
mod words;

use super::ports::{self, NamedPort, PortsError};
use super::process::{XbarConfig, XbarKind};
use mapper_machine::kernel::Ability;
use mapper_machine::options::{
    self, DataPathChoice, FileOptions, FrameKeys, LogKeys, MetricsKeys, ProcessKeys, Shared, Text,
};
pub use source::{ReadShared, XbarConfigError, XbarSource};
pub use words::{KindName, Name, PortWord, TagText};

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
    /// Do without this ability of the kernel, as if it lacked it: nexthops, segments, compression,
    /// force-forwarding or shortcuts. May be repeated, or several with commas between them.
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

/// Values of the keys of a crossbar.
const EXAMPLES: &str = r#"
ports = ["eth1", "7=eth2"]
name = "rack1"
daemon-pid-file = "/run/mapper/rack1.pid"
run-dir = "/run/mapper"
group = "adm"
first-port = 1
port-count = 16
kind = "tagged"
tag = "020000000001"
data-path = "auto"
kernel-avoid = ["segments"]
ethertype = "0x88b5"
destination = "01:80:c2:00:00:0e"
metrics-listen = "127.0.0.1:9797"
metrics-file = "/var/lib/prometheus/node-exporter/xbar.prom"
log-level = "info"
log-format = "text"
verbose = false
verbose-file = "/var/log/mapper-xbar.log"
"#;

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

impl FileOptions for XbarOptions {
    const PROCESS_FOLLOWS: &'static str = "name";
    const FRAMES_FOLLOW: &'static str = "kernel-avoid";
    const EXAMPLES: &'static str = EXAMPLES;

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
    fn resolve(self, current: &[(u8, String)]) -> Result<XbarConfig, XbarConfigError> {
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
        let kernel_avoid: Vec<Ability> = self.kernel_avoid.into_iter().flatten().map(Text::value).collect();
        // Only who sends packets into the fabric has some that are too long for an outer header.
        if kernel_avoid.contains(&Ability::Marks) {
            return Err(XbarConfigError::AvoidsMarks);
        }
        let shared =
            Shared { process: self.process, frames: self.frames, metrics: self.metrics, log: self.log };
        let service = shared.resolve()?;
        let (patterns, names): (Vec<_>, Vec<_>) = names.into_iter().partition(NamedPort::is_pattern);
        let interfaces = ports::number(&names, current)?;
        let (first_port, ports) = extent(&interfaces, self.first_port, port_count)?;
        let plain_name = || first_name.replace(['*', '?', '/'], "");
        Ok(XbarConfig {
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
                Some(KindName::Plain) => XbarKind::Plain,
                Some(KindName::Tagged) | None => XbarKind::Tagged(self.tag.map(|text| text.value().0)),
            },
            data_path,
            kernel_avoid,
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
