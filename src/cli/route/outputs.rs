//! The files that `mapper route` writes.

use std::io::{self, Write};
use std::path::PathBuf;

use mapper_acm::files::path_dump;
use mapper_formats::{ftree_order, gm_routes, lfts, lid_matrix, path_records, plot_loads, sls};
use mapper_ib::lids::LAST_LID;
use mapper_proto::map::Fabric;

use super::routes_dir;
use crate::cli::output::{self, Staged};
use crate::cli::places::{self, NamedPath};
use crate::cli::{CliError, UsageError};
use mapper_routing::engines::ftree::HostOrder;
use mapper_routing::engines::{Engine, Routing, Selection, Settings, SourceSelection, hop_matrix};
use mapper_routing::tables::{Layers, SlotEnd};
use mapper_routing::{ProofRules, Quality, Subnet, prove_tables};

/// Where results are written.
#[derive(Debug, clap::Args)]
#[command(
    next_help_heading = "Files to write (`-` is standard output, and the report goes to standard error)"
)]
pub(super) struct Outputs {
    /// Write the forwarding tables as OpenSM dumps them; `opensm -R file -U FILE` loads them.
    #[arg(long, value_name = "FILE")]
    lfts: Option<PathBuf>,
    /// Leave out of the tables what OpenSM does not read: kinds and names of destinations. GUIDs stay, for it
    /// finds by them what has another LID by now.
    #[arg(long, requires = "lfts")]
    terse: bool,
    /// Write the layer (service level) of each pair of hosts: source LID, destination LID, level.
    #[arg(long, value_name = "FILE")]
    sls: Option<PathBuf>,
    /// Write the path between each two hosts with its service level and rate, as OpenSM dumps path records; `mapper acm
    /// serve --route-data FILE` reads it.
    #[arg(long, value_name = "FILE")]
    path_records: Option<PathBuf>,
    /// Write every host's routes as mapper.routes/1, a file a host.
    #[arg(long, value_name = "DIR")]
    routes_dir: Option<PathBuf>,
    /// Write all hosts' routes in one file as GM's mapper did, its `.routes`.
    #[arg(long, value_name = "FILE")]
    gm_routes: Option<PathBuf>,
    /// Draw how many routes cross each channel, as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write the hops from each port to each switch, as OpenSM dumps its lid matrix.
    #[arg(long, alias = "dump_lid_matrix", value_name = "FILE")]
    dump_lid_matrix: Option<PathBuf>,
    /// Write the order of hosts whose shifts ftree serves, as OpenSM's opensm-ftree-ca-order.dump.
    #[arg(long, alias = "ftree_order", value_name = "FILE")]
    ftree_order: Option<PathBuf>,
}

impl Outputs {
    /// Refuses options that need forwarding tables, as source routes have none.
    pub(super) fn refuse_tables(&self) -> Result<(), CliError> {
        let wanted = [
            ("--lfts", &self.lfts),
            ("--sls", &self.sls),
            ("--path-records", &self.path_records),
            ("--dump-lid-matrix", &self.dump_lid_matrix),
            ("--ftree-order", &self.ftree_order),
        ];
        match wanted.iter().find(|(_, path)| path.is_some()) {
            None => Ok(()),
            Some((option, _)) => Err(no_tables(option)),
        }
    }

    /// Writes the files that the user wants, from tables. Options that cannot be served are refused before
    /// anything is written.
    pub(super) fn write_tables(
        &self,
        staged: &mut Staged,
        fabric: &Fabric,
        subnet: &Subnet,
        settings: &Settings,
        selection: &Selection,
        notes: &mut Vec<String>,
    ) -> Result<(), CliError> {
        let routing = &selection.routing;
        if self.ftree_order.is_some() && selection.engine != Engine::Ftree {
            let why = format!("--ftree-order: {} served, and only ftree has such an order", selection.engine);
            return Err(why.into());
        }
        let matrix = match &self.dump_lid_matrix {
            None => None,
            Some(path) => {
                let hops = hop_matrix(selection.engine, subnet, settings);
                Some((path, hops.map_err(|error| format!("--dump-lid-matrix: {error}"))?))
            }
        };
        if self.lfts.is_some() && self.sls.is_none() && routing.layers.count > 1 {
            return Err(UsageError(levels_missing(selection.engine, routing.layers.count)).into());
        }
        if let Some(path) = &self.lfts {
            let dump = if self.terse { lfts::Dump::terse } else { lfts::Dump::new };
            let dump = dump(fabric, subnet)?;
            staged.file(path, |out| dump.write(out, &routing.tables))?;
            notes.extend(past_unicast(subnet));
            notes.extend(layers_of_lfts(subnet, settings, routing));
        }
        if let Some(path) = &self.sls {
            staged.file(path, |out| sls::write(out, subnet, &routing.layers))?;
        }
        if let Some(path) = &self.path_records {
            let Routing { tables, layers, .. } = routing;
            let mut bytes = 0;
            staged.file(path, |out| {
                let mut counting = Counting { out, bytes: &mut bytes };
                path_records::write(&mut counting, fabric, subnet, tables, layers)
            })?;
            notes.extend(unserved_paths(subnet, bytes));
        }
        if let Some((path, hops)) = &matrix {
            staged.file(path, |out| lid_matrix::write(out, subnet, hops))?;
        }
        if let Some(path) = &self.ftree_order {
            let order = HostOrder::new(subnet, settings);
            staged.file(path, |out| ftree_order::write(out, fabric, subnet, &order))?;
        }
        if let Some(dir) = &self.routes_dir {
            let new = staged.folder(dir)?;
            routes_dir::write_tables(&new, fabric, subnet, routing)?;
            notes.extend(routes_dir::others(dir, &subnet.topology));
            notes.extend(layers_of_routes("--routes-dir", routing.layers.count));
        }
        if let Some(path) = &self.gm_routes {
            let blocks = routes_dir::gm_blocks_of_tables(fabric, subnet, routing)?;
            staged.file(path, |out| gm_routes::write(out, &blocks))?;
            notes.extend(layers_of_routes("--gm-routes", routing.layers.count));
        }
        Ok(())
    }

    /// Writes the files that the user wants, from source routes.
    pub(super) fn write_source_routes(
        &self,
        staged: &mut Staged,
        fabric: &Fabric,
        selection: &SourceSelection<'_>,
        notes: &mut Vec<String>,
    ) -> Result<(), CliError> {
        self.refuse_tables()?;
        if let Some(dir) = &self.routes_dir {
            let new = staged.folder(dir)?;
            routes_dir::write_source_routes(&new, fabric, &selection.routes)?;
            notes.extend(routes_dir::others(dir, selection.routes.topology()));
        }
        if let Some(path) = &self.gm_routes {
            let blocks = routes_dir::gm_blocks_of_source_routes(fabric, &selection.routes)?;
            staged.file(path, |out| gm_routes::write(out, &blocks))?;
        }
        Ok(())
    }

    /// Draws the loads of channels, if the user wants that.
    pub(super) fn write_plot(
        &self,
        staged: &mut Staged,
        subnet: &Subnet,
        quality: &Quality,
        title: &str,
    ) -> Result<(), CliError> {
        let Some(path) = &self.plot else { return Ok(()) };
        let drawn = plot_loads(&subnet.topology, &quality.loads, title);
        staged.file(path, |out| out.write_all(drawn.as_bytes()))
    }

    /// Whether any of these files is standard output, so that the report must go to standard error.
    pub(super) fn use_standard_output(&self) -> bool {
        self.places().iter().any(|(_, path)| output::is_standard_output(path))
    }

    /// Each option that is given, with the path that it names.
    pub(super) fn places(&self) -> Vec<NamedPath<'_>> {
        places::given(&[
            ("--lfts", &self.lfts),
            ("--sls", &self.sls),
            ("--path-records", &self.path_records),
            ("--routes-dir", &self.routes_dir),
            ("--gm-routes", &self.gm_routes),
            ("--plot", &self.plot),
            ("--dump-lid-matrix", &self.dump_lid_matrix),
            ("--ftree-order", &self.ftree_order),
        ])
    }

    /// Each file that was written, as the name of its option in JSON and its path.
    pub(super) fn written(&self) -> Vec<(String, String)> {
        let name =
            |option: &str| option.trim_start_matches("--").trim_start_matches("dump-").replace('-', "_");
        let all = self.places().into_iter();
        all.map(|(option, path)| (name(option), path.display().to_string())).collect()
    }
}

/// The error for an option that the engine dispersive cannot serve.
pub(super) fn no_tables(option: &str) -> CliError {
    format!(
        "{option}: the engine dispersive has no forwarding tables, for it gives each host several routes to a \
         destination, and a table has one; write its routes with --routes-dir, or name another engine"
    )
    .into()
}

/// The error for tables of several layers that would be written without their service levels.
fn levels_missing(engine: Engine, layers: u8) -> String {
    format!(
        "--lfts: the tables of {engine} are free of deadlock only with the service level of each pair, one of \
         {layers}; write these, too, with --sls FILE, or name an engine of one layer, as updn"
    )
}

/// What OpenSM makes of tables with more than one layer: its engine `file` reads no service levels.
fn layers_of_lfts(subnet: &Subnet, settings: &Settings, routing: &Routing) -> Option<String> {
    let layers = routing.layers.count;
    let rules = ProofRules { max_hops: settings.max_hops, xbar_destinations: settings.xbar_destinations };
    let in_one = || prove_tables(subnet, &routing.tables, &Layers::single(), &rules);
    (layers > 1).then(|| {
        let comes_of_it = match in_one().deadlock_free {
            true => "they are free of deadlock in one layer, too",
            false => "they CAN DEADLOCK there, so do not load them that way: use an engine of one layer \
                      (--max-layers 1), or set the levels of --sls by other means",
        };
        format!(
            "the tables of --lfts are meant for {layers} layers; OpenSM's engine file (opensm -R file) reads no \
             service levels, and takes them as one layer; {comes_of_it}; the plugin opensm-plugin-mapper (event_plugin_name \
             mapper, routing_engine mapper) keeps the layers"
        )
    })
}

/// A note if the routes are free of deadlock only as long as each keeps to its layer, as a source-routed
/// fabric has no layers.
fn layers_of_routes(option: &str, layers: u8) -> Option<String> {
    (layers > 1).then(|| {
        format!(
            "the routes of {option} are free of deadlock only where frames travel in the layer of each \
             pair, one of {layers}; source-routed crossbars have no layers: there, let the engine dispersive \
             make the routes"
        )
    })
}

/// Notes on paths that the ACM service will not serve: those of hosts whose LIDs InfiniBand reserves for multicast, which are not
/// written, and all of them if the file became too long, at so many bytes.
fn unserved_paths(subnet: &Subnet, bytes: u64) -> Vec<String> {
    let is_past = |slot: &u32| {
        matches!(subnet.destinations.end(*slot), SlotEnd::Host { .. })
            && subnet.destinations.lid(*slot) > u32::from(LAST_LID)
    };
    let mut notes = Vec::new();
    let past = (0..subnet.destinations.slot_count() as u32).filter(is_past).count();
    if past > 0 {
        notes.push(format!(
            "--path-records lacks the paths from and to {past} LIDs of hosts above {LAST_LID:#x}, where InfiniBand's unicast \
             LIDs end"
        ));
    }
    if bytes > path_dump::MOST_BYTES {
        notes.push(format!(
            "the file of --path-records has {bytes} bytes, and `mapper acm serve --route-data` reads at most {}",
            path_dump::MOST_BYTES
        ));
    }
    notes
}

/// Counts what is written.
struct Counting<'a> {
    out: &'a mut dyn Write,
    bytes: &'a mut u64,
}

impl Write for Counting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        *self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A note if hosts or switches have LIDs that InfiniBand reserves for multicast.
fn past_unicast(subnet: &Subnet) -> Option<String> {
    let slots = 0..subnet.destinations.slot_count() as u32;
    let last = slots.map(|slot| subnet.destinations.lid(slot)).max()?;
    (last > u32::from(LAST_LID)).then(|| {
        format!(
            "LIDs go to {last:#x}, but InfiniBand's unicast LIDs end at {LAST_LID:#x}: OpenSM cannot \
             load all tables"
        )
    })
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    #[test]
    fn paths_that_nobody_will_be_told_are_noted() {
        let mut fabric = generate("clos:hosts=8,ports=4").unwrap();
        let notes = |fabric: &Fabric, bytes| unserved_paths(&Subnet::new(fabric, None).unwrap(), bytes);
        assert!(notes(&fabric, path_dump::MOST_BYTES).is_empty());
        // Nobody looks for the paths of a switch.
        fabric.xbars[0].lid = Some(0xc000);
        assert!(notes(&fabric, 0).is_empty());
        fabric.hosts[1].lid = Some(0xc001);
        let told = notes(&fabric, path_dump::MOST_BYTES + 1);
        assert!(
            told[0].contains("1 LIDs of hosts above 0xbfff") && told[1].contains("reads at most"),
            "{told:?}"
        );
    }
}
