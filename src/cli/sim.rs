//! `mapper sim`: runs a simulated fabric.

mod capture;
mod each_fault;
mod gaps;
mod options;
mod outputs;
mod report;
mod scenario;
mod subnet_faults;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant as WallInstant};

use indicatif::{ProgressBar, ProgressStyle};
use mapper_formats as formats;
use mapper_proto::Instant;
use mapper_proto::map::Fabric;
use mapper_sim::record::{Header, Recorded, Replayer, Writer};
use mapper_sim::search::Scenario;
use mapper_sim::setup::Setup;
use mapper_sim::world::{FrameSink, LOST_AFTER, Stopped, TraceSink, Until, World};

use super::{CliError, Format, output};
use capture::Capture;
pub use options::Args;
use report::RunReport;

/// Runs `mapper sim`.
///
/// # Errors
/// If the command fails. The error is worded for the user.
#[expect(clippy::needless_pass_by_value, reason = "all subcommands take their options alike")]
pub fn run(args: Args, format: Format) -> Result<ExitCode, CliError> {
    args.check_places()?;
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
    if format == Format::Text {
        // Whoever repeats a run that fails is to see what was drawn.
        output::print(&scenario::drawn(scenario))?;
    }
    let outcome = scenario.run_captured(sink, frame_writer(args, &scenario.fabric)?)?;
    output::print(&match format {
        Format::Json => format!("{}\n", scenario::to_json(scenario, &outcome)),
        Format::Text => scenario::came_of_it(scenario, &outcome),
    })?;
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
    let report = RunReport::of(&mut world, fabric, setup.seed, wall_ms);
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
    let settles_users = setup.users.is_some() && setup.until == Until::Configured;
    loop {
        let next = limit.min(world.now() + STEP);
        let stopped = world.run(setup.until, next)?;
        bar.set_position(world.configured_hosts() as u64);
        bar.set_message(format!("{:.0} virtual ms", world.now().as_millis_f64()));
        if stopped == Stopped::Reached && settles_users {
            settle_users(world, limit)?;
            // Hosts that noticed something meanwhile are waited for, too.
            if world.configured_at().is_none() && world.now() < limit {
                continue;
            }
        }
        if stopped == Stopped::Reached || next == limit {
            bar.finish_and_clear();
            return Ok(stopped);
        }
    }
}

/// Runs on until it is known what became of users' frames that were sent by now, and each pair of hosts that lost some has a
/// route again if cables join the two. The moment at which all are configured comes much earlier: a frame counts as lost only
/// some time after it was sent.
fn settle_users(world: &mut World, limit: Instant) -> Result<(), CliError> {
    const STEP: Duration = Duration::from_millis(10);
    let since = world.now();
    while world.now() < limit && (world.now() < since + LOST_AFTER || world.users_wait_since_before(since)) {
        let next = limit.min(world.now() + STEP);
        world.run(Until::After(next.since(Instant::ZERO)), next)?;
    }
    Ok(())
}
