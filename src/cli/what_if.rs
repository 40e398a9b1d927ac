//! `mapper what-if`: what a change of a fabric costs, and which single failure hurts most.

mod each;
mod report;
mod tables;

use std::process::ExitCode;

use clap::{ArgGroup, ValueEnum};
use mapper_fabric::names::Names;
use mapper_proto::map::Fabric;
use mapper_routing::engines::Settings;
use mapper_routing::tables::Layers;

use super::engine_names::{DEFAULT_LAYERS, WantedEngine, WantedName};
use super::fabric_argument::{FabricArgument, READ};
use super::progress::Progress;
use super::threads::on_threads;
use super::{CliError, Format, best, output};
use crate::consequences::{By, Change, Routed};
use each::Failures;
use report::ChangeReport;

/// The schema of what is printed as JSON.
const SCHEMA: &str = "mapper.what-if/1";

/// Options of `mapper what-if`.
///
/// A node is named by its id or by what people call it, a port as NODE:PORT, as the fabric numbers its ports.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("what").args(["cut", "remove", "add", "each"]).required(true).multiple(true),
          after_long_help = EXACT)]
pub struct Args {
    #[arg(help = READ, value_name = "TOPOLOGY")]
    fabric: FabricArgument,
    /// Cut the cable in this port, or that of this host; may be given several times.
    #[arg(long, value_name = "NODE:PORT|HOST")]
    cut: Vec<String>,
    /// Remove this xbar or host with all of its cables; may be given several times.
    #[arg(long, value_name = "NODE")]
    remove: Vec<String>,
    /// Add a cable once all that is done, from an xbar's port or a host to an xbar's port; may be given several times.
    #[arg(long, value_name = "END,END")]
    add: Vec<String>,
    /// Let each single cable, or each xbar, fail alone, and list what hurts most; of those that are alike one is listed.
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["cut", "remove", "add"])]
    each: Option<Each>,
    /// How many of these to route anew and list.
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with_all = ["cut", "remove", "add"],
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    most: u32,
    /// The engine to route by, before and after; where it does not serve, the best does.
    #[arg(short, long, value_name = "NAME", value_parser = WantedName, hide_possible_values = true,
          default_value = best::NAME)]
    engine: WantedEngine,
    #[arg(help = format!("Most layers that engines may use {DEFAULT_LAYERS}"))]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=i64::from(Layers::MAX)))]
    max_layers: Option<u8>,
    /// Decides what traffic is drawn to measure bisection.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Use this many threads [default: one a core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// What fails alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Each {
    /// Each cable, those of hosts too.
    Cable,
    /// Each xbar.
    Xbar,
}

/// The help text on what is exact.
const EXACT: &str = "\
All is exact without --each: the fabric is routed before and after, and both are proved and measured. Tables after are
computed anew, without regard to those before; `mapper route --previous` keeps what is still right, and changes fewer
entries.

With --each, who is cut off is exact for every failure. Those that rank first, by hosts cut off and then by an estimate of how
much fuller the cables beside become, are routed anew, one of all that are alike in that, by the engine that serves the whole fabric, or the best where that
does not serve any more: their bisection, entries and engine are exact. Another failure may take more bisection than they do.";

/// Runs `mapper what-if`.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    on_threads(args.threads, || args.run(format))
}

impl Args {
    fn run(&self, format: Format) -> Result<ExitCode, CliError> {
        let fabric = self.fabric.load()?;
        let (text, json) = match self.each {
            None => {
                let change = Change::of_options(&fabric, &self.cut, &self.remove, &self.add)?;
                let names = Names::of(&fabric);
                let report = self.change(&fabric, &names, &change)?;
                (report.text(), report.json())
            }
            Some(each) => {
                let failures = self.failures(&fabric, each)?;
                (failures.text(), failures.json())
            }
        };
        output::print(&match format {
            Format::Text => text,
            Format::Json => format!("{json}\n"),
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn settings(&self) -> Settings {
        Settings { max_layers: self.max_layers, seed: self.seed, ..Settings::default() }
    }

    fn by(&self) -> By {
        match self.engine {
            WantedEngine::Best => By::Best,
            WantedEngine::Engine(engine) => By::Engine(engine),
        }
    }

    fn change<'a>(
        &'a self,
        fabric: &'a Fabric,
        names: &'a Names,
        change: &Change,
    ) -> Result<ChangeReport<'a>, CliError> {
        let progress = Progress::new(2 * best::STEPS);
        let settings = self.settings();
        let routed = |change: &Change| {
            let routed = Routed::after_or_best(fabric, change, self.by(), &settings, &progress);
            routed.map_err(|error| CliError::from(error.to_string()))
        };
        let before = routed(&Change::default())?;
        let after = routed(change)?;
        progress.begin("measuring");
        Ok(ChangeReport::new(self, fabric, names, before, after))
    }

    fn failures<'a>(&'a self, fabric: &'a Fabric, each: Each) -> Result<Failures<'a>, CliError> {
        Failures::new(self, fabric, each)
    }
}
