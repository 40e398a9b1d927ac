//! `mapper check`: proves and measures tables and routes that anyone made, from files, or as the switches of a fabric of
//! InfiniBand hold them; or, where none are named, the best tables that can be made for the fabric.

mod by_destination;
mod by_segments;
mod source_routes;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mapper_formats::Loaded;
use mapper_formats::lfts;
use mapper_formats::{discovered, sls};
use mapper_proto::map::Fabric;
use serde_json::{Value, json};

use super::asking::{Asker, AskingOptions};
use super::best::{self, Other};
use super::fabric_argument::{FabricArgument, READ};
use super::judgement::{ProofReport, QualityReport, nothing_to_prove};
use super::lids::LidOptions;
use super::notes::{SWITCH_PAIRS, named};
use super::progress::Progress;
use super::refusal::why_refused;
use super::threads::on_threads;
use super::{CliError, Format, output};
use mapper_fabric::wording::plural;
use mapper_ib::sweep::TablesFound;
use mapper_machine::mad_port::PortName;
use mapper_routing::engines::{self, Engine, Settings};
use mapper_routing::tables::Layers;
use mapper_routing::{ProofRules, Subnet, Tables, prove_service_levels, prove_tables};

/// The exit status if a proof fails.
const EXIT_FAILED: u8 = 3;

/// Options of `mapper check`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").args(["lfts", "routes_dir", "interface"]))]
pub struct Args {
    #[arg(help = READ, value_name = "TOPOLOGY", required_unless_present = "interface")]
    fabric: Option<FabricArgument>,
    /// Instead of files: read the fabric, and the tables out of its switches, by a port of InfiniBand (umad0, or ibsim:NODE for
    /// ibsim), and write nothing.
    #[arg(long, value_name = "PORT", conflicts_with_all = ["fabric", "lmc", "reassign_lids"])]
    interface: Option<PortName>,
    #[command(flatten)]
    asking: AskingOptions,
    /// The forwarding tables, as OpenSM dumps them. Their rows are matched by port GUID, then by LID. Without
    /// them and without --routes-dir the best tables that `mapper route` finds are judged.
    #[arg(long, value_name = "FILE")]
    lfts: Option<PathBuf>,
    /// The layer (service level) of each pair of hosts; without it all are in layer 0.
    #[arg(long, value_name = "FILE", requires = "what", conflicts_with = "routes_dir")]
    sls: Option<PathBuf>,
    /// Routes of hosts instead: a folder with hosts' mapper.routes/1, and in these what kernels forward by the destination or
    /// send by segments.
    /// Only pairs from hosts that have a file there are judged.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["lmc", "reassign_lids"])]
    routes_dir: Option<PathBuf>,
    /// Decides what traffic is drawn to measure quality.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Use this many threads [default: one a core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Longest route, in xbars.
    #[arg(long, alias = "max_hops", value_name = "N", default_value_t = Settings::MAX_HOPS,
          value_parser = clap::value_parser!(u8).range(1..=i64::from(Settings::MAX_HOPS)))]
    max_hops: u8,
    #[command(flatten)]
    lids: LidOptions,
    /// Also frames to and from xbars' own addresses must arrive, and be free of credit loops.
    #[arg(long, alias = "switch_destinations", conflicts_with_all = ["routes_dir", "sls"])]
    switch_destinations: bool,
}

/// What `mapper check` reports.
struct CheckReport {
    hosts: usize,
    xbars: usize,
    layers: u8,
    judged: Judged,
    proof: ProofReport,
    quality: QualityReport,
    notes: Vec<String>,
}

/// What was judged.
enum Judged {
    /// Tables from a file, or as switches hold them.
    Tables,
    /// The best tables that can be made for the fabric.
    Best {
        /// The engine that made them.
        engine: Engine,
        /// Those that do not serve.
        others: Vec<Other>,
    },
    /// Routes of hosts.
    Routes(JudgedRoutes),
}

/// Routes of hosts that were judged.
struct JudgedRoutes {
    /// How many source routes there are.
    source_routes: u64,
    /// How many hosts have a file.
    hosts_given: usize,
    /// From how many hosts to how many others, in pairs, kernels forward by the destination alone.
    by_destination: u64,
    /// Along how many routes of segments kernels send.
    by_segments: u64,
}

/// Runs `mapper check`.
///
/// # Errors
/// If the command fails. The error is worded for the user.
#[expect(clippy::needless_pass_by_value, reason = "all subcommands take their options alike")]
pub fn run(args: Args, format: Format) -> Result<ExitCode, CliError> {
    on_threads(args.threads, || {
        let computes = args.lfts.is_none() && args.routes_dir.is_none() && args.interface.is_none();
        let progress = Progress::new(if computes { best::STEPS + 2 } else { 2 });
        progress.begin("reading the fabric");
        let (fabric, held) = match (&args.interface, &args.fabric) {
            (Some(port), _) => {
                let (fabric, held) = read_out(port, &args.asking)?;
                (fabric, Some((port, held)))
            }
            (None, Some(fabric)) => (args.lids.load(fabric)?, None),
            (None, None) => return Err("name a fabric, or the port to ask one by with --interface".into()),
        };
        progress.step();
        progress.begin("proving and measuring");
        let report = match (&held, &args.lfts, &args.routes_dir) {
            (Some((port, held)), ..) => check_held(&args, &fabric, port, held)?,
            (None, Some(path), _) => check_tables(&args, &fabric, path)?,
            (None, None, Some(dir)) => source_routes::check(&fabric, dir, args.max_hops, args.seed)?,
            (None, None, None) => check_best(&args, &fabric, &progress)?,
        };
        drop(progress);
        output::print(&match format {
            Format::Text => report.text(),
            Format::Json => format!("{}\n", report.json()),
        })?;
        Ok(if report.proof.holds() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
    })
}

/// Judges the best tables that can be proved for the fabric.
fn check_best(args: &Args, fabric: &Fabric, progress: &Progress) -> Result<CheckReport, CliError> {
    let subnet = args.lids.subnet(fabric)?;
    let settings = Settings {
        seed: args.seed,
        max_hops: args.max_hops,
        xbar_destinations: args.switch_destinations,
        ..Settings::default()
    };
    let served = engines::best::choose(&subnet, &settings, progress);
    let served = served.map_err(|refused| why_refused(&refused, &subnet, &settings))?;
    progress.begin("measuring");
    let mut notes = args.notes(&subnet);
    notes.extend(served.routing.notes.iter().cloned());
    Ok(CheckReport {
        hosts: subnet.topology.host_count(),
        xbars: subnet.topology.xbar_count(),
        layers: served.routing.layers.count,
        judged: Judged::Best { engine: served.engine, others: Other::all(&served.tried, &subnet) },
        quality: QualityReport::of_selection(&subnet, &served, args.seed),
        proof: ProofReport::of_tables(&served.proof, &subnet, fabric),
        notes,
    })
}

fn check_tables(args: &Args, fabric: &Fabric, path: &Path) -> Result<CheckReport, CliError> {
    let subnet = args.lids.subnet(fabric)?;
    let loaded = lfts::read(path, fabric, &subnet)?;
    let notes = loaded.notes.iter().map(|note| named(path, note)).collect();
    judge(args, fabric, &subnet, &loaded, notes)
}

/// A fabric and the tables that its switches hold.
fn read_out(port: &PortName, options: &AskingOptions) -> Result<(Fabric, TablesFound), CliError> {
    let asker = Asker::open(port, options)?;
    let found = asker.explore()?;
    let fabric = discovered::fabric(&port.to_string(), &found)?;
    if fabric.hosts.iter().all(|host| host.lid.is_none()) {
        let why =
            "no host has a LID, so no subnet manager has configured the fabric, and no table leads anywhere";
        return Err(format!("{port}: {why}").into());
    }
    Ok((fabric, asker.read_tables(&found)?))
}

fn check_held(
    args: &Args,
    fabric: &Fabric,
    port: &PortName,
    held: &TablesFound,
) -> Result<CheckReport, CliError> {
    let subnet = args.lids.subnet(fabric)?;
    let loaded = lfts::of_switches(&held.tables, fabric, &subnet);
    let mut notes: Vec<String> = fabric.left_out.iter().chain(&loaded.notes).cloned().collect();
    let without = fabric.hosts.iter().filter(|host| host.lid.is_none()).count();
    if without > 0 {
        notes.push(format!("{} without a LID", plural(without, "host")));
    }
    notes.iter_mut().for_each(|note| *note = format!("{port}: {note}"));
    judge(args, fabric, &subnet, &loaded, notes)
}

/// Proves and measures tables. The notes are of where they come from.
fn judge(
    args: &Args,
    fabric: &Fabric,
    subnet: &Subnet,
    loaded: &Loaded<Tables>,
    of_source: Vec<String>,
) -> Result<CheckReport, CliError> {
    let mut notes = args.notes(subnet);
    notes.extend(of_source);
    let rules = ProofRules { max_hops: args.max_hops, xbar_destinations: args.switch_destinations };
    let (layers, proof) = match &args.sls {
        None => (1, prove_tables(subnet, &loaded.found, &Layers::single(), &rules)),
        Some(sls_path) => {
            let levels = sls::read(sls_path, subnet)?;
            notes.extend(levels.notes.iter().map(|note| named(sls_path, note)));
            let proof = match levels.found.by_pair(subnet) {
                Some(layers) => prove_tables(subnet, &loaded.found, &layers, &rules),
                None => prove_service_levels(subnet, &loaded.found, &levels.found, &rules),
            };
            (levels.found.in_use().count_ones().max(1) as u8, proof)
        }
    };
    if args.sls.is_none() && !proof.deadlock_free {
        notes.push(
            "all routes are taken for one layer: if the tables go with service levels, as those of lash and \
             torus do, name their file with --sls"
                .to_owned(),
        );
    }
    if args.lids.lmc.is_none()
        && !proof.reachable
        && subnet.destinations.lmc() == 0
        && !loaded.notes.is_empty()
    {
        notes.push(
            "each host is taken to have one address: if the tables are for several, as route --lmc makes them, \
             say so with --lmc"
                .to_owned(),
        );
    }
    Ok(CheckReport {
        hosts: subnet.topology.host_count(),
        xbars: subnet.topology.xbar_count(),
        layers,
        judged: Judged::Tables,
        quality: QualityReport::of_tables(subnet, &loaded.found, args.seed),
        proof: ProofReport::of_tables(&proof, subnet, fabric),
        notes,
    })
}

impl Args {
    /// What a user should know of the options, and of the fabric.
    fn notes(&self, subnet: &Subnet) -> Vec<String> {
        let of_switches = self.switch_destinations.then(|| SWITCH_PAIRS.to_owned());
        nothing_to_prove(&subnet.topology).into_iter().chain(self.lids.note()).chain(of_switches).collect()
    }
}

impl CheckReport {
    fn json(&self) -> Value {
        let (engine, others) = match &self.judged {
            Judged::Best { engine, others } => (Some(engine.name()), &others[..]),
            Judged::Tables | Judged::Routes(_) => (None, &[][..]),
        };
        let routes = self.routes();
        json!({
            "schema": "mapper.check/1",
            "holds": self.proof.holds(),
            "xbars": self.xbars,
            "hosts": self.hosts,
            "layers": self.layers,
            "engine": engine,
            "tried": others.iter().map(Other::json).collect::<Vec<_>>(),
            "routes": routes.map(|it| it.source_routes),
            "hosts_given": routes.map(|it| it.hosts_given),
            "by_destination": routes.map(|it| it.by_destination),
            "by_segments": routes.map(|it| it.by_segments),
            "proof": self.proof.json(),
            "quality": self.quality.json(),
            "notes": self.notes,
        })
    }

    fn routes(&self) -> Option<&JudgedRoutes> {
        match &self.judged {
            Judged::Routes(routes) => Some(routes),
            Judged::Tables | Judged::Best { .. } => None,
        }
    }

    /// What was judged, in lines of the report.
    fn judged_text(&self) -> String {
        let layers = plural(self.layers, "layer");
        let of_routes = self.routes().map(|it| format!(", {}", plural(it.source_routes, "source route")));
        let mut text = format!(
            "fabric     {} on {}, {layers}{}\n",
            plural(self.hosts, "host"),
            plural(self.xbars, "xbar"),
            of_routes.unwrap_or_default()
        );
        match &self.judged {
            Judged::Tables => {}
            Judged::Best { engine, others } => {
                let measured = self.quality.0.as_ref().map(|quality| quality.effective_bisection);
                text += &best::text(*engine, measured, others);
            }
            Judged::Routes(JudgedRoutes { by_destination, by_segments, .. }) => {
                if *by_destination > 0 {
                    let pairs = plural(*by_destination, "pair");
                    text += &format!("kernels    forward by the destination for {pairs} of hosts\n");
                }
                if *by_segments > 0 {
                    let routes = plural(*by_segments, "route");
                    text += &format!("kernels    send by segments along {routes}\n");
                }
            }
        }
        text
    }

    fn quality_text(&self) -> String {
        match self.quality.0 {
            None if self.proof.of_some_hosts => {
                "quality    not measured: that takes the routes of all hosts\n".to_owned()
            }
            None if !self.proof.reachable => {
                "quality    not measured: no two hosts have a route\n".to_owned()
            }
            _ => self.quality.text(),
        }
    }

    /// The report as text for a person.
    fn text(&self) -> String {
        // Writing to a String never fails.
        let notes = self.notes.iter().fold(String::new(), |mut text, note| {
            let _infallible = writeln!(text, "note       {note}");
            text
        });
        let (proof, quality) = (self.proof.text(), self.quality_text());
        // If the proof fails, what is wrong with the files is probably the reason, so the notes come first.
        let parts = if self.proof.holds() { [proof, quality, notes] } else { [notes, proof, quality] };
        self.judged_text() + &parts.concat()
    }
}
