//! The engine: from a grid to tables and layers.

use rayon::prelude::*;

use crate::Subnet;
use crate::engines::algorithm::Algorithm;
use crate::engines::{Engine, EngineError, Refusal, Routing, Setting, Settings, in_force};
use crate::tables::Layers;
use mapper_fabric::names::Names;

use super::axes::Axes;
use super::blame;
use super::corners::by_corner;
use super::grid::Grid;
use super::lattice::Lattice;
use super::layers::{self, ClassLayers};
use super::packing;
use super::placements::best_trees;
use super::ports::HeadingPorts;
use super::recognition::recognise;
use super::refusal::TorusRefusal;
use super::regions::Regions;
use super::serve::Fabric;
use super::trees::TorusTrees;

/// Direction order: tori and meshes that may have lost cables.
pub(in crate::engines) struct Torus;

impl Algorithm for Torus {
    fn name(&self) -> &'static str {
        "torus"
    }

    fn summary(&self) -> &'static str {
        "direction order in tori and meshes, round broken cables too, in the fewest layers"
    }

    fn obeys(&self, _: &Settings) -> &'static [Setting] {
        &[Setting::Previous, Setting::FirstLayer, Setting::MaxLayers, Setting::Torus]
    }

    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        compute(subnet, settings)
    }
}

fn refuse(why: TorusRefusal) -> EngineError {
    EngineError::refuse(Engine::Torus, Refusal::own(why))
}

/// Direction-order tables and layers of a torus or mesh, which is found in the subnet as far as it is not
/// stated.
///
/// # Errors
/// If the subnet is no torus or mesh, or [`compute_on`] fails.
pub fn compute(subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
    let grid = recognise(&subnet.topology, &settings.torus).map_err(|error| {
        let written_at = error.key().and_then(|key| settings.torus.written_at.get(key));
        let written_at = written_at.cloned();
        refuse(TorusRefusal::NoTorus { names: Box::new(subnet.names.clone()), written_at, error })
    })?;
    compute_on(subnet, settings, &grid)
}

/// Direction-order tables and layers of a grid, which must be of the subnet's topology.
///
/// If they cannot be found, other names for the axes are tried, unless any are stated. A note says which ones
/// serve.
///
/// # Errors
/// If the rules cannot connect a pair that cables join, or need more layers than there are.
pub fn compute_on(subnet: &Subnet, settings: &Settings, grid: &Grid) -> Result<Routing, EngineError> {
    let refusal = match compute_as_named(subnet, settings, grid) {
        Ok(routing) => return Ok(routing),
        Err(refusal) if settings.torus.names_axes() => return Err(refusal),
        Err(refusal) => refusal,
    };
    let others = Axes::others(grid);
    let hopeless = settings.layers_left() == Ok(1) && closes_a_ring_by_any_name(subnet, settings, grid);
    for axes in others.iter().filter(|_| !hopeless) {
        let Ok(renamed) = axes.rename(grid, &subnet.topology) else { continue };
        if let Ok(mut routing) = compute_as_named(subnet, settings, &renamed) {
            routing.notes.insert(0, format!("torus: served with the axes {axes}"));
            return Ok(routing);
        }
    }
    if others.is_empty() {
        return Err(refusal);
    }
    Err(refuse(TorusRefusal::WhateverAxes { as_named: Box::new(refusal.why), others: others.len() }))
}

/// Whether routes of one layer close a circle whatever the axes are called. They do in a ring of five routers
/// or more that all have hosts, if nothing of the grid is missing, as each router reaches the hosts two steps
/// on the shorter way.
pub(super) fn closes_a_ring_by_any_name(subnet: &Subnet, settings: &Settings, grid: &Grid) -> bool {
    let lattice = Lattice::new(grid, &subnet.topology);
    let has_long_ring = (0..3).any(|dimension| lattice.rings[dimension] && lattice.sizes[dimension] >= 5);
    let is_whole = || settings.torus.regions.is_none() && lattice.troubled().is_empty();
    has_long_ring && is_whole() && (0..lattice.router_count() as u32).all(|router| subnet.is_leaf(router))
}

/// Computes tables with the axes as they are named.
pub(super) fn compute_as_named(
    subnet: &Subnet,
    settings: &Settings,
    grid: &Grid,
) -> Result<Routing, EngineError> {
    let mut lattice = Lattice::new(grid, &subnet.topology);
    if let Some(why) = stated_regions(settings, &lattice).refusal(&lattice) {
        return Err(refuse(why));
    }
    let stated = stated_datelines(settings, &lattice);
    let trees = best_trees(subnet, settings, &mut lattice, stated).map_err(|unconnected| {
        let explanation = blame::explain(&fabric(subnet, settings, &lattice), &subnet.names, unconnected);
        refuse(TorusRefusal::Unconnected { explanation })
    })?;
    let layers = assign_layers(subnet, settings, &lattice, &trees)?;
    let tables = HeadingPorts::new(grid, subnet).tables(subnet, &trees, in_force::tables(settings));
    Ok(Routing { tables, layers, notes: notes(&lattice, &trees) })
}

/// The regions that are stated; a single one if none are.
fn stated_regions(settings: &Settings, lattice: &Lattice) -> Regions {
    let of = |sizes: &Vec<u8>| [0, 1, 2].map(|dimension| sizes.get(dimension).copied().unwrap_or_default());
    Regions::new(lattice, settings.torus.regions.as_ref().map(of))
}

/// The datelines that are stated, each as the coordinate below it. A statement names the coordinate above.
fn stated_datelines(settings: &Settings, lattice: &Lattice) -> [Option<u8>; 3] {
    let above = |dimension: usize| settings.torus.datelines.as_ref()?.get(dimension).copied();
    [0, 1, 2].map(|dimension: usize| {
        above(dimension).map(|at| at.checked_sub(1).unwrap_or(lattice.sizes[dimension] - 1))
    })
}

/// A lattice as it is to be routed.
pub(super) fn fabric<'a>(subnet: &'a Subnet, settings: &Settings, lattice: &'a Lattice) -> Fabric<'a> {
    let routers = 0..lattice.router_count() as u32;
    let sends: Vec<bool> = routers.map(|router| subnet.is_leaf(router)).collect();
    Fabric {
        lattice,
        topology: &subnet.topology,
        regions: stated_regions(settings, lattice),
        receives: sends.iter().map(|&leaf| leaf || settings.xbar_destinations).collect(),
        sends,
        troubled: lattice.troubled(),
        is_quick: lattice.router_count().pow(2) > packing::MOST_STEPS,
    }
}

/// The fewest layers: by the datelines that routes cross, by their corners, or route by route.
fn assign_layers(
    subnet: &Subnet,
    settings: &Settings,
    lattice: &Lattice,
    trees: &TorusTrees,
) -> Result<Layers, EngineError> {
    let most = settings.layers_left().map_err(|why| EngineError::refuse(Engine::Torus, why))?;
    let routers = lattice.router_count();
    let by_class = layers::by_class(lattice, &trees.dependencies, most);
    if let Some(ClassLayers { count: 1, .. }) = by_class {
        return Ok(Layers::starting_at(settings.first_layer));
    }
    let fabric = fabric(subnet, settings, lattice);
    let fewer = by_class.as_ref().map_or(most, |layers| layers.count - 1);
    let by_corner = if fabric.regions.is_whole(lattice) { by_corner(&fabric, trees, fewer) } else { None };
    let fewer = by_corner.as_ref().map_or(fewer, |&(count, _)| count - 1);
    if let Some((count, of)) = packing::by_route(&fabric, trees, fewer).or(by_corner) {
        return Ok(Layers::by_destination(count, settings.first_layer, of, routers));
    }
    let Some(by_class) = by_class else {
        return Err(refuse(too_many_layers(lattice, &subnet.names, trees, most)));
    };
    let of =
        trees.cells().par_iter().map(|&cell| by_class.of[usize::from(TorusTrees::class_of(cell))]).collect();
    Ok(Layers::by_destination(by_class.count, settings.first_layer, of, routers))
}

/// Why no layers were found: a circle that routes of one class make, if there is one.
fn too_many_layers(lattice: &Lattice, names: &Names, trees: &TorusTrees, most: u8) -> TorusRefusal {
    let all = trees.dependencies.classes();
    let classes = (0..u16::BITS).map(|class| 1 << class).filter(|class| all & class != 0);
    let mut circles = classes.filter_map(|class| trees.dependencies.circle(lattice, class));
    match circles.next() {
        None => TorusRefusal::TooManyLayers { most },
        Some(circle) => {
            let names = circle.iter().map(|&(router, heading)| {
                format!("{heading} of {}", blame::router_name(lattice, names, router))
            });
            TorusRefusal::Circle { channels: names.collect() }
        }
    }
}

fn notes(lattice: &Lattice, trees: &TorusTrees) -> Vec<String> {
    let rings = (0..3).filter(|&dimension| lattice.rings[dimension]);
    let datelines: Vec<String> = rings.map(|dimension| blame::dateline(lattice, dimension)).collect();
    let mut notes = Vec::new();
    if !datelines.is_empty() {
        notes.push(format!("torus: datelines from {}", datelines.join(", ")));
    }
    if trees.searched > 0 {
        notes.push(format!(
            "torus: {} destinations are reached by searched routes, as the rules look one router ahead only",
            trees.searched
        ));
    }
    notes
}
