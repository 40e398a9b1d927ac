//! `mapper sim`: runs a simulated fabric.

mod capture;
mod each_fault;
mod gaps;
mod outputs;
mod report;
mod subnet_faults;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant as WallInstant};

use indicatif::{ProgressBar, ProgressStyle};
use mapper_proto::Instant;
use mapper_proto::map::Fabric;
use mapper_sim::fabric::Xbars;
use mapper_sim::record::{Header, Recorded, Replayer, Writer};
use mapper_sim::search::Scenario;
use mapper_sim::setup::{FaultFile, Setup, UserSetup};
use mapper_sim::world::{FrameSink, Stopped, TraceSink, Until, World};

use super::{CliError, Format, output};
use crate::formats;
use capture::Capture;
use report::Report;

/// The options that conflict with a trace or a seed of the fault search, as these decide the same.
const DECIDED: [&str; 25] = [
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
    /// A fabric file or a generator's spec.
    #[arg(long_help = format!("A fabric file or a generator's spec.\n\n{}", mapper_fabric::SHAPES), default_value = "clos:hosts=128,ports=16")]
    topology: String,
    /// Decides everything that is random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Which kind of xbars the fabric is made of; without it, as the fabric says.
    #[arg(long, value_enum)]
    xbars: Option<XbarKinds>,
    /// What goes wrong, and when: a line each, like `at 500ms cut leaf1:9`.
    #[arg(long, value_name = "FILE", long_help = format!("What goes wrong, and when.\n\n{}", mapper_sim::faults::LANGUAGE))]
    faults: Option<PathBuf>,
    /// When to stop: when all live hosts are configured (after the last fault), or after so many
    /// virtual milliseconds.
    ///
    /// If faults have split the fabric, each part is configured under its own leader; the run ends
    /// then, with exit status 0, and the report says that there are several parts.
    #[arg(long, default_value = "configured", value_name = "configured|MS", value_parser = parse_until)]
    until: Until,
    /// Give up after so many virtual milliseconds.
    #[arg(long, default_value_t = 60_000, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=MAX_MS))]
    limit_ms: u64,
    /// Write the global map (of the largest part) as mapper.map/1.
    #[arg(long, value_name = "FILE")]
    map_file: Option<PathBuf>,
    /// Write every host's routes as mapper.routes/1, a file a host.
    #[arg(long, value_name = "DIR")]
    routes_dir: Option<PathBuf>,
    /// Write everything that happens, so that it can be run again.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write all frames at the interfaces of hosts as pcapng, which Wireshark and tshark read: see
    /// mapper-dissector(1).
    #[arg(long, value_name = "FILE")]
    pcapng: Option<PathBuf>,
    /// Run again what a trace recorded, and stop at the first difference.
    #[arg(long, value_name = "FILE", conflicts_with_all = DECIDED, conflicts_with_all = ["trace", "fault_seed"])]
    replay: Option<PathBuf>,
    /// Run the scenario that the fault search draws from this seed, with all its checks.
    #[arg(long, value_name = "N", conflicts_with_all = DECIDED, conflicts_with_all = ["map_file", "routes_dir"])]
    fault_seed: Option<u64>,
    #[command(flatten)]
    subnet: subnet_faults::SubnetFaults,
    #[command(flatten)]
    each: each_fault::EachFault,
    /// How long agents wait for the answer to a probe.
    #[arg(long, default_value_t = 1.0, value_name = "MS", value_parser = parse_positive_ms)]
    probe_timeout_ms: f64,
    /// How often an unanswered probe is sent in all.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    probe_tries: u8,
    /// Most probes that an agent has under way at once.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    probe_window: u16,
    /// Routes a destination.
    #[arg(long = "passes", visible_alias = "num-passes", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    passes: u8,
    /// Longest route, in xbars.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u8).range(1..=23))]
    max_hops: u8,
    /// Use up*/down* routes even if the fabric looks like a Clos or a torus.
    #[arg(long)]
    non_clos: bool,
    /// Agents probe only what changed when they map again.
    #[arg(long)]
    map_incrementally: bool,
    /// Agents do not verify cables between xbars.
    #[arg(long)]
    no_xbar_check: bool,
    /// Frames lost on each cable that they cross, like 1%.
    #[arg(long, default_value = "0%", value_name = "PERCENT", value_parser = parse_percent)]
    loss: f64,
    /// Frames with a flipped bit on each cable that they cross.
    #[arg(long, default_value = "0%", value_name = "PERCENT", value_parser = parse_percent)]
    corrupt: f64,
    /// Frames that arrive twice.
    #[arg(long, default_value = "0%", value_name = "PERCENT", value_parser = parse_percent)]
    duplicate: f64,
    /// Frames are late by a random time up to this.
    #[arg(long, default_value_t = 0, value_name = "US", value_parser = clap::value_parser!(u64).range(..=MAX_MS))]
    jitter_us: u64,
    /// Agents start at random moments within this.
    #[arg(long, default_value_t = 10, value_name = "MS", value_parser = clap::value_parser!(u64).range(..=MAX_MS))]
    power_on_spread_ms: u64,
    /// Users send so many frames a second at each host, to four others in turn, from when all are configured
    /// on; the report tells what became of them, and what each fault cost.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    traffic: Option<f64>,
    /// With --traffic: draw when pairs of hosts lost all frames around faults, as SVG.
    #[arg(short, long, value_name = "FILE", requires = "traffic")]
    output: Option<PathBuf>,
    /// Each host that has a tagged xbar to itself is a node, as of `mapper node`: one machine with that xbar,
    /// whose carriers it sees.
    #[arg(long)]
    nodes: bool,
    /// Agents sign what they say with a key that all have, as with --key-file.
    #[arg(long)]
    signed: bool,
    /// Frames that wait at a busy host before more are lost.
    #[arg(long, default_value_t = 512, value_name = "FRAMES")]
    receive_queue: usize,
}

/// Which kind of xbars a fabric is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum XbarKinds {
    /// Anonymous: relative routes only.
    Plain,
    /// With an identity.
    Tagged,
    /// Half of each, drawn from the seed.
    Mixed,
}

/// Runs `mapper sim`.
///
/// # Errors
/// If the command fails. The error is worded for the user.
#[expect(clippy::needless_pass_by_value, reason = "all subcommands take their options alike")]
pub fn run(args: Args, format: Format) -> Result<ExitCode, CliError> {
    if let Some(path) = &args.map_file {
        outputs::check_map_file(path)?;
    }
    if let Some(dir) = &args.routes_dir {
        outputs::check_routes_dir(dir)?;
    }
    if let Some(path) = &args.replay {
        return replay(path, &args, format);
    }
    if let (Some(fabric), Some(seed)) = (&args.subnet.infiniband, args.fault_seed) {
        return subnet_faults::run(fabric.as_deref(), seed, args.subnet.fault_seeds, format);
    }
    if let Some(seed) = args.fault_seed {
        let recorded = Recorded::FaultSeed(seed);
        let sink = writer(args.trace.as_deref(), recorded)?;
        return run_scenario(&Scenario::draw(seed), sink, &args, format);
    }
    if args.each.each_fault {
        return each_fault::run(&args, format);
    }
    let fabric = formats::resolve(&args.topology)?;
    let setup = args.setup()?;
    let topology = || {
        if mapper_fabric::is_spec(&args.topology) && !Path::new(&args.topology).exists() {
            args.topology.clone()
        } else {
            formats::write(&fabric, formats::FileFormat::Json)
        }
    };
    let recorded = Recorded::Run { topology: topology(), setup: Box::new(setup.clone()) };
    let sink = writer(args.trace.as_deref(), recorded)?;
    run_fabric(&fabric, &setup, sink, &args, format)
}

fn writer(path: Option<&Path>, recorded: Recorded) -> Result<Option<Box<dyn TraceSink>>, CliError> {
    let Some(path) = path else { return Ok(None) };
    Ok(Some(Box::new(Writer::create(path, &Header::new(recorded))?)))
}

/// Where frames go, if they are wanted.
fn frame_writer(args: &Args, fabric: &Fabric) -> Result<Option<Box<dyn FrameSink>>, CliError> {
    let Some(path) = &args.pcapng else { return Ok(None) };
    Ok(Some(Box::new(Capture::create(path, fabric)?)))
}

fn replay(path: &Path, args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let (replayer, header) = Replayer::open(path)?;
    let sink: Option<Box<dyn TraceSink>> = Some(Box::new(replayer));
    let code = match header.recorded {
        Recorded::FaultSeed(_) | Recorded::Scenario { .. }
            if args.map_file.is_some() || args.routes_dir.is_some() =>
        {
            let file = path.display();
            let why = "is the trace of a run of the fault search, which writes no --map-file or --routes-dir";
            return Err(format!("{file} {why}").into());
        }
        Recorded::FaultSeed(seed) => run_scenario(&Scenario::draw(seed), sink, args, format)?,
        Recorded::Scenario { topology, setup, healed_at_ns, most_gap_ns } => {
            let fabric = formats::parse(&path.display().to_string(), &topology)?;
            let scenario = Scenario {
                fabric,
                setup: *setup,
                healed_at: Instant::from_nanos(healed_at_ns),
                most_gap: most_gap_ns.map(Duration::from_nanos),
            };
            run_scenario(&scenario, sink, args, format)?
        }
        Recorded::Run { topology, setup } => {
            let fabric = if mapper_fabric::is_spec(&topology) {
                mapper_fabric::generate(&topology)?
            } else {
                formats::parse(&path.display().to_string(), &topology)?
            };
            run_fabric(&fabric, &setup, sink, args, format)?
        }
    };
    if format == Format::Text {
        output::print(&format!("{:<13} the same end as in {}\n", "replay", path.display()))?;
    }
    Ok(code)
}

/// Runs a scenario of the fault search.
fn run_scenario(
    scenario: &Scenario,
    sink: Option<Box<dyn TraceSink>>,
    args: &Args,
    format: Format,
) -> Result<ExitCode, CliError> {
    let (map, seed) = (&scenario.fabric.map, scenario.setup.seed);
    let outcome = scenario.run_captured(sink, frame_writer(args, &scenario.fabric)?)?;
    let [healing_ms, circle_ms, revival_ms] =
        [outcome.healing, outcome.circle, outcome.revival].map(|time| time.as_secs_f64() * 1e3);
    if format == Format::Json {
        let report = serde_json::json!({
            "schema": "mapper.sim-fault/1",
            "seed": seed,
            "hosts": map.hosts.len(),
            "xbars": map.xbars.len(),
            "cables": map.cables.len(),
            "faults": scenario.setup.faults.text.lines().collect::<Vec<_>>(),
            "healing_virtual_ms": healing_ms,
            "circle_virtual_ms": circle_ms,
            "revival_virtual_ms": revival_ms,
            "digest": format!("{:016x}", outcome.digest),
        });
        output::print(&format!("{report}\n"))?;
    } else {
        let (hosts, xbars, cables) = (map.hosts.len(), map.xbars.len(), map.cables.len());
        let kinds = scenario.setup.xbars;
        let faults: String =
            scenario.setup.faults.text.lines().map(|line| format!("fault         {line}\n")).collect();
        output::print(&format!(
            "fabric        {hosts} hosts, {xbars} xbars ({kinds:?}), {cables} cables\n\
             {faults}\
             agreed        {healing_ms:.3} ms of virtual time after healing\n\
             circles       for {circle_ms:.3} ms at most in routes of different maps, for {revival_ms:.3} ms where cables \
             revived\n\
             seed          {seed}\n"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a fabric, writes the files that were asked for, and prints the report.
fn run_fabric(
    fabric: &Fabric,
    setup: &Setup,
    sink: Option<Box<dyn TraceSink>>,
    args: &Args,
    format: Format,
) -> Result<ExitCode, CliError> {
    let began = WallInstant::now();
    let mut world = setup.world(fabric)?;
    if let Some(sink) = sink {
        world.record(sink);
    }
    if let Some(sink) = frame_writer(args, fabric)? {
        world.capture(sink);
    }
    let stopped = advance(&mut world, setup)?;
    world.end_record()?;
    let wall_ms = began.elapsed().as_secs_f64() * 1e3;
    let report = Report::of(&mut world, fabric, setup.seed, wall_ms);
    if stopped == Stopped::Limit && setup.until == Until::Configured {
        let limit_ms = setup.limit.as_millis();
        let why = why_not(&mut world);
        return Err(format!("not configured within {limit_ms} virtual ms (--limit-ms): {why}").into());
    }
    world.prove_union().map_err(|why| format!("the routes of all hosts together can deadlock: {why}"))?;
    if let Some(path) = &args.map_file {
        outputs::write_map(&mut world, fabric, path)?;
    }
    if let Some(dir) = &args.routes_dir {
        outputs::write_routes(&world, fabric, dir)?;
    }
    if let (Some(path), Some(traffic)) = (&args.output, report.traffic()) {
        let plot = gaps::plot(traffic, world.now());
        if output::is_standard_output(path) {
            output::print(&plot)?;
            return Ok(ExitCode::SUCCESS);
        }
        output::write_file(path, &plot)?;
    }
    match format {
        Format::Json => output::print(&format!("{}\n", report.json()))?,
        Format::Text => output::print(&report.text())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a run reached its limit.
fn why_not(world: &mut World) -> String {
    if let Some(at) = world.last_fault_at() {
        return format!("faults still to come at {} ms, past --limit-ms", at.as_millis_f64());
    }
    let why = world.verdict().why_not;
    if why.is_empty() { "the maps changed to the end".to_owned() } else { why }
}

/// Runs to the end in small steps, with a progress bar if standard error is a terminal.
fn advance(world: &mut World, setup: &Setup) -> Result<Stopped, CliError> {
    const STEP: Duration = Duration::from_millis(2);
    // The bar draws nothing unless standard error is a terminal.
    let bar = ProgressBar::new(world.plant().hosts() as u64);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} hosts configured, {msg}")?);
    let limit = setup.limit_at();
    loop {
        let next = limit.min(world.now() + STEP);
        let stopped = world.run(setup.until, next)?;
        bar.set_position(world.configured_hosts() as u64);
        bar.set_message(format!("{:.0} virtual ms", world.now().as_millis_f64()));
        if stopped == Stopped::Reached || next == limit {
            bar.finish_and_clear();
            return Ok(stopped);
        }
    }
}

impl Args {
    fn setup(&self) -> Result<Setup, CliError> {
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
