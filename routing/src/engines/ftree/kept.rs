//! Mends tables that were in force.
//!
//! Most entries stay, so they are checked a row at a time. Each xbar's right ports are mostly a run (all
//! ports up, or those down to one xbar); only where cables are missing they are a set.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::reach::Reach;
use super::tree::{Group, Side, Tree};
use crate::Tables;
use crate::engines::port_runs::{PortRuns, Run, run_of};

/// If an xbar has at least so many wrong entries, the loads of all its ports are counted before new ones are
/// chosen.
const COUNTED_FROM: usize = 16;

/// An entry that cannot stay.
#[derive(Debug, Clone, Copy)]
struct WrongEntry {
    slot: u32,
    xbar: u32,
}

/// Keeps every entry that still begins a shortest way up and down, and gives the others the least loaded port
/// of their xbar. The load is what a port carries to hosts of the same xbar, and if an xbar has lost many
/// entries, also what it carries to all. Destinations to which no way leads any more get no port.
pub(super) fn mend(tree: &Tree<'_>, reach: &Reach, previous: &Tables) -> Tables {
    let (all_up, heads) = (AllUp::new(tree, reach), Heads::new(tree));
    let destinations = &tree.subnet.destinations;
    let wrong: Vec<Vec<WrongEntry>> = (0..tree.xbar_count() as u32)
        .into_par_iter()
        .map(|to| {
            let mut wrong = Vec::new();
            if tree.hosts_at(to) == 0 {
                heads.check(reach, to, previous.of_slot(destinations.slot_of_xbar(to)), &mut wrong);
                return wrong;
            }
            let right = Right::new(tree, reach, &all_up, to);
            for slot in destinations.slots_of(to) {
                right.check(tree, slot, previous.of_slot(slot), &mut wrong);
            }
            wrong
        })
        .collect();
    let mut tables = previous.clone();
    let mut slots: Vec<u32> = wrong.iter().flatten().map(|wrong| wrong.slot).collect();
    slots.sort_unstable();
    tables.own_rows(&slots);
    let mut lost: BTreeMap<u32, usize> = BTreeMap::new();
    for (to, wrong) in (0..).zip(&wrong) {
        for wrong in wrong {
            // A wrong entry does not count for any port while others are chosen.
            tables.set_port(wrong.xbar, wrong.slot, Tables::NONE);
            if reach.between(to, wrong.xbar) != Reach::NONE {
                *lost.entry(wrong.xbar).or_default() += 1;
            }
        }
    }
    let counted = lost.into_iter().filter(|&(_, lost)| lost >= COUNTED_FROM).map(|(xbar, _)| xbar);
    let mut loads = port_loads(&tables, &counted.collect::<Vec<u32>>());
    for (to, wrong) in (0..).zip(&wrong) {
        for &wrong in wrong {
            choose(tree, reach, (to, wrong), &mut loads, &mut tables);
        }
    }
    tables
}

/// How many destinations each port of some xbars carries.
fn port_loads(tables: &Tables, xbars: &[u32]) -> BTreeMap<u32, Vec<u32>> {
    const PORTS: usize = 1 << u8::BITS;
    let count = |mut loads: Vec<u32>, slot: u32| {
        let row = tables.of_slot(slot);
        for (loads, &xbar) in loads.chunks_exact_mut(PORTS).zip(xbars) {
            loads[usize::from(row[xbar as usize])] += 1;
        }
        loads
    };
    let add = |mut loads: Vec<u32>, more: Vec<u32>| {
        loads.iter_mut().zip(more).for_each(|(load, more)| *load += more);
        loads
    };
    let none = || vec![0; PORTS * xbars.len()];
    let loads = if xbars.is_empty() {
        Vec::new()
    } else {
        (0..tables.slot_count() as u32).into_par_iter().fold(none, count).reduce(none, add)
    };
    xbars.iter().copied().zip(loads.chunks_exact(PORTS).map(<[u32]>::to_vec)).collect()
}

/// The groups that lead nearer to an xbar, and the side that they are on.
fn nearer<'a>(
    tree: &'a Tree<'_>,
    steps: &'a [u8],
    at: u32,
    to: u32,
) -> (&'a Side, impl Iterator<Item = &'a Group>) {
    let own = steps[at as usize];
    let above = tree.rank(at) <= tree.rank(to) && own == tree.rank(to) - tree.rank(at);
    let side = if above { &tree.down } else { &tree.up };
    let leads = move |group: &&Group| own != Reach::NONE && own != 0 && steps[group.far as usize] == own - 1;
    (side, side.of(at).iter().filter(leads))
}

fn choose(
    tree: &Tree<'_>,
    reach: &Reach,
    (to, wrong): (u32, WrongEntry),
    loads: &mut BTreeMap<u32, Vec<u32>>,
    tables: &mut Tables,
) {
    let topology = &tree.subnet.topology;
    let at = wrong.xbar;
    if at == to {
        tables.set_port(at, wrong.slot, tree.subnet.port_of_slot(wrong.slot));
        return;
    }
    let (side, groups) = nearer(tree, reach.of(to), at, to);
    let channels = groups.flat_map(|group| side.channels(group));
    let ports: Vec<u8> = channels.map(|&channel| topology.tail(channel).port).collect();
    let mut to_same = [0_u32; 1 << u8::BITS];
    for slot in tree.subnet.destinations.slots_of(to) {
        to_same[usize::from(tables.port(at, slot))] += 1;
    }
    let counted = loads.get(&at);
    let turn = tree.place[at as usize] as usize % ports.len().max(1);
    let best = (0..ports.len()).min_by_key(|&place| {
        let port = usize::from(ports[place]);
        (counted.map_or(0, |loads| loads[port]), to_same[port], (place + ports.len() - turn) % ports.len())
    });
    let port = best.map_or(Tables::NONE, |place| ports[place]);
    tables.set_port(at, wrong.slot, port);
    if let Some(loads) = loads.get_mut(&at) {
        loads[usize::from(port)] += 1;
    }
}

/// The xbar behind each port of each xbar.
///
/// For a destination with one slot it is quicker to look behind each entry than to find all right ports.
struct Heads<'a> {
    tree: &'a Tree<'a>,
    ports: usize,
    far: Vec<u32>,
}

impl<'a> Heads<'a> {
    const NOTHING: u32 = u32::MAX;

    fn new(tree: &'a Tree<'a>) -> Self {
        let topology = &tree.subnet.topology;
        let channels = || tree.up.all_channels().iter().chain(tree.down.all_channels());
        let ports =
            channels().map(|&channel| usize::from(topology.tail(channel).port) + 1).max().unwrap_or(0);
        let mut far = vec![Self::NOTHING; ports * tree.xbar_count()];
        for &channel in channels() {
            let tail = topology.tail(channel);
            far[tail.xbar as usize * ports + usize::from(tail.port)] = topology.head(channel).xbar;
        }
        Self { tree, ports, far }
    }

    /// Lists the wrong entries in the row of an xbar's own slot.
    fn check(&self, reach: &Reach, to: u32, row: &[u8], wrong: &mut Vec<WrongEntry>) {
        let steps = reach.of(to);
        let slot = self.tree.subnet.destinations.slot_of_xbar(to);
        let out = (0..).zip(row).filter(|&(xbar, &port)| !self.leads(steps, to, xbar, port));
        wrong.extend(out.map(|(xbar, _)| WrongEntry { slot, xbar }));
    }

    /// Whether a port is right: it begins a shortest way up and down, or is none where there is no way.
    fn leads(&self, steps: &[u8], to: u32, at: u32, port: u8) -> bool {
        let own = steps[at as usize];
        if own == 0 || own == Reach::NONE {
            return own == 0 || port == Tables::NONE;
        }
        let row = &self.far[at as usize * self.ports..][..self.ports];
        let far = row.get(usize::from(port)).copied().unwrap_or(Self::NOTHING);
        if far == Self::NOTHING || steps[far as usize] != own - 1 {
            return false;
        }
        let (rank, rank_to) = (self.tree.rank(at), self.tree.rank(to));
        let above = rank <= rank_to && own == rank_to - rank;
        (self.tree.rank(far) > rank) == above
    }
}

/// For each destination xbar a byte for each xbar, which says whether all its ports up lead nearer.
struct AllUp {
    rows: Vec<u8>,
    /// The ports up of each xbar. If there is a gap between them, the bytes never say that all lead nearer.
    runs: PortRuns,
    /// For each group up, its ports at the far end, if they are a run.
    far: Vec<Option<Run>>,
}

impl AllUp {
    /// How many rows are transposed at once.
    const STRIP: usize = 64;

    fn new(tree: &Tree<'_>, reach: &Reach) -> Self {
        let topology = &tree.subnet.topology;
        let count = tree.xbar_count();
        let ports_up = |xbar: u32| {
            let channels = tree.up.of(xbar).iter().flat_map(|group| tree.up.channels(group));
            run_of(channels.map(|&channel| topology.tail(channel).port))
        };
        let of_xbars: Vec<Option<Run>> = (0..count as u32).map(ports_up).collect();
        let all: Vec<u32> = (0..count as u32).collect();
        let of_class = |class: &Vec<u32>| {
            let (over, all) =
                class.first().map_or_else(Default::default, |&xbar| over_all_parents(tree, reach, xbar));
            let row = |&xbar: &u32| {
                let is_run = u8::from(of_xbars[xbar as usize].is_some());
                let of_all = all.iter().zip(&over).zip(reach.of(xbar));
                let row = of_all.map(|((&all, &over), &own)| all & is_run & u8::from(over == own));
                let mut row: Vec<u8> = row.collect();
                // From the destination itself nothing leads nearer.
                row[xbar as usize] = 0;
                (xbar, row)
            };
            class.iter().map(row).collect::<Vec<_>>()
        };
        let mut by_xbar = vec![Vec::new(); count];
        let rows: Vec<(u32, Vec<u8>)> = tree.up.alike(&all).par_iter().flat_map_iter(of_class).collect();
        rows.into_iter().for_each(|(xbar, row)| by_xbar[xbar as usize] = row);
        let mut rows = vec![0; count * count];
        rows.par_chunks_mut(count * Self::STRIP).enumerate().for_each(|(strip, rows)| {
            let first = strip * Self::STRIP;
            for (xbar, all) in by_xbar.iter().enumerate() {
                for (row, &all) in rows.chunks_exact_mut(count).zip(&all[first..]) {
                    row[xbar] = all;
                }
            }
        });
        let far = (0..tree.up.group_count()).map(|id| {
            let channels = tree.up.channels(tree.up.group(id));
            run_of(channels.iter().map(|&channel| topology.head(channel).port))
        });
        let mut runs = PortRuns::any(count);
        for (xbar, run) in (0..).zip(of_xbars) {
            runs.set(xbar, run.unwrap_or(PortRuns::NOWHERE));
        }
        Self { rows, runs, far: far.collect() }
    }
}

/// The steps from an xbar that goes up first to all others, and whether all its parents lead on in so many.
fn over_all_parents(tree: &Tree<'_>, reach: &Reach, xbar: u32) -> (Vec<u8>, Vec<u8>) {
    let over = reach.over_parents(tree, xbar);
    let mut all = vec![1; over.len()];
    for group in tree.up.of(xbar) {
        for ((all, &far), &over) in all.iter_mut().zip(reach.of(group.far)).zip(&over) {
            *all &= u8::from(far.wrapping_add(1) == over);
        }
    }
    (over, all)
}

/// The right ports of each xbar towards one.
struct Right {
    to: u32,
    runs: PortRuns,
    /// The xbars whose right ports are no run, and these ports.
    sets: Vec<(u32, Vec<u8>)>,
}

impl Right {
    fn new(tree: &Tree<'_>, reach: &Reach, all_up: &AllUp, to: u32) -> Self {
        let count = tree.xbar_count();
        let steps = reach.of(to);
        let mut right = Self { to, runs: all_up.runs.clone(), sets: Vec::new() };
        let mut known = all_up.rows[to as usize * count..][..count].to_vec();
        right.above(tree, all_up, &mut known);
        for at in (0..count).filter(|&at| known[at] == 0) {
            let run = match steps[at] {
                Reach::NONE => PortRuns::NOWHERE,
                0 => PortRuns::ANY,
                _ => right.run_or_set(tree, steps, at as u32),
            };
            right.runs.set(at as u32, run);
        }
        right
    }

    /// Finds the xbars above those that are known so far, and marks them as known. The right ports of an xbar
    /// with one group down to them are that group's.
    fn above(&mut self, tree: &Tree<'_>, all_up: &AllUp, known: &mut [u8]) {
        const TWICE: u8 = 2;
        let mut last = vec![self.to];
        while !last.is_empty() {
            let mut next = Vec::new();
            for id in last.iter().flat_map(|&xbar| tree.up.ids(xbar)) {
                let far = tree.up.group(id).far;
                let at = far as usize;
                match (known[at], all_up.far[id]) {
                    (0, Some(run)) => {
                        self.runs.set(far, run);
                        known[at] = 1;
                        next.push(far);
                    }
                    (0, None) => {
                        known[at] = TWICE;
                        next.push(far);
                    }
                    _ => known[at] = TWICE,
                }
            }
            // Xbars with several groups down are looked at one by one.
            for &xbar in &next {
                let known = &mut known[xbar as usize];
                *known = u8::from(*known == 1);
            }
            last = next;
        }
    }

    /// The right ports of one xbar; if they are no run, they are kept as a set, and any port is in the run.
    fn run_or_set(&mut self, tree: &Tree<'_>, steps: &[u8], at: u32) -> Run {
        let (side, groups) = nearer(tree, steps, at, self.to);
        let channels = groups.flat_map(|group| side.channels(group));
        let topology = &tree.subnet.topology;
        let ports: Vec<u8> = channels.map(|&channel| topology.tail(channel).port).collect();
        run_of(ports.iter().copied()).unwrap_or_else(|| {
            self.sets.push((at, ports));
            PortRuns::ANY
        })
    }

    /// Lists the wrong entries in a row.
    fn check(&self, tree: &Tree<'_>, slot: u32, row: &[u8], wrong: &mut Vec<WrongEntry>) {
        wrong.extend(self.runs.beyond(row).into_iter().map(|xbar| WrongEntry { slot, xbar }));
        let in_no_set = self.sets.iter().filter(|(at, ports)| !ports.contains(&row[*at as usize]));
        wrong.extend(in_no_set.map(|&(xbar, _)| WrongEntry { slot, xbar }));
        let own = slot == tree.subnet.destinations.slot_of_xbar(self.to);
        if !own && row[self.to as usize] != tree.subnet.port_of_slot(slot) {
            wrong.push(WrongEntry { slot, xbar: self.to });
        }
    }
}
