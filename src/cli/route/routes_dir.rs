//! Writes the routes of all hosts as files, whichever engine made them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use mapper_formats::gm_routes::HostBlock;
use mapper_formats::routes::{RouteJson, RoutesJson, file_name, is_file_name, table_to_json};
use mapper_proto::map::{Fabric, PortRef};
use rayon::prelude::*;

use crate::cli::CliError;
use mapper_fabric::wording::counted;
use mapper_routing::engines::Routing;
use mapper_routing::engines::dispersive::AllHosts;
use mapper_routing::{Attachment, RoutingError, Subnet, Topology, walk_tables};

/// For how many hosts each thread has the routes in memory at once.
const HOSTS_A_THREAD: usize = 4;

/// Writes the routes that tables give to each host, by walking the tables entry by entry. Where they lead
/// nowhere there is no route.
pub(super) fn write_tables(
    dir: &Path,
    fabric: &Fabric,
    subnet: &Subnet,
    routing: &Routing,
) -> Result<(), CliError> {
    let topology = &subnet.topology;
    let hosts: Vec<u32> =
        (0..topology.host_count() as u32).filter(|&host| !topology.is_phantom(host)).collect();
    hosts.par_iter().with_max_len(HOSTS_A_THREAD).try_for_each(|&host| {
        let json = routes_of(fabric, subnet, routing, host).map_err(|error| named(fabric, host, &error))?;
        write(dir, topology, host, &json)
    })
}

fn routes_of(
    fabric: &Fabric,
    subnet: &Subnet,
    routing: &Routing,
    from: u32,
) -> Result<RoutesJson, RoutingError> {
    let topology = &subnet.topology;
    let mut routes = Vec::new();
    for to in (0..topology.host_count() as u32).filter(|&to| to != from) {
        let layer = match (subnet.xbar_of_host(from), subnet.xbar_of_host(to)) {
            (Some(source), Some(destination)) => routing.layers.service_level(source, destination),
            _ => 0,
        };
        for way in ways_to(subnet, routing, from, to) {
            routes.push(RouteJson::new(fabric, topology, (from, to), layer, &way)?);
        }
    }
    Ok(RoutesJson::new(topology, from, routes))
}

/// The ways that tables give from a host to another. A way that leads to several of the host's addresses is
/// listed once.
fn ways_to(subnet: &Subnet, routing: &Routing, from: u32, to: u32) -> Vec<Vec<PortRef>> {
    let mut ways: Vec<Vec<PortRef>> = Vec::new();
    if subnet.topology.attachment(from) == Attachment::Host(to) {
        ways.push(Vec::new());
    }
    for slot in subnet.destinations.slots_of_host(to) {
        ways.extend(walk_tables(subnet, &routing.tables, from, slot).filter(|way| !ways.contains(way)));
    }
    ways
}

/// The routes that tables give to each host, in the form of GM's route files.
pub(super) fn gm_blocks_of_tables(
    fabric: &Fabric,
    subnet: &Subnet,
    routing: &Routing,
) -> Result<Vec<HostBlock>, CliError> {
    let topology = &subnet.topology;
    let hosts: Vec<u32> =
        (0..topology.host_count() as u32).filter(|&host| !topology.is_phantom(host)).collect();
    let block = |&from: &u32| {
        let others = hosts.iter().filter(|&&to| to != from);
        let ways = |&to: &u32| ways_to(subnet, routing, from, to).into_iter().map(move |way| (to, way));
        HostBlock::new(fabric, topology, from, &others.flat_map(ways).collect())
            .map_err(|error| named(fabric, from, &error))
    };
    hosts.par_iter().map(block).collect()
}

/// The routes that each host computes for itself, in the form of GM's route files.
pub(super) fn gm_blocks_of_source_routes(
    fabric: &Fabric,
    routes: &AllHosts<'_>,
) -> Result<Vec<HostBlock>, CliError> {
    let topology = routes.topology();
    let mut blocks = Vec::new();
    routes.for_each(|table| {
        let from = table.from();
        let hosts = 0..topology.host_count() as u32;
        let to = |to| table.routes_to(topology, to).map(move |hops| (to, hops));
        let block = HostBlock::new(fabric, topology, from, &hosts.flat_map(to).collect());
        blocks.push(block.map_err(|error| named(fabric, from, &error))?);
        Ok::<_, CliError>(())
    })?;
    Ok(blocks)
}

/// Writes the routes that each host computes for itself.
pub(super) fn write_source_routes(
    dir: &Path,
    fabric: &Fabric,
    routes: &AllHosts<'_>,
) -> Result<(), CliError> {
    routes.for_each(|table| {
        let json = table_to_json(fabric, routes.topology(), table)
            .map_err(|error| named(fabric, table.from(), &error))?;
        write(dir, routes.topology(), table.from(), &json)
    })
}

/// A note if a folder has files of hosts that this fabric does not have, as these stay.
pub(super) fn others(dir: &Path, topology: &Topology) -> Option<String> {
    let hosts = (0..topology.host_count() as u32).map(|host| file_name(topology.mac(host)));
    let known: BTreeSet<String> = hosts.collect();
    let names = fs::read_dir(dir).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let others = names.filter(|name| is_file_name(name) && !known.contains(name)).count();
    let what = counted(
        others,
        "file of a host that this fabric does not have stays",
        "files of hosts that this fabric does not have stay",
    );
    (others > 0).then(|| format!("{}: {what} there", dir.display()))
}

fn write(dir: &Path, topology: &Topology, host: u32, json: &RoutesJson) -> Result<(), CliError> {
    let path = dir.join(file_name(topology.mac(host)));
    let text = serde_json::to_string(json)? + "\n";
    Ok(fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?)
}

fn named(fabric: &Fabric, host: u32, error: &RoutingError) -> CliError {
    format!("the routes of {} cannot be written: {error}", fabric.hosts[host as usize].name).into()
}
