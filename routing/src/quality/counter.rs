//! What crosses each channel, summed up along the tree of routes to each destination.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::alike_leaves::AlikeLeaves;
use super::table_routes::{NOWHERE, TableRoutes};

/// The xbars with hosts, where frames begin.
pub(super) struct Sources<'a> {
    leaves: &'a [u32],
    /// How many hosts each leaf has.
    hosts: &'a [u32],
    /// The place of each xbar among the leaves, or [`NOWHERE`].
    places: Vec<u32>,
    /// Leaves that may be counted together.
    alike: Vec<AlikeLeaves>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(routes: &TableRoutes<'_>, leaves: &'a [u32], hosts: &'a [u32]) -> Self {
        let mut places = vec![NOWHERE; routes.subnet.topology.xbar_count()];
        (0..).zip(leaves).for_each(|(place, &leaf)| places[leaf as usize] = place);
        Self { leaves, hosts, places, alike: AlikeLeaves::groups(routes, leaves, hosts) }
    }

    /// How many hosts send from an xbar itself.
    pub(super) fn hosts_at(&self, xbar: u32) -> u32 {
        self.hosts.get(self.places[xbar as usize] as usize).copied().unwrap_or_default()
    }
}

/// What is known of an xbar for the present slot.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The slot that the rest is about.
    slot: u32,
    /// How many channels frames cross from here, or [`Place::NEVER`] if they do not arrive.
    depth: u32,
    /// How many hosts' frames come by from other xbars.
    weight: u32,
    /// Whether some do, so that the xbar is in the tree.
    is_passed: bool,
}

impl Place {
    const NEVER: u32 = u32::MAX;
    const UNKNOWN: Self = Self { slot: NOWHERE, depth: Self::NEVER, weight: 0, is_passed: false };
}

/// What crosses a channel. It stands together since all of it is written together, at random places.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Crossing {
    /// How many frames cross if every host sends one to every address.
    pub(super) frames: u64,
    /// How many hosts these are for.
    pub(super) destinations: u32,
    /// The last host that was counted, counted from 1.
    seen: u32,
}

impl Crossing {
    fn add(&mut self, frames: u32, host: u32) {
        self.frames += u64::from(frames);
        self.destinations += u32::from(std::mem::replace(&mut self.seen, host + 1) != host + 1);
    }
}

/// What is counted, destination by destination. All numbers are whole, so their sums do not depend on the
/// order.
pub(super) struct Counter<'a> {
    routes: &'a TableRoutes<'a>,
    sources: &'a Sources<'a>,
    /// Which leaves' frames cross each channel, a bit each, but for those of a leaf where the channel begins: whenever
    /// anything crosses it, these do. All threads set bits here.
    crossed: &'a [AtomicU64],
    pub(super) crossings: Vec<Crossing>,
    /// How many hosts all leaves of a group send to by the same port: `common[group * ports + port]`. It is not among the
    /// crossings yet.
    common: Vec<u32>,
    places: Vec<Place>,
    route: Vec<u32>,
    /// The xbars that frames come by from other xbars, each after the one that it sends them to.
    tree: Vec<u32>,
    behind: LeafSets,
    pub(super) longest: usize,
    pub(super) routable: u64,
}

impl<'a> Counter<'a> {
    pub(super) fn new(
        routes: &'a TableRoutes<'a>,
        sources: &'a Sources<'a>,
        crossed: &'a [AtomicU64],
    ) -> Self {
        let topology = &routes.subnet.topology;
        Self {
            routes,
            sources,
            crossed,
            crossings: vec![Crossing::default(); topology.channel_count()],
            common: vec![0; sources.alike.len() * routes.port_count()],
            places: vec![Place::UNKNOWN; topology.xbar_count()],
            route: Vec::new(),
            tree: Vec::new(),
            behind: LeafSets::new(topology.xbar_count(), sources.leaves.len()),
            longest: 0,
            routable: 0,
        }
    }

    /// Counts all routes to the hosts of an xbar.
    pub(super) fn add_leaf(mut self, xbar: &u32) -> Self {
        let routes = self.routes;
        let topology = &routes.subnet.topology;
        for &host in topology.hosts_of(*xbar) {
            let mut reached = vec![false; self.sources.leaves.len()];
            let slots = routes.subnet.destinations.slots_of_host(host);
            let is_only_one = slots.len() == 1;
            for slot in slots {
                let end = routes.ends[slot as usize];
                if end != NOWHERE {
                    self.add_slot(host, (slot, end), is_only_one, &mut reached);
                }
            }
            let pairs = self.sources.hosts.iter().zip(&reached).filter(|&(_, &reached)| reached);
            let pairs: u64 = pairs.map(|(&hosts, _)| u64::from(hosts)).sum();
            // The host is among those of its own leaf, and does not send to itself.
            self.routable += pairs.saturating_sub(1);
        }
        self
    }

    /// Counts the routes to a slot. Each xbar of their tree is visited once. What leaves send themselves is counted as soon as
    /// they are known to reach the slot; what comes by from others follows, that from farther xbars first.
    fn add_slot(&mut self, host: u32, (slot, end): (u32, u32), is_only_one: bool, reached: &mut [bool]) {
        let ports = self.routes.tables.of_slot(slot);
        self.places[end as usize] = Place { slot, depth: 0, weight: 0, is_passed: true };
        self.tree.clear();
        // A host counts once on a channel that leads to several of its slots, which a sum of slots would not show.
        if is_only_one {
            for at in 0..self.sources.alike.len() {
                self.settle_alike(at, ports, slot, host);
            }
        }
        for (reached, &leaf) in reached.iter_mut().zip(self.sources.leaves) {
            if self.places[leaf as usize].slot != slot {
                self.follow(ports, (leaf, slot), host);
            }
            *reached |= self.places[leaf as usize].depth != Place::NEVER;
        }
        while let Some(xbar) = self.tree.pop() {
            let step = self.routes.next(xbar, ports[xbar as usize]);
            let (channel, head) = (step.channel as usize, step.head);
            let weight = self.places[xbar as usize].weight;
            if self.sources.places[xbar as usize] == NOWHERE {
                self.crossings[channel].add(weight, host);
            } else {
                // The frames that the leaf itself sends were counted before, and this destination with them, so only the number of frames
                // grows.
                self.crossings[channel].frames += u64::from(weight);
            }
            self.places[head as usize].weight += weight;
            let words = self.behind.words;
            let crossed = &self.crossed[channel * words..][..words];
            self.behind.pass_on(xbar, (head != end).then_some(head), crossed);
        }
    }

    /// Counts what all leaves of a group send, if that leaves all of them by the same port and arrives. Leaves that others'
    /// frames were seen to pass are known already; then nothing is done.
    fn settle_alike(&mut self, at: usize, ports: &[u8], slot: u32, host: u32) {
        let group = &self.sources.alike[at];
        let Some(port) = group.common_port(ports) else { return };
        let head = self.routes.next(group.leaves[0], port).head;
        if head == NOWHERE {
            return;
        }
        if self.places[head as usize].slot != slot {
            self.follow(ports, (head, slot), host);
        }
        let is_known = |&leaf: &u32| self.places[leaf as usize].slot == slot;
        if self.places[head as usize].depth == Place::NEVER || group.leaves.iter().any(is_known) {
            return;
        }
        let depth = self.pass(head, group.hosts);
        self.common[at * self.routes.port_count() + usize::from(port)] += 1;
        if depth > 1 {
            self.behind.add(head, &group.bits);
        }
        for &leaf in &group.leaves {
            self.places[leaf as usize] = Place { slot, depth, ..Place::UNKNOWN };
        }
        self.longest = self.longest.max(depth as usize);
    }

    /// Has the frames of so many hosts come by an xbar from others. Returns how many channels they cross from these.
    fn pass(&mut self, head: u32, hosts: u32) -> u32 {
        let place = &mut self.places[head as usize];
        place.weight += hosts;
        // The end of all routes counts as passed from the beginning: it is in no tree.
        if !std::mem::replace(&mut place.is_passed, true) {
            self.tree.push(head);
        }
        place.depth + 1
    }

    /// Adds to the crossings what was counted of groups of leaves.
    pub(super) fn spread_common(&mut self) {
        let ports = self.routes.port_count();
        for (group, counts) in self.sources.alike.iter().zip(self.common.chunks_exact_mut(ports)) {
            for (port, count) in (0..).zip(counts) {
                let destinations = std::mem::take(count);
                for &leaf in group.leaves.iter().filter(|_| destinations > 0) {
                    let crossing = &mut self.crossings[self.routes.next(leaf, port).channel as usize];
                    crossing.frames += u64::from(self.sources.hosts_at(leaf)) * u64::from(destinations);
                    crossing.destinations += destinations;
                }
            }
        }
    }

    /// Follows frames from an xbar of which nothing is known to one that is known, and settles all that were passed. Each xbar
    /// is passed once for a slot, so that tables full of loops cost no more than good ones.
    fn follow(&mut self, ports: &[u8], (from, slot): (u32, u32), host: u32) {
        let mut xbar = from;
        while self.places[xbar as usize].slot != slot {
            // Until it is known to arrive, it does not: so a loop ends where it closes.
            self.places[xbar as usize] = Place { slot, ..Place::UNKNOWN };
            self.route.push(xbar);
            match self.routes.next(xbar, ports[xbar as usize]).head {
                NOWHERE => break,
                head => xbar = head,
            }
        }
        if self.places[xbar as usize].depth == Place::NEVER {
            self.route.clear();
        }
        while let Some(xbar) = self.route.pop() {
            self.settle(xbar, ports[xbar as usize], host);
        }
    }

    /// Counts what the hosts of an xbar itself send by a port, behind which the way is known.
    fn settle(&mut self, xbar: u32, port: u8, host: u32) {
        let step = self.routes.next(xbar, port);
        let place = self.sources.places[xbar as usize];
        let hosts = self.sources.hosts_at(xbar);
        let depth = self.pass(step.head, hosts);
        if place != NOWHERE {
            self.crossings[step.channel as usize].add(hosts, host);
            if depth > 1 {
                self.behind.add(step.head, &[(place as usize / 64, 1 << (place % 64))]);
            }
        }
        self.places[xbar as usize].depth = depth;
        self.longest = self.longest.max(depth as usize);
    }

    pub(super) fn merge(mut self, other: &Self) -> Self {
        for (sum, crossing) in self.crossings.iter_mut().zip(&other.crossings) {
            sum.frames += crossing.frames;
            sum.destinations += crossing.destinations;
        }
        self.common.iter_mut().zip(&other.common).for_each(|(sum, count)| *sum += count);
        self.longest = self.longest.max(other.longest);
        self.routable += other.routable;
        self
    }
}

/// The leaves whose frames come by an xbar from other xbars, for those xbars that have some.
struct LeafSets {
    /// How many words a set has; each leaf has a bit.
    words: usize,
    sets: Vec<u64>,
    /// The words of each set outside of which it has no bits, none if it is empty: leaves below an xbar of a tree stand side by side.
    ranges: Vec<Range<usize>>,
    /// Sets that no xbar has; they are empty.
    free: Vec<u32>,
    /// The set of each xbar, or [`NOWHERE`].
    of: Vec<u32>,
}

impl LeafSets {
    fn new(xbars: usize, leaves: usize) -> Self {
        let words = leaves.div_ceil(64);
        Self { words, sets: Vec::new(), ranges: Vec::new(), free: Vec::new(), of: vec![NOWHERE; xbars] }
    }

    /// Adds leaves to those whose frames come by an xbar: the bits in each word that has some, by rising word.
    fn add(&mut self, xbar: u32, bits: &[(usize, u64)]) {
        let (Some(first), Some(last)) = (bits.first(), bits.last()) else { return };
        let set = self.set_of(xbar);
        for (word, bits) in bits {
            self.sets[set as usize * self.words + word] |= bits;
        }
        self.widen(set, first.0..last.0 + 1);
    }

    /// Marks a channel as crossed by all frames that come by an xbar. Hands them on to the xbar at the other end, unless they
    /// are for that one. The set of the xbar is empty after that.
    fn pass_on(&mut self, xbar: u32, head: Option<u32>, crossed: &[AtomicU64]) {
        let set = std::mem::replace(&mut self.of[xbar as usize], NOWHERE);
        if set == NOWHERE {
            return;
        }
        let range = self.ranges[set as usize].clone();
        let from = set as usize * self.words;
        for word in range.clone() {
            mark(&crossed[word], self.sets[from + word]);
        }
        match head {
            Some(head) if self.of[head as usize] == NOWHERE => self.of[head as usize] = set,
            Some(head) => {
                let into = self.of[head as usize];
                for word in range.clone() {
                    self.sets[into as usize * self.words + word] |= self.sets[from + word];
                }
                self.widen(into, range);
                self.give_back(set);
            }
            None => self.give_back(set),
        }
    }

    fn widen(&mut self, set: u32, by: Range<usize>) {
        let range = &mut self.ranges[set as usize];
        *range = if range.start == range.end { by } else { range.start.min(by.start)..range.end.max(by.end) };
    }

    /// The set of an xbar, which gets an empty one if it had none.
    fn set_of(&mut self, xbar: u32) -> u32 {
        if self.of[xbar as usize] == NOWHERE {
            self.of[xbar as usize] = self.free.pop().unwrap_or_else(|| {
                self.sets.resize(self.sets.len() + self.words, 0);
                self.ranges.push(0..0);
                (self.ranges.len() - 1) as u32
            });
        }
        self.of[xbar as usize]
    }

    fn give_back(&mut self, set: u32) {
        let range = std::mem::take(&mut self.ranges[set as usize]);
        self.sets[set as usize * self.words..][range].fill(0);
        self.free.push(set);
    }
}

/// Sets bits in a word that all threads share. Most bits are set before long, and then nothing is written.
fn mark(word: &AtomicU64, bits: u64) {
    if bits & !word.load(Ordering::Relaxed) != 0 {
        word.fetch_or(bits, Ordering::Relaxed);
    }
}
