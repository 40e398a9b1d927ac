//! Ways to and from service adapters above the leaves, and to the xbars there themselves, for engines whose tables go up and
//! down a tree only.
//!
//! Such tables have no entry where no way up and then down leads on: from one spine to another, or between a spine and
//! a leaf that has no cable to it. The entries that are added keep to [an order with one
//! top](Order::with_one_top), to which the routes between leaves keep, too; so all together close no circle.

#[cfg(test)]
mod tests;
mod turns;

use std::sync::OnceLock;

use mapper_fabric::wording::plural;
use rayon::prelude::*;

use super::Settings;
use super::balanced::ranks::Order;
use crate::tables::Layers;
use crate::{ProofRules, Subnet, Tables, Tiers, Topology, prove_tables};

/// What a user should know of service adapters above the leaves, if there are some.
pub(super) fn note(topology: &Topology, tiers: &Tiers) -> Option<String> {
    let adapters = tiers.service_adapters(topology) as u32;
    (adapters > 0).then(|| {
        let adapters = plural(adapters, "service adapter");
        format!(
            "{adapters} above the leaves: where no way up and then down leads there, routes turn at a leaf"
        )
    })
}

/// Adds the entries that service adapters above the leaves need, in an order that has one top. Entries that
/// lead to leaves stay as they are; of those that are added, the ones that were in force stay if they lead on
/// equally well.
pub(super) fn join(
    subnet: &Subnet,
    tiers: &Tiers,
    order: &Order,
    in_force: Option<&Tables>,
    tables: &mut Tables,
) {
    if tiers.served().is_empty() {
        return;
    }
    let steps = Steps::new(subnet, order, in_force);
    let mut is_served_part = vec![false; subnet.topology.xbar_count()];
    for &xbar in tiers.served() {
        is_served_part[subnet.topology.component(xbar) as usize] = true;
    }
    for end in 0..subnet.topology.xbar_count() as u32 {
        if tiers.is_served(end) {
            steps.lead_to(end, tables);
        } else if is_served_part[subnet.topology.component(end) as usize] {
            steps.climb_to_entries(end, tables);
        }
    }
}

/// Adds the entries by which leaves reach the xbars above them by these xbars' own addresses (InfiniBand: the
/// LIDs by which switches are managed), and by which those answer, if no way up and then down leads there,
/// for instance after a cable between a leaf and a spine failed.
///
/// `order` is that of the tree. All other entries stay as they are. Hosts' routes of an irregular tree may not keep to
/// an order with one top, so all together could close a circle, and then none is added. Where all other routes keep to
/// the order of the tree, the few [`turns`] that do not show that there is none. Otherwise, or where these do not tell,
/// it takes a proof of all tables. Entries that were in force stay if they lead on equally well.
pub(super) fn reach_xbars(
    subnet: &Subnet,
    tiers: &Tiers,
    others: Others,
    order: impl FnOnce() -> Order,
    in_force: Option<&Tables>,
    tables: &mut Tables,
) {
    let topology = &subnet.topology;
    let missed = missed(subnet, tiers, tables);
    if missed.is_empty() {
        return;
    }
    let parts: Vec<u32> = missed.iter().map(|&(end, _, _)| end).collect();
    let of_tree = order();
    let order = of_tree.clone().with_one_top_over(topology, tiers, &parts);
    let steps = Steps::new(subnet, &order, in_force);
    let climb =
        |(end, slot, xbars): &(u32, u32, Vec<u32>)| (*slot, steps.climb_from(xbars, *end, *slot, tables));
    let added: Vec<(u32, Vec<AddedEntry>)> = missed.par_iter().map(climb).collect();
    let set_added = |tables: &mut Tables, is_kept: bool| {
        for (slot, entries) in &added {
            entries.iter().for_each(|&AddedEntry { xbar, port }| {
                tables.set_port(xbar, *slot, if is_kept { port } else { Tables::NONE });
            });
        }
    };
    set_added(tables, true);
    let routes = missed.iter().flat_map(|(end, slot, xbars)| {
        let climb = |&xbar: &&u32| tables.port(*xbar, *slot) != Tables::NONE;
        xbars.iter().filter(climb).map(|&xbar| (xbar, *slot, *end))
    });
    let rules = ProofRules { max_hops: Settings::MAX_HOPS, xbar_destinations: true };
    let is_safe = others == Others::InOrder && turns::close_no_circle(subnet, &of_tree, tables, routes)
        || prove_tables(subnet, tables, &Layers::single(), &rules).holds();
    if !is_safe {
        set_added(tables, false);
    }
}

/// What is known of the routes that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// All keep to the order of the tree.
    InOrder,
    /// Some may not.
    InAnyOrder,
}

/// The slots of xbars to which other xbars lack entries that they may need, each with its xbar and those that lack
/// them. Xbars above leaves need not reach each other, and leaves have entries for each other, or the tables would
/// serve no host.
fn missed(subnet: &Subnet, tiers: &Tiers, tables: &Tables) -> Vec<(u32, u32, Vec<u32>)> {
    let topology = &subnet.topology;
    let is_leaf: Vec<bool> = (0..topology.xbar_count() as u32).map(|xbar| tiers.is_leaf(xbar)).collect();
    let lacking = |end: u32, slot: u32| -> Vec<u32> {
        let row = tables.of_slot(slot);
        // In nearly all rows there is none, which is seen faster without looking at parts and without a branch.
        let may_speak =
            |(&port, &leaf): (&u8, &bool)| (port == Tables::NONE) & (leaf != is_leaf[end as usize]);
        if !row.iter().zip(&is_leaf).fold(false, |any, xbar| any | may_speak(xbar)) {
            return Vec::new();
        }
        let part = topology.component(end);
        let speaks = |&xbar: &u32| {
            row[xbar as usize] == Tables::NONE
                && is_leaf[xbar as usize] != is_leaf[end as usize]
                && topology.component(xbar) == part
        };
        (0..topology.xbar_count() as u32).filter(speaks).collect()
    };
    // Ways to an xbar are those to its hosts, so where all have an entry for it, they have some for its hosts.
    let of_end = |end: u32| {
        let is_missed = !lacking(end, subnet.destinations.slot_of_xbar(end)).is_empty();
        let slots = if is_missed { subnet.destinations.slots_of(end) } else { 0..0 };
        slots.map(move |slot| (end, slot, lacking(end, slot))).filter(|(_, _, xbars)| !xbars.is_empty())
    };
    (0..topology.xbar_count() as u32).into_par_iter().flat_map_iter(of_end).collect()
}

/// A step to a neighbour: the neighbour, and the port that leads to it.
type Step = (u32, u8);

/// An entry that is added: the port by which an xbar sends on what goes to a slot.
#[derive(Clone, Copy)]
struct AddedEntry {
    xbar: u32,
    port: u8,
}

/// All steps of a fabric that lead up in the order.
struct Steps<'a> {
    subnet: &'a Subnet,
    in_force: Option<&'a Tables>,
    /// All xbars, the top first.
    from_top: Vec<u32>,
    order: &'a Order,
    /// For each xbar its steps up, and those down, once they were asked for: often few xbars need any.
    up: Vec<OnceLock<Vec<Step>>>,
    down: Vec<OnceLock<Vec<Step>>>,
}

/// The number of steps where there is no way.
const NONE: u32 = u32::MAX;

impl<'a> Steps<'a> {
    fn new(subnet: &'a Subnet, order: &'a Order, in_force: Option<&'a Tables>) -> Self {
        let xbars = subnet.topology.xbar_count();
        let mut from_top: Vec<u32> = (0..xbars as u32).collect();
        from_top.sort_unstable_by_key(|&xbar| order.place(xbar));
        let unasked = || -> Vec<OnceLock<Vec<Step>>> { (0..xbars).map(|_| OnceLock::new()).collect() };
        Self { subnet, in_force, from_top, order, up: unasked(), down: unasked() }
    }

    /// The steps up from an xbar.
    fn up(&self, xbar: u32) -> &[Step] {
        self.up[xbar as usize].get_or_init(|| self.steps(xbar, true))
    }

    /// The steps down from an xbar.
    fn down(&self, xbar: u32) -> &[Step] {
        self.down[xbar as usize].get_or_init(|| self.steps(xbar, false))
    }

    fn steps(&self, xbar: u32, up: bool) -> Vec<Step> {
        let topology = &self.subnet.topology;
        let live = topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel));
        live.map(|channel| (topology.head(channel).xbar, topology.tail(channel).port))
            .filter(|&(head, _)| head != xbar && self.order.climbs(xbar, head) == up)
            .collect()
    }

    /// Sets all entries that lead to an xbar and its hosts. Xbars above it lead down only, and all others
    /// climb to these on a shortest way.
    fn lead_to(&self, end: u32, tables: &mut Tables) {
        let mut falls = vec![NONE; self.from_top.len()];
        falls[end as usize] = 0;
        for &xbar in self.from_top.iter().rev() {
            let below = self.down(xbar).iter().map(|&(head, _)| falls[head as usize]);
            let nearest = below.min().unwrap_or(NONE).saturating_add(1);
            falls[xbar as usize] = nearest.min(falls[xbar as usize]);
        }
        let mut hops = falls.clone();
        for &xbar in &self.from_top {
            if falls[xbar as usize] == NONE {
                hops[xbar as usize] = self.nearest_above(&hops, xbar).saturating_add(1);
            }
        }
        for slot in self.subnet.destinations.slots_of(end) {
            for xbar in (0..falls.len() as u32).filter(|&xbar| xbar != end) {
                let (steps, left) = if falls[xbar as usize] == NONE {
                    (self.up(xbar), &hops)
                } else {
                    (self.down(xbar), &falls)
                };
                let leads_on =
                    |head: u32| left[head as usize] != NONE && left[head as usize] + 1 == left[xbar as usize];
                if let Some((_, port)) = self.pick(steps, leads_on, (xbar, slot)) {
                    tables.set_port(xbar, slot, port);
                }
            }
        }
    }

    /// Gives each xbar that has no entry for an xbar and its hosts one that climbs to the nearest xbar that
    /// has one.
    fn climb_to_entries(&self, end: u32, tables: &mut Tables) {
        for slot in self.subnet.destinations.slots_of(end) {
            let climbs = self.climbs(end, slot, tables);
            for xbar in (0..climbs.len() as u32).filter(|&xbar| !matches!(climbs[xbar as usize], 0 | NONE)) {
                if let Some((_, port)) = self.climb(&climbs, xbar, slot) {
                    tables.set_port(xbar, slot, port);
                }
            }
        }
    }

    /// The entries that one slot of an xbar lacks so that frames of these xbars climb to the nearest xbar that has one: those
    /// of these xbars, and of the xbars that they pass on their way there.
    fn climb_from(&self, xbars: &[u32], end: u32, slot: u32, tables: &Tables) -> Vec<AddedEntry> {
        let mut given = Vec::new();
        let climbs = self.climbs(end, slot, tables);
        for &xbar in xbars {
            let mut at = xbar;
            while !matches!(climbs[at as usize], 0 | NONE) {
                let Some((head, port)) = self.climb(&climbs, at, slot) else { break };
                given.push(AddedEntry { xbar: at, port });
                at = head;
            }
        }
        given
    }

    /// How many steps up lead from each xbar to the nearest that has an entry for a slot of an xbar.
    fn climbs(&self, end: u32, slot: u32, tables: &Tables) -> Vec<u32> {
        let mut climbs: Vec<u32> = (0..self.from_top.len() as u32)
            .map(|xbar| if xbar == end || tables.port(xbar, slot) != Tables::NONE { 0 } else { NONE })
            .collect();
        for &xbar in &self.from_top {
            if climbs[xbar as usize] == NONE {
                climbs[xbar as usize] = self.nearest_above(&climbs, xbar).saturating_add(1);
            }
        }
        climbs
    }

    /// A step up from an xbar to one that is nearer to an entry.
    fn climb(&self, climbs: &[u32], xbar: u32, slot: u32) -> Option<Step> {
        let leads_on = |head: u32| {
            let left = climbs[head as usize];
            left != NONE && left + 1 == climbs[xbar as usize]
        };
        self.pick(self.up(xbar), leads_on, (xbar, slot))
    }

    fn nearest_above(&self, hops: &[u32], xbar: u32) -> u32 {
        self.up(xbar).iter().map(|&(head, _)| hops[head as usize]).min().unwrap_or(NONE)
    }

    /// One of the steps that lead on from an xbar towards a slot: the one that was in force, or else one by
    /// turns.
    fn pick(&self, steps: &[Step], leads_on: impl Fn(u32) -> bool, (xbar, slot): (u32, u32)) -> Option<Step> {
        let fitting: Vec<Step> = steps.iter().copied().filter(|&(head, _)| leads_on(head)).collect();
        let in_force = self.in_force.map(|tables| tables.port(xbar, slot));
        let before = fitting.iter().copied().find(|&(_, port)| Some(port) == in_force);
        let place = (xbar + slot) as usize % fitting.len().max(1);
        before.or_else(|| fitting.get(place).copied())
    }
}
