//! The tables, all destination xbars in parallel.

use super::costs::Costs;
use super::numbers::Numbers;
use super::tiers::{Groups, Tiers};
use crate::Subnet;
use crate::engines::filling;
use crate::tables::Tables;

/// What all tables are filled from.
pub(super) struct Filling<'a> {
    pub(super) subnet: &'a Subnet,
    pub(super) tiers: &'a Tiers,
    /// The leaves, in rising order, and how far all xbars are from each.
    pub(super) leaves: &'a [u32],
    pub(super) costs: &'a [Costs<'a>],
    /// The numbers of destinations.
    pub(super) numbers: &'a Numbers,
    /// Tables that were in force. Their entries stay if they lead on equally well.
    pub(super) in_force: Option<&'a Tables>,
}

/// The tables, with all entries filled.
pub(super) fn tables(filling: &Filling<'_>) -> Tables {
    filling::by_block(filling.subnet, |end, block| {
        filling.with_costs_to(end, |costs, turns| filling.fill(costs, turns, end, block));
    })
}

/// The numbers by which the rows of an xbar are filled: its own row by the number of its first host, and each
/// other row by the next number of its kind.
pub(super) struct RowNumbers {
    first_host: u32,
    first_adapter: u32,
    /// For each row of a host or a service adapter, whether it is that of a service adapter; empty if there
    /// are none.
    is_adapter: Vec<bool>,
}

impl RowNumbers {
    fn new(subnet: &Subnet, end: u32, (first_host, first_adapter): (u32, u32)) -> Self {
        let slots = subnet.destinations.host_slots_of(end);
        let mut is_adapter: Vec<bool> = slots.map(|slot| subnet.leads_to_service_adapter(slot)).collect();
        if !is_adapter.contains(&true) {
            is_adapter.clear();
        }
        Self { first_host, first_adapter, is_adapter }
    }

    /// The number by which a row of an xbar is filled.
    pub(super) fn number_of(&self, row: usize) -> u32 {
        // The first row is the xbar's own.
        let Some(place) = row.checked_sub(1) else { return self.first_host };
        let Some(&kind) = self.is_adapter.get(place) else { return self.first_host + place as u32 };
        let before = self.is_adapter[..place].iter().filter(|&&other| other == kind).count() as u32;
        before + if kind { self.first_adapter } else { self.first_host }
    }
}

impl Filling<'_> {
    /// Calls `act` with the costs to an xbar, and with the numbers of its rows. The costs to leaves are known; those to others are
    /// found.
    pub(super) fn with_costs_to<T>(&self, end: u32, act: impl FnOnce(&Costs<'_>, &RowNumbers) -> T) -> T {
        match self.leaves.binary_search(&end) {
            Ok(leaf) => act(&self.costs[leaf], &RowNumbers::new(self.subnet, end, self.numbers.of(end))),
            Err(_) => act(&Costs::to(self.tiers, end), &RowNumbers::new(self.subnet, end, (end, end))),
        }
    }

    /// The places of the neighbours above an xbar that are nearer than it, where the way goes up at first. Those of xbars of
    /// one class are the same.
    pub(super) fn places_above(&self, costs: &Costs<'_>, xbar: u32) -> Vec<u32> {
        let above = (0..).zip(self.tiers.up.of(xbar));
        let is_nearer = |above: u32| costs.hops(above).saturating_add(1) == costs.hops(xbar);
        above.filter(|&(_, &above)| is_nearer(above)).map(|(place, _)| place).collect()
    }

    /// Fills the rows of all slots of an xbar: its own, then those of its hosts and service adapters.
    fn fill(&self, costs: &Costs<'_>, turns: &RowNumbers, end: u32, block: &mut [u8]) {
        let Self { subnet, tiers, .. } = *self;
        let xbars = tiers.from_top.len();
        let mut places = Vec::new();
        for steps in costs.steps_down().chunk_by(|one, other| one.0 == other.0) {
            places.clear();
            places.extend(steps.iter().map(|&(_, place)| place));
            let xbar = steps[0].0;
            let column = block[xbar as usize..].iter_mut().step_by(xbars);
            fill_column(xbar, &tiers.down, &places, tiers, turns, column);
            self.keep_in_force(xbar, &tiers.down, &places, end, block);
        }
        self.fill_upwards(costs, turns, end, block);
        for (row, slot) in block.chunks_exact_mut(xbars).zip(subnet.destinations.slots_of(end)) {
            row[end as usize] = subnet.port_of_slot(slot);
        }
    }

    /// Fills the entries of all xbars from which the way goes up at first. Those of one kind are found once.
    fn fill_upwards(&self, costs: &Costs<'_>, turns: &RowNumbers, end: u32, block: &mut [u8]) {
        let tiers = self.tiers;
        let xbars = tiers.from_top.len();
        let rows = block.len() / xbars;
        // The neighbours above to which each class goes on, and the entries of each kind, once they are known.
        let mut of_class: Vec<Option<Vec<u32>>> = vec![None; tiers.classes.count()];
        let mut of_kind: Vec<Option<usize>> = vec![None; tiers.kinds.count()];
        let mut columns: Vec<u8> = Vec::new();
        let upwards = |&xbar: &u32| !costs.goes_down(xbar) && costs.reaches(xbar);
        let upwards: Vec<u32> = (0..xbars as u32).filter(upwards).collect();
        let mut place_of_column = |&xbar: &u32| {
            let places =
                of_class[tiers.classes.of(xbar)].get_or_insert_with(|| self.places_above(costs, xbar));
            *of_kind[tiers.kinds.of(xbar)].get_or_insert_with(|| {
                let start = columns.len();
                columns.resize(start + rows, Tables::NONE);
                fill_column(xbar, &tiers.up, places, tiers, turns, columns[start..].iter_mut());
                start
            })
        };
        let starts: Vec<usize> = upwards.iter().map(&mut place_of_column).collect();
        for (at, row) in block.chunks_exact_mut(xbars).enumerate() {
            for (&xbar, &start) in upwards.iter().zip(&starts) {
                row[xbar as usize] = columns[start + at];
            }
        }
        if self.in_force.is_some() {
            for xbar in upwards {
                if let Some(places) = &of_class[tiers.classes.of(xbar)] {
                    self.keep_in_force(xbar, &tiers.up, places, end, block);
                }
            }
        }
    }

    /// Puts those entries of an xbar that were in force in the place of others, if they lead to one of the neighbours at these
    /// places.
    fn keep_in_force(&self, xbar: u32, side: &Groups, places: &[u32], end: u32, block: &mut [u8]) {
        let Some(in_force) = self.in_force else { return };
        let mut leads_on = [false; 1 << u8::BITS];
        for &port in places.iter().flat_map(|&place| side.ports(xbar, place)) {
            leads_on[usize::from(port)] = true;
        }
        let column = block[xbar as usize..].iter_mut().step_by(self.tiers.from_top.len());
        for (port, slot) in column.zip(self.subnet.destinations.slots_of(end)) {
            let before = in_force.port(xbar, slot);
            if leads_on[usize::from(before)] {
                *port = before;
            }
        }
    }
}

/// The port by which an xbar goes on to one of the neighbours at these places, by the number of the row.
pub(super) fn port_by_number(xbar: u32, side: &Groups, places: &[u32], tiers: &Tiers, number: u32) -> u8 {
    if places.is_empty() {
        return Tables::NONE;
    }
    let counter = Counter::new(number, tiers.dividers[xbar as usize], places.len() as u32);
    counter.port(|group| side.ports(xbar, places[group]))
}

/// Fills the entries of an xbar, which go on to neighbours at these places, by turns. They are empty before.
fn fill_column<'b>(
    xbar: u32,
    side: &Groups,
    places: &[u32],
    tiers: &Tiers,
    turns: &RowNumbers,
    mut column: impl Iterator<Item = &'b mut u8>,
) {
    let ports = |place: u32| side.ports(xbar, place);
    match places {
        [] => {}
        &[place] if ports(place).len() == 1 => column.for_each(|port| *port = ports(place)[0]),
        _ => {
            let counter = |first| Counter::new(first, tiers.dividers[xbar as usize], places.len() as u32);
            let mut hosts = counter(turns.first_host);
            // The first row is the xbar's own; it goes by the first number, as that of the first host.
            if let Some(own) = column.next() {
                *own = hosts.port(|group| ports(places[group]));
            }
            if turns.is_adapter.is_empty() {
                column.for_each(|port| *port = hosts.take(|group| ports(places[group])));
                return;
            }
            let mut adapters = counter(turns.first_adapter);
            for (port, &is_adapter) in column.zip(&turns.is_adapter) {
                let counter = if is_adapter { &mut adapters } else { &mut hosts };
                *port = counter.take(|group| ports(places[group]));
            }
        }
    }
}

/// Counts through the groups and cables of consecutive numbers, without a division for each.
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

    /// The port, of those that a group has.
    fn port<'a>(&self, ports_of: impl Fn(usize) -> &'a [u8]) -> u8 {
        match ports_of(self.group as usize) {
            &[port] => port,
            ports => ports[self.rounds as usize % ports.len()],
        }
    }

    /// Returns the port, and goes on to the next number.
    fn take<'a>(&mut self, ports_of: impl Fn(usize) -> &'a [u8]) -> u8 {
        let port = self.port(ports_of);
        self.step();
        port
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
