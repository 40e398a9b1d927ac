//! The options that name the files of OpenSM's settings.

use std::path::{Path, PathBuf};

use mapper_formats::Loaded;
use mapper_formats::guid_files;
use mapper_formats::{FormatError, lid_matrix, torus_file};
use mapper_proto::map::Fabric;

use crate::cli::CliError;
use crate::cli::engine_names::help_of;
use crate::cli::notes::named;
use crate::cli::places::{self, NamedPath};
use mapper_routing::Subnet;
use mapper_routing::engines::{Setting, Settings};

/// Files that say something of single nodes or ports.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Engine files")]
pub(super) struct EngineFiles {
    #[arg(help = help_of(Setting::Roots, "the roots, a GUID or name a line [default: found by the engine]"))]
    #[arg(long, alias = "root_guid_file", short_alias = 'a', value_name = "FILE")]
    root_guid_file: Option<PathBuf>,
    #[arg(help = help_of(Setting::Ids, "switches' ids, `guid id` a line, which tell up from down within a rank"))]
    #[arg(long, alias = "ids_guid_file", short_alias = 'm', value_name = "FILE")]
    ids_guid_file: Option<PathBuf>,
    #[arg(help = help_of(Setting::ComputeNodes, "the compute nodes, a GUID or name a line [default: all hosts but the I/O nodes]"))]
    #[arg(long, alias = "cn_guid_file", short_alias = 'u', value_name = "FILE")]
    cn_guid_file: Option<PathBuf>,
    #[arg(help = help_of(Setting::IoNodes, "the I/O nodes, a GUID or name a line"))]
    #[arg(long, alias = "io_guid_file", short_alias = 'G', value_name = "FILE")]
    io_guid_file: Option<PathBuf>,
    #[arg(help = help_of(Setting::MaxReverseHops, "most steps the wrong way to or from an I/O node"))]
    #[arg(long, alias = "max_reverse_hops", short_alias = 'H', value_name = "N", default_value_t = 0)]
    max_reverse_hops: u8,
    #[arg(help = help_of(Setting::UncountedPorts, "ports that do not count when loads are balanced, `guid port` or a host's GUID a line"))]
    #[arg(long, alias = "ignore_guids", short_alias = 'i', value_name = "FILE")]
    ignore_guids: Option<PathBuf>,
    #[arg(help = help_of(Setting::OrderFirst, "destinations that are served first, a GUID or name a line"))]
    #[arg(long, alias = "guid_routing_order_file", short_alias = 'X', value_name = "FILE")]
    guid_routing_order_file: Option<PathBuf>,
    #[arg(help = help_of(Setting::PortOrder, "the order in which single switches' ports are tried, `guid port port ..` a line"))]
    #[arg(long, aliases = ["port_search_ordering_file", "dimn_ports_file"], short_alias = 'O', value_name = "FILE")]
    port_search_ordering_file: Option<PathBuf>,
    #[arg(help = help_of(Setting::HopWeights, "what a step out of single ports counts, `guid port weight` a line"))]
    #[arg(long, alias = "hop_weights_file", short_alias = 'w', value_name = "FILE")]
    hop_weights_file: Option<PathBuf>,
    #[arg(help = help_of(Setting::Hops, "the hops to reckon with, as OpenSM dumps its lid matrix"))]
    #[arg(long, alias = "lid_matrix_file", short_alias = 'M', value_name = "FILE")]
    lid_matrix_file: Option<PathBuf>,
    #[arg(help = help_of(Setting::Torus, "its sizes, origin, datelines, regions and ports, as TOML [default: found from TOPOLOGY]"))]
    #[arg(long, alias = "torus-config", alias = "torus_config", value_name = "FILE")]
    torus_file: Option<PathBuf>,
}

impl EngineFiles {
    /// Each option that is given, with the file that it names.
    pub(super) fn places(&self) -> Vec<NamedPath<'_>> {
        places::given(&[
            ("--root-guid-file", &self.root_guid_file),
            ("--ids-guid-file", &self.ids_guid_file),
            ("--cn-guid-file", &self.cn_guid_file),
            ("--io-guid-file", &self.io_guid_file),
            ("--ignore-guids", &self.ignore_guids),
            ("--guid-routing-order-file", &self.guid_routing_order_file),
            ("--port-search-ordering-file", &self.port_search_ordering_file),
            ("--hop-weights-file", &self.hop_weights_file),
            ("--lid-matrix-file", &self.lid_matrix_file),
            ("--torus-file", &self.torus_file),
        ])
    }

    /// Reads the files into settings. Notes are added for what was skipped in them.
    pub(super) fn read(
        &self,
        fabric: &Fabric,
        subnet: &Subnet,
        settings: &mut Settings,
        notes: &mut Vec<String>,
    ) -> Result<(), CliError> {
        let mut files = Files { subnet, notes };
        settings.max_reverse_hops = self.max_reverse_hops;
        settings.roots = files.read(self.root_guid_file.as_deref(), guid_files::roots)?;
        settings.compute_nodes = files.read(self.cn_guid_file.as_deref(), guid_files::hosts)?;
        settings.ids = files.read(self.ids_guid_file.as_deref(), guid_files::ids)?.unwrap_or_default();
        settings.io_nodes = files.read(self.io_guid_file.as_deref(), guid_files::hosts)?.unwrap_or_default();
        let uncounted = files.read(self.ignore_guids.as_deref(), guid_files::uncounted_ports)?;
        settings.uncounted_ports = uncounted.unwrap_or_default();
        let order = files.read(self.guid_routing_order_file.as_deref(), guid_files::routing_order)?;
        settings.order_first = order.unwrap_or_default();
        let order = files.read(self.port_search_ordering_file.as_deref(), guid_files::port_order)?;
        settings.port_order = order.unwrap_or_default();
        let weights = files.read(self.hop_weights_file.as_deref(), guid_files::hop_weights)?;
        settings.hop_weights = weights.unwrap_or_default();
        if let Some(path) = &self.lid_matrix_file {
            let loaded = lid_matrix::read(path, subnet)?;
            files.notes.extend(loaded.notes.iter().map(|note| named(path, note)));
            settings.hops = Some(loaded.found);
        }
        if let Some(path) = &self.torus_file {
            settings.torus = torus_file::read(path, fabric)?;
        }
        Ok(())
    }
}

/// Reads files for one subnet, and collects the notes on them.
struct Files<'a> {
    subnet: &'a Subnet,
    notes: &'a mut Vec<String>,
}

impl Files<'_> {
    fn read<T>(
        &mut self,
        path: Option<&Path>,
        read: impl FnOnce(&Path, &Subnet) -> Result<Loaded<T>, FormatError>,
    ) -> Result<Option<T>, CliError> {
        let Some(path) = path else { return Ok(None) };
        let listed = read(path, self.subnet)?;
        self.notes.extend(listed.notes.iter().map(|note| named(path, note)));
        Ok(Some(listed.found))
    }
}
