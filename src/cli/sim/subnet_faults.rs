//! `mapper sim --infiniband`: the fault search over subnets of InfiniBand, whose managers are this program's agents.

use std::process::ExitCode;

use mapper_daemon::subnet::tables;
use mapper_fabric::wording::plural;
use mapper_formats as formats;
use mapper_ib::manager::{Routes, Task};
use mapper_ib::simulated::{ENGINES, Outcome, Scenario, Violation};
use mapper_opensm::Options;
use mapper_proto::map::Fabric;
use rayon::prelude::*;
use serde_json::json;

use crate::cli::{CliError, Format, output};

/// How many seeds that fail are listed at most.
const MOST_LISTED: usize = 100;

/// The options of the fault search over subnets of InfiniBand.
#[derive(Debug, clap::Args)]
pub(super) struct SubnetFaults {
    /// Run the fault search over subnets of InfiniBand: one to three agents manage switches that hold tables, while datagrams are
    /// lost, late or refused, switches start again, cables fail and agents are killed. After each write, what the
    /// switches hold must be free of circles; at the end the subnet must come up, with one master. Without FABRIC, a subnet is
    /// drawn from each seed.
    #[arg(
        long,
        value_name = "FABRIC",
        num_args = 0..=1,
        requires = "fault_seed",
        conflicts_with_all = ["trace", "pcapng", "replay", "each_fault"]
    )]
    pub(super) infiniband: Option<Option<String>>,
    /// With --infiniband: try this many seeds, from that of --fault-seed on.
    #[arg(
        long,
        value_name = "COUNT",
        requires = "infiniband",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000)
    )]
    pub(super) fault_seeds: u64,
}

/// Runs the seeds. The exit status is 1 if something does not hold.
pub(super) fn run(
    fabric: Option<&str>,
    first: u64,
    count: u64,
    format: Format,
) -> Result<ExitCode, CliError> {
    let options: Options = ENGINES.parse()?;
    let engines = |task: &Task| -> Result<Routes, String> { tables::compute(task, options.clone()).routes };
    let given = fabric.map(formats::resolve).transpose()?;
    let scenario = |seed: u64| draw(given.as_ref(), fabric, seed);
    // A fabric that cannot be taken is told of once.
    let one = scenario(first)?;
    if count == 1 {
        return tell_one(&one, first, fabric, one.run(&engines), format);
    }
    let seeds = first..first.saturating_add(count);
    let tried: Vec<(u64, Violation)> = seeds
        .into_par_iter()
        .filter_map(|seed| Some((seed, scenario(seed).ok()?.run(&engines).err()?)))
        .collect();
    tell_all(&tried, count, fabric, format)
}

fn draw(given: Option<&Fabric>, name: Option<&str>, seed: u64) -> Result<Scenario, CliError> {
    match given {
        None => Ok(Scenario::draw(seed)),
        Some(fabric) => Scenario::draw_in(fabric, seed).map_err(|why| {
            let name = name.unwrap_or_default();
            format!("{name} is no subnet for the fault search: {why}").into()
        }),
    }
}

/// The command that runs a seed again.
fn command(fabric: Option<&str>, seed: u64) -> String {
    let fabric = fabric.map(|fabric| format!(" '{fabric}'")).unwrap_or_default();
    format!("mapper sim --infiniband{fabric} --fault-seed {seed}")
}

fn tell_one(
    scenario: &Scenario,
    seed: u64,
    fabric: Option<&str>,
    result: Result<Outcome, Violation>,
    format: Format,
) -> Result<ExitCode, CliError> {
    let faults: Vec<String> =
        scenario.faults().map(|(at, fault)| format!("at {:.0}ms {fault}", at.as_millis_f64())).collect();
    let Outcome { blocks, sent, shares } =
        result.map_err(|why| format!("{why}\nrun it again with\n{}", command(fabric, seed)))?;
    let [hosts, switches, cables, managers] = scenario.size();
    if format == Format::Json {
        let report = json!({
            "schema": "mapper.sim-subnet-fault/1",
            "seed": seed,
            "hosts": hosts,
            "switches": switches,
            "cables": cables,
            "managers": managers,
            "faults": faults,
            "blocks": blocks,
            "sent": sent,
            "shares": shares,
        });
        output::print(&format!("{report}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let listed: String = faults.iter().map(|fault| format!("fault         {fault}\n")).collect();
    output::print(&format!(
        "subnet        {}, {}, {}\n\
         managers      {managers}\n\
         {listed}\
         written       {}; the managers that ran at the end had sent {}\n\
         shares        {shares} looked at by agents that stood by\n\
         seed          {seed}\n",
        plural(hosts, "host"),
        plural(switches, "xbar"),
        plural(cables, "cable"),
        plural(blocks as usize, "block"),
        plural(sent as usize, "datagram"),
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn tell_all(
    failed: &[(u64, Violation)],
    count: u64,
    fabric: Option<&str>,
    format: Format,
) -> Result<ExitCode, CliError> {
    let listed = || failed.iter().take(MOST_LISTED);
    if format == Format::Json {
        let failures: Vec<_> = listed()
            .map(|(seed, why)| json!({"what": why.to_string(), "replay": command(fabric, *seed)}))
            .collect();
        let report = json!({"schema": "mapper.sim-subnet-faults/1", "tried": count, "failed": failures});
        output::print(&format!("{report}\n"))?;
    } else {
        let lines: String =
            listed().map(|(seed, why)| format!("{}\n    {why}\n", command(fabric, *seed))).collect();
        let holds = count - failed.len() as u64;
        output::print(&format!("{lines}{holds} of {count} seeds hold\n"))?;
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
