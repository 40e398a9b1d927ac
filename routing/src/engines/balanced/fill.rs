//! Fills whole tables. Destination xbars are computed in rounds, each round in parallel, and loads become
//! known between rounds.

use std::ops::Range;

use rayon::prelude::*;

use super::alike::Alike;
use super::chains::Chains;
use super::dimension::FirstPort;
use super::kept::{Kept, Previous, is_right};
use super::ports::XbarPorts;
use super::runs::Runs;
use super::search::BLOCK;
use super::sweep::{LANES, Slots, Sweeper, Target};
use super::turns::nth;
use super::ways::Ways;
use crate::tiers::cabled_hosts;
use crate::{Subnet, Tables};

/// Most bytes of the ways that are kept at once.
const WAYS_BYTES: usize = 48 << 20;
/// About how many rounds there are.
const ROUNDS: usize = 24;
/// Most destinations with hosts in a round.
const MOST_A_ROUND: usize = 64;
/// How many parts of a round are computed in parallel. Tables depend on this number, as a part does not know
/// the loads of the others.
const PARTS: usize = 4;
/// Tables of at most so many entries are computed again by the loads that are known then, if loads decided
/// anything.
const IMPROVED_ENTRIES: usize = 8 << 20;
/// How often such tables are computed again.
const IMPROVEMENTS: usize = 2;
/// How many loads are joined at a time.
const PIECE: usize = 4096;

/// All that entries are computed from.
pub(super) struct Filler<'a> {
    pub(super) subnet: &'a Subnet,
    pub(super) ports: &'a XbarPorts,
    chains: &'a Chains<'a>,
    alike: &'a Alike<'a>,
    /// The connected part of each xbar.
    parts: Vec<u32>,
    /// The xbars that have hosts, and how many each xbar has.
    leaves: Vec<u32>,
    sources: Vec<u32>,
    /// For dimension order, the order in which the first port is looked for; only cables to that port's
    /// neighbour serve.
    first_port: Option<&'a FirstPort>,
    /// Seed of random choices among the least loaded.
    scatter: Option<u64>,
}

impl<'a> Filler<'a> {
    pub(super) fn new(
        subnet: &'a Subnet,
        ports: &'a XbarPorts,
        chains: &'a Chains<'a>,
        alike: &'a Alike<'a>,
        first_port: Option<&'a FirstPort>,
        scatter: Option<u64>,
    ) -> Self {
        let topology = &subnet.topology;
        let sources: Vec<u32> =
            (0..ports.xbars as u32).map(|xbar| cabled_hosts(topology, xbar) as u32).collect();
        Self {
            subnet,
            ports,
            chains,
            alike,
            parts: (0..ports.xbars as u32).map(|xbar| topology.component(xbar)).collect(),
            leaves: (0..ports.xbars as u32).filter(|&xbar| sources[xbar as usize] > 0).collect(),
            sources,
            first_port,
            scatter,
        }
    }

    /// Ways to some xbars.
    pub(super) fn ways(&self, to: &[u32]) -> Ways {
        self.find_ways(to, true)
    }

    /// Ways to some xbars, without a list of which xbars are near them.
    pub(super) fn unordered_ways(&self, to: &[u32]) -> Ways {
        self.find_ways(to, false)
    }

    fn find_ways(&self, to: &[u32], ordered: bool) -> Ways {
        let mut ways = Ways::find(self.ports, to, &self.parts, &self.leaves, ordered);
        if let Some(first_port) = self.first_port {
            first_port.reduce(self.ports, &mut ways);
        }
        ways
    }

    /// Whether only some of the shortest ways serve.
    pub(super) fn reduces_ways(&self) -> bool {
        self.first_port.is_some()
    }

    /// The connected part of each xbar.
    pub(super) fn parts(&self) -> &[u32] {
        &self.parts
    }

    /// The xbars that have hosts, in rising order.
    pub(super) fn leaves(&self) -> &[u32] {
        &self.leaves
    }

    pub(super) fn sweeper(&self) -> Sweeper<'_> {
        Sweeper::new(self.subnet, self.ports, self.chains, self.alike, &self.sources, self.scatter)
    }

    /// The targets of the destination at a place in some ways.
    pub(super) fn targets<'w>(&self, ways: &'w Ways, place: usize) -> impl Iterator<Item = Target<'w>> {
        let slots = self.subnet.destinations.host_slots_of(ways.to[place]);
        slots.clone().step_by(LANES).map(move |first_slot| Target {
            ways,
            place,
            first_slot,
            lanes: ((slots.end - first_slot) as usize).min(LANES),
        })
    }

    /// All tables. Entries of `previous` that are right stay.
    pub(super) fn tables(&self, previous: Option<&Previous<'_>>) -> Tables {
        let (xbars, slots) = (self.ports.xbars, self.subnet.destinations.slot_count());
        let mut loads = vec![0; self.ports.heads.len()];
        if let Some(previous) = previous {
            let wrong = previous.check(self);
            if wrong.is_to_choose() {
                loads = previous.loads(self);
            }
            if wrong.is_little() {
                return wrong.mend(self, previous, loads);
            }
        }
        // The system gives a page of memory when its first entry is written, which happens in parallel below.
        let mut entries = vec![0; xbars * slots];
        let mut sweepers: Vec<Sweeper<'_>> = (0..PARTS).map(|_| self.sweeper()).collect();
        for sweeper in &mut sweepers {
            sweeper.loads.copy_from_slice(&loads);
        }
        let base = previous.map_or(Base::Nothing, Base::Previous);
        self.fill(base, &mut entries, &mut sweepers, &mut loads);
        let by_load = sweepers.iter().any(|sweeper| sweeper.by_load);
        if previous.is_none() && by_load && entries.len() <= IMPROVED_ENTRIES {
            for _ in 0..IMPROVEMENTS {
                self.fill(Base::Loaded, &mut entries, &mut sweepers, &mut loads);
            }
        }
        Tables::from_ports(xbars, entries)
    }

    /// Fills all entries, window by window.
    fn fill(&self, base: Base<'_>, entries: &mut [u8], sweepers: &mut [Sweeper<'_>], loads: &mut [u32]) {
        let mut rest = entries;
        for window in self.windows() {
            let to: Vec<u32> = window.clone().collect();
            let ways: Vec<Ways> = to.par_chunks(BLOCK).map(|block| self.ways(block)).collect();
            let slots = self.slots(window.clone());
            let (mine, others) = std::mem::take(&mut rest).split_at_mut(slots.len() * self.ports.xbars);
            rest = others;
            let work = Work { filler: self, ways: &ways, first: window.start, base };
            work.fill(window, mine, sweepers, loads);
        }
    }

    /// Fills the entries for the destination's own slot. With `keep`, those that are right stay.
    fn fill_own(&self, ways: &Ways, place: usize, entries: &mut [u8], keep: bool) {
        let ports = self.ports;
        let (to, masks) = (ways.to[place], ways.masks_to(place));
        for (xbar, entry) in (0..).zip(entries.iter_mut()).filter(|&(xbar, _)| xbar != to) {
            let set = &masks[xbar as usize * ports.words..][..ports.words];
            if !(keep && is_right(ports, set, *entry)) {
                *entry = own_port(ports, set, to, xbar);
            }
        }
    }

    /// Fills the entries of hosts at their own xbar, which are the hosts' ports.
    pub(super) fn fill_at_home(&self, slots: Slots, entries: &mut [u8]) {
        for (slot, row) in slots.range().zip(entries.chunks_exact_mut(self.ports.xbars)) {
            row[slots.to as usize] = self.subnet.port_of_slot(slot);
        }
    }

    pub(super) fn slots(&self, xbars: Range<u32>) -> Range<u32> {
        let slots = |xbar: u32| self.subnet.destinations.slots_of(xbar);
        if xbars.is_empty() { 0..0 } else { slots(xbars.start).start..slots(xbars.end - 1).end }
    }

    /// Destinations whose ways are known at once.
    fn windows(&self) -> impl Iterator<Item = Range<u32>> {
        let xbars = self.ports.xbars as u32;
        let block_bytes = BLOCK * self.ports.xbars * (8 * self.ports.words + 4);
        let blocks = (WAYS_BYTES / block_bytes.max(1)).max(2);
        let size = (blocks * BLOCK) as u32;
        (0..xbars).step_by(size as usize).map(move |start| start..xbars.min(start + size))
    }

    /// Splits destinations into runs with so many that have hosts.
    fn runs(&self, xbars: Range<u32>, size: usize) -> Vec<Range<u32>> {
        let mut runs = Vec::new();
        let (mut start, mut count) = (xbars.start, 0);
        for xbar in xbars.clone() {
            count += usize::from(self.sources[xbar as usize] > 0);
            // Destinations without hosts are little work, but not none.
            if count >= size || (xbar - start) as usize >= 16 * size {
                runs.push(start..xbar + 1);
                (start, count) = (xbar + 1, 0);
            }
        }
        runs.push(start..xbars.end);
        runs.retain(|run| !run.is_empty());
        runs
    }
}

/// The port from an xbar to another xbar's own slot. Ports take turns without regard to loads, as no host's
/// traffic goes there.
pub(super) fn own_port(ports: &XbarPorts, set: &[u64], to: u32, xbar: u32) -> u8 {
    nth(set, (to + xbar) as usize).map_or(Tables::NONE, |bit| ports.port_of_bit(bit))
}

/// The work on a window of destinations whose ways are known.
struct Work<'a> {
    filler: &'a Filler<'a>,
    ways: &'a [Ways],
    first: u32,
    base: Base<'a>,
}

/// What entries hold before they are filled.
#[derive(Clone, Copy)]
enum Base<'a> {
    Nothing,
    /// Entries that are right in these tables stay.
    Previous(&'a Previous<'a>),
    /// The entries are there, and their routes are counted among the loads.
    Loaded,
}

impl Work<'_> {
    /// Fills the entries of a window, round by round.
    fn fill(&self, window: Range<u32>, entries: &mut [u8], sweepers: &mut [Sweeper<'_>], loads: &mut [u32]) {
        let size = (self.filler.leaves.len() / ROUNDS).clamp(1, MOST_A_ROUND);
        let mut rest = entries;
        for round in self.filler.runs(window, size) {
            let parts = self.filler.runs(round, size.div_ceil(PARTS));
            // Runs end early where there are many destinations without hosts, so the last part takes those
            // that are left over.
            let parts = join_to(parts, sweepers.len());
            let mut jobs = Vec::with_capacity(parts.len());
            for (part, sweeper) in parts.into_iter().zip(sweepers.iter_mut()) {
                let len = self.filler.slots(part.clone()).len() * self.filler.ports.xbars;
                let (mine, others) = std::mem::take(&mut rest).split_at_mut(len);
                rest = others;
                jobs.push((part, mine, sweeper));
            }
            let used = jobs.len();
            jobs.into_par_iter().for_each(|(part, mine, sweeper)| self.fill_part(part, mine, sweeper));
            join_loads(loads, sweepers, used);
        }
    }

    fn fill_part(&self, part: Range<u32>, entries: &mut [u8], sweeper: &mut Sweeper<'_>) {
        let mut rest = entries;
        for xbar in part {
            let len = self.filler.slots(xbar..xbar + 1).len() * self.filler.ports.xbars;
            let (mine, others) = std::mem::take(&mut rest).split_at_mut(len);
            rest = others;
            self.fill_one(xbar, mine, sweeper);
        }
    }

    /// Fills the entries of one destination: its own slot's, then its hosts'.
    fn fill_one(&self, to: u32, entries: &mut [u8], sweeper: &mut Sweeper<'_>) {
        let at = (to - self.first) as usize;
        let (ways, place) = (&self.ways[at / BLOCK], at % BLOCK);
        let xbars = self.filler.ports.xbars;
        match self.base {
            // Sweepers write all entries of hosts.
            Base::Nothing => entries[..xbars].fill(Tables::NONE),
            Base::Previous(previous) => {
                let slots = self.filler.subnet.destinations.slots_of(to);
                let rows = entries.chunks_exact_mut(xbars).zip(previous.rows(slots));
                rows.for_each(|(row, previous)| row.copy_from_slice(previous));
            }
            Base::Loaded => {}
        }
        let (own, mut rest) = entries.split_at_mut(xbars);
        self.filler.fill_own(ways, place, own, matches!(self.base, Base::Previous(_)));
        for target in self.filler.targets(ways, place) {
            let (mine, others) = std::mem::take(&mut rest).split_at_mut(target.lanes * xbars);
            rest = others;
            match self.base {
                Base::Nothing => sweeper.compute(target, mine, None),
                Base::Previous(previous) => {
                    let runs = Runs::of(self.filler.ports, ways, place);
                    let kept = Kept::find(self.filler.ports, target, &runs, mine.chunks_exact(xbars));
                    kept.complete(self.filler, target, mine, sweeper, previous.counts_all());
                }
                Base::Loaded => {
                    sweeper.recount(target, mine, false);
                    sweeper.compute(target, mine, None);
                }
            }
            self.filler.fill_at_home(target.slots(), mine);
        }
    }
}

/// Joins the last runs, so that there are at most `most` runs.
fn join_to(mut runs: Vec<Range<u32>>, most: usize) -> Vec<Range<u32>> {
    while runs.len() > most {
        if let (Some(last), Some(before)) = (runs.pop(), runs.last_mut()) {
            before.end = last.end;
        }
    }
    runs
}

/// Adds to the loads what the first sweepers counted since they were last told, and tells all of them.
fn join_loads(loads: &mut [u32], sweepers: &mut [Sweeper<'_>], used: usize) {
    if sweepers[..used].iter().all(|sweeper| sweeper.only_singly) {
        let counted: Vec<Vec<(usize, u32)>> =
            sweepers.iter_mut().map(|sweeper| std::mem::take(&mut sweeper.singly)).collect();
        for (of, &(number, routes)) in
            counted.iter().enumerate().flat_map(|(of, list)| list.iter().map(move |counted| (of, counted)))
        {
            loads[number] = loads[number].wrapping_add(routes);
            for (_, sweeper) in sweepers.iter_mut().enumerate().filter(|&(other, _)| other != of) {
                sweeper.loads[number] = sweeper.loads[number].wrapping_add(routes);
            }
        }
        return;
    }
    let counted: Vec<&[u32]> = sweepers[..used].iter().map(|sweeper| sweeper.loads.as_slice()).collect();
    loads.par_chunks_mut(PIECE).enumerate().for_each(|(piece, loads)| {
        let known = loads.to_vec();
        for counted in &counted {
            for ((load, counted), known) in loads.iter_mut().zip(&counted[piece * PIECE..]).zip(&known) {
                *load = load.wrapping_add(counted.wrapping_sub(*known));
            }
        }
    });
    sweepers.par_iter_mut().for_each(|sweeper| {
        sweeper.loads.copy_from_slice(loads);
        sweeper.singly.clear();
        sweeper.only_singly = true;
    });
}
