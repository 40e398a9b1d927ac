//! Tables that were in force, mended.
//!
//! Most entries stay, so that they are checked a row at a time: each xbar's right ports are mostly a range
//! (all up, or those down to one xbar), and only where cables are missing a set.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::fill::blocks;
use super::host_port;
use super::reach::Reach;
use super::tree::{Group, Side, Tree};
use crate::routing::Tables;

/// From so many wrong entries on, the loads of all ports of an xbar are counted before new ones are chosen.
const COUNTED_FROM: usize = 16;

/// An entry that cannot stay.
#[derive(Debug, Clone, Copy)]
struct Wrong {
    slot: u32,
    xbar: u32,
}

/// Keeps every entry that still begins a shortest way up and down, and gives the others the least loaded
/// port of their xbar: by what it carries to hosts of the same xbar, and, where an xbar has lost many
/// entries, by what it carries at all. What no way leads to any more has no port.
pub(super) fn mend(tree: &Tree<'_>, reach: &Reach, previous: &Tables) -> Tables {
    let count = tree.xbar_count();
    let all_up = AllUp::new(tree, reach);
    let mut ports = vec![0; previous.as_slice().len()];
    let wrong: Vec<Vec<Wrong>> = blocks(tree, &mut ports)
        .into_par_iter()
        .map(|(to, block)| {
            let right = Right::new(tree, reach, &all_up, to);
            let mut wrong = Vec::new();
            for (slot, row) in tree.subnet.destinations.slots_of(to).zip(block.chunks_exact_mut(count)) {
                right.copy(tree, slot, previous.of_slot(slot), row, &mut wrong);
            }
            wrong
        })
        .collect();
    let mut tables = Tables::from_ports(count, ports);
    let mut lost: BTreeMap<u32, usize> = BTreeMap::new();
    for (to, wrong) in (0..).zip(&wrong) {
        let replaced = wrong.iter().filter(|wrong| reach.between(to, wrong.xbar) != Reach::NONE);
        replaced.for_each(|wrong| *lost.entry(wrong.xbar).or_default() += 1);
    }
    let counted = lost.iter().filter(|&(_, &lost)| lost >= COUNTED_FROM).map(|(&xbar, _)| xbar);
    let mut loads: BTreeMap<u32, Vec<u32>> = counted.map(|xbar| (xbar, port_loads(&tables, xbar))).collect();
    for (to, wrong) in (0..).zip(&wrong) {
        for &wrong in wrong {
            choose(tree, reach, (to, wrong), &mut loads, &mut tables);
        }
    }
    tables
}

/// How many destinations each port of an xbar carries.
fn port_loads(tables: &Tables, xbar: u32) -> Vec<u32> {
    let mut loads = vec![0; 1 << u8::BITS];
    (0..tables.slot_count() as u32).for_each(|slot| loads[usize::from(tables.port(xbar, slot))] += 1);
    loads
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
    (to, wrong): (u32, Wrong),
    loads: &mut BTreeMap<u32, Vec<u32>>,
    tables: &mut Tables,
) {
    let topology = &tree.subnet.topology;
    let at = wrong.xbar;
    if at == to {
        tables.set_port(at, wrong.slot, host_port(tree.subnet, wrong.slot));
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

/// Where all ports up lead nearer: by destination xbar, a byte for each xbar.
struct AllUp {
    rows: Vec<u8>,
    /// The first port up of each xbar, and how many follow it. If there is a gap in them, no row says that
    /// all lead nearer.
    low: Vec<u8>,
    span: Vec<u8>,
    /// For each group up, its ports at the far end, likewise.
    far: Vec<Option<(u8, u8)>>,
}

impl AllUp {
    /// Rows that are turned over at once.
    const STRIP: usize = 64;

    fn new(tree: &Tree<'_>, reach: &Reach) -> Self {
        let topology = &tree.subnet.topology;
        let count = tree.xbar_count();
        let range = |xbar: u32| {
            let channels = tree.up.of(xbar).iter().flat_map(|group| tree.up.channels(group));
            range_of(channels.map(|&channel| topology.tail(channel).port))
        };
        let ranges: Vec<Option<(u8, u8)>> = (0..count as u32).map(range).collect();
        let by_xbar: Vec<Vec<u8>> = (0..count as u32)
            .into_par_iter()
            .map(|xbar| {
                let mut all = vec![u8::from(ranges[xbar as usize].is_some()); count];
                for group in tree.up.of(xbar) {
                    for ((all, &far), &own) in all.iter_mut().zip(reach.of(group.far)).zip(reach.of(xbar)) {
                        *all &= u8::from(far.wrapping_add(1) == own);
                    }
                }
                // From the xbar itself nothing leads nearer.
                all[xbar as usize] = 0;
                all
            })
            .collect();
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
            range_of(channels.iter().map(|&channel| topology.head(channel).port))
        });
        Self {
            rows,
            low: ranges.iter().map(|range| range.map_or(Tables::NONE, |range| range.0)).collect(),
            span: ranges.iter().map(|range| range.map_or(0, |range| range.1)).collect(),
            far: far.collect(),
        }
    }
}

/// The lowest of some ports and how many follow it, if they are all that do.
fn range_of(ports: impl Iterator<Item = u8>) -> Option<(u8, u8)> {
    let (mut low, mut high, mut count) = (u8::MAX, 0, 0_usize);
    for port in ports {
        (low, high, count) = (low.min(port), high.max(port), count + 1);
    }
    let span = high.checked_sub(low)?;
    (count == usize::from(span) + 1).then_some((low, span))
}

/// The right ports of each xbar towards one.
struct Right {
    to: u32,
    low: Vec<u8>,
    span: Vec<u8>,
    /// The xbars whose right ports are no range, and these ports.
    sets: Vec<(u32, Vec<u8>)>,
}

impl Right {
    fn new(tree: &Tree<'_>, reach: &Reach, all_up: &AllUp, to: u32) -> Self {
        let count = tree.xbar_count();
        let steps = reach.of(to);
        let (low, span) = (all_up.low.clone(), all_up.span.clone());
        let mut right = Self { to, low, span, sets: Vec::new() };
        let mut known = all_up.rows[to as usize * count..][..count].to_vec();
        right.above(tree, all_up, &mut known);
        for at in (0..count).filter(|&at| known[at] == 0) {
            (right.low[at], right.span[at]) = match steps[at] {
                Reach::NONE => (Tables::NONE, 0),
                0 => (0, u8::MAX),
                _ => right.range_or_set(tree, steps, at as u32),
            };
        }
        right
    }

    /// The xbars above: those with one group down to the xbars known so far. Marks them as known.
    fn above(&mut self, tree: &Tree<'_>, all_up: &AllUp, known: &mut [u8]) {
        const TWICE: u8 = 2;
        let mut last = vec![self.to];
        while !last.is_empty() {
            let mut next = Vec::new();
            for id in last.iter().flat_map(|&xbar| tree.up.ids(xbar)) {
                let far = tree.up.group(id).far;
                let at = far as usize;
                match (known[at], all_up.far[id]) {
                    (0, Some(range)) => {
                        (self.low[at], self.span[at]) = range;
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
            // Several groups down: looked at one by one.
            for &xbar in &next {
                let known = &mut known[xbar as usize];
                *known = u8::from(*known == 1);
            }
            last = next;
        }
    }

    /// The right ports of one xbar; if they are no range, they are kept as a set, and any port is in range.
    fn range_or_set(&mut self, tree: &Tree<'_>, steps: &[u8], at: u32) -> (u8, u8) {
        let (side, groups) = nearer(tree, steps, at, self.to);
        let channels = groups.flat_map(|group| side.channels(group));
        let topology = &tree.subnet.topology;
        let ports: Vec<u8> = channels.map(|&channel| topology.tail(channel).port).collect();
        range_of(ports.iter().copied()).unwrap_or_else(|| {
            self.sets.push((at, ports));
            (0, u8::MAX)
        })
    }

    /// Copies a row and lists what is wrong in it.
    fn copy(&self, tree: &Tree<'_>, slot: u32, from: &[u8], row: &mut [u8], wrong: &mut Vec<Wrong>) {
        row.copy_from_slice(from);
        let mut any = 0;
        for ((&port, &low), &span) in from.iter().zip(&self.low).zip(&self.span) {
            any |= u8::from(port.wrapping_sub(low) > span);
        }
        let first = wrong.len();
        if any != 0 {
            let out = |at: &usize| from[*at].wrapping_sub(self.low[*at]) > self.span[*at];
            wrong.extend((0..from.len()).filter(out).map(|at| Wrong { slot, xbar: at as u32 }));
        }
        let in_no_set = self.sets.iter().filter(|(at, ports)| !ports.contains(&from[*at as usize]));
        wrong.extend(in_no_set.map(|&(xbar, _)| Wrong { slot, xbar }));
        let own = slot == tree.subnet.destinations.slot_of_xbar(self.to);
        if !own && from[self.to as usize] != host_port(tree.subnet, slot) {
            wrong.push(Wrong { slot, xbar: self.to });
        }
        // A wrong entry counts for no port while others are chosen.
        wrong[first..].iter().for_each(|wrong| row[wrong.xbar as usize] = Tables::NONE);
    }
}
