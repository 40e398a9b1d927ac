//! Mends tables that were in force: every entry stays that leads on, and the few others are computed one by one.

use rayon::prelude::*;

use super::costs::Costs;
use super::fill::{Filling, RowNumbers, port_by_number};
use super::tiers::{Groups, Tiers};
use crate::engines::port_runs::{PortRuns, Run, run_of};
use crate::tables::{Entry, Tables};

/// The most entries that are computed one by one. If more are wrong, it takes less time to fill whole tables.
const MOST: usize = 1 << 17;

/// The tables that were in force with all wrong entries computed anew; `None` if no tables were in force, or too many of
/// their entries are wrong.
pub(super) fn tables(filling: &Filling<'_>) -> Option<Tables> {
    let in_force = filling.in_force?;
    let xbars = 0..in_force.xbar_count() as u32;
    let checked =
        xbars.into_par_iter().fold(|| Checked::new(filling), |checked, end| checked.check(in_force, end));
    let wrong = checked.map(|checked| checked.wrong).reduce(|| Some(Vec::new()), joined)?;
    let mut tables = in_force.clone();
    let mut slots: Vec<u32> = wrong.iter().map(|entry| entry.slot).collect();
    slots.sort_unstable();
    tables.own_rows(&slots);
    wrong.into_iter().for_each(|entry| tables.set(entry));
    Some(tables)
}

/// What was found of some destinations.
struct Checked<'a> {
    onward: Onward<'a>,
    /// Their wrong entries; `None` if there are too many.
    wrong: Option<Vec<Entry>>,
}

impl<'a> Checked<'a> {
    fn new(filling: &'a Filling<'a>) -> Self {
        Self { onward: Onward::new(filling), wrong: Some(Vec::new()) }
    }

    /// Checks one destination more. Where too many entries are wrong already, no more need be found out.
    fn check(mut self, in_force: &Tables, end: u32) -> Self {
        if self.wrong.is_some() {
            let more = self.onward.filling.with_costs_to(end, |costs, turns| {
                self.onward.turn_to(costs, end);
                self.onward.wrong(in_force, (costs, turns))
            });
            self.wrong = joined(self.wrong, Some(more));
        }
        self
    }
}

/// All wrong entries together; `None` if there are too many.
fn joined(all: Option<Vec<Entry>>, more: Option<Vec<Entry>>) -> Option<Vec<Entry>> {
    let (mut all, mut more) = (all?, more?);
    all.append(&mut more);
    (all.len() <= MOST).then_some(all)
}

/// By which ports each xbar goes on to a destination xbar. One after the other is turned to, as most xbars go on to the next
/// one by the same ports.
struct Onward<'a> {
    filling: &'a Filling<'a>,
    end: u32,
    /// The run of each kind of xbars, where the way goes up at first.
    of_kind: Vec<Run>,
    /// The steps down, as [`Costs::steps_down`] finds them.
    down: Vec<(u32, u32)>,
    runs: PortRuns,
    /// The xbars whose ports are no single run.
    others: Vec<u32>,
}

impl<'a> Onward<'a> {
    fn new(filling: &'a Filling<'a>) -> Self {
        let of_kind = vec![PortRuns::ANY; filling.tiers.kinds.count()];
        let runs = PortRuns::any(filling.tiers.from_top.len());
        Self { filling, end: 0, of_kind, down: Vec::new(), runs, others: Vec::new() }
    }

    /// Finds the ports by which xbars go on to a destination with these costs.
    fn turn_to(&mut self, costs: &Costs<'_>, end: u32) {
        let tiers = self.filling.tiers;
        let kinds = tiers.kinds.runs_up().iter().map(|&kind| run_upwards(tiers, costs, kind));
        let of_kind: Vec<Run> = kinds.collect();
        if of_kind == self.of_kind {
            let downwards = self.down.iter().map(|&(xbar, _)| xbar).chain([self.end]);
            downwards.for_each(|xbar| self.runs.set(xbar, of_kind[tiers.kinds.of(xbar)]));
        } else {
            self.runs.set_by(tiers.kinds.each(), &of_kind);
        }
        (self.of_kind, self.down, self.end) = (of_kind, costs.steps_down(), end);
        self.others.clear();
        if self.of_kind.contains(&PortRuns::ANY) {
            let is_other =
                |&xbar: &u32| self.of_kind[tiers.kinds.of(xbar)] == PortRuns::ANY && !costs.goes_down(xbar);
            self.others.extend((0..tiers.from_top.len() as u32).filter(is_other));
        }
        for steps in self.down.chunk_by(|one, other| one.0 == other.0) {
            let xbar = steps[0].0;
            let run = run_to(xbar, &tiers.down, steps.iter().map(|&(_, place)| place));
            self.runs.set(xbar, run);
            self.others.extend((run == PortRuns::ANY).then_some(xbar));
        }
        self.runs.set(end, PortRuns::ANY);
    }

    /// The neighbours to which an xbar goes on, by their places.
    fn places(&self, costs: &Costs<'_>, xbar: u32) -> (&'a Groups, Vec<u32>) {
        let tiers = self.filling.tiers;
        if costs.goes_down(xbar) {
            let steps = self.down.iter().filter(|&&(of, _)| of == xbar);
            (&tiers.down, steps.map(|&(_, place)| place).collect())
        } else if costs.reaches(xbar) {
            (&tiers.up, self.filling.places_above(costs, xbar))
        } else {
            (&tiers.up, Vec::new())
        }
    }

    /// The wrong entries of tables for the xbar and its hosts.
    fn wrong(&self, tables: &Tables, (costs, turns): (&Costs<'_>, &RowNumbers)) -> Vec<Entry> {
        let (subnet, tiers) = (self.filling.subnet, self.filling.tiers);
        let slots = || subnet.destinations.slots_of(self.end);
        let mut wrong = Vec::new();
        let entry = |(row, slot, xbar): (usize, u32, u32), side, places: &[u32]| {
            let port = port_by_number(xbar, side, places, tiers, turns.number_of(row));
            Entry { slot, xbar, port }
        };
        for (row, slot) in slots().enumerate() {
            for xbar in self.runs.beyond(tables.of_slot(slot)) {
                let (side, places) = self.places(costs, xbar);
                wrong.push(entry((row, slot, xbar), side, &places));
            }
            let own = subnet.port_of_slot(slot);
            let is_wrong = tables.port(self.end, slot) != own;
            wrong.extend(is_wrong.then_some(Entry { slot, xbar: self.end, port: own }));
        }
        for &xbar in &self.others {
            let (side, places) = self.places(costs, xbar);
            let leads_on = |port| places.iter().any(|&place| side.ports(xbar, place).contains(&port));
            let is_wrong = |&(_, slot): &(usize, u32)| !leads_on(tables.port(xbar, slot));
            let rows = slots().enumerate().filter(is_wrong);
            wrong.extend(rows.map(|(row, slot)| entry((row, slot, xbar), side, &places)));
        }
        wrong
    }
}

/// The run of ports by which the xbars of a kind go on where the way goes up at first.
fn run_upwards(tiers: &Tiers, costs: &Costs<'_>, (xbar, of_all): (u32, Run)) -> Run {
    let hops = costs.hops_upwards(xbar);
    if hops == Costs::NONE {
        return PortRuns::NOWHERE;
    }
    let above = tiers.up.of(xbar);
    let is_nearer = |above: u32| costs.hops(above).saturating_add(1) == hops;
    if above.iter().all(|&above| is_nearer(above)) {
        return of_all;
    }
    let nearer = (0..).zip(above).filter(|&(_, &above)| is_nearer(above));
    run_to(xbar, &tiers.up, nearer.map(|(place, _)| place))
}

/// The run of an xbar's ports to the neighbours at these places, of which there are some; [`PortRuns::ANY`] if they are no
/// single run.
fn run_to(xbar: u32, side: &Groups, places: impl Iterator<Item = u32>) -> Run {
    let ports = places.flat_map(|place| side.ports(xbar, place)).copied();
    run_of(ports).unwrap_or(PortRuns::ANY)
}
