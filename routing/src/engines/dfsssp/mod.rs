//! dfsssp: the routes of sssp in layers, each free of deadlock.
//!
//! All routes begin in the first layer. The weakest dependency of each circle there is broken: all routes that
//! make it go a layer up, and so on until none is left (Domke, Hoefler, Nagel: "Deadlock-Free Oblivious Routing
//! for Arbitrary Topologies", 2011). See `breaking`.
//!
//! Where one layer is enough for all, each address of a host has a tree of its own. Elsewhere that is tried,
//! too, beside one tree for all hosts of an xbar: a pair of xbars goes by one layer, so fewer trees may need
//! fewer layers.

mod breaking;
#[cfg(test)]
mod tests;

use super::algorithm::Algorithm;
use super::layer::{Numbers, check_size};
use super::pairs::Pairs;
use super::shortest::{Choice, ShortestTrees};
use super::trees::Trees;
use super::{Engine, EngineError, Refusal, Routing, Setting, Settings, TooManyLayers};
use crate::Subnet;
use crate::tables::Layers;
use breaking::Breaking;

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
        &[Setting::FirstLayer, Setting::MaxLayers]
    }

    fn check(&self, subnet: &Subnet, settings: &Settings) -> Result<(), Refusal> {
        check_size(subnet)?;
        settings.layers_left().map(|_| ())
    }

    /// # Errors
    /// If it needs more layers than are allowed; the error says how many.
    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        let refuse = |why: Refusal| EngineError::refuse(Engine::Dfsssp, why);
        let xbars = subnet.topology.xbar_count();
        let most = settings.layers_left().map_err(refuse)?;
        let by_host = ShortestTrees::new(subnet, Choice::LeastLoadedByHost).trees;
        if by_host.fit_one_layer(subnet, settings.xbar_destinations) {
            let layers = Layers::starting_at(settings.first_layer);
            return Ok(Routing { tables: by_host.tables(subnet), layers, notes: Vec::new() });
        }
        let numbers = Numbers::new(&subnet.topology);
        let pairs: Vec<(u32, u32)> = Pairs::new(subnet, settings.xbar_destinations).each().collect();
        let layered = |trees: Trees| (Breaking::new(subnet, &trees, &numbers).layers(&pairs), trees);
        let by_xbar = || ShortestTrees::new(subnet, Choice::LeastLoaded).trees;
        let (a, b) = rayon::join(|| layered(by_host), || layered(by_xbar()));
        let (sets, trees) = if b.0.len() < a.0.len() { b } else { a };
        if sets.len() > usize::from(most) {
            let (needed, first) = (sets.len(), settings.first_layer);
            let instead = "nue, which needs one";
            return Err(refuse(Refusal::TooManyLayers(TooManyLayers { needed, left: most, first, instead })));
        }
        let mut of = vec![0; xbars * xbars];
        for (layer, set) in (0..).zip(&sets) {
            set.iter().for_each(|&(from, to)| of[to as usize * xbars + from as usize] = layer);
        }
        let layers = Layers::by_destination(sets.len() as u8, settings.first_layer, of, xbars);
        Ok(Routing { tables: trees.tables(subnet), layers, notes: Vec::new() })
    }
}
