//! One destination xbar's entries: chosen near to far, then counted and completed far to near.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::chains::{Chains, Link};
use super::ports::{NOWHERE, Ports};
use super::ranks::each_bit;
use super::spread::Spread;
use super::ways::Ways;
use crate::routing::{Subnet, Tables};

/// Slots that are computed together, a bit each.
pub(super) const LANES: usize = 64;

/// A destination that is to be computed: a place in some ways, and the slots of its hosts, at most
/// [`LANES`].
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) ways: &'a Ways,
    pub(super) place: usize,
    pub(super) first_slot: u32,
    pub(super) lanes: usize,
}

impl Target<'_> {
    pub(super) fn all(&self) -> u64 {
        if self.lanes == 0 { 0 } else { u64::MAX >> (LANES - self.lanes) }
    }
}

/// Works on one destination after another, and keeps the loads of channels up to date.
pub(super) struct Sweeper<'a> {
    ports: &'a Ports,
    chains: &'a Chains,
    subnet: &'a Subnet,
    /// How many hosts each xbar has.
    sources: &'a [u32],
    /// By port number: how many routes cross it.
    pub(super) loads: Vec<u32>,
    /// For each xbar the slots whose routes go by the top of their chain, those whose chain it is in, and
    /// those that have no port yet.
    by_top: Vec<u64>,
    in_chain: Vec<u64>,
    open: Vec<u64>,
    /// For each xbar: slots that frames come by for, and how many routes.
    active: Vec<u64>,
    routes: Vec<u32>,
    tops: Vec<(u32, u64)>,
    /// The load of the least loaded way on from each xbar, where loads decide at all.
    ahead: Vec<u64>,
    /// Whether loads decided anything so far, and for this target.
    pub(super) by_load: bool,
    decides: bool,
    /// What was counted singly since the loads were joined, and whether that is all.
    pub(super) singly: Vec<(usize, u32)>,
    pub(super) only_singly: bool,
    /// Seed of random choices among the least loaded, and what comes of it for this target.
    scatter: Option<u64>,
    random: Option<ChaCha8Rng>,
}

impl<'a> Sweeper<'a> {
    pub(super) fn new(
        subnet: &'a Subnet,
        ports: &'a Ports,
        chains: &'a Chains,
        sources: &'a [u32],
        scatter: Option<u64>,
    ) -> Self {
        let zeros = || vec![0; ports.xbars];
        Self {
            ports,
            chains,
            subnet,
            sources,
            loads: vec![0; ports.heads.len()],
            by_top: zeros(),
            in_chain: zeros(),
            open: zeros(),
            active: zeros(),
            routes: vec![0; ports.xbars * LANES],
            tops: Vec::new(),
            ahead: vec![0; ports.xbars],
            by_load: false,
            decides: false,
            singly: Vec::new(),
            only_singly: true,
            scatter,
            random: None,
        }
    }

    /// Computes the entries of a target's slots. `entries`: by slot, by xbar within. Where `kept` has a
    /// slot's bit for an xbar, the entry is there and stays.
    pub(super) fn compute(&mut self, target: Target<'_>, entries: &mut [u8], kept: Option<&[u64]>) {
        if target.lanes == 0 {
            return;
        }
        self.draw(target);
        self.only_singly = false;
        self.decides = false;
        self.mark_chains(target);
        if let Some(spread) = Spread::of(self.subnet, target) {
            // Several addresses a host: what one of them may use depends on the others.
            self.near_to_far_spread(target, entries, kept, &spread);
        } else {
            self.near_to_far(target, entries, kept);
        }
        if self.decides {
            self.by_load = true;
            self.look_ahead(target);
        }
        self.far_to_near(target, entries);
    }

    /// Finds the load of the least loaded way on from each xbar.
    fn look_ahead(&mut self, target: Target<'_>) {
        let (words, masks) = (self.ports.words, target.ways.masks_to(target.place));
        for (place, &xbar) in target.ways.order_to(target.place).iter().enumerate() {
            let at = xbar as usize;
            let mut least = if place == 0 { 0 } else { u64::MAX };
            for (word, &mask) in (at * words..).zip(&masks[at * words..(at + 1) * words]) {
                each_bit(mask, |bit| least = least.min(self.way_load(word * 64 + bit)));
            }
            self.ahead[at] = least;
        }
    }

    /// The load of the least loaded way that begins with a port.
    fn way_load(&self, number: usize) -> u64 {
        u64::from(self.loads[number]) + self.ahead[self.ports.heads[number] as usize]
    }

    /// Each target has random numbers of its own, so it does not matter which sweeper computes it.
    pub(super) fn draw(&mut self, target: Target<'_>) {
        self.random = self.scatter.map(|seed| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(target.first_slot.into());
            random
        });
    }

    /// Marks the xbars of the chains of all slots.
    fn mark_chains(&mut self, target: Target<'_>) {
        let order = target.ways.order_to(target.place);
        for &xbar in order {
            (self.in_chain[xbar as usize], self.by_top[xbar as usize]) = (0, 0);
        }
        self.tops.clear();
        if let Some(&to) = order.first() {
            self.in_chain[to as usize] = target.all();
        }
        for lane in 0..target.lanes {
            let mut top = None;
            for &link in self.chain(target, lane) {
                if !leads(self.ports, target, link) {
                    break;
                }
                self.in_chain[link.xbar as usize] |= 1 << lane;
                top = Some(link.xbar);
            }
            if let Some(top) = top {
                self.tops.push((top, 1 << lane));
            }
        }
        for &(top, bit) in &self.tops {
            self.by_top[top as usize] |= bit;
        }
    }

    fn chain(&self, target: Target<'_>, lane: usize) -> &'a [Link] {
        self.chains.of_slot(target.first_slot + lane as u32)
    }

    /// Chooses a single entry by the loads that are known, and counts it as the routes of the xbar's hosts.
    pub(super) fn choose_one(&mut self, target: Target<'_>, entries: &mut [u8], xbar: u32, lane: usize) {
        self.decides = false;
        let place = lane * self.ports.xbars + xbar as usize;
        let number = match Spread::of(self.subnet, target) {
            Some(spread) => {
                let words = self.ports.words;
                let base = xbar as usize * words * 64;
                let set = &target.ways.masks_to(target.place)[xbar as usize * words..][..words];
                Spread::numbers(set, base).min_by_key(|&number| {
                    (spread.likeness(self.ports, entries, xbar, lane, number), self.loads[number])
                })
            }
            None => self.least_loaded(target, xbar, lane),
        };
        entries[place] = number.map_or(Tables::NONE, |number| {
            let routes = self.sources[xbar as usize].max(1);
            self.count(number, routes);
            if self.ports.counts(number) {
                self.singly.push((number, routes));
            }
            self.ports.port_of_bit(number - xbar as usize * self.ports.words * 64)
        });
    }

    /// How far from the destination chains reach: beyond, only their tops matter.
    fn near(&self, target: Target<'_>) -> usize {
        let longest = (0..target.lanes).map(|lane| self.chain(target, lane).len()).max().unwrap_or_default();
        target.ways.within(target.place, longest)
    }

    /// Gives ports to all slots whose chains can be joined: at their tops if possible, else further down.
    fn near_to_far(&mut self, target: Target<'_>, entries: &mut [u8], kept: Option<&[u64]>) {
        let (ports, words) = (self.ports, self.ports.words);
        let (near, masks) = (self.near(target), target.ways.masks_to(target.place));
        for (place, &xbar) in target.ways.order_to(target.place).iter().enumerate().skip(1) {
            let at = xbar as usize;
            let mut open = target.all();
            let mut by_top = 0;
            if let Some(kept) = kept {
                open &= !kept[at];
                by_top |= self.kept_by_top(target, entries, xbar, kept[at]);
            }
            if place < near && self.in_chain[at] & open != 0 {
                open = self.follow_chain(target, entries, xbar, open);
            }
            for word in 0..words {
                let number = (at * words + word) * 64;
                let mut mask = masks[at * words + word];
                while mask != 0 && open != 0 {
                    let bit = mask.trailing_zeros() as usize;
                    mask &= mask - 1;
                    let join = self.by_top[ports.heads[number + bit] as usize] & open;
                    if join != 0 {
                        by_top |= join;
                        open &= !join;
                        let set = &masks[at * words..][..words];
                        self.enter(target, entries, xbar, number + bit, set, join);
                    }
                }
            }
            self.by_top[at] |= by_top;
            if place < near && open != 0 {
                open = self.join_below_top(target, entries, xbar, open);
            }
            self.open[at] = open;
            self.decides |= open != 0 && self.sources[at] > 0;
        }
    }

    /// The slots that kept entries lead to by the tops of their chains.
    fn kept_by_top(&self, target: Target<'_>, entries: &[u8], xbar: u32, kept: u64) -> u64 {
        let mut by_top = 0;
        each_bit(kept, |lane| {
            if let Some(number) = self.entry(entries, xbar, lane) {
                by_top |= self.by_top[self.ports.heads[number] as usize] & 1 << lane;
            }
        });
        by_top & target.all()
    }

    /// At an xbar that is in chains: these go on along their own links. Returns the slots left.
    fn follow_chain(&self, target: Target<'_>, entries: &mut [u8], xbar: u32, open: u64) -> u64 {
        let mut left = open;
        each_bit(self.in_chain[xbar as usize] & open, |lane| {
            if let Some(link) = self.chain(target, lane).iter().find(|link| link.xbar == xbar) {
                let bit = link.port as usize - xbar as usize * self.ports.words * 64;
                entries[lane * self.ports.xbars + xbar as usize] = self.ports.port_of_bit(bit);
                left &= !(1 << lane);
            }
        });
        left
    }

    /// Joins chains wherever they can be. Returns the slots left.
    fn join_below_top(&self, target: Target<'_>, entries: &mut [u8], xbar: u32, open: u64) -> u64 {
        let words = self.ports.words;
        let set = &target.ways.masks_to(target.place)[xbar as usize * words..][..words];
        let mut left = open;
        for (word, &mask) in set.iter().enumerate() {
            each_bit(mask, |bit| {
                let number = (xbar as usize * words + word) * 64 + bit;
                let join = self.in_chain[self.ports.heads[number] as usize] & left;
                if join != 0 {
                    left &= !join;
                    self.enter(target, entries, xbar, number, set, join);
                }
            });
        }
        left
    }

    /// Enters a port for slots; if several of the set lead to the same xbar, they take turns.
    fn enter(
        &self,
        target: Target<'_>,
        entries: &mut [u8],
        xbar: u32,
        number: usize,
        set: &[u64],
        lanes: u64,
    ) {
        let (ports, xbars) = (self.ports, self.ports.xbars);
        let base = xbar as usize * ports.words * 64;
        let head = ports.heads[number];
        let twins = ports.has_parallel(xbar).then(|| {
            let same = |&bit: &usize| set[bit / 64] >> (bit % 64) & 1 == 1 && ports.heads[base + bit] == head;
            (0..ports.words * 64).filter(same).collect::<Vec<usize>>()
        });
        match twins {
            Some(twins) if twins.len() > 1 => each_bit(lanes, |lane| {
                let turn = target.ways.to[target.place] as usize + lane;
                let bit = twins[turn % twins.len()];
                entries[lane * xbars + xbar as usize] = ports.port_of_bit(bit);
            }),
            _ => each_bit(lanes, |lane| {
                entries[lane * xbars + xbar as usize] = ports.port_of_bit(number - base);
            }),
        }
    }

    /// As [`Self::near_to_far`] for hosts of several addresses.
    fn near_to_far_spread(
        &mut self,
        target: Target<'_>,
        entries: &mut [u8],
        kept: Option<&[u64]>,
        spread: &Spread<'_>,
    ) {
        let words = self.ports.words;
        let masks = target.ways.masks_to(target.place);
        for &xbar in target.ways.order_to(target.place).iter().skip(1) {
            let at = xbar as usize;
            let kept = kept.map_or(0, |kept| kept[at]);
            let mut by_top = self.kept_by_top(target, entries, xbar, kept);
            for lane in (0..target.lanes).filter(|lane| kept >> lane & 1 == 0) {
                let numbers = Spread::numbers(&masks[at * words..][..words], at * words * 64);
                let best = numbers.min_by_key(|&number| {
                    let head = self.ports.heads[number] as usize;
                    let like = spread.likeness(self.ports, entries, xbar, lane, number);
                    let chain = self.chain(target, lane).iter().any(|link| link.port as usize == number);
                    let top = self.by_top[head] >> lane & 1 == 1;
                    let joins = self.in_chain[head] >> lane & 1 == 1;
                    (like, !chain, !top, !joins, self.loads[number], (number + lane) % 64)
                });
                if let Some(number) = best {
                    let bit = number - at * words * 64;
                    entries[lane * self.ports.xbars + at] = self.ports.port_of_bit(bit);
                    by_top |= self.by_top[self.ports.heads[number] as usize] & 1 << lane;
                }
            }
            self.by_top[at] |= by_top;
            self.open[at] = 0;
        }
    }

    /// Counts the routes, and gives ports to the slots left open: the least loaded where frames come by.
    fn far_to_near(&mut self, target: Target<'_>, entries: &mut [u8]) {
        let (lanes, all) = (target.lanes, target.all());
        let order = target.ways.order_to(target.place);
        for &xbar in order {
            let sources = self.sources[xbar as usize];
            self.routes[xbar as usize * lanes..][..lanes].fill(sources);
            self.active[xbar as usize] = if sources > 0 { all } else { 0 };
        }
        for &xbar in order.iter().skip(1).rev() {
            let at = xbar as usize;
            let (open, active) = (self.open[at], self.active[at]);
            if open & !active != 0 {
                self.take_turns(target, entries, xbar, open & !active);
            }
            each_bit(active, |lane| {
                let number = if open >> lane & 1 == 1 {
                    self.least_loaded(target, xbar, lane)
                } else {
                    self.entry(entries, xbar, lane)
                };
                let Some(number) = number else { return };
                let bit = number - at * self.ports.words * 64;
                entries[lane * self.ports.xbars + at] = self.ports.port_of_bit(bit);
                let routes = self.routes[at * lanes + lane];
                self.count(number, routes);
                let head = self.ports.heads[number] as usize;
                self.routes[head * lanes + lane] += routes;
                self.active[head] |= 1 << lane;
            });
        }
    }

    fn count(&mut self, number: usize, routes: u32) {
        let counts = self.ports.counted[number / 64] >> (number % 64) & 1;
        self.loads[number] = self.loads[number].wrapping_add(routes * counts as u32);
    }

    /// Counts the routes of entries that are there: adds them to the loads, or takes them away.
    pub(super) fn recount(&mut self, target: Target<'_>, entries: &[u8], add: bool) {
        let lanes = target.lanes;
        let order = target.ways.order_to(target.place);
        self.only_singly = false;
        for &xbar in order {
            self.routes[xbar as usize * lanes..][..lanes].fill(self.sources[xbar as usize]);
        }
        for &xbar in order.iter().skip(1).rev() {
            for lane in 0..lanes {
                let routes = self.routes[xbar as usize * lanes + lane];
                if routes == 0 {
                    continue;
                }
                let Some(number) = self.entry(entries, xbar, lane) else { continue };
                if target.ways.leads(target.place, number) {
                    self.count(number, if add { routes } else { routes.wrapping_neg() });
                    let head = self.ports.heads[number] as usize;
                    self.routes[head * lanes + lane] += routes;
                }
            }
        }
    }

    /// The number of the port that an entry names.
    fn entry(&self, entries: &[u8], xbar: u32, lane: usize) -> Option<usize> {
        let port = entries[lane * self.ports.xbars + xbar as usize];
        let number = xbar as usize * self.ports.words * 64 + self.ports.bit_of_port(port)?;
        (port != Tables::NONE && self.ports.heads[number] != NOWHERE).then_some(number)
    }

    /// Where the search for a port begins, if not at random.
    fn turn(&mut self, fixed: usize) -> usize {
        self.random.as_mut().map_or(fixed, |random| random.random::<u32>() as usize)
    }

    /// Gives slots that no frames come by for the ports in turn.
    fn take_turns(&mut self, target: Target<'_>, entries: &mut [u8], xbar: u32, lanes: u64) {
        let words = self.ports.words;
        let set = &target.ways.masks_to(target.place)[xbar as usize * words..][..words];
        let turn = self.turn(target.ways.to[target.place] as usize + xbar as usize);
        let mut turns = Turns::new(set, turn);
        each_bit(lanes, |lane| {
            if let Some(bit) = turns.next() {
                entries[lane * self.ports.xbars + xbar as usize] = self.ports.port_of_bit(bit);
            }
        });
    }

    /// The least loaded port by which a way leads on; from lane to lane another of those that are as loaded.
    pub(super) fn least_loaded(&mut self, target: Target<'_>, xbar: u32, lane: usize) -> Option<usize> {
        let words = self.ports.words;
        let base = xbar as usize * words * 64;
        let set = &target.ways.masks_to(target.place)[xbar as usize * words..][..words];
        let turn = self.turn(target.ways.to[target.place] as usize + lane);
        let mut turns = Turns::new(set, turn);
        let count: u32 = set.iter().map(|word| word.count_ones()).sum();
        let mut best: Option<(u64, usize)> = None;
        for _ in 0..count {
            let Some(bit) = turns.next() else { break };
            let load = if self.decides { self.way_load(base + bit) } else { self.loads[base + bit].into() };
            if best.is_none_or(|(least, _)| load < least) {
                best = Some((load, base + bit));
            }
        }
        best.map(|(_, number)| number)
    }
}

/// Whether a link of a chain is on a legal shortest way.
fn leads(ports: &Ports, target: Target<'_>, link: Link) -> bool {
    debug_assert_eq!(ports.xbar_of(link.port as usize), link.xbar, "a port of its own xbar");
    target.ways.leads(target.place, link.port as usize)
}

/// A bit of a set, by turns.
pub(super) fn nth(set: &[u64], turn: usize) -> Option<usize> {
    Turns::new(set, turn).next()
}

/// The bits of a set, over and over, from one of them on.
struct Turns<'a> {
    set: &'a [u64],
    word: usize,
    left: u64,
}

impl<'a> Turns<'a> {
    fn new(set: &'a [u64], turn: usize) -> Self {
        let start = turn % (set.len() * 64);
        Self { set, word: start / 64, left: set[start / 64] & u64::MAX << (start % 64) }
    }

    fn next(&mut self) -> Option<usize> {
        for _ in 0..=self.set.len() {
            if self.left != 0 {
                let bit = self.left.trailing_zeros() as usize;
                self.left &= self.left - 1;
                return Some(self.word * 64 + bit);
            }
            self.word = (self.word + 1) % self.set.len();
            self.left = self.set[self.word];
        }
        None
    }
}
