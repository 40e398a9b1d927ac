//! Mends tables that were in force: every entry stays that leads on, and the few others are computed one by one.

use rayon::prelude::*;

use super::costs::Costs;
use super::fill::{Filling, Turns, port_by_number};
use super::tiers::{Groups, Tiers};
use crate::engines::port_runs::{PortRuns, Run, run_of};
use crate::tables::{Entry, Tables};

/// The most entries that are computed one by one. If more are wrong, it takes less time to fill whole tables.
const MOST: usize = 1 << 17;

/// The tables that were in force with all wrong entries computed anew; `None` if no tables were in force, or too many of
/// their entries are wrong.
pub(super) fn tables(filling: &Filling<'_>) -> Option<Tables> {
    let in_force = filling.in_force?;
    let add = |all: Option<Vec<Entry>>, more: Option<Vec<Entry>>| {
        let (mut all, mut more) = (all?, more?);
        all.append(&mut more);
        (all.len() <= MOST).then_some(all)
    };
    // Where too many are wrong already, no more need be found out.
    let check = |all: Option<Vec<Entry>>, end: u32| {
        let all = all?;
        let wrong = filling
            .with_costs_to(end, |costs, turns| Onward::new(filling, costs, end).wrong(in_force, turns));
        add(Some(all), Some(wrong))
    };
    let none = || Some(Vec::new());
    let xbars = 0..in_force.xbar_count() as u32;
    let wrong = xbars.into_par_iter().fold(none, check).reduce(none, add)?;
    let mut tables = in_force.clone();
    let mut slots: Vec<u32> = wrong.iter().map(|entry| entry.slot).collect();
    slots.sort_unstable();
    tables.own_rows(&slots);
    wrong.into_iter().for_each(|entry| tables.set(entry));
    Some(tables)
}

/// By which ports each xbar goes on to a destination xbar.
struct Onward<'a> {
    filling: &'a Filling<'a>,
    costs: &'a Costs<'a>,
    end: u32,
    /// The steps down, as [`Costs::steps_down`] finds them.
    down: Vec<(u32, u32)>,
    runs: PortRuns,
    /// The xbars whose ports are no single run.
    others: Vec<u32>,
}

impl<'a> Onward<'a> {
    fn new(filling: &'a Filling<'a>, costs: &'a Costs<'a>, end: u32) -> Self {
        let tiers = filling.tiers;
        let of_kind: Vec<Run> =
            tiers.kinds.runs_up().iter().map(|&kind| run_upwards(tiers, costs, kind)).collect();
        let mut runs = PortRuns::by(tiers.kinds.each(), &of_kind);
        let mut others = Vec::new();
        if of_kind.contains(&PortRuns::ANY) {
            let is_other =
                |xbar: u32| of_kind[tiers.kinds.of(xbar)] == PortRuns::ANY && !costs.goes_down(xbar);
            others.extend((0..tiers.from_top.len() as u32).filter(|&xbar| is_other(xbar)));
        }
        let down = costs.steps_down(end);
        for steps in down.chunk_by(|one, other| one.0 == other.0) {
            let xbar = steps[0].0;
            let run = run_to(xbar, &tiers.down, steps.iter().map(|&(_, place)| place));
            runs.set(xbar, run);
            others.extend((run == PortRuns::ANY).then_some(xbar));
        }
        runs.set(end, PortRuns::ANY);
        Self { filling, costs, end, down, runs, others }
    }

    /// The neighbours to which an xbar goes on, by their places.
    fn places(&self, xbar: u32) -> (&'a Groups, Vec<u32>) {
        let tiers = self.filling.tiers;
        if self.costs.goes_down(xbar) {
            let steps = self.down.iter().filter(|&&(of, _)| of == xbar);
            (&tiers.down, steps.map(|&(_, place)| place).collect())
        } else if self.costs.reaches(xbar) {
            (&tiers.up, self.filling.places_above(self.costs, xbar))
        } else {
            (&tiers.up, Vec::new())
        }
    }

    /// The wrong entries of tables for the xbar and its hosts.
    fn wrong(&self, tables: &Tables, turns: &Turns) -> Vec<Entry> {
        let (subnet, tiers) = (self.filling.subnet, self.filling.tiers);
        let slots = || subnet.destinations.slots_of(self.end);
        let mut wrong = Vec::new();
        let entry = |(row, slot, xbar): (usize, u32, u32), side, places: &[u32]| {
            let port = port_by_number(xbar, side, places, tiers, turns.number_of(row));
            Entry { slot, xbar, port }
        };
        for (row, slot) in slots().enumerate() {
            for xbar in self.runs.beyond(tables.of_slot(slot)) {
                let (side, places) = self.places(xbar);
                wrong.push(entry((row, slot, xbar), side, &places));
            }
            let own = subnet.port_of_slot(slot);
            let is_wrong = tables.port(self.end, slot) != own;
            wrong.extend(is_wrong.then_some(Entry { slot, xbar: self.end, port: own }));
        }
        for &xbar in &self.others {
            let (side, places) = self.places(xbar);
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
