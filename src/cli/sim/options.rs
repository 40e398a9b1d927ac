//! The options of `mapper sim`, and the run that they ask for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mapper_formats as formats;
use mapper_sim::fabric::Xbars;
use mapper_sim::setup::{FaultFile, Setup, UserSetup};
use mapper_sim::world::{KernelChoice, Until};

use super::{each_fault, subnet_faults};
use crate::cli::fabric_argument::READ;
use crate::cli::{CliError, places};

/// The options that conflict with a trace or a seed of the fault search, as these decide the same.
const DECIDED: [&str; 26] = [
    "topology",
    "seed",
    "xbars",
    "faults",
    "until",
    "limit_ms",
    "probe_timeout_ms",
    "probe_tries",
    "probe_window",
    "passes",
    "max_hops",
    "non_clos",
    "map_incrementally",
    "no_xbar_check",
    "loss",
    "corrupt",
    "duplicate",
    "jitter_us",
    "power_on_spread_ms",
    "receive_queue",
    "traffic",
    "output",
    "nodes",
    "data_path",
    "signed",
    "each_fault",
];

/// To how many other hosts the users at a host send in turn.
const PARTNERS: usize = 4;

/// The most virtual milliseconds that an option takes, which are more than eleven days.
const MAX_MS: u64 = 1_000_000_000;

/// Options of `mapper sim`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(help = READ, long_help = format!("{READ}.\n\n{}", mapper_fabric::SHAPES), default_value = "clos:hosts=128,ports=16")]
    pub(super) topology: String,
    /// Decides everything that is random.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Which kind of xbars the fabric is made of; without it, as the fabric says.
    #[arg(long, value_enum)]
    pub(super) xbars: Option<XbarKinds>,
    /// What goes wrong, and when: a line each, like `at 500ms cut leaf1:9`.
    #[arg(long, value_name = "FILE", long_help = format!("What goes wrong, and when.\n\n{}", mapper_sim::faults::LANGUAGE))]
    pub(super) faults: Option<PathBuf>,
    /// When to stop: when all live hosts are configured (after the last fault), or after this many virtual
    /// milliseconds.
    ///
    /// If faults have split the fabric, each part is configured under its own leader; the run ends
    /// then, with exit status 0, and the report says that there are several parts.
    ///
    /// With --traffic the run goes on until it is known what became of users' frames: until each pair of hosts that lost some
    /// has a route again, if cables join the two, or --limit-ms is reached.
    #[arg(long, default_value = "configured", value_name = "configured|MS", value_parser = parse_until)]
    pub(super) until: Until,
    /// Give up after this many virtual milliseconds.
    #[arg(long, default_value_t = 60_000, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=MAX_MS))]
    pub(super) limit_ms: u64,
    /// Write the global map (of the largest part) as mapper.map/1.
    #[arg(long, value_name = "FILE")]
    pub(super) map_file: Option<PathBuf>,
    /// Write every host's routes as mapper.routes/1, a file a host.
    #[arg(long, value_name = "DIR")]
    pub(super) routes_dir: Option<PathBuf>,
    /// Write everything that happens, so that it can be run again.
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Write all frames at the interfaces of hosts as pcapng, which Wireshark and tshark read: see
    /// mapper-dissector(1).
    #[arg(long, value_name = "FILE")]
    pub(super) pcapng: Option<PathBuf>,
    /// Run again what a trace recorded, and stop at the first difference.
    #[arg(long, value_name = "FILE", conflicts_with_all = DECIDED, conflicts_with_all = ["trace", "fault_seed"])]
    pub(super) replay: Option<PathBuf>,
    /// Run the scenario that the fault search draws from this seed, with all its checks.
    #[arg(long, value_name = "N", conflicts_with_all = DECIDED, conflicts_with_all = ["map_file", "routes_dir"])]
    pub(super) fault_seed: Option<u64>,
    #[command(flatten)]
    pub(super) subnet: subnet_faults::SubnetFaults,
    #[command(flatten)]
    pub(super) each: each_fault::EachFault,
    /// How long agents wait for the answer to a probe.
    #[arg(long, default_value_t = 1.0, value_name = "MS", value_parser = parse_positive_ms)]
    pub(super) probe_timeout_ms: f64,
    /// How often an unanswered probe is sent in all.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) probe_tries: u8,
    /// Most probes that an agent has under way at once.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(super) probe_window: u16,
    /// How many routes each host computes to each destination.
    #[arg(long = "passes", visible_alias = "num-passes", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(super) passes: u8,
    /// Longest route, in xbars.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u8).range(1..=23))]
    pub(super) max_hops: u8,
    /// Use up*/down* routes even if the fabric looks like a Clos or a torus.
    #[arg(long)]
    pub(super) non_clos: bool,
    /// Agents probe only what changed when they map again.
    #[arg(long)]
    pub(super) map_incrementally: bool,
    /// Agents do not verify cables between xbars.
    #[arg(long)]
    pub(super) no_xbar_check: bool,
    /// How many frames get lost on each cable that they cross, like 1%.
    #[arg(long, default_value = "0%", value_name = "PERCENT", value_parser = parse_percent)]
    pub(super) loss: f64,
    /// How many frames get a bit flipped on each cable that they cross.
    #[arg(long, default_value = "0%", value_name = "PERCENT", value_parser = parse_percent)]
    pub(super) corrupt: f64,
    /// How many frames arrive twice.
    #[arg(long, default_value = "0%", value_name = "PERCENT", value_parser = parse_percent)]
    pub(super) duplicate: f64,
    /// Frames are late by a random time up to this.
    #[arg(long, default_value_t = 0, value_name = "US", value_parser = clap::value_parser!(u64).range(..=MAX_MS))]
    pub(super) jitter_us: u64,
    /// Agents start at random moments within this.
    #[arg(long, default_value_t = 10, value_name = "MS", value_parser = clap::value_parser!(u64).range(..=MAX_MS))]
    pub(super) power_on_spread_ms: u64,
    /// How many frames a second users send at each host, to four others in turn, from when all are configured
    /// on; the report tells what became of them, and what each fault cost.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub(super) traffic: Option<f64>,
    /// With --traffic: draw when pairs of hosts lost all frames around faults, as SVG.
    #[arg(short, long, value_name = "FILE", requires = "traffic")]
    pub(super) output: Option<PathBuf>,
    /// Each host that has a tagged xbar to itself is a node, as of `mapper node`: one machine with that xbar,
    /// whose carriers it sees.
    #[arg(long)]
    pub(super) nodes: bool,
    /// What users' packets go by between nodes, as with `--data-path` of `mapper node`: the tap interface, kernels by
    /// segments (srv6) or by the destination (routes), or kernels of both kinds (mixed), which all go by
    /// the destination where all hosts are nodes.
    #[arg(long, value_name = "PATH", default_value = "tap", requires_ifs = [("srv6", "nodes"), ("routes", "nodes"), ("mixed", "nodes")])]
    pub(super) data_path: SimulatedPath,
    /// Agents sign what they say with a key that all have, as with --key-file.
    #[arg(long)]
    pub(super) signed: bool,
    /// How many frames wait at a busy host before more are lost.
    #[arg(long, default_value_t = 512, value_name = "FRAMES")]
    pub(super) receive_queue: usize,
}

/// Which kind of xbars a fabric is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum XbarKinds {
    /// Anonymous: relative routes only.
    Plain,
    /// With an identity.
    Tagged,
    /// Half of each, drawn from the seed.
    Mixed,
}

/// What users' packets go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SimulatedPath {
    /// The tap interface and crossbars in user space.
    Tap,
    /// Kernels that obey segments.
    Srv6,
    /// Kernels that forward by the destination.
    Routes,
    /// Kernels that send by the destination at some hosts, and by segments at the others, as far as these know them; drawn from
    /// the seed.
    Mixed,
}

impl SimulatedPath {
    /// What the kernels of nodes go by; `None` if they forward nothing.
    const fn in_kernels(self) -> Option<KernelChoice> {
        match self {
            Self::Tap => None,
            Self::Srv6 => Some(KernelChoice::Segments),
            Self::Routes => Some(KernelChoice::Routes),
            Self::Mixed => Some(KernelChoice::Mixed),
        }
    }
}

impl Args {
    /// Refuses outputs that would replace what is read or each other, or cannot be written.
    ///
    /// # Errors
    /// If a path is refused. The error names the option.
    pub(super) fn check_places(&self) -> Result<(), CliError> {
        let outputs = places::given(&[
            ("--map-file", &self.map_file),
            ("--routes-dir", &self.routes_dir),
            ("--trace", &self.trace),
            ("--pcapng", &self.pcapng),
            ("--output", &self.output),
        ]);
        let mut inputs = places::given(&[("--faults", &self.faults), ("--replay", &self.replay)]);
        inputs.push(("TOPOLOGY", Path::new(&self.topology)));
        places::check(&outputs, &inputs)
    }

    /// What the run is made of.
    ///
    /// # Errors
    /// If the file of faults is not used, or users have no time to send.
    pub(super) fn setup(&self) -> Result<Setup, CliError> {
        let mut setup = Setup { seed: self.seed, until: self.until, ..Setup::default() };
        setup.xbars = match self.xbars {
            None => Xbars::AsDescribed,
            Some(XbarKinds::Plain) => Xbars::Plain,
            Some(XbarKinds::Tagged) => Xbars::Tagged,
            Some(XbarKinds::Mixed) => Xbars::Mixed,
        };
        if let Some(path) = &self.faults {
            setup.faults = read_faults(path)?;
        }
        setup.limit = Duration::from_millis(self.limit_ms);
        if let Until::After(time) = self.until {
            setup.limit = setup.limit.max(time);
        }
        setup.agents.probe_timeout = Duration::from_secs_f64(self.probe_timeout_ms / 1e3);
        setup.agents.probe_tries = self.probe_tries;
        setup.agents.probe_window = self.probe_window.into();
        setup.agents.max_hops = self.max_hops.into();
        setup.agents.map_incrementally = self.map_incrementally;
        setup.agents.xbar_check = !self.no_xbar_check;
        setup.routes.passes = self.passes;
        setup.routes.non_clos = self.non_clos;
        setup.noise.loss = self.loss;
        setup.noise.corrupt = self.corrupt;
        setup.noise.duplicate = self.duplicate;
        setup.timing.jitter = Duration::from_micros(self.jitter_us);
        setup.timing.receive_queue = self.receive_queue;
        setup.power_on_spread = Duration::from_millis(self.power_on_spread_ms);
        setup.users = self.traffic.map(|rate| UserSetup {
            rate,
            partners: PARTNERS,
            from: None,
            flows: 1,
            broadcasts: false,
        });
        (setup.nodes, setup.signed) = (self.nodes, self.signed);
        let in_kernels = self.data_path.in_kernels();
        setup.kernels = in_kernels.is_some();
        setup.kernel_choice = in_kernels.unwrap_or_default();
        if setup.kernels && self.traffic.is_none() && !self.each.each_fault {
            return Err(
                "nobody sends packets that could go by --data-path: say how many (--traffic RATE)".into()
            );
        }
        let runs_on = self.each.each_fault || self.faults.is_some();
        if self.traffic.is_some() && self.until == Until::Configured && !runs_on {
            return Err(
                "users send from when all are configured on, and the run ends then: say how long it is to \
                        last (--until MS), or what goes wrong meanwhile (--faults FILE)"
                    .into(),
            );
        }
        Ok(setup)
    }
}

fn read_faults(path: &Path) -> Result<FaultFile, CliError> {
    let name = path.display().to_string();
    let text = String::from_utf8(formats::read_bounded(path)?).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|&&byte| byte == b'\n').count() + 1;
        format!("{name}:{line}: this is not UTF-8; save the file as UTF-8")
    })?;
    Ok(FaultFile { name, text })
}

/// Reads a rate in frames a second.
fn parse_rate(word: &str) -> Result<f64, String> {
    let rate: f64 = word.parse().map_err(|_| "expected a number of frames a second".to_owned())?;
    if (0.1..=1e6).contains(&rate) { Ok(rate) } else { Err("expected from 0.1 to 1000000".to_owned()) }
}

fn parse_until(word: &str) -> Result<Until, String> {
    if word == "configured" {
        return Ok(Until::Configured);
    }
    let ms: f64 = word.parse().map_err(|_| "expected `configured` or a number of milliseconds".to_owned())?;
    if (0.0..=MAX_MS as f64).contains(&ms) {
        Ok(Until::After(Duration::from_secs_f64(ms / 1e3)))
    } else {
        Err(format!("expected `configured` or from 0 to {MAX_MS} milliseconds"))
    }
}

fn parse_positive_ms(word: &str) -> Result<f64, String> {
    let ms: f64 = word.parse().map_err(|_| "expected a number of milliseconds".to_owned())?;
    if ms > 0.0 && ms <= 1e6 { Ok(ms) } else { Err("expected more than 0 and at most 1000000".to_owned()) }
}

fn parse_percent(word: &str) -> Result<f64, String> {
    mapper_sim::faults::rate(word).ok_or_else(|| "expected a rate from 0% to 100%".to_owned())
}
