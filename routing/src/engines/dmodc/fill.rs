//! The tables, all destination xbars in parallel.

use super::costs::Costs;
use super::numbers::Numbers;
use super::tiers::{Group, Tiers};
use crate::Subnet;
use crate::engines::filling;
use crate::tables::Tables;

/// The tables. `costs` are those of the leaves; those of other xbars are found as they are needed.
pub(super) fn tables(
    subnet: &Subnet,
    tiers: &Tiers,
    leaves: &[u32],
    costs: &[Costs],
    numbers: &Numbers,
) -> Tables {
    filling::by_block(subnet, |end, block| match leaves.binary_search(&end) {
        Ok(leaf) => fill(subnet, tiers, &costs[leaf], numbers.first_of(end), end, block),
        Err(_) => fill(subnet, tiers, &Costs::to(tiers, end), end, end, block),
    })
}

/// Fills the rows of all slots of an xbar: its own, which goes by the number of the first, then those of its
/// hosts, whose numbers count from `first`.
fn fill(subnet: &Subnet, tiers: &Tiers, costs: &Costs, first: u32, end: u32, block: &mut [u8]) {
    let xbars = tiers.from_top.len();
    let mut nearer: Vec<&Group> = Vec::new();
    for xbar in (0..xbars as u32).filter(|&xbar| xbar != end && costs.reaches(xbar)) {
        let down = costs.goes_down(xbar);
        let side = if down { &tiers.down[xbar as usize] } else { &tiers.up[xbar as usize] };
        let leads_on = |group: &&Group| {
            costs.hops(group.xbar).saturating_add(1) == costs.hops(xbar)
                && (!down || costs.goes_down(group.xbar))
        };
        nearer.clear();
        nearer.extend(side.iter().filter(leads_on));
        let count = nearer.len() as u32;
        let divider = tiers.dividers[xbar as usize];
        let column = block[xbar as usize..].iter_mut().step_by(xbars);
        match &nearer[..] {
            [] => {}
            [group] if group.ports.len() == 1 => column.for_each(|port| *port = group.ports[0]),
            _ => {
                // The first row is the xbar's own; it goes by the first number, as that of the first host.
                let mut column = column;
                let mut counter = Counter::new(first, divider, count);
                if let Some(own) = column.next() {
                    *own = counter.port(&nearer);
                }
                for port in column {
                    *port = counter.port(&nearer);
                    counter.step();
                }
            }
        }
    }
    for (row, slot) in block.chunks_exact_mut(xbars).zip(subnet.destinations.slots_of(end)) {
        row[end as usize] = subnet.port_of_slot(slot);
    }
}

/// The group and the cable of one number after another, without a division for each.
struct Counter {
    divider: u32,
    /// How often the number has gone up since the last change of the group.
    steps: u32,
    count: u32,
    group: u32,
    /// The number divided by the divider and by how many groups there are.
    rounds: u32,
}

impl Counter {
    fn new(number: u32, divider: u32, count: u32) -> Self {
        let quotient = number / divider;
        Self { divider, steps: number % divider, count, group: quotient % count, rounds: quotient / count }
    }

    fn port(&self, groups: &[&Group]) -> u8 {
        let ports = &groups[self.group as usize].ports;
        match ports[..] {
            [port] => port,
            _ => ports[self.rounds as usize % ports.len()],
        }
    }

    fn step(&mut self) {
        self.steps += 1;
        if self.steps == self.divider {
            self.steps = 0;
            self.group += 1;
            if self.group == self.count {
                self.group = 0;
                self.rounds += 1;
            }
        }
    }
}
