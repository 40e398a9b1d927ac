//! What crosses each channel, summed up along the tree of routes to each destination.

use std::sync::atomic::{AtomicU64, Ordering};

use super::table_routes::{NOWHERE, TableRoutes};

/// The xbars with hosts, where frames begin.
pub(super) struct Sources<'a> {
    leaves: &'a [u32],
    /// How many hosts each leaf has.
    hosts: &'a [u32],
    /// The place of each xbar among the leaves, or [`NOWHERE`].
    places: Vec<u32>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(xbars: usize, leaves: &'a [u32], hosts: &'a [u32]) -> Self {
        let mut places = vec![NOWHERE; xbars];
        (0..).zip(leaves).for_each(|(place, &leaf)| places[leaf as usize] = place);
        Self { leaves, hosts, places }
    }

    /// How many hosts send from an xbar itself.
    fn hosts_at(&self, xbar: u32) -> u64 {
        let place = self.places[xbar as usize];
        self.hosts.get(place as usize).map_or(0, |&hosts| hosts.into())
    }
}

/// What is counted, destination by destination. All numbers are whole, so their sums do not depend on the
/// order.
pub(super) struct Counter<'a> {
    routes: &'a TableRoutes<'a>,
    sources: &'a Sources<'a>,
    /// Which leaves' frames cross each channel, a bit each. All threads set bits here.
    crossed: &'a [AtomicU64],
    /// How many frames cross each channel if every host sends one to every address.
    pub(super) loads: Vec<u64>,
    pub(super) destinations: Vec<u32>,
    /// The last host that was counted at each channel, counted from 1.
    seen: Vec<u32>,
    /// Whether frames for the current slot get on from an xbar: the slot's mark, plus 1 if they arrive.
    known: Vec<u64>,
    mark: u64,
    route: Vec<u32>,
    /// The xbars from which frames arrive, each after the one that it sends them to.
    tree: Vec<u32>,
    /// For each xbar of the tree, how many channels are crossed from there.
    depths: Vec<u32>,
    /// For each xbar of the tree, how many hosts' frames come by.
    weights: Vec<u64>,
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
        let (channels, xbars) = (topology.channel_count(), topology.xbar_count());
        Self {
            routes,
            sources,
            crossed,
            loads: vec![0; channels],
            destinations: vec![0; channels],
            seen: vec![0; channels],
            known: vec![0; xbars],
            mark: 0,
            route: Vec::new(),
            tree: Vec::new(),
            depths: vec![0; xbars],
            weights: vec![0; xbars],
            behind: LeafSets::new(xbars, sources.leaves.len()),
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
            for slot in routes.subnet.destinations.slots_of_host(host) {
                let end = routes.ends[slot as usize];
                if end != NOWHERE {
                    self.add_slot(host, slot, end, &mut reached);
                }
            }
            let pairs = self.sources.hosts.iter().zip(&reached).filter(|&(_, &reached)| reached);
            let pairs: u64 = pairs.map(|(&hosts, _)| u64::from(hosts)).sum();
            // The host is among those of its own leaf, and does not send to itself.
            self.routable += pairs.saturating_sub(1);
        }
        self
    }

    /// Counts the routes to a slot. Each xbar of their tree is visited once, and those that are farther come
    /// first.
    fn add_slot(&mut self, host: u32, slot: u32, end: u32, reached: &mut [bool]) {
        let ports = self.routes.tables.of_slot(slot);
        self.mark += 2;
        self.known[end as usize] = self.mark + 1;
        (self.depths[end as usize], self.weights[end as usize]) = (0, 0);
        self.tree.clear();
        for (reached, &leaf) in reached.iter_mut().zip(self.sources.leaves) {
            *reached |= self.arrives(ports, leaf);
        }
        while let Some(xbar) = self.tree.pop() {
            let step = self.routes.next(xbar, ports[xbar as usize]);
            let (channel, head) = (step.channel as usize, step.head);
            let weight = self.weights[xbar as usize];
            self.loads[channel] += weight;
            self.weights[head as usize] += weight;
            if std::mem::replace(&mut self.seen[channel], host + 1) != host + 1 {
                self.destinations[channel] += 1;
            }
            let words = self.behind.words;
            let crossed = &self.crossed[channel * words..][..words];
            self.behind.pass_on(
                xbar,
                self.sources.places[xbar as usize],
                (head != end).then_some(head),
                crossed,
            );
        }
    }

    /// Whether frames get from an xbar to the slot; if so, its way is then in the tree. Each xbar is passed
    /// once for a slot, so that tables full of loops cost no more than good ones.
    fn arrives(&mut self, ports: &[u8], from: u32) -> bool {
        self.route.clear();
        let mut xbar = from;
        while self.known[xbar as usize] < self.mark {
            // Until it is known to arrive, it does not: so a loop ends where it closes.
            self.known[xbar as usize] = self.mark;
            self.route.push(xbar);
            match self.routes.next(xbar, ports[xbar as usize]).head {
                NOWHERE => break,
                head => xbar = head,
            }
        }
        let known = self.known[xbar as usize];
        let arrives = known == self.mark + 1;
        let mut depth = self.depths[xbar as usize];
        for &xbar in self.route.iter().rev() {
            self.known[xbar as usize] = known;
            if arrives {
                depth += 1;
                self.depths[xbar as usize] = depth;
                self.weights[xbar as usize] = self.sources.hosts_at(xbar);
                self.tree.push(xbar);
            }
        }
        if arrives {
            self.longest = self.longest.max(depth as usize);
        }
        arrives
    }

    pub(super) fn merge(mut self, other: &Self) -> Self {
        self.loads.iter_mut().zip(&other.loads).for_each(|(sum, load)| *sum += load);
        self.destinations.iter_mut().zip(&other.destinations).for_each(|(sum, count)| *sum += count);
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
    /// Sets that no xbar has; they are empty.
    free: Vec<u32>,
    /// The set of each xbar, or [`NOWHERE`].
    of: Vec<u32>,
}

impl LeafSets {
    fn new(xbars: usize, leaves: usize) -> Self {
        Self { words: leaves.div_ceil(64), sets: Vec::new(), free: Vec::new(), of: vec![NOWHERE; xbars] }
    }

    /// Marks a channel as crossed by all frames of an xbar: by its own, if it is a leaf with a place, and by
    /// those that come by. Hands them on to the xbar at the other end, unless they are for that one. The set
    /// of the xbar is empty after that.
    fn pass_on(&mut self, xbar: u32, place: u32, head: Option<u32>, crossed: &[AtomicU64]) {
        let set = std::mem::replace(&mut self.of[xbar as usize], NOWHERE);
        if set == NOWHERE {
            // Most xbars of a tree are leaves that nobody's frames come by.
            let (word, bit) = (place as usize / 64, 1 << (place % 64));
            mark(&crossed[word], bit);
            if let Some(head) = head {
                let set = self.set_of(head);
                self.set(set)[word] |= bit;
            }
            return;
        }
        if place != NOWHERE {
            self.set(set)[place as usize / 64] |= 1 << (place % 64);
        }
        crossed.iter().zip(self.set(set)).for_each(|(word, bits)| mark(word, *bits));
        match head {
            Some(head) if self.of[head as usize] == NOWHERE => self.of[head as usize] = set,
            Some(head) => {
                let into = self.of[head as usize] as usize * self.words;
                let from = set as usize * self.words;
                for word in 0..self.words {
                    self.sets[into + word] |= self.sets[from + word];
                }
                self.give_back(set);
            }
            None => self.give_back(set),
        }
    }

    fn set(&mut self, set: u32) -> &mut [u64] {
        &mut self.sets[set as usize * self.words..][..self.words]
    }

    /// The set of an xbar, which gets an empty one if it had none.
    fn set_of(&mut self, xbar: u32) -> u32 {
        if self.of[xbar as usize] == NOWHERE {
            self.of[xbar as usize] = self.free.pop().unwrap_or_else(|| {
                self.sets.resize(self.sets.len() + self.words, 0);
                (self.sets.len() / self.words - 1) as u32
            });
        }
        self.of[xbar as usize]
    }

    fn give_back(&mut self, set: u32) {
        self.set(set).fill(0);
        self.free.push(set);
    }
}

/// Sets bits in a word that all threads share. Most bits are set before long, and then nothing is written.
fn mark(word: &AtomicU64, bits: u64) {
    if bits & !word.load(Ordering::Relaxed) != 0 {
        word.fetch_or(bits, Ordering::Relaxed);
    }
}
