//! dfsssp: the routes of sssp in layers, each free of deadlock.
//!
//! All routes begin in the first layer. The weakest dependency of each circle there is broken: all routes
//! that make it go up to the next layer, and so on until no circle is left (Domke, Hoefler, Nagel:
//! "Deadlock-Free Oblivious Routing for Arbitrary Topologies", 2011). See `breaking`.
//!
//! Each address of a host has a tree of its own, as in sssp. If these need several layers, one tree for all
//! hosts of an xbar is tried, too. A pair of xbars has one layer, so fewer trees may need fewer layers. The
//! fewer trees are taken if the others do not fit, or spread the routes hardly better (`weighing`). If tables
//! were in force, all their entries that lead on along a shortest way stay, if there are as many layers as
//! that needs.

mod breaking;
#[cfg(test)]
mod tests;

use super::algorithm::Algorithm;
use super::layer::{DependencyNumbers, check_size};
use super::pairs::Pairs;
use super::shared::Shared;
use super::shortest::{self, ShortestTrees};
use super::trees::Trees;
use super::weighing::Weight;
use super::{Engine, EngineError, Instead, Refusal, Routing, Setting, Settings, TooManyLayers};
use crate::Subnet;
use crate::tables::Layers;
use breaking::{Breaking, PairSet};

/// One more layer is worth it if it takes more than one of this many equal parts off the crowding of routes.
const EASED_PARTS: u8 = 20;

/// The routes of sssp in layers, each free of deadlock.
pub(super) struct Dfsssp;

impl Algorithm for Dfsssp {
    fn name(&self) -> &'static str {
        "dfsssp"
    }

    fn summary(&self) -> &'static str {
        "the routes of sssp, in layers that break all credit loops"
    }

    fn obeys(&self, _: &Settings) -> &'static [Setting] {
        &[Setting::Previous, Setting::FirstLayer, Setting::MaxLayers]
    }

    fn check(&self, subnet: &Subnet, settings: &Settings) -> Result<(), Refusal> {
        check_size(subnet)?;
        settings.layers_left().map(|_| ())
    }

    /// # Errors
    /// If it needs more layers than are allowed; the error says how many.
    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        self.compute_sharing(subnet, settings, &Shared::new(subnet, settings))
    }

    fn compute_sharing(
        &self,
        subnet: &Subnet,
        settings: &Settings,
        shared: &Shared<'_>,
    ) -> Result<Routing, EngineError> {
        let refuse = |why: Refusal| EngineError::refuse(Engine::Dfsssp, why);
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
        let (sets, trees) = layered(subnet, settings, shared, most);
        if sets.len() > usize::from(most) {
            let (needed, first) = (sets.len(), settings.first_layer);
            let instead = Instead { engine: Engine::Nue, merit: Some("which needs one") };
            return Err(refuse(Refusal::TooManyLayers(TooManyLayers { needed, left: most, first, instead })));
        }
        let layers = numbered(subnet, settings, &sets);
        Ok(Routing { tables: trees.tables(subnet), layers, notes })
    }
}

/// The layers that trees need which close circles in a single one, if as many are allowed.
fn layers_of(subnet: &Subnet, settings: &Settings, trees: &Trees, most: u8) -> Option<Layers> {
    let numbers = DependencyNumbers::new(&subnet.topology);
    let pairs: Vec<(u32, u32)> = Pairs::new(subnet, settings.xbar_destinations).each().collect();
    let sets = Breaking::new(subnet, trees, &numbers).layers(&pairs);
    (sets.len() <= usize::from(most)).then(|| numbered(subnet, settings, &sets))
}

/// The layer of each pair. The pairs of a set share a layer, and there are no more sets than layers may be
/// used.
fn numbered(subnet: &Subnet, settings: &Settings, sets: &[PairSet]) -> Layers {
    let xbars = subnet.topology.xbar_count();
    let mut of = vec![0; xbars * xbars];
    for (layer, set) in (0..).zip(sets) {
        set.iter().for_each(|&(from, to)| of[to as usize * xbars + from as usize] = layer);
    }
    Layers::by_destination(sets.len() as u8, settings.first_layer, of, xbars)
}

/// The trees that are worth their layers, and the pairs of each layer. There is one tree for each address of a host, or one
/// for all hosts of an xbar.
fn layered<'a>(
    subnet: &Subnet,
    settings: &Settings,
    shared: &'a Shared<'_>,
    most: u8,
) -> (Vec<PairSet>, &'a Trees) {
    let numbers = DependencyNumbers::new(&subnet.topology);
    let pairs: Vec<(u32, u32)> = Pairs::new(subnet, settings.xbar_destinations).each().collect();
    let layered = |shortest: &'a ShortestTrees| {
        let sets = Breaking::new(subnet, &shortest.trees, &numbers).layers(&pairs);
        (sets, shortest)
    };
    let taken = |(sets, shortest): (Vec<PairSet>, &'a ShortestTrees)| (sets, &shortest.trees);
    let by_host = shared.by_host();
    if !by_host.trees.are_several_an_xbar() {
        return taken(layered(by_host));
    }
    let by_xbar = || layered(shared.by_xbar());
    // It is known that a tree to each address needs more than one layer.
    if most < 2 {
        return taken(by_xbar());
    }
    let weight = |(sets, shortest): &(Vec<PairSet>, &ShortestTrees)| Weight {
        layers: sets.len(),
        crowding: shortest.crowding(subnet),
    };
    let (by_host, by_xbar) = rayon::join(|| layered(by_host), by_xbar);
    let is_worth = weight(&by_host).is_worth_more_than(weight(&by_xbar), most.into(), EASED_PARTS);
    taken(if is_worth { by_host } else { by_xbar })
}
