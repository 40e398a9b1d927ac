//! nue: routes on the complete channel-dependency graph, for any fabric, in as many layers as there are.
//!
//! After Domke, Hoefler, Matsuoka: "Routing on the Dependency Graph: A New Approach to Deadlock-Free
//! High-Performance Routing", 2016. All turns from channel to channel are the edges of a graph; those that routes
//! use must close no circle. The turns of an `escape` tree are used from the start, so that there is a way to any
//! destination ever after. Then each destination gets a tree of routes by turns that are not blocked
//! (`search`), and a turn that would close a circle is blocked (`turns`).
//!
//! It differs from the paper in five points, all for the sake of the routes' quality:
//!
//! - Turns that are used early block others, so the first trees of a layer may be those of dnup or updn
//!   (`seed`), whose turns agree with an order of xbars. Unless the fabric is a tree in which all their
//!   routes are shortest, trees that are grown freely from the start are tried as well, and those with the
//!   better effective bisection are taken.
//! - Hops come before loads, so that routes are shortest wherever no turn is blocked.
//! - A turn is tried when a tree is complete, and only if frames make it, so that unused turns block nothing.
//! - All trees are grown again once the loads of all are known, and are kept if they are found. Trees to service adapters,
//!   which hardly receive, come last each time, and those to hosts are grown as if there were none.
//! - Before each time, turns that no tree makes any more become free again, and so do turns that only they
//!   blocked.
//!
//! If tables were in force, their trees come first, and stay as far as they still lead on (`kept`).

mod escape;
mod kept;
mod search;
mod seed;
#[cfg(test)]
mod tests;
mod turns;

use super::algorithm::Algorithm;
use super::filling::{self, NO_CHANNEL};
use super::shared::Shared;
use super::{Engine, EngineError, Refusal, Routing, Setting, Settings, in_force};
use crate::tables::{Layers, Tables};
use crate::{Quality, Subnet, TableRoutes};
use escape::EscapeTrees;
use mapper_fabric::wording::counted;
use search::{SearchEnd, TreeSearch, count_loads};
use seed::Seed;
use turns::Turns;

/// How often all trees are grown again. If turns are blocked, they are grown once more, as each time others
/// are free.
const ROUNDS: usize = 2;

/// Any fabric, in as many layers as are allowed, or in one by default.
pub(super) struct Nue;

impl Algorithm for Nue {
    fn name(&self) -> &'static str {
        "nue"
    }

    fn summary(&self) -> &'static str {
        "any fabric in one layer, or in --max-layers; no credit loops"
    }

    fn obeys(&self, _: &Settings) -> &'static [Setting] {
        &[Setting::Previous, Setting::FirstLayer, Setting::MaxLayers]
    }

    fn check(&self, _: &Subnet, settings: &Settings) -> Result<(), Refusal> {
        settings.layers_left().map(|_| ())
    }

    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        self.compute_sharing(subnet, settings, &Shared::new(subnet, settings))
    }

    fn compute_sharing(
        &self,
        subnet: &Subnet,
        settings: &Settings,
        shared: &Shared<'_>,
    ) -> Result<Routing, EngineError> {
        let left = settings.layers_left().map_err(|why| EngineError::refuse(Engine::Nue, why))?;
        let most = settings.max_layers.map_or(1, |_| left);
        let layers = destinations_by_layer(subnet, settings.xbar_destinations, most);
        let router = match in_force::tables(settings) {
            Some(in_force) => Router::keeping(subnet, settings.xbar_destinations, in_force, &layers),
            None => routed(subnet, settings, shared, &layers),
        };
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

/// Routes in layers, from the seed, from nothing, or by the better of both.
fn routed<'a>(
    subnet: &'a Subnet,
    settings: &Settings,
    shared: &Shared<'_>,
    layers: &[Vec<u32>],
) -> Router<'a> {
    let xbar_destinations = settings.xbar_destinations;
    let freely = || {
        let mut router = Router::new(subnet, xbar_destinations);
        layers.iter().for_each(|ends| router.route(ends));
        router
    };
    let Some(seed) = Seed::find(subnet, xbar_destinations, shared, &layers.concat()) else { return freely() };
    let from_seed = || {
        let mut router = Router::new(subnet, xbar_destinations);
        layers.iter().all(|ends| router.route_from(&seed, ends)).then_some(router)
    };
    if seed.is_enough {
        return from_seed().unwrap_or_else(freely);
    }
    let (seeded, free) = rayon::join(from_seed, freely);
    let bisection = |router: &Router<'_>| {
        let routes = TableRoutes::proved(subnet, &router.tables, Settings::MAX_HOPS.into());
        Quality::bisection(&routes, settings.seed)
    };
    match seeded {
        Some(seeded) if bisection(&seeded) >= bisection(&free) => seeded,
        _ => free,
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

/// An address that gets a tree of its own.
struct Address {
    /// The xbar that it is at.
    end: u32,
    slot: u32,
    /// How much a route to it counts, which is nothing if it is that of an xbar.
    weight: i64,
    /// Whether it is a service adapter's.
    is_adapter: bool,
    /// Whether it is reached along the escape tree alone.
    escapes: bool,
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
        // Addresses that are not routed below, as frames to them need not arrive, are reached along the
        // escape trees.
        let mut along = vec![NO_CHANNEL; xbars];
        for end in 0..xbars as u32 {
            router.trees.lead_to(topology, end, &mut along);
            router.write(subnet.destinations.slot_of_xbar(end), end, &along);
        }
        router
    }

    /// Routes all addresses of some xbars in a layer of their own.
    fn route(&mut self, ends: &[u32]) {
        let topology = &self.subnet.topology;
        let mut turns = Turns::new(topology, &self.trees.places(topology));
        self.trees.use_turns(topology, &self.sends, &mut turns);
        let sends = self.sends.clone();
        let mut search = TreeSearch::new(self.subnet, &sends);
        let mut addresses = self.addresses(ends);
        for address in &mut addresses {
            address.escapes = search.find(address.end, &self.loads, &mut turns) == SearchEnd::Impasse;
            if address.escapes {
                self.escape(address, &mut search);
            } else {
                self.take_found(address, &mut search);
            }
        }
        self.finish(ends, &mut addresses, &mut search, &mut turns);
    }

    /// Routes all addresses of some xbars in a layer of their own, at first along a seed. Returns false if
    /// the seed closes a circle.
    fn route_from(&mut self, seed: &Seed, ends: &[u32]) -> bool {
        let topology = &self.subnet.topology;
        let mut turns = Turns::new(topology, &self.trees.places(topology));
        let sends = self.sends.clone();
        let mut search = TreeSearch::new(self.subnet, &sends);
        let mut addresses = self.addresses(ends);
        for address in &addresses {
            let row = seed.tables.of_slot(address.slot);
            filling::read_tree(topology, row, &mut search.next);
            if !search.use_turns_of_senders(address.end, &mut turns) {
                return false;
            }
            self.tables.set_row(address.slot, row);
            self.count(address, &mut search, 1);
        }
        self.finish(ends, &mut addresses, &mut search, &mut turns);
        true
    }

    /// Grows all trees again, now that the loads of all are known.
    fn finish(
        &mut self,
        ends: &[u32],
        addresses: &mut [Address],
        search: &mut TreeSearch<'_>,
        turns: &mut Turns<'_>,
    ) {
        let first_adapter = addresses.partition_point(|address| !address.is_adapter);
        for round in 0..=ROUNDS {
            if turns.are_some_blocked() {
                self.use_again(addresses, search, turns);
            } else if round == ROUNDS {
                break;
            }
            let (hosts, adapters) = addresses.split_at_mut(first_adapter);
            adapters.iter().for_each(|address| self.count(address, search, -1));
            for address in hosts.iter_mut() {
                self.count(address, search, -1);
                self.grow_again(address, search, turns);
            }
            adapters.iter_mut().for_each(|address| self.grow_again(address, search, turns));
        }
        let mut along = vec![NO_CHANNEL; self.sends.len()];
        for &end in ends {
            if let Some(first) = self.subnet.destinations.host_slots_of(end).next() {
                filling::read_tree(&self.subnet.topology, self.tables.of_slot(first), &mut along);
                self.write(self.subnet.destinations.slot_of_xbar(end), end, &along);
            }
        }
        self.escaped += addresses.iter().filter(|address| address.escapes).count();
    }

    /// Marks only those turns as used that the trees of some addresses make. Turns that only earlier trees
    /// made become free again, and so do turns that these blocked.
    fn use_again(&self, addresses: &[Address], search: &mut TreeSearch<'_>, turns: &mut Turns<'_>) {
        turns.forget();
        for address in addresses {
            filling::read_tree(&self.subnet.topology, self.tables.of_slot(address.slot), &mut search.next);
            let are_free = search.use_turns_of_senders(address.end, turns);
            debug_assert!(are_free, "turns that were used together close no circle");
        }
    }

    /// Grows the tree of an address again. Its load must not be counted at that time.
    fn grow_again(&mut self, address: &mut Address, search: &mut TreeSearch<'_>, turns: &mut Turns<'_>) {
        if search.find(address.end, &self.loads, turns) == SearchEnd::Tree {
            self.take_found(address, search);
            address.escapes = false;
        } else {
            self.count(address, search, 1);
        }
    }

    /// All addresses that get trees of their own: those of hosts, and those of xbars without hosts. Those of service
    /// adapters stand last.
    fn addresses(&self, ends: &[u32]) -> Vec<Address> {
        let destinations = &self.subnet.destinations;
        let at = |&end: &u32| {
            let hosts = destinations.host_slots_of(end);
            let alone = hosts.is_empty().then_some(destinations.slot_of_xbar(end));
            let is_adapter = move |slot| self.subnet.leads_to_service_adapter(slot);
            let address = move |slot, weight| Address {
                end,
                slot,
                weight,
                is_adapter: is_adapter(slot),
                escapes: false,
            };
            let hosts = hosts.map(move |slot| address(slot, 1));
            hosts.chain(alone.map(|slot| address(slot, 0)))
        };
        let mut addresses: Vec<Address> = ends.iter().flat_map(at).collect();
        addresses.sort_by_key(|address| address.is_adapter);
        addresses
    }

    /// Adds the loads that the tree of an address puts on channels, so many times.
    fn count(&mut self, address: &Address, search: &mut TreeSearch<'_>, times: i64) {
        let row = self.tables.of_slot(address.slot);
        filling::read_tree(&self.subnet.topology, row, &mut search.next);
        let (loads, weight) = (&mut self.loads, times * address.weight);
        count_loads(search, address.end, |channel, load| {
            loads[channel] = loads[channel].saturating_add_signed(weight * load);
        });
    }

    /// Writes the tree that a search has found, and adds its loads.
    fn take_found(&mut self, address: &Address, search: &mut TreeSearch<'_>) {
        let (loads, weight) = (&mut self.loads, address.weight);
        search.count_found(|channel, load| {
            loads[channel] = loads[channel].saturating_add_signed(weight * load);
        });
        search.complete(address.end, &self.trees);
        self.write(address.slot, address.end, &search.next);
    }

    /// Writes the escape tree, and adds its loads.
    fn escape(&mut self, address: &Address, search: &mut TreeSearch<'_>) {
        search.escape(address.end, &self.trees);
        self.write(address.slot, address.end, &search.next);
        self.count(address, search, 1);
    }

    /// Writes a tree into the tables, as far as it is in the destination's part.
    fn write(&mut self, slot: u32, end: u32, next: &[u32]) {
        self.tables.set_row(slot, &filling::row_along(self.subnet, slot, end, next));
    }
}
