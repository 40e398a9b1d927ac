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
use super::layer::Numbers;
use super::trees::{Choice, Trees};
use super::{Engine, EngineError, Routing, Setting, Settings};
use crate::Subnet;
use crate::tables::Layers;
use breaking::Breaking;

/// Most xbars: layers need memory for each pair.
const MAX_XBARS: usize = 8192;

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

    /// # Errors
    /// If it needs more layers than are allowed; the error says how many.
    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        let refuse = |why: String| EngineError::refuse(Engine::Dfsssp, why);
        let xbars = subnet.topology.xbar_count();
        if xbars > MAX_XBARS {
            return Err(refuse(format!("the fabric has {xbars} xbars; it serves {MAX_XBARS} at most")));
        }
        let most = settings.layers_left().map_err(refuse)?;
        let by_host = Trees::new(subnet, Choice::LeastLoadedByHost);
        if by_host.fit_one_layer(subnet, settings.xbar_destinations) {
            let mut layers = Layers::single();
            layers.first = settings.first_layer;
            return Ok(Routing { tables: by_host.tables(subnet), layers, notes: Vec::new() });
        }
        let numbers = Numbers::new(&subnet.topology);
        let pairs = pairs(subnet, settings.xbar_destinations);
        let layered = |trees: Trees| (Breaking::new(subnet, &trees, &numbers).layers(&pairs), trees);
        let (a, b) = rayon::join(|| layered(by_host), || layered(Trees::new(subnet, Choice::LeastLoaded)));
        let (sets, trees) = if b.0.len() < a.0.len() { b } else { a };
        if sets.len() > usize::from(most) {
            let first = settings.first_layer;
            let needed = sets.len();
            return Err(refuse(format!(
                "it needs {needed} layers, but there are {most} from layer {first} on; {}",
                if usize::from(first) + needed > usize::from(Layers::MAX) {
                    "try nue, which needs one"
                } else {
                    "allow more (--max-layers), or try nue, which needs one"
                }
            )));
        }
        let mut of = vec![0; xbars * xbars];
        for (layer, set) in (0..).zip(&sets) {
            set.iter().for_each(|&(from, to)| of[to as usize * xbars + from as usize] = layer);
        }
        let layers = Layers::by_destination(sets.len() as u8, settings.first_layer, of, xbars);
        Ok(Routing { tables: trees.tables(subnet), layers, notes: Vec::new() })
    }
}

/// Source and destination of all frames between different xbars: both have hosts, or one at least if `xbars`
/// are destinations, too.
fn pairs(subnet: &Subnet, xbars: bool) -> Vec<(u32, u32)> {
    let topology = &subnet.topology;
    let all = 0..topology.xbar_count() as u32;
    let is_leaf: Vec<bool> = all.clone().map(|xbar| subnet.is_leaf(xbar)).collect();
    let is_pair = |from: u32, to: u32| {
        let (one, other) = (is_leaf[from as usize], is_leaf[to as usize]);
        from != to
            && (one && other || xbars && (one || other))
            && topology.component(from) == topology.component(to)
    };
    let mut found = Vec::new();
    for to in all.clone() {
        found.extend(all.clone().filter(|&from| is_pair(from, to)).map(|from| (from, to)));
    }
    found
}
