//! Fat trees: routes go up to one spine for each destination and down again, so that every shift of the hosts
//! is free of congestion on a full tree.
//!
//! The rules are those of OpenSM's fat-tree engine (Zahavi, Johnson, Kerbyson, Lang, "Optimized InfiniBand
//! fat-tree routing for shift all-to-all communication patterns", 2010):
//!
//! 1. `ranks`: each xbar's rank, from given roots or from the compute nodes' xbars.
//! 2. `tree`: the cables of each xbar in groups, up and down; what is irregular in them.
//! 3. `reach`: the length of the shortest way up and then down between any two xbars.
//! 4. `spines`: each host's way up, chosen by counters in the order of `order`.
//! 5. `templates`: which ports lead up to each xbar of a spine from below it; a template serves many hosts.
//! 6. `detours`: on damaged trees, ways for the xbars that a host's spine does not cover.
//! 7. `fill`: fills the tables, one destination xbar at a time.
//!
//! `kept` mends tables that were in force instead of 4 to 7. Service adapters above the leaves are joined last, unless
//! steps the wrong way, which I/O nodes may take, join them.

mod detours;
mod fill;
mod kept;
mod order;
mod ranks;
mod reach;
mod refusal;
mod reverse;
mod spines;
mod templates;
#[cfg(test)]
mod tests;
mod tree;

pub use order::{HostOrder, LeafOrder};

use super::algorithm::Algorithm;
use super::balanced::ranks::Order;
use super::services::{self, Others};
use super::{Engine, EngineError, Routing, Setting, Settings, in_force};
use crate::tables::SlotEnd;
use crate::{Subnet, Tiers};
use detours::Detours;
use ranks::Ranks;
use reach::Reach;
use refusal::FtreeRefusal;
use reverse::ReverseEntry;
use spines::Spines;
use templates::Templates;
use tree::Tree;

/// Fat trees: every shift of the hosts without congestion.
pub(super) struct Ftree;

impl Algorithm for Ftree {
    fn name(&self) -> &'static str {
        "ftree"
    }

    fn summary(&self) -> &'static str {
        "fat trees: every shift of the hosts without congestion"
    }

    fn obeys(&self, _: &Settings) -> &'static [Setting] {
        &[Setting::Previous, Setting::Roots, Setting::ComputeNodes, Setting::IoNodes, Setting::MaxReverseHops]
    }

    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        compute(subnet, settings)
    }
}

/// Computes the tables.
///
/// # Errors
/// If the fabric is no tree, or some pair of hosts cannot be joined by going up and then down.
fn compute(subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
    let tiers = Tiers::of(&subnet.topology);
    let order = HostOrder::on(subnet, settings, &tiers);
    refusal::check(subnet, settings, &order, &tiers).map_err(refuse)?;
    let ranks = Ranks::new(subnet, settings, &order, &tiers).map_err(refuse)?;
    let tree = Tree::new(subnet, ranks);
    let mut notes = Vec::new();
    if settings.roots.is_none()
        && let Some(irregular) = tree.irregularity()
    {
        notes.push(format!("no full fat-tree, routed as one that is nearly one: {irregular}"));
    }
    let reach = Reach::new(&tree);
    if settings.max_reverse_hops > 0 && settings.io_nodes.is_empty() {
        notes.push(
            "reverse hops: no effect without I/O nodes, which alone take them; name these (--io-guid-file)"
                .to_owned(),
        );
    }
    let (reversed, joins_services) = reversed(&tree, &reach, settings, &tiers).map_err(refuse)?;
    let in_force = in_force::tables(settings);
    let mut tables = match in_force {
        Some(previous) => kept::mend(&tree, &reach, previous),
        None => {
            let spines = Spines::new(&tree, &reach, &order);
            let templates = Templates::new(&tree, &reach, &spines);
            let detours = Detours::new(&tree, &reach, &spines, &templates);
            fill::tables(&tree, &reach, &spines, &templates, &detours)
        }
    };
    for way in &reversed {
        tables.set_port(way.xbar, way.slot, way.port);
    }
    let order = || {
        let ranks: Vec<u32> = tree.ranks.of.iter().map(|&rank| rank.into()).collect();
        Order::updn(subnet, &Settings::default(), &ranks)
    };
    if joins_services {
        notes.extend(services::note(&subnet.topology, &tiers));
        let order = order().with_one_top(&subnet.topology, &tiers);
        services::join(subnet, &tiers, &order, in_force, &mut tables);
    } else if reversed.is_empty() {
        services::reach_xbars(subnet, &tiers, Others::InOrder, order, in_force, &mut tables);
    }
    Ok(Routing { notes, ..Routing::in_one_layer(tables) })
}

/// The entries for steps the wrong way, and whether service adapters above the leaves are to be joined in
/// another way. If steps of I/O nodes join them, they are treated as any hosts.
fn reversed(
    tree: &Tree<'_>,
    reach: &Reach,
    settings: &Settings,
    tiers: &Tiers,
) -> Result<(Vec<ReverseEntry>, bool), FtreeRefusal> {
    let takes_steps = settings.max_reverse_hops > 0 && !settings.io_nodes.is_empty();
    if takes_steps || tiers.served().is_empty() {
        let ways = reverse::ways(tree, reach, settings, &[]);
        if ways.is_ok() || tiers.served().is_empty() {
            return Ok((ways?, false));
        }
    }
    Ok((reverse::ways(tree, reach, settings, tiers.served())?, true))
}

fn refuse(why: FtreeRefusal) -> EngineError {
    EngineError::refuse(Engine::Ftree, why)
}

/// The host that a slot leads to.
fn host_of_slot(subnet: &Subnet, slot: u32) -> Option<u32> {
    match subnet.destinations.end(slot) {
        SlotEnd::Host { host, .. } => Some(host),
        SlotEnd::Xbar(_) => None,
    }
}
