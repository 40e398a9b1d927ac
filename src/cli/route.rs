//! `mapper route`: compute, prove and write tables.

mod answer;
pub(super) mod judgement;
mod options;
mod report;
mod routes_dir;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use mapper_proto::map::Fabric;

use super::fabric_argument::FabricArgument;
use super::{CliError, Format, output};
use crate::formats::{lfts, sls};
use crate::routing::engines::{self, Answer, Engine, NotRouted, Selection};
use crate::routing::{Subnet, Tables};
use answer::{changed_entries, proof_of};
use options::EngineOptions;
pub(super) use options::{lmc_of, named};
use report::Report;
pub(super) use routes_dir::walk_tables;

/// Highest LID of a single node; those above are for multicast.
const LAST_UNICAST_LID: u32 = 0xbfff;

/// Options of `mapper route`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = ENGINES)]
pub struct Args {
    /// The fabric: an ibnetdiscover, ibsim, GM .map or mapper.map/1 file, or a spec.
    #[arg(value_name = "TOPOLOGY")]
    fabric: FabricArgument,
    /// The engines to try, in this order; minhop comes last unless --no-fallback is given.
    #[arg(short, long, required = true, value_delimiter = ',', value_name = "NAME[,NAME..]")]
    engine: Vec<Engine>,
    /// Let no engine serve but those of --engine.
    #[arg(long)]
    no_fallback: bool,
    /// Write the forwarding tables as OpenSM dumps them; `opensm -R file -U FILE` loads them.
    #[arg(long, value_name = "FILE")]
    lfts: Option<PathBuf>,
    /// Write the layer (service level) of each pair of hosts: source LID, destination LID, level.
    #[arg(long, value_name = "FILE")]
    sls: Option<PathBuf>,
    /// Write every host's routes as mapper.routes/1, a file a host.
    #[arg(long, value_name = "DIR")]
    routes_dir: Option<PathBuf>,
    /// Take and write tables that fail the proof. The report says what is wrong with them.
    #[arg(long = "unsafe")]
    unproved: bool,
    /// Use so many threads [default: one a core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    options: EngineOptions,
}

/// Help for those who choose an engine.
const ENGINES: &str = "\
Engines:
  minhop      shortest routes, balanced; may have credit loops where the fabric has circles
  updn        shortest routes up to a root and down again; no credit loops
  dnup        its mirror image: down and then up
  ftree       fat trees: every shift of the hosts without congestion
  lash        shortest routes in as few layers (service levels) as keep each free of credit loops
  dor         dimension order: the lowest port of the shortest ways, for meshes and hypercubes
  file        the tables of --lfts-file
  dispersive  the agents' own source routes, several a pair; no forwarding tables

Nothing is written unless every pair has a route, no route is a loop or too long, and no layer can
deadlock. An engine whose tables fail is passed over like one that cannot serve.

A changed entry (changed_entries) is an out port that the tables of --previous do not have, or have
otherwise, or have and these do not; switches' entries for themselves do not count.";

/// Runs it.
///
/// # Errors
/// In words for the user.
#[expect(clippy::needless_pass_by_value, reason = "all subcommands take their options alike")]
pub fn run(args: Args, format: Format) -> Result<ExitCode, CliError> {
    on_threads(args.threads, || route(&args, format))
}

/// Runs on so many threads, or one a core.
pub(super) fn on_threads<T: Send>(
    threads: Option<u16>,
    run: impl FnOnce() -> Result<T, CliError> + Send,
) -> Result<T, CliError> {
    match threads {
        None => run(),
        Some(threads) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build();
            pool.map_err(|error| format!("cannot start {threads} threads: {error}"))?.install(run)
        }
    }
}

fn route(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let started = Instant::now();
    let mut engines = args.engine.clone();
    if !args.no_fallback && !engines.contains(&Engine::Minhop) {
        engines.push(Engine::Minhop);
    }
    if args.engine == [Engine::Dispersive] {
        args.refuse_tables()?;
    }
    let fabric = args.fabric.load()?;
    let subnet = Subnet::new(&fabric, args.options.lmc(&fabric))?;
    let (settings, mut notes) = args.options.settings(&fabric, &subnet)?;
    let answer = engines::answer(&subnet, &engines, &settings, args.unproved)
        .map_err(|refused| why_refused(&refused, &subnet, &fabric))?;
    let proof = proof_of(&answer, &subnet, &fabric);
    match &answer {
        Answer::Tables(selection) => {
            notes.extend(selection.routing.notes.iter().cloned());
            args.write_tables(&fabric, &subnet, selection, &mut notes)?;
        }
        Answer::SourceRoutes(selection) => {
            args.refuse_tables()?;
            if let Some(dir) = &args.routes_dir {
                routes_dir::write_source_routes(dir, &fabric, &selection.routes)?;
            }
        }
    }
    let mut report = Report::of(&answer, &subnet);
    report.proof = proof;
    report.changed_entries = changed(&answer, &subnet, settings.previous.as_ref());
    report.quality = answer::quality(&answer, &subnet, &settings);
    report.notes = notes;
    report.written = args.written();
    report.total_ms = started.elapsed().as_secs_f64() * 1e3;
    output::print(&match format {
        Format::Text => report.text(),
        Format::Json => format!("{}\n", report.json()),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn changed(answer: &Answer<'_>, subnet: &Subnet, previous: Option<&Tables>) -> Option<u64> {
    match answer {
        Answer::Tables(selection) => {
            previous.map(|previous| changed_entries(subnet, &selection.routing.tables, previous))
        }
        Answer::SourceRoutes(_) => None,
    }
}

/// Why no engine serves, and for proofs that fail the pair or the circle.
fn why_refused(refused: &NotRouted, subnet: &Subnet, fabric: &Fabric) -> CliError {
    let _ = (subnet, fabric);
    refused.to_string().into()
}

impl Args {
    /// An error if something is wanted that source routes cannot give.
    fn refuse_tables(&self) -> Result<(), CliError> {
        let wanted = [
            ("--lfts", self.lfts.is_some()),
            ("--sls", self.sls.is_some()),
            ("--previous", self.options.previous.is_some()),
        ];
        match wanted.iter().find(|(_, wanted)| *wanted) {
            None => Ok(()),
            Some((option, _)) => Err(format!(
                "{option}: the engine dispersive has no forwarding tables, for it gives each host several \
                 routes to a destination, and a table has one; write its routes with --routes-dir, or name \
                 another engine"
            )
            .into()),
        }
    }

    fn write_tables(
        &self,
        fabric: &Fabric,
        subnet: &Subnet,
        selection: &Selection,
        notes: &mut Vec<String>,
    ) -> Result<(), CliError> {
        let routing = &selection.routing;
        if let Some(path) = &self.lfts {
            let dump = lfts::Dump::new(fabric, subnet)?;
            output::stream_file(path, |out| dump.write(out, &routing.tables))?;
            let slots = 0..subnet.destinations.slot_count() as u32;
            let last = slots.map(|slot| subnet.destinations.lid(slot)).max().unwrap_or_default();
            if last > LAST_UNICAST_LID {
                notes.push(format!(
                    "LIDs go to {last:#x}, but InfiniBand's unicast LIDs end at {LAST_UNICAST_LID:#x}: OpenSM \
                     cannot load all of {}",
                    path.display()
                ));
            }
        }
        if let Some(path) = &self.sls {
            output::stream_file(path, |out| sls::write(out, subnet, &routing.layers))?;
        }
        if let Some(dir) = &self.routes_dir {
            routes_dir::write_tables(dir, fabric, subnet, routing)?;
        }
        Ok(())
    }

    /// What was written, and where.
    fn written(&self) -> Vec<(&'static str, String)> {
        let show = |path: &Option<PathBuf>| path.as_deref().map(|path: &Path| path.display().to_string());
        let all = [("lfts", &self.lfts), ("sls", &self.sls), ("routes_dir", &self.routes_dir)];
        all.into_iter().filter_map(|(what, path)| Some((what, show(path)?))).collect()
    }
}
