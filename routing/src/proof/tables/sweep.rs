//! Follows the entries of one destination after the other.

use super::dependencies::Dependencies;
use super::wiring::Wiring;
use super::{DeadEnd, TableViolation, TablesProof};
use crate::proof::Cycle;
use crate::tables::{Layers, SlotEnd, Tables};
use crate::{ProofRules, Subnet};

/// What is known of the way from an xbar: hops to the destination, or one of these.
mod way {
    pub(super) const UNKNOWN: u16 = 0;
    pub(super) const MAX_HOPS: u16 = u16::MAX - 3;
    pub(super) const BROKEN: u16 = u16::MAX - 2;
    pub(super) const LOOP: u16 = u16::MAX - 1;
    /// On the walk that is being made.
    pub(super) const WALKED: u16 = u16::MAX;
}

/// Violations of one kind: the first ones, and how many.
#[derive(Default)]
pub(super) struct Kind {
    listed: Vec<TableViolation>,
    pub(super) count: u64,
}

impl Kind {
    fn add(&mut self, violation: impl FnOnce() -> TableViolation) {
        self.count += 1;
        if self.listed.len() < TablesProof::MAX_LISTED {
            self.listed.push(violation());
        }
    }

    fn and(mut self, later: Self) -> Self {
        let room = TablesProof::MAX_LISTED - self.listed.len();
        self.listed.extend(later.listed.into_iter().take(room));
        Self { count: self.count + later.count, ..self }
    }
}

/// Xbars whose entries lead no further. Each is one cause for all the routes that end there.
#[derive(Default)]
pub(super) struct DeadEnds {
    xbars: Vec<WrongXbar>,
    pub(super) count: u64,
}

/// An xbar with wrong entries, and the first route that ends there.
struct WrongXbar {
    at: u32,
    from: u32,
    slot: u32,
    why: DeadEnd,
    entries: u64,
    routes: u64,
    /// The slot of the entry that was found last.
    last_slot: u32,
}

impl DeadEnds {
    /// The most xbars that are told apart. If there are more, some of the routes are counted in the sum
    /// alone.
    const MOST: usize = 4 * TablesProof::MAX_LISTED;

    fn add(&mut self, from: u32, slot: u32, at: u32, why: DeadEnd) {
        self.count += 1;
        match self.xbars.iter().position(|wrong| wrong.at == at) {
            Some(place) => {
                let wrong = &mut self.xbars[place];
                wrong.entries += u64::from(wrong.last_slot != slot);
                wrong.routes += 1;
                wrong.last_slot = slot;
            }
            None if self.xbars.len() < Self::MOST => {
                self.xbars.push(WrongXbar { at, from, slot, why, entries: 1, routes: 1, last_slot: slot });
            }
            None => {}
        }
    }

    fn and(mut self, later: Self) -> Self {
        self.count += later.count;
        for wrong in later.xbars {
            match self.xbars.iter().position(|known| known.at == wrong.at) {
                Some(place) => {
                    let known = &mut self.xbars[place];
                    known.entries += wrong.entries;
                    known.routes += wrong.routes;
                }
                None if self.xbars.len() < Self::MOST => self.xbars.push(wrong),
                None => {}
            }
        }
        self
    }

    /// Those that keep most routes from arriving come first.
    fn into_violations(mut self) -> impl Iterator<Item = TableViolation> {
        self.xbars.sort_by_key(|wrong| std::cmp::Reverse(wrong.routes));
        self.xbars.into_iter().take(TablesProof::MAX_LISTED).map(|wrong| {
            let WrongXbar { at, from, slot, why, entries, routes, .. } = wrong;
            TableViolation::NoRoute { from, slot, at, why, entries, routes }
        })
    }
}

/// What was found of some destinations.
#[derive(Default)]
pub(super) struct Swept {
    pub(super) max_hops: usize,
    pub(super) no_route: DeadEnds,
    pub(super) loops: Kind,
    pub(super) too_long: Kind,
    pub(super) no_layer: Kind,
}

impl Swept {
    /// Adds what was found of destinations that come later.
    pub(super) fn and(self, later: Self) -> Self {
        Self {
            max_hops: self.max_hops.max(later.max_hops),
            no_route: self.no_route.and(later.no_route),
            loops: self.loops.and(later.loops),
            too_long: self.too_long.and(later.too_long),
            no_layer: self.no_layer.and(later.no_layer),
        }
    }

    pub(super) fn violation_count(&self) -> u64 {
        self.no_route.count + self.loops.count + self.too_long.count + self.no_layer.count
    }

    pub(super) fn into_violations(self) -> Vec<TableViolation> {
        let kinds = [self.loops, self.too_long, self.no_layer];
        self.no_route.into_violations().chain(kinds.into_iter().flat_map(|kind| kind.listed)).collect()
    }
}

/// What a thread needs for one slot at a time.
pub(super) struct Scratch {
    ways: Vec<u16>,
    walk: Vec<u32>,
    /// Xbars whose frames arrive, each after the next one on its way.
    arriving: Vec<u32>,
    /// The layers of the frames that pass each xbar, a bit each.
    passing: Vec<u16>,
    /// The layer of the frames that begin at each xbar, for the present destination xbar.
    layer_of: Vec<u16>,
}

/// The tables, and the dependencies found so far.
pub(super) struct Sweep<'a> {
    subnet: &'a Subnet,
    tables: &'a Tables,
    layers: &'a Layers,
    rules: &'a ProofRules,
    /// Whether everything is in one layer.
    single: bool,
    wiring: Wiring,
    dependencies: Dependencies,
    /// For each xbar that is the smallest of its part, the xbars of the part that have hosts.
    leaves: Vec<Vec<u32>>,
    /// All xbars of that part.
    xbars: Vec<Vec<u32>>,
}

impl<'a> Sweep<'a> {
    pub(super) fn new(
        subnet: &'a Subnet,
        tables: &'a Tables,
        layers: &'a Layers,
        rules: &'a ProofRules,
    ) -> Self {
        let topology = &subnet.topology;
        let wiring = Wiring::new(topology);
        let mut leaves = vec![Vec::new(); topology.xbar_count()];
        let mut xbars = leaves.clone();
        for xbar in 0..topology.xbar_count() as u32 {
            let part = topology.component(xbar) as usize;
            xbars[part].push(xbar);
            if !subnet.destinations.host_slots_of(xbar).is_empty() {
                leaves[part].push(xbar);
            }
        }
        let used = layers.highest().saturating_add(1).min(Layers::MAX);
        let dependencies = Dependencies::new(wiring.dependency_count(), used);
        Self { subnet, tables, layers, rules, single: used == 1, wiring, dependencies, leaves, xbars }
    }

    pub(super) fn scratch(&self) -> Scratch {
        let xbars = self.subnet.topology.xbar_count();
        Scratch {
            ways: vec![way::UNKNOWN; xbars],
            walk: Vec::new(),
            arriving: Vec::with_capacity(xbars),
            passing: vec![0; xbars],
            layer_of: vec![1; xbars],
        }
    }

    /// A cycle of each layer that has one, by layer.
    pub(super) fn cycles(&self) -> Vec<(u8, Cycle)> {
        self.dependencies.cycles(&self.subnet.topology, &self.wiring)
    }

    /// Follows the entries of all slots of an xbar.
    pub(super) fn destination(&self, scratch: &mut Scratch, xbar: u32) -> Swept {
        let mut found = Swept::default();
        let part = self.subnet.topology.component(xbar) as usize;
        let host_slots = self.subnet.destinations.host_slots_of(xbar);
        let sources = if self.rules.xbar_destinations { &self.xbars[part] } else { &self.leaves[part] };
        if !host_slots.is_empty() || self.rules.xbar_destinations {
            self.find_layers(scratch, sources, xbar, &mut found);
        }
        if self.rules.xbar_destinations {
            let slot = self.subnet.destinations.slot_of_xbar(xbar);
            self.slot(scratch, slot, xbar, &self.leaves[part], &mut found);
        }
        for slot in host_slots {
            self.slot(scratch, slot, xbar, sources, &mut found);
        }
        found
    }

    fn find_layers(&self, scratch: &mut Scratch, sources: &[u32], to: u32, found: &mut Swept) {
        if self.single && self.layers.first < Layers::MAX {
            return;
        }
        for &from in sources {
            let layer = self.layers.of(from, to);
            let exists = u16::from(self.layers.first) + u16::from(layer) < u16::from(Layers::MAX);
            scratch.layer_of[from as usize] = if exists { 1 << layer } else { 0 };
            if !exists {
                let layer = u16::from(self.layers.first) + u16::from(layer);
                found.no_layer.add(|| TableViolation::NoSuchLayer { from, to, layer });
            }
        }
    }

    /// Follows the entries of one slot, whose destination is at `end`.
    fn slot(&self, scratch: &mut Scratch, slot: u32, end: u32, sources: &[u32], found: &mut Swept) {
        let ports = self.tables.of_slot(slot);
        scratch.ways.fill(way::UNKNOWN);
        scratch.arriving.clear();
        let arrives = match self.subnet.destinations.end(slot) {
            SlotEnd::Xbar(_) => true,
            SlotEnd::Host { host, .. } => self.wiring.step(end, ports[end as usize]).host() == Some(host),
        };
        if arrives {
            scratch.ways[end as usize] = 1;
        }
        let mut failed = false;
        let mut longest = 0;
        for &from in sources {
            let mut hops = scratch.ways[from as usize];
            if hops == way::UNKNOWN {
                hops = self.follow(scratch, ports, from);
            }
            failed |= hops > way::MAX_HOPS;
            longest = longest.max(hops);
        }
        if failed || longest > self.rules.max_hops.into() {
            longest = self.tell(scratch, slot, end, sources, found);
        }
        found.max_hops = found.max_hops.max(longest.into());
        if !self.single {
            self.add_dependencies(scratch, ports, sources);
        }
    }

    /// Walks from an xbar to one whose way is known, and tells how many hops it has, or how it fails.
    fn follow(&self, scratch: &mut Scratch, ports: &[u8], from: u32) -> u16 {
        // Nearly all xbars of a tree are leaves, next to one whose way is known already.
        if let Some(next) = self.wiring.step(from, ports[from as usize]).xbar()
            && (1..=way::MAX_HOPS).contains(&scratch.ways[next as usize])
        {
            return self.arrive(scratch, ports, from, next);
        }
        let mut xbar = from;
        let mut way = loop {
            match scratch.ways[xbar as usize] {
                way::UNKNOWN => {}
                way::WALKED => break way::LOOP,
                known => break known,
            }
            scratch.ways[xbar as usize] = way::WALKED;
            scratch.walk.push(xbar);
            match self.wiring.step(xbar, ports[xbar as usize]).xbar() {
                Some(next) => xbar = next,
                None => break way::BROKEN,
            }
        };
        while let Some(before) = scratch.walk.pop() {
            if way <= way::MAX_HOPS {
                way = self.arrive(scratch, ports, before, xbar);
            } else {
                scratch.ways[before as usize] = way;
            }
            xbar = before;
        }
        way
    }

    /// Adds the dependency of frames that come by an xbar, by whose next one they arrive, and tells how many hops they have
    /// from there.
    fn arrive(&self, scratch: &mut Scratch, ports: &[u8], xbar: u32, next: u32) -> u16 {
        let way = scratch.ways[next as usize];
        if !self.single {
            scratch.arriving.push(xbar);
        } else if way > 1 {
            // The destination's own way is known from the start: `next` leads on if it is not that.
            let step = self.wiring.step(xbar, ports[xbar as usize]);
            self.dependencies.add(step.dependencies + u32::from(ports[next as usize]), 1);
        }
        let way = (way + 1).min(way::MAX_HOPS);
        scratch.ways[xbar as usize] = way;
        way
    }

    /// Adds the dependencies of frames in several layers. What comes by each xbar is gathered from the far
    /// xbars to the near ones.
    fn add_dependencies(&self, scratch: &mut Scratch, ports: &[u8], sources: &[u32]) {
        for &xbar in &scratch.arriving {
            scratch.passing[xbar as usize] = 0;
        }
        for &from in sources {
            scratch.passing[from as usize] = scratch.layer_of[from as usize];
        }
        for &xbar in scratch.arriving.iter().rev() {
            let step = self.wiring.step(xbar, ports[xbar as usize]);
            let Some(next) = step.xbar() else { continue };
            let passing = scratch.passing[xbar as usize];
            if scratch.ways[next as usize] > 1 {
                self.dependencies.add(step.dependencies + u32::from(ports[next as usize]), passing);
                scratch.passing[next as usize] |= passing;
            }
        }
    }

    /// Lists what fails, and tells the hops of the longest route that does arrive.
    fn tell(&self, scratch: &Scratch, slot: u32, end: u32, sources: &[u32], found: &mut Swept) -> u16 {
        let mut longest = 0;
        let destinations = &self.subnet.destinations;
        // A host that is alone at its xbar sends itself nothing.
        let only_itself = destinations.host_slots_of(end).len() == 1 << destinations.lmc()
            && !self.rules.xbar_destinations
            && matches!(destinations.end(slot), SlotEnd::Host { .. });
        for &from in sources {
            match scratch.ways[from as usize] {
                hops @ ..=way::MAX_HOPS => {
                    longest = longest.max(hops);
                    if hops > self.rules.max_hops.into() {
                        found.too_long.add(|| TableViolation::TooLong { from, slot, hops: hops.into() });
                    }
                }
                _ if only_itself && from == end => {}
                way::LOOP => found.loops.add(|| self.circle(slot, from)),
                _ => {
                    let (at, why) = self.dead_end(slot, from);
                    found.no_route.add(from, slot, at, why);
                }
            }
        }
        longest
    }

    fn next(&self, slot: u32, xbar: u32) -> Option<u32> {
        self.wiring.step(xbar, self.tables.port(xbar, slot)).xbar()
    }

    fn circle(&self, slot: u32, from: u32) -> TableViolation {
        let mut place = vec![None; self.subnet.topology.xbar_count()];
        let mut xbars = Vec::new();
        let mut xbar = from;
        while place[xbar as usize].is_none() {
            place[xbar as usize] = Some(xbars.len());
            xbars.push(xbar);
            xbar = self.next(slot, xbar).unwrap_or(xbar);
        }
        xbars.drain(..place[xbar as usize].unwrap_or_default());
        TableViolation::Loop { from, slot, xbars }
    }

    /// The xbar where frames get no further, and why.
    fn dead_end(&self, slot: u32, from: u32) -> (u32, DeadEnd) {
        let mut at = from;
        while let Some(next) = self.next(slot, at) {
            at = next;
        }
        let port = self.tables.port(at, slot);
        let why = match self.wiring.step(at, port).host() {
            Some(host) => DeadEnd::WrongHost { port, host },
            None if port == Tables::NONE => DeadEnd::NoEntry,
            None => DeadEnd::NoCable { port },
        };
        (at, why)
    }
}
