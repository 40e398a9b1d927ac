//! The engine: from a grid to tables and layers.

use rayon::prelude::*;

use crate::routing::Subnet;
use crate::routing::engines::{Engine, EngineError, Routing, Settings};
use crate::routing::tables::Layers;

use super::grid::Grid;
use super::lattice::Lattice;
use super::layers;
use super::ports::Ports;
use super::regions::Regions;
use super::rules::place_datelines;
use super::trees::Trees;

/// Direction-order tables and layers of a grid, which must be of the subnet's topology.
///
/// # Errors
/// If the rules cannot connect a pair that cables join, or need more layers than there are.
pub fn compute(subnet: &Subnet, settings: &Settings, grid: &Grid) -> Result<Routing, EngineError> {
    let refuse = |why: String| EngineError::refuse(Engine::Torus, why);
    let topology = &subnet.topology;
    let mut lattice = Lattice::new(grid, topology);
    lattice.datelines = place_datelines(&lattice);
    let regions = Regions::new(&lattice, None);
    let routers = lattice.router_count();
    let sends: Vec<bool> = (0..routers as u32).map(|router| subnet.is_leaf(router)).collect();
    let arrives: Vec<bool> = sends.iter().map(|&leaf| leaf || settings.xbar_destinations).collect();
    let trees = Trees::new(&lattice, &regions, &sends, &arrives);
    let most = Layers::MAX.min(settings.max_layers).saturating_sub(settings.first_layer);
    let Some(by_class) = layers::by_class(&lattice, &trees.dependencies, most) else {
        return Err(refuse(format!("its routes need more than {most} layers")));
    };
    let tables = Ports::new(grid, subnet).tables(subnet, &trees, settings.previous.as_ref());
    let mut by_pair = vec![0; routers * routers];
    by_pair.par_chunks_mut(routers.max(1)).enumerate().for_each(|(source, layers)| {
        for (destination, layer) in (0..).zip(layers) {
            *layer = by_class.of[usize::from(trees.class(source as u32, destination))];
        }
    });
    let layers = Layers::by_pair(by_class.count, settings.first_layer, by_pair, routers);
    Ok(Routing { tables, layers, notes: Vec::new() })
}
