//! LASH: shortest routes in layers, each free of deadlock.
//!
//! The shortest routes between all xbars are chosen first, as trees to each destination. Then each pair of
//! xbars, both directions together, goes into the lowest layer whose channel dependencies stay free of cycles
//! with it (Skeie, Lysne, Theiss: Layered shortest path routing in irregular system area networks, 2002). The
//! order of the pairs is improved as in the colouring of graphs, and in the end pairs are spread evenly over
//! the layers.
//!
//! If one layer is enough for all, each host gets a tree of its own, so that its frames need not share the
//! route of its neighbours' frames. Otherwise a pair of xbars needs one layer for many trees, so all hosts of
//! an xbar share one tree, unless that crowds them on one of many parallel ways (`weighing`). If tables were
//! in force, all their entries that lead on along a shortest way stay, if there are as many layers as that
//! needs.

mod layering;
#[cfg(test)]
mod tests;

use layering::{Filler, Layering};
use thiserror::Error;

use super::algorithm::Algorithm;
use super::layer::{DependencyNumbers, check_size};
use super::pairs::Pairs;
use super::shared::Shared;
use super::shortest::{self, Choice, ShortestTrees};
use super::trees::Trees;
use super::weighing::Weight;
use super::{Engine, EngineError, Refusal, Routing, Setting, Settings, TooManyLayers};
use crate::Subnet;
use crate::tables::Layers;

/// Shortest routes in layers, each free of deadlock.
pub(super) struct Lash;

impl Algorithm for Lash {
    fn name(&self) -> &'static str {
        "lash"
    }

    fn summary(&self) -> &'static str {
        "shortest routes in as few layers (service levels) as keep each free of credit loops"
    }

    fn obeys(&self, _: &Settings) -> &'static [Setting] {
        &[Setting::Previous, Setting::FirstLayer, Setting::MaxLayers]
    }

    fn check(&self, subnet: &Subnet, settings: &Settings) -> Result<(), Refusal> {
        let lmc = subnet.destinations.lmc();
        if lmc > 0 {
            return Err(Refusal::own(SeveralAddresses { lmc }));
        }
        check_size(subnet)?;
        settings.layers_left().map(|_| ())
    }

    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        compute(subnet, settings, &Shared::new(subnet, settings))
    }

    fn compute_sharing(
        &self,
        subnet: &Subnet,
        settings: &Settings,
        shared: &Shared<'_>,
    ) -> Result<Routing, EngineError> {
        compute(subnet, settings, shared)
    }
}

/// Hosts have several addresses each, but a pair of xbars has one layer, and so one route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("hosts have {} addresses each (LMC {lmc}); it needs LMC 0", 1_u32 << lmc)]
struct SeveralAddresses {
    lmc: u8,
}

/// One more layer is worth it if it takes more than one of this many equal parts off the crowding of routes.
/// The parts are large because lash is meant for few layers.
const EASED_PARTS: u8 = 3;

/// Computes tables and layers.
///
/// Pairs of xbars that both have hosts are layered. The addresses of other xbars are reached by shortest
/// routes in the first layer. These may deadlock there, unless `xbar_destinations` asks for layers for these
/// routes, too.
///
/// # Errors
/// If too few layers are allowed.
fn compute(subnet: &Subnet, settings: &Settings, shared: &Shared<'_>) -> Result<Routing, EngineError> {
    let refuse = |why: Refusal| EngineError::refuse(Engine::Lash, why);
    let most = settings.layers_left().map_err(refuse)?;
    let mut notes = Vec::new();
    let kept = shortest::serve_kept(subnet, settings, shared, &mut notes, |trees| {
        layers_of(subnet, settings, trees, most)
    });
    if let Some(routing) = kept {
        return Ok(routing);
    }
    if shared.are_by_host_in_one_layer() {
        let layers = Layers::starting_at(settings.first_layer);
        return Ok(Routing { tables: shared.by_host().trees.tables(subnet), layers, notes });
    }
    let first_port = ShortestTrees::new(subnet, Choice::FirstPort);
    let (layering, trees) = layered(subnet, settings, shared, &first_port, most);
    if layering.count > usize::from(most) {
        let (needed, first) = (layering.count, settings.first_layer);
        let too_many = TooManyLayers { needed, left: most, first, instead: Engine::Updn.into() };
        return Err(refuse(Refusal::TooManyLayers(too_many)));
    }
    let layers = numbered(subnet, settings, &layering);
    Ok(Routing { tables: trees.tables(subnet), layers, notes })
}

/// The layers that trees need which close circles in a single one, if as many are allowed.
fn layers_of(subnet: &Subnet, settings: &Settings, trees: &Trees, most: u8) -> Option<Layers> {
    let numbers = DependencyNumbers::new(&subnet.topology);
    let pairs: Vec<(u32, u32)> = Pairs::new(subnet, settings.xbar_destinations).both_ways().collect();
    let mut filler = Filler::new(subnet, trees, &numbers, most);
    let mut layering = filler.fill(&pairs, settings.seed);
    filler.balance(&mut layering);
    (layering.count <= usize::from(most)).then(|| numbered(subnet, settings, &layering))
}

/// The layer of each pair. There are no more layers than may be used.
fn numbered(subnet: &Subnet, settings: &Settings, layering: &Layering) -> Layers {
    let xbars = subnet.topology.xbar_count();
    Layers::by_destination(layering.count as u8, settings.first_layer, layering.by_pair(xbars), xbars)
}

/// The trees that are worth their layers, and the layer of each pair: those that are shared, or those by first ports.
fn layered<'a>(
    subnet: &Subnet,
    settings: &Settings,
    shared: &'a Shared<'_>,
    first_port: &'a ShortestTrees,
    most: u8,
) -> (Layering, &'a Trees) {
    let numbers = DependencyNumbers::new(&subnet.topology);
    let pairs: Vec<(u32, u32)> = Pairs::new(subnet, settings.xbar_destinations).both_ways().collect();
    let candidate = |shortest: &'a ShortestTrees| {
        let mut filler = Filler::new(subnet, &shortest.trees, &numbers, most);
        let mut layering = filler.fill(&pairs, settings.seed);
        filler.balance(&mut layering);
        (layering, shortest)
    };
    let weight = |(layering, shortest): &(Layering, &ShortestTrees)| Weight {
        layers: layering.count,
        crowding: shortest.crowding(subnet),
    };
    let (a, b) = rayon::join(|| candidate(shared.by_xbar()), || candidate(first_port));
    let rank = |(layering, shortest): &(Layering, &ShortestTrees)| (layering.count, shortest.busiest);
    let mut taken = if rank(&b) < rank(&a) { b } else { a };
    // It is known that these need more than one layer.
    if most > 1 && shared.by_host().trees.are_several_an_xbar() {
        let by_host = candidate(shared.by_host());
        if weight(&by_host).is_worth_more_than(weight(&taken), most.into(), EASED_PARTS) {
            taken = by_host;
        }
    }
    (taken.0, &taken.1.trees)
}
