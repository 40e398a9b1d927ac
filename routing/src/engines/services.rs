//! Ways to and from service adapters above the leaves, for engines whose tables go up and down a tree only.
//!
//! Such tables have no entry where no way up and then down leads on: from one spine to another, or between a spine and
//! a leaf that has no cable to it. The entries that are added keep to [an order with one
//! top](Order::with_one_top), to which the routes between leaves keep, too; so all together close no circle.

#[cfg(test)]
mod tests;

use mapper_fabric::wording::plural;

use super::balanced::ranks::Order;
use crate::{Subnet, Tables, Tiers, Topology};

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

/// Adds the entries that service adapters above the leaves need, in an order that has one top. Entries that lead to
/// leaves stay as they are; of those that are added, what was in force stays where it leads on as well.
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

/// A step to a neighbour: the neighbour, and the port that leads to it.
type Step = (u32, u8);

/// All steps of a fabric, by the order.
struct Steps<'a> {
    subnet: &'a Subnet,
    in_force: Option<&'a Tables>,
    /// All xbars, the top first.
    from_top: Vec<u32>,
    /// By xbar.
    up: Vec<Vec<Step>>,
    down: Vec<Vec<Step>>,
}

/// No way.
const NONE: u32 = u32::MAX;

impl<'a> Steps<'a> {
    fn new(subnet: &'a Subnet, order: &Order, in_force: Option<&'a Tables>) -> Self {
        let topology = &subnet.topology;
        let xbars = 0..topology.xbar_count() as u32;
        let mut from_top: Vec<u32> = xbars.clone().collect();
        from_top.sort_unstable_by_key(|&xbar| order.place(xbar));
        let side = |up: bool| {
            let steps = |xbar: u32| {
                let live = topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel));
                live.map(|channel| (topology.head(channel).xbar, topology.tail(channel).port))
                    .filter(|&(head, _)| head != xbar && order.climbs(xbar, head) == up)
                    .collect()
            };
            xbars.clone().map(steps).collect()
        };
        Self { subnet, in_force, from_top, up: side(true), down: side(false) }
    }

    /// Sets all entries that lead to an xbar and its hosts: what is above it goes down only, all else climbs to that
    /// on a shortest way.
    fn lead_to(&self, end: u32, tables: &mut Tables) {
        let mut falls = vec![NONE; self.from_top.len()];
        falls[end as usize] = 0;
        for &xbar in self.from_top.iter().rev() {
            let below = self.down[xbar as usize].iter().map(|&(head, _)| falls[head as usize]);
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
                    (&self.up[xbar as usize], &hops)
                } else {
                    (&self.down[xbar as usize], &falls)
                };
                let leads_on =
                    |head: u32| left[head as usize] != NONE && left[head as usize] + 1 == left[xbar as usize];
                if let Some(port) = self.pick(steps, leads_on, (xbar, slot)) {
                    tables.set_port(xbar, slot, port);
                }
            }
        }
    }

    /// Where there is no entry that leads to an xbar and its hosts, sets one that climbs to the nearest xbar that has one.
    fn climb_to_entries(&self, end: u32, tables: &mut Tables) {
        for slot in self.subnet.destinations.slots_of(end) {
            let mut climbs: Vec<u32> = (0..self.from_top.len() as u32)
                .map(|xbar| if xbar == end || tables.port(xbar, slot) != Tables::NONE { 0 } else { NONE })
                .collect();
            for &xbar in self.from_top.iter() {
                if climbs[xbar as usize] != NONE {
                    continue;
                }
                let nearest = self.nearest_above(&climbs, xbar);
                if nearest == NONE {
                    continue;
                }
                climbs[xbar as usize] = nearest + 1;
                let leads_on = |head: u32| climbs[head as usize] == nearest;
                if let Some(port) = self.pick(&self.up[xbar as usize], leads_on, (xbar, slot)) {
                    tables.set_port(xbar, slot, port);
                }
            }
        }
    }

    fn nearest_above(&self, hops: &[u32], xbar: u32) -> u32 {
        self.up[xbar as usize].iter().map(|&(head, _)| hops[head as usize]).min().unwrap_or(NONE)
    }
    /// The port of one of the steps that lead on from an xbar towards a slot: that which was in force, or else by turns.
    fn pick(&self, steps: &[Step], leads_on: impl Fn(u32) -> bool, (xbar, slot): (u32, u32)) -> Option<u8> {
        let fitting: Vec<u8> =
            steps.iter().filter(|&&(head, _)| leads_on(head)).map(|&(_, port)| port).collect();
        let before = self.in_force.map(|tables| tables.port(xbar, slot));
        let place = (xbar + slot) as usize % fitting.len().max(1);
        before.filter(|port| fitting.contains(port)).or_else(|| fitting.get(place).copied())
    }
}
