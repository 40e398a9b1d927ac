//! Each xbar's table, filled by itself: the least loaded of the least-hop ports.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use mapper_proto::map::PortRef;

use super::hops::LeastHops;
use super::order::{DestinationOrder, Target};
use super::paths::{Paths, PortCandidate, Used};
use crate::engines::{Settings, in_force};
use crate::tables::Tables;
use crate::topology::Far;
use crate::{Subnet, Topology};

/// All that the tables of a fabric are made from.
pub(super) struct Rows<'a> {
    subnet: &'a Subnet,
    settings: &'a Settings,
    least: &'a LeastHops,
    order: &'a DestinationOrder,
    /// Whether the first least-hop port says which neighbour all of a destination's frames go to.
    one_neighbour: bool,
}

impl<'a> Rows<'a> {
    pub(super) fn new(
        subnet: &'a Subnet,
        settings: &'a Settings,
        least: &'a LeastHops,
        order: &'a DestinationOrder,
        one_neighbour: bool,
    ) -> Self {
        Self { subnet, settings, least, order, one_neighbour }
    }

    /// The tables of all xbars.
    pub(super) fn tables(&self) -> Tables {
        let (xbars, slots) = (self.subnet.topology.xbar_count(), self.subnet.destinations.slot_count());
        let mut tables = Tables::empty(xbars, slots);
        if slots == 0 {
            return tables;
        }
        let mut rows = vec![Tables::NONE; xbars * slots];
        rows.par_chunks_mut(slots).enumerate().for_each_init(
            || Memory::new(self),
            |memory, (xbar, row)| Row::new(self, xbar as u32, memory, row).fill(),
        );
        transpose(&rows, slots, tables.as_mut_slice(), xbars);
        tables
    }

    fn has_paths(&self) -> bool {
        self.subnet.destinations.lmc() > 0
    }

    /// Whether the counters alone decide.
    fn is_plain(&self) -> bool {
        !self.has_paths() && self.settings.scatter.is_none() && !self.settings.port_shifting
    }
}

/// Turns rows by xbar into rows by slot. Squares of both stay in the cache.
fn transpose(from: &[u8], slots: usize, to: &mut [u8], xbars: usize) {
    const SIDE: usize = 64;
    to.par_chunks_mut(SIDE * xbars).enumerate().for_each(|(block, to)| {
        for first in (0..xbars).step_by(SIDE) {
            for (slot, to) in to.chunks_exact_mut(xbars).enumerate() {
                let slot = block * SIDE + slot;
                for xbar in first..xbars.min(first + SIDE) {
                    to[xbar] = from[xbar * slots + slot];
                }
            }
        }
    });
}

/// The memory in which a row is computed. It is kept from row to row.
struct Memory {
    counters: Vec<u32>,
    candidates: Vec<u8>,
    paths: Paths,
    /// The nodes that a destination's earlier paths go to, by its first slot.
    used: Vec<Vec<Used>>,
}

impl Memory {
    fn new(rows: &Rows<'_>) -> Self {
        let slots = if rows.has_paths() { rows.subnet.destinations.slot_count() } else { 0 };
        let used = vec![Vec::new(); slots];
        Self { counters: Vec::new(), candidates: Vec::new(), paths: Paths::default(), used }
    }
}

/// The table of one xbar.
struct Row<'a> {
    rows: &'a Rows<'a>,
    topology: &'a Topology,
    xbar: u32,
    /// Where each channel, by its place, stands in the order in which ports are tried.
    ranks: Option<Vec<u8>>,
    /// Places of channels that do not count.
    uncounted: Vec<bool>,
    random: Option<ChaCha8Rng>,
    memory: &'a mut Memory,
    ports: &'a mut [u8],
}

impl<'a> Row<'a> {
    fn new(rows: &'a Rows<'a>, xbar: u32, memory: &'a mut Memory, ports: &'a mut [u8]) -> Self {
        let topology = &rows.subnet.topology;
        let channels = topology.channels_of(xbar);
        memory.counters.clear();
        memory.counters.resize(channels.len(), 0);
        memory.used.iter_mut().for_each(Vec::clear);
        let ranks = rows.settings.port_order.get(&xbar).map(|order| {
            let rank = port_ranks(order);
            channels.clone().map(|channel| rank[usize::from(topology.tail(channel).port)]).collect()
        });
        let is_uncounted = |channel| rows.settings.uncounted_ports.contains(&topology.tail(channel));
        let random = rows.settings.scatter.map(|seed| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(u64::from(xbar));
            random
        });
        let uncounted = channels.map(is_uncounted).collect();
        Self { rows, topology, xbar, ranks, uncounted, random, memory, ports }
    }

    fn fill(mut self) {
        let mut candidates_for = None;
        for path in 0..1 << self.rows.subnet.destinations.lmc() {
            for &target in &self.rows.order.0 {
                if target.is_xbar && (path > 0 || target.xbar == self.xbar) {
                    continue;
                }
                let slot = target.slot + path;
                if target.xbar == self.xbar {
                    self.ports[slot as usize] = self.rows.subnet.port_of_slot(slot);
                    continue;
                }
                if candidates_for != Some(target.xbar) {
                    self.find_candidates(target.xbar);
                    candidates_for = Some(target.xbar);
                }
                if self.memory.candidates.is_empty() {
                    continue;
                }
                let place = self.kept(target, slot).unwrap_or_else(|| self.choose(target, slot, path));
                self.ports[slot as usize] = self.tail(place).port;
                if !target.is_xbar && !self.uncounted[usize::from(place)] {
                    self.count(target, place);
                }
            }
        }
    }

    /// The port that a channel leaves, by its place.
    fn tail(&self, place: u8) -> PortRef {
        self.topology.tail(self.topology.channels_of(self.xbar).start + u32::from(place))
    }

    /// The port that a channel arrives at, by its place.
    fn head(&self, place: u8) -> PortRef {
        self.topology.head(self.topology.channels_of(self.xbar).start + u32::from(place))
    }

    /// Finds the least-hop ports to an xbar, in the order in which ports are tried.
    fn find_candidates(&mut self, destination: u32) {
        let candidates = &mut self.memory.candidates;
        candidates.clear();
        candidates.extend(self.rows.least.places(self.topology.channels_of(self.xbar), destination));
        if let Some(ranks) = &self.ranks {
            candidates.sort_unstable_by_key(|&place| ranks[usize::from(place)]);
        }
        if self.rows.one_neighbour
            && let Some(&first) = self.memory.candidates.first()
        {
            let neighbour = self.head(first).xbar;
            let mut candidates = std::mem::take(&mut self.memory.candidates);
            candidates.retain(|&place| self.head(place).xbar == neighbour);
            self.memory.candidates = candidates;
        }
    }

    /// The place of the port that was in force, if it still is one of the least hops.
    fn kept(&self, target: Target, slot: u32) -> Option<u8> {
        let previous = in_force::tables(self.rows.settings)?;
        let port = PortRef { xbar: self.xbar, port: previous.port(self.xbar, slot) };
        let Far::Channel(channel) = self.topology.far(port) else { return None };
        let first = self.topology.channels_of(self.xbar).start;
        self.rows.least.contains(channel, target.xbar).then(|| (channel - first) as u8)
    }

    /// The place of the port to take among the candidates.
    fn choose(&mut self, target: Target, slot: u32, path: u32) -> u8 {
        if self.rows.is_plain() {
            let candidates = self.memory.candidates.iter().copied();
            let counters = &self.memory.counters;
            return candidates.min_by_key(|&place| counters[usize::from(place)]).unwrap_or_default();
        }
        let start = self.start(slot, path);
        self.memory.paths.clear();
        let (before, after): (Vec<u8>, Vec<u8>) =
            self.memory.candidates.iter().partition(|&&place| self.rank(place) < start);
        for place in after.into_iter().chain(before) {
            let head = self.head(place);
            let candidate = PortCandidate {
                place,
                count: self.memory.counters[usize::from(place)],
                node: head.xbar,
                system: self.rows.subnet.xbar_systems[head.xbar as usize],
                arrival: head.port,
            };
            self.memory.paths.push(candidate);
        }
        let nobody = Vec::new();
        let used = self.memory.used.get(target.slot as usize).unwrap_or(&nobody);
        let paths = &mut self.memory.paths;
        if self.rows.has_paths() {
            paths.look_up(used, self.rows.one_neighbour);
        }
        let shift = self.rows.settings.port_shifting;
        match &mut self.random {
            Some(random) => {
                let all = paths.least_loaded();
                all[random.random_range(0..all.len())]
            }
            None => paths.best(self.rows.has_paths() && !self.rows.one_neighbour, shift),
        }
    }

    /// Where in the order of ports a scan begins, which is behind the port of the destination's previous
    /// path.
    fn start(&self, slot: u32, path: u32) -> u32 {
        if path == 0 || self.rows.one_neighbour {
            return 1;
        }
        let ports = u32::from(self.rows.subnet.xbar_ports[self.xbar as usize]) + 1;
        (u32::from(self.ports[slot as usize - 1]) + 1) % ports
    }

    /// Where a port stands in the order in which ports are tried.
    fn rank(&self, place: u8) -> u32 {
        match &self.ranks {
            Some(ranks) => ranks[usize::from(place)].into(),
            None => self.tail(place).port.into(),
        }
    }

    fn count(&mut self, target: Target, place: u8) {
        self.memory.counters[usize::from(place)] += 1;
        if self.rows.has_paths() {
            let head = self.head(place);
            let system = self.rows.subnet.xbar_systems[head.xbar as usize];
            let used = &mut self.memory.used[target.slot as usize];
            let arrival = self.rows.one_neighbour.then_some(head.port);
            match used.iter_mut().find(|used| used.is(head.xbar, arrival)) {
                Some(used) => used.paths += 1,
                None => used.push(Used { node: head.xbar, system, arrival: head.port, paths: 1 }),
            }
        }
    }
}

/// Where each port stands in an order. Ports that the order leaves out follow, by rising number.
fn port_ranks(order: &[u8]) -> Vec<u8> {
    let mut ranks = vec![0; usize::from(u8::MAX) + 1];
    let mut next = 1_u8;
    for port in order.iter().copied().chain(1..=u8::MAX) {
        let rank = &mut ranks[usize::from(port)];
        if *rank == 0 {
            *rank = next;
            next = next.saturating_add(1);
        }
    }
    ranks
}
