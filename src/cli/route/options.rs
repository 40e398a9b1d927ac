//! The options of the engines. Where OpenSM has the same option, it has OpenSM's name with hyphens for
//! underscores, and OpenSM's own spelling is accepted too.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, Error, ValueEnum};
use mapper_formats::lfts;
use mapper_proto::map::Fabric;

use super::files::EngineFiles;
use crate::cli::CliError;
use crate::cli::engine_names::{DEFAULT_LAYERS, help_of};
use crate::cli::lids::LidOptions;
use crate::cli::notes::{SWITCH_PAIRS, named};
use crate::cli::places::NamedPath;
use mapper_routing::engines::{Balance, Setting, Settings};
use mapper_routing::tables::Layers;
use mapper_routing::{RouteOptions, Subnet, Tables};

/// Options of engines.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Engine options")]
pub(super) struct EngineOptions {
    /// Decides everything that is random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[arg(help = help_of(Setting::Previous, "tables in force, as OpenSM dumps them. What is still right in them stays, and only the rest is balanced anew; the report counts what changed"))]
    #[arg(long, value_name = "LFTS")]
    pub(super) previous: Option<PathBuf>,
    /// Balance everything anew, whatever was in force.
    #[arg(long, requires = "previous")]
    reassign: bool,
    #[arg(help = help_of(Setting::Balance, "how equally short routes are chosen among, by the loads throughout the fabric, or as OpenSM does"))]
    #[arg(long, value_enum, default_value_t = BalanceName::Fabric)]
    balance: BalanceName,
    /// Longest route, in xbars, 1 to 64.
    #[arg(long, alias = "max_hops", value_name = "N", default_value_t = Settings::MAX_HOPS,
          value_parser = clap::value_parser!(u8).range(1..=i64::from(Settings::MAX_HOPS)))]
    max_hops: u8,
    #[command(flatten)]
    pub(super) lids: LidOptions,
    #[arg(help = help_of(Setting::Scatter, "choose at random among the least loaded ports, by this seed"))]
    #[arg(long, alias = "scatter_ports", value_name = "SEED")]
    scatter_ports: Option<u64>,
    #[arg(help = help_of(Setting::PortShifting, "shift the order of ports from xbar to xbar"))]
    #[arg(long, alias = "port_shifting")]
    port_shifting: bool,
    #[arg(help = help_of(Setting::ConnectRoots, "let roots reach each other, down and up again, if no credit loop comes of it"))]
    #[arg(long, alias = "connect_roots", short_alias = 'z')]
    connect_roots: bool,
    #[arg(help = help_of(Setting::FirstLayer, "the first layer"))]
    #[arg(long, alias = "lash_start_vl", value_name = "LAYER", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(..i64::from(Layers::MAX)))]
    lash_start_vl: u8,
    #[arg(help = help_of(Setting::MaxLayers, &format!("most layers, with those before the first one {DEFAULT_LAYERS}")))]
    #[arg(long, aliases = ["max_layers", "nue_max_num_vls"], value_name = "N", value_parser = MostLayers)]
    max_layers: Option<u8>,
    /// Also frames to and from xbars' own addresses must arrive, and be free of credit loops.
    #[arg(long, alias = "switch_destinations")]
    switch_destinations: bool,
    #[arg(help = help_of(Setting::File, "the tables to load, as OpenSM dumps them"))]
    #[arg(
        long,
        alias = "lfts_file",
        short_alias = 'U',
        value_name = "LFTS",
        required_if_eq("engine", "file")
    )]
    lfts_file: Option<PathBuf>,
    #[arg(help = help_of(Setting::Passes, "routes a destination, 1 to 64"))]
    #[arg(long, alias = "num-passes", value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u8).range(1..=i64::from(RouteOptions::MAX_PASSES)))]
    passes: u8,
    #[command(flatten)]
    files: EngineFiles,
    #[command(flatten)]
    needless: NeedlessOptions,
}

/// Options of OpenSM's that ask for nothing here, so that its command lines can be taken as they are.
#[derive(Debug, clap::Args)]
struct NeedlessOptions {
    /// OpenSM's lash looks for a mesh first. Ours needs no such look, and a note says so.
    #[arg(long, alias = "do_mesh_analysis", hide = true)]
    do_mesh_analysis: bool,
    /// OpenSM does not scatter the destinations of its routing order. A note says that it has no effect here.
    #[arg(long, alias = "guid_routing_order_no_scatter", hide = true)]
    guid_routing_order_no_scatter: bool,
}

impl NeedlessOptions {
    /// What a user should know of those that are given.
    fn notes(&self) -> impl Iterator<Item = String> + use<> {
        let mesh = self.do_mesh_analysis.then_some(
            "--do-mesh-analysis: no effect; lash searches for few layers on any fabric, and torus knows meshes",
        );
        let scatter = self.guid_routing_order_no_scatter.then_some(
            "--guid-routing-order-no-scatter: no effect; --scatter-ports holds for all destinations, or for none \
             if it is left out",
        );
        mesh.into_iter().chain(scatter).map(str::to_owned)
    }
}

/// Reads how many layers there may be.
#[derive(Clone)]
struct MostLayers;

impl TypedValueParser for MostLayers {
    type Value = u8;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<u8, Error> {
        if value == "0" {
            let what = format!(
                "--max-layers 0 (nue_max_num_vls 0 of OpenSM): OpenSM then takes as many layers as all switches have \
                 virtual lanes, which no topology says here; give a number from 1 to {}\n",
                Layers::MAX
            );
            return Err(Error::raw(ErrorKind::ValueValidation, what).with_cmd(command));
        }
        clap::value_parser!(u8).range(1..=i64::from(Layers::MAX)).parse_ref(command, arg, value)
    }
}

/// How equally short routes are chosen among.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BalanceName {
    /// By the load of channels throughout the fabric.
    Fabric,
    /// By counters local to each xbar, exactly as OpenSM does.
    Opensm,
}

impl EngineOptions {
    /// Each option that names a file to read. `--previous` is not among them, as new tables may replace its
    /// file.
    pub(super) fn places(&self) -> Vec<NamedPath<'_>> {
        let mut all = self.files.places();
        all.extend(self.lfts_file.as_deref().map(|path| ("--lfts-file", path)));
        all
    }

    /// The settings, and notes on the files that were read for them.
    pub(super) fn settings(
        &self,
        fabric: &Fabric,
        subnet: &Subnet,
    ) -> Result<(Settings, Vec<String>), CliError> {
        let mut notes: Vec<String> = self.lids.note().into_iter().chain(self.needless.notes()).collect();
        notes.extend(self.switch_destinations.then(|| SWITCH_PAIRS.to_owned()));
        let mut tables = |path: &Option<PathBuf>| -> Result<Option<Tables>, CliError> {
            let Some(path) = path else { return Ok(None) };
            let loaded = lfts::read(path, fabric, subnet)?;
            notes.extend(loaded.notes.iter().map(|note| named(path, note)));
            Ok(Some(loaded.found))
        };
        let mut settings = Settings {
            seed: self.seed,
            balance: match self.balance {
                BalanceName::Fabric => Balance::Fabric,
                BalanceName::Opensm => Balance::Opensm,
            },
            max_hops: self.max_hops,
            previous: tables(&self.previous)?,
            reassign: self.reassign || self.lids.reassign_lids,
            scatter: self.scatter_ports,
            port_shifting: self.port_shifting,
            connect_roots: self.connect_roots,
            first_layer: self.lash_start_vl,
            max_layers: self.max_layers,
            xbar_destinations: self.switch_destinations,
            file: tables(&self.lfts_file)?,
            passes: self.passes,
            ..Settings::default()
        };
        self.files.read(fabric, subnet, &mut settings, &mut notes)?;
        Ok((settings, notes))
    }
}
