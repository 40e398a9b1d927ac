//! `mapper route`: computes, proves and writes tables.

mod answer;
mod cache;
mod compare;
mod files;
mod options;
mod outputs;
mod report;
mod routes_dir;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use super::engine_names::{EngineName, Listed, ListedName, WantedEngine};
use super::fabric_argument::{FabricArgument, READ};
use super::judgement::nothing_to_prove;
use super::output::{self, Staged};
use super::places::{self, NamedPath};
use super::progress::Progress;
use super::refusal::why_refused;
use super::threads::on_threads;
use super::{CliError, Format, UsageError, best, engine_names};
use answer::proof_of;
use cache::{CacheUse, Request};
use compare::Comparison;
use mapper_routing::engines::{self, Answer, Engine, Proof, Settings};
use mapper_routing::{Subnet, Tables};
use options::EngineOptions;
use outputs::{Outputs, no_tables};
use report::RouteReport;

/// Options of `mapper route`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = engine_names::help())]
pub struct Args {
    #[arg(help = READ, value_name = "TOPOLOGY")]
    fabric: FabricArgument,
    /// The engines to try, in this order; minhop comes last unless --no-fallback is given. `best` stands
    /// alone, and is taken if none is named.
    #[arg(
        short,
        long,
        aliases = ["routing_engine", "routing-engine"],
        short_alias = 'R',
        value_delimiter = ',',
        value_name = "NAME[,NAME..]",
        value_parser = ListedName,
        hide_possible_values = true
    )]
    engine: Vec<Listed>,
    /// Compute, prove and measure by each of these engines, print one table, and write no tables.
    #[arg(long, value_delimiter = ',', value_name = "NAME[,NAME..]", value_parser = EngineName,
          hide_possible_values = true,
          conflicts_with_all = ["engine", "no_fallback", "unproved", "lfts", "sls", "path_records", "routes_dir", "gm_routes", "plot", "dump_lid_matrix", "ftree_order", "cache"])]
    compare: Vec<Engine>,
    /// With --compare: write a page that shows the engines side by side, with a histogram of the loads of cables for each.
    #[arg(short, long, value_name = "FILE", requires = "compare")]
    output: Option<PathBuf>,
    /// Keep fabric and tables in this file. If only hosts or whole leaves are gone since, or are back, the
    /// tables stay as they are and nothing is computed. OpenSM's -A takes no file, as it keeps them in memory;
    /// without one, nothing is kept, and a note says so.
    #[arg(long, aliases = ["ucast-cache", "ucast_cache"], short_alias = 'A', value_name = "FILE", num_args = 0..=1)]
    cache: Option<Option<PathBuf>>,
    /// Let no engine serve but those of --engine.
    #[arg(long)]
    no_fallback: bool,
    /// Take and write tables that fail the proof. The report says what is wrong with them.
    #[arg(long = "unsafe")]
    unproved: bool,
    /// Use this many threads [default: one a core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    outputs: Outputs,
    #[command(flatten)]
    options: EngineOptions,
}

/// Runs `mapper route`.
///
/// # Errors
/// If the command fails. The error is worded for the user.
#[expect(clippy::needless_pass_by_value, reason = "all subcommands take their options alike")]
pub fn run(args: Args, format: Format) -> Result<ExitCode, CliError> {
    on_threads(args.threads, || route(&args, format))
}

fn route(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    if !args.compare.is_empty() {
        return args.compare(format);
    }
    let started = Instant::now();
    args.check_places()?;
    let engines = args.engines()?;
    if engines.as_deref().is_some_and(|engines| engines.first() == Some(&Engine::Dispersive)) {
        args.refuse_tables()?;
    }
    let progress = Progress::new(3 + engines.as_ref().map_or(best::STEPS, |_| 1));
    progress.begin("reading the fabric");
    let fabric = args.options.lids.load(&args.fabric)?;
    progress.step();
    let subnet = args.options.lids.subnet(&fabric)?;
    let (settings, mut notes) = args.options.settings(&fabric, &subnet)?;
    let cached_for = engines.as_deref().unwrap_or(&engines::best::ORDER);
    let request = Request { fabric: &fabric, subnet: &subnet, engines: cached_for, settings: &settings };
    notes.extend((args.cache == Some(None)).then(|| {
        "--cache: nothing is kept for the next run, which needs a file; name one (--cache FILE)".to_owned()
    }));
    let (answer, cache) = args.answer(request, engines.as_deref(), &progress)?;
    // A cache that was used is not replaced: nodes that are gone now are expected to come back.
    if let (Some(path), Some(CacheUse::Unused { .. })) = (args.cache_file(), &cache) {
        request.write_cache(path, &answer)?;
    }
    notes.extend(without_effect(&answer, engines.is_some(), &settings));
    notes.extend(nothing_to_prove(&subnet.topology));
    let proof = proof_of(&answer, &subnet, &fabric);
    progress.step();
    progress.begin("writing");
    let mut staged = Staged::default();
    args.write_answer(&mut staged, request, &answer, &mut notes)?;
    let is_chosen = engines.is_none() && !matches!(cache, Some(CacheUse::Used));
    let mut report = RouteReport::of(&answer, &subnet, is_chosen);
    report.proof = proof;
    progress.step();
    progress.begin("measuring");
    report.changed_entries = changed(&answer, &subnet, settings.previous.as_ref());
    report.quality = answer::quality(&answer, &subnet, &settings);
    if let Some(quality) = &report.quality.0 {
        let title = format!("{}: routes by {}", args.fabric, report.engine());
        args.outputs.write_plot(&mut staged, &subnet, quality, &title)?;
    }
    staged.commit()?;
    drop(progress);
    report.cache = cache;
    report.notes = notes;
    report.written = args.outputs.written();
    report.total_ms = started.elapsed().as_secs_f64() * 1e3;
    let said = match format {
        Format::Text => report.text(),
        Format::Json => format!("{}\n", report.json()),
    };
    // If a table goes to standard output, the report goes to standard error, so that they do not mix.
    if args.outputs.use_standard_output() { output::print_aside(&said) } else { output::print(&said) }?;
    Ok(ExitCode::SUCCESS)
}

/// Notes on options that have no effect on the engine that serves, which the user named or `best` chose.
fn without_effect(answer: &Answer<'_>, is_named: bool, settings: &Settings) -> Vec<String> {
    let served = match answer {
        Answer::Tables(selection) => selection.engine,
        Answer::SourceRoutes(selection) => selection.engine,
    };
    if is_named {
        served.without_effect(settings)
    } else {
        // The limit on layers decides which engine is the best.
        served.without_effect(&Settings { max_layers: None, ..settings.clone() })
    }
}

/// How many entries of tables differ from the previous ones, if these are known.
fn changed(answer: &Answer<'_>, subnet: &Subnet, previous: Option<&Tables>) -> Option<u64> {
    match answer {
        Answer::Tables(selection) => {
            previous.map(|previous| subnet.changed_entries(&selection.routing.tables, previous))
        }
        Answer::SourceRoutes(_) => None,
    }
}

impl Args {
    /// The engines to try, in this order; none if the best of all is wanted.
    fn engines(&self) -> Result<Option<Vec<Engine>>, UsageError> {
        let mut engines: Vec<Engine> = Vec::new();
        let (mut best, mut no_fallback) = (false, self.no_fallback);
        for listed in &self.engine {
            match listed {
                Listed::Wanted(WantedEngine::Engine(engine)) if !engines.contains(engine) => {
                    engines.push(*engine);
                }
                Listed::Wanted(WantedEngine::Engine(_)) => {}
                Listed::Wanted(WantedEngine::Best) => best = true,
                Listed::NoFallback => no_fallback = true,
            }
        }
        if !engines.is_empty() && !best {
            if !no_fallback && !engines.contains(&Engine::Minhop) {
                engines.push(Engine::Minhop);
            }
            return Ok(Some(engines));
        }
        let refusal = if !engines.is_empty() {
            "--engine: best stands alone, for it tries all engines that suit the fabric"
        } else if no_fallback {
            "--no-fallback: best has nothing to fall back on, for it tries all engines; name those that may serve \
             with --engine"
        } else if self.unproved {
            "--unsafe: best takes nothing that fails the proof; name an engine with --engine"
        } else {
            return Ok(None);
        };
        Err(UsageError(refusal.to_owned()))
    }

    /// What the cache holds, if it serves, and otherwise what the engines compute, which is the best of all if none
    /// is named. Says also whether the cache was used, if there is one.
    fn answer<'a>(
        &self,
        request: Request<'a>,
        engines: Option<&[Engine]>,
        progress: &Progress,
    ) -> Result<(Answer<'a>, Option<CacheUse>), CliError> {
        let proof = if self.unproved { Proof::Reported } else { Proof::Required };
        let why_not = match self.cache_file().map(|path| request.reuse(path, proof)) {
            Some(Ok(answer)) => return Ok((answer, Some(CacheUse::Used))),
            Some(Err(why_not)) => Some(why_not),
            None => None,
        };
        let Request { subnet, settings, .. } = request;
        let answer = match engines {
            Some(engines) => {
                progress.begin("computing and proving");
                engines::answer(subnet, engines, settings, proof)
            }
            None => {
                engines::best::choose(subnet, settings, progress).map(|best| Answer::Tables(Box::new(best)))
            }
        };
        let answer = answer.map_err(|refused| why_refused(&refused, subnet, settings))?;
        Ok((answer, why_not.map(|why_not| CacheUse::Unused { why_not })))
    }

    /// Prepares the files that were asked for, and adds notes on what they lack.
    fn write_answer(
        &self,
        staged: &mut Staged,
        Request { fabric, subnet, settings, .. }: Request<'_>,
        answer: &Answer<'_>,
        notes: &mut Vec<String>,
    ) -> Result<(), CliError> {
        match answer {
            Answer::Tables(selection) => {
                notes.extend(selection.routing.notes.iter().cloned());
                self.outputs.write_tables(staged, fabric, subnet, settings, selection, notes)
            }
            Answer::SourceRoutes(selection) => {
                self.refuse_tables()?;
                self.outputs.write_source_routes(staged, fabric, selection, notes)?;
                notes.extend(
                    self.cache_file().map(|_| "--cache: it keeps tables, and no source routes".to_owned()),
                );
                Ok(())
            }
        }
    }

    /// The file to keep fabric and tables in.
    fn cache_file(&self) -> Option<&Path> {
        self.cache.as_ref()?.as_deref()
    }

    /// Refuses outputs that would replace what is read or each other, or cannot be written.
    fn check_places(&self) -> Result<(), CliError> {
        let mut outputs = self.outputs.places();
        outputs.extend(self.cache_file().map(|path| ("--cache", path)));
        places::check(&outputs, &self.inputs())?;
        if let Some(previous) = &self.options.previous {
            // New tables may replace those in force, and nothing else may.
            outputs.retain(|(option, _)| *option != "--lfts");
            places::refuse_shared(&outputs, &[("--previous", previous)])?;
        }
        self.cache_file().map_or(Ok(()), cache::refuse_foreign)
    }

    /// What is read, without the tables in force.
    fn inputs(&self) -> Vec<NamedPath<'_>> {
        let mut inputs = self.options.places();
        inputs.push(("TOPOLOGY", self.fabric.path()));
        inputs
    }

    /// Prints the results of several engines side by side.
    fn compare(&self, format: Format) -> Result<ExitCode, CliError> {
        if let Some(path) = &self.output {
            let mut inputs = self.inputs();
            inputs.extend(self.options.previous.as_deref().map(|path| ("--previous", path)));
            places::check(&[("--output", path)], &inputs)?;
        }
        let fabric = self.options.lids.load(&self.fabric)?;
        let subnet = self.options.lids.subnet(&fabric)?;
        let (settings, notes) = self.options.settings(&fabric, &subnet)?;
        let comparison = Comparison::of(&fabric, &subnet, &self.compare, &settings, notes);
        if let Some(path) = &self.output {
            let page = comparison.page(&self.fabric.title());
            if output::is_standard_output(path) {
                output::print(&page)?;
                return Ok(ExitCode::SUCCESS);
            }
            output::write_file(path, &page)?;
        }
        output::print(&match format {
            Format::Text => comparison.text(),
            Format::Json => format!("{}\n", comparison.json()),
        })?;
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses options that need forwarding tables, as source routes have none.
    fn refuse_tables(&self) -> Result<(), CliError> {
        match self.options.previous {
            Some(_) => Err(no_tables("--previous")),
            None => self.outputs.refuse_tables(),
        }
    }
}
