//! LASH: shortest routes in layers, each free of deadlock.
//!
//! The shortest routes between all xbars are chosen first, as trees to each destination. Then each pair of
//! xbars, both directions together, goes into the lowest layer whose channel dependencies stay free of
//! cycles with it (Skeie, Lysne, Theiss: Layered shortest path routing in irregular system area networks,
//! 2002). The greedy order is improved on as in the colouring of graphs, and pairs are spread over the
//! layers in the end.
//!
//! Where one layer is enough for all, each host gets a tree of its own, so that its frames need not share
//! the route of its neighbours'. Elsewhere a pair of xbars would need one layer for many trees, so all hosts
//! of an xbar share one.

mod acyclic;
mod layering;
#[cfg(test)]
mod tests;
mod trees;

use acyclic::Numbers;
use layering::{Filler, Layering};
use trees::{Choice, Trees};

use super::algorithm::Algorithm;
use super::{Engine, EngineError, Routing, Setting, Settings};
use crate::tables::{End, Layers, Tables};
use crate::{Attachment, Subnet, UnionProof};

/// Most xbars: layers need memory for each pair.
const MAX_XBARS: usize = 8192;

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
        &[Setting::FirstLayer, Setting::MaxLayers]
    }

    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        compute(subnet, settings)
    }
}

/// Computes tables and layers.
///
/// Pairs of xbars that both have hosts are layered. Other xbars' own addresses are reached by shortest
/// routes in the first layer, and may deadlock there, unless `xbar_destinations` asks for layers for these
/// routes, too.
///
/// # Errors
/// If hosts have several addresses, or too few layers are allowed.
fn compute(subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
    let refuse = |why: String| EngineError::refuse(Engine::Lash, why);
    if subnet.destinations.lmc() > 0 {
        let lmc = subnet.destinations.lmc();
        return Err(refuse(format!("hosts have {} addresses each (LMC {lmc}); it needs LMC 0", 1 << lmc)));
    }
    let xbars = subnet.topology.xbar_count();
    if xbars > MAX_XBARS {
        return Err(refuse(format!("the fabric has {xbars} xbars; it serves {MAX_XBARS} at most")));
    }
    let most = settings.layers_left().map_err(refuse)?;
    let by_host = Trees::new(subnet, Choice::LeastLoadedByHost);
    if is_acyclic(subnet, &by_host, settings.xbar_destinations) {
        let mut layers = Layers::single();
        layers.first = settings.first_layer;
        return Ok(Routing { tables: fill_tables(subnet, &by_host), layers, notes: Vec::new() });
    }
    drop(by_host);
    let numbers = Numbers::new(&subnet.topology);
    let pairs = layering::pairs(subnet, settings.xbar_destinations);
    let candidate = |choice| {
        let trees = Trees::new(subnet, choice);
        let mut filler = Filler::new(subnet, &trees, &numbers, most);
        let mut layering = filler.fill(&pairs, settings.seed);
        filler.balance(&mut layering);
        (layering, trees)
    };
    let (a, b) = rayon::join(|| candidate(Choice::LeastLoaded), || candidate(Choice::FirstPort));
    let rank = |(layering, trees): &(Layering, Trees)| (layering.count, trees.busiest);
    let (layering, trees) = if rank(&b) < rank(&a) { b } else { a };
    if layering.count > usize::from(most) {
        let (needed, first) = (layering.count, settings.first_layer);
        let advice = match usize::from(first) + needed > usize::from(Layers::MAX) {
            true => "try updn",
            false => "allow more (--max-layers), or try updn",
        };
        return Err(refuse(format!(
            "it needs {needed} layers, but there are {most} from layer {first} on; {advice}"
        )));
    }
    let of = layering.by_pair(xbars);
    let layers = Layers::by_destination(layering.count as u8, settings.first_layer, of, xbars);
    Ok(Routing { tables: fill_tables(subnet, &trees), layers, notes: Vec::new() })
}

/// Whether all frames together can go in one layer.
fn is_acyclic(subnet: &Subnet, trees: &Trees, xbar_destinations: bool) -> bool {
    let topology = &subnet.topology;
    let mut union = UnionProof::new(topology);
    let mut marks = vec![u32::MAX; topology.xbar_count()];
    for end in 0..topology.xbar_count() as u32 {
        let leaf = subnet.is_leaf(end);
        if !leaf && !xbar_destinations {
            continue;
        }
        for tree in trees.to(end) {
            let sources = 0..topology.xbar_count() as u32;
            for from in sources.filter(|&from| subnet.is_leaf(from) || leaf && xbar_destinations) {
                let mut last = None;
                // What lies behind an xbar that was passed for this tree is there already.
                trees.walk(subnet, tree, from, |channel| {
                    if let Some(last) = last.replace(channel) {
                        union.add_dependency(last, channel);
                    }
                    let mark = &mut marks[topology.tail(channel).xbar as usize];
                    std::mem::replace(mark, tree) != tree
                });
            }
        }
    }
    union.prove_acyclic().is_ok()
}

/// The trees as tables.
fn fill_tables(subnet: &Subnet, trees: &Trees) -> Tables {
    let (topology, all) = (&subnet.topology, &subnet.destinations);
    let xbars = topology.xbar_count();
    let mut tables = Tables::empty(xbars, all.slot_count());
    for end in 0..xbars as u32 {
        let trees_to = trees.to(end);
        for (slot, tree) in all.host_slots_of(end).zip(trees_to.clone().cycle()) {
            tables.as_mut_slice()[slot as usize * xbars..][..xbars].copy_from_slice(trees.ports(tree));
            if let End::Host { host, .. } = all.end(slot)
                && let Attachment::Port(at) = topology.attachment(host)
            {
                tables.set_port(end, slot, at.port);
            }
        }
        let own = all.slot_of_xbar(end) as usize;
        tables.as_mut_slice()[own * xbars..][..xbars].copy_from_slice(trees.ports(trees_to.start));
    }
    tables
}
