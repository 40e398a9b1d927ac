//! nue: routes on the complete channel-dependency graph, for any fabric, in as many layers as there are.
//!
//! After Domke, Hoefler, Matsuoka: "Routing on the Dependency Graph: A New Approach to Deadlock-Free
//! High-Performance Routing", 2016. All turns from channel to channel are the edges of a graph; those that routes
//! use must close no circle. The turns of an `escape` tree are used from the start, so that there is a way to any
//! destination ever after. Then each destination gets a tree of routes by turns that are not blocked
//! (`search`), and a turn that would close a circle is blocked for good (`turns`).
//!
//! It differs from the paper in three points, all for the sake of the routes' quality:
//!
//! - Hops come before loads, so that routes are shortest wherever no turn is blocked.
//! - A turn is tried when a tree is complete, and only if frames make it: what no frame uses blocks nothing.
//! - All trees are grown again once the loads of all are known, and are kept if they are found.

mod escape;
mod search;
#[cfg(test)]
mod tests;
mod turns;

use super::algorithm::Algorithm;
use super::filling::{self, NO_CHANNEL};
use super::{Engine, EngineError, Refusal, Routing, Setting, Settings};
use crate::Subnet;
use crate::tables::{Layers, Tables};
use escape::EscapeTrees;
use mapper_fabric::wording::counted;
use search::{Found, Search, count_loads};
use turns::Turns;

/// How often all trees are grown again.
const ROUNDS: usize = 2;

/// Any fabric, in as many layers as are allowed, one if nothing is said.
pub(super) struct Nue;

impl Algorithm for Nue {
    fn name(&self) -> &'static str {
        "nue"
    }

    fn summary(&self) -> &'static str {
        "any fabric in one layer, or in --max-layers; no credit loops"
    }

    fn obeys(&self, _: &Settings) -> &'static [Setting] {
        &[Setting::FirstLayer, Setting::MaxLayers]
    }

    fn check(&self, _: &Subnet, settings: &Settings) -> Result<(), Refusal> {
        settings.layers_left().map(|_| ())
    }

    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        let left = settings.layers_left().map_err(|why| EngineError::refuse(Engine::Nue, why))?;
        let most = settings.max_layers.map_or(1, |_| left);
        let layers = destinations_by_layer(subnet, settings.xbar_destinations, most);
        let mut router = Router::new(subnet, settings.xbar_destinations);
        for ends in &layers {
            router.route(ends);
        }
        let xbars = subnet.topology.xbar_count();
        let of_layers = if layers.len() > 1 {
            let mut of = vec![0; xbars * xbars];
            for (layer, ends) in (0..).zip(&layers) {
                ends.iter().for_each(|&end| of[end as usize * xbars..][..xbars].fill(layer));
            }
            Layers::by_destination(layers.len() as u8, settings.first_layer, of, xbars)
        } else {
            Layers::starting_at(settings.first_layer)
        };
        let notes = (router.escaped > 0).then(|| {
            let count = counted(router.escaped, "address", "addresses");
            format!("nue: {count} reached along the escape tree alone")
        });
        Ok(Routing { tables: router.tables, layers: of_layers, notes: notes.into_iter().collect() })
    }
}

/// The destination xbars of each layer: near ones together, as their routes have most turns in common.
fn destinations_by_layer(subnet: &Subnet, xbar_destinations: bool, most: u8) -> Vec<Vec<u32>> {
    let topology = &subnet.topology;
    let mut seen = vec![false; topology.xbar_count()];
    let mut order: Vec<u32> = Vec::with_capacity(seen.len());
    for start in 0..topology.xbar_count() as u32 {
        let mut next = order.len();
        if !std::mem::replace(&mut seen[start as usize], true) {
            order.push(start);
        }
        while let Some(&xbar) = order.get(next) {
            next += 1;
            for channel in topology.channels_of(xbar) {
                let there = topology.head(channel).xbar;
                if !topology.is_dead(channel) && !std::mem::replace(&mut seen[there as usize], true) {
                    order.push(there);
                }
            }
        }
    }
    order.retain(|&xbar| xbar_destinations || subnet.is_leaf(xbar));
    let size = order.len().div_ceil(usize::from(most)).max(1);
    let mut layers: Vec<Vec<u32>> = order.chunks(size).map(<[u32]>::to_vec).collect();
    if layers.is_empty() {
        layers.push(Vec::new());
    }
    layers
}

/// Routes layer after layer; loads are counted over all of them, as layers share the cables.
struct Router<'a> {
    subnet: &'a Subnet,
    trees: EscapeTrees,
    /// Which xbars send frames that must arrive.
    sends: Vec<bool>,
    loads: Vec<u64>,
    tables: Tables,
    /// How many addresses have no other routes than along the escape tree.
    escaped: usize,
}

impl<'a> Router<'a> {
    fn new(subnet: &'a Subnet, xbar_destinations: bool) -> Self {
        let topology = &subnet.topology;
        let xbars = topology.xbar_count();
        let mut router = Self {
            subnet,
            trees: EscapeTrees::new(subnet),
            sends: (0..xbars as u32).map(|xbar| xbar_destinations || subnet.is_leaf(xbar)).collect(),
            loads: vec![0; topology.channel_count()],
            tables: Tables::empty(xbars, subnet.destinations.slot_count()),
            escaped: 0,
        };
        // What is not routed below, as frames to it need not arrive, is reached along the escape trees.
        let mut along = vec![NO_CHANNEL; xbars];
        for end in 0..xbars as u32 {
            router.trees.lead_to(topology, end, &mut along);
            router.write(subnet.destinations.slot_of_xbar(end), end, &along);
        }
        router
    }

    /// Routes all addresses of some xbars in a layer of their own.
    fn route(&mut self, ends: &[u32]) {
        let subnet = self.subnet;
        let topology = &subnet.topology;
        let mut turns = Turns::new(topology, self.trees.places(topology));
        self.trees.use_turns(topology, &self.sends, &mut turns);
        let slots: Vec<(u32, u32)> = ends
            .iter()
            .flat_map(|&end| {
                let hosts = subnet.destinations.host_slots_of(end);
                let own = subnet.destinations.slot_of_xbar(end);
                let alone = hosts.is_empty().then_some(own);
                hosts.chain(alone).map(move |slot| (end, slot))
            })
            .collect();
        let sends = self.sends.clone();
        let mut search = Search::new(subnet, &sends);
        let mut along = vec![NO_CHANNEL; topology.xbar_count()];
        let mut escaped = vec![false; slots.len()];
        for round in 0..=ROUNDS {
            for (at, &(end, slot)) in slots.iter().enumerate() {
                let weight = u64::from(slot != subnet.destinations.slot_of_xbar(end));
                if round > 0 {
                    self.read(slot, &mut along);
                    let loads = &mut self.loads;
                    count_loads(&mut search, &along, end, |channel, load| loads[channel] -= weight * load);
                }
                if search.find(end, &self.loads, &mut turns) == Found::Tree {
                    search.complete(end, &self.trees, &mut along);
                    self.write(slot, end, &search.next);
                    escaped[at] = false;
                } else if round == 0 {
                    search.escape(end, &self.trees);
                    self.write(slot, end, &search.next);
                    escaped[at] = true;
                }
                self.read(slot, &mut along);
                let loads = &mut self.loads;
                count_loads(&mut search, &along, end, |channel, load| loads[channel] += weight * load);
            }
        }
        for &end in ends {
            if let Some(first) = subnet.destinations.host_slots_of(end).next() {
                self.read(first, &mut along);
                self.write(subnet.destinations.slot_of_xbar(end), end, &along);
            }
        }
        self.escaped += escaped.iter().filter(|&&escaped| escaped).count();
    }

    /// Reads a tree from the tables.
    fn read(&self, slot: u32, next: &mut [u32]) {
        filling::read_tree(&self.subnet.topology, self.tables.of_slot(slot), next);
    }

    /// Writes a tree into the tables, as far as it is in the destination's part.
    fn write(&mut self, slot: u32, end: u32, next: &[u32]) {
        self.tables.set_row(slot, &filling::row_along(self.subnet, slot, end, next));
    }
}
