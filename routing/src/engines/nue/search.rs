//! Finds the tree to one destination: shortest routes by the least loaded channels, as far as turns are free.

use super::escape::EscapeTrees;
use super::turns::Turns;
use crate::engines::filling::NO_CHANNEL;
use crate::{Subnet, Topology};

/// The value that stands for no place.
const NO_PLACE: u32 = u32::MAX;

/// Tries before a destination is left to the escape tree.
const TRIES: usize = 24;

/// What a search ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchEnd {
    /// A tree whose turns are all in use now.
    Tree,
    /// No tree was found: some xbar cannot be reached, or turns were blocked again and again.
    Impasse,
}

/// A channel by which an xbar's frames come in.
#[derive(Clone, Copy)]
struct Arriving {
    channel: u32,
    /// The xbar that it comes from.
    from: u32,
}

/// Memory for many destinations in turn.
pub(super) struct TreeSearch<'a> {
    subnet: &'a Subnet,
    /// The channels that lead to each xbar, xbar by xbar, without those of dead cables.
    arriving: Vec<Arriving>,
    /// Where those of each xbar begin, and where the last ones end.
    arriving_base: Vec<u32>,
    /// The channel that each xbar's frames go on by.
    pub(super) next: Vec<u32>,
    /// The channel that each xbar's frames should go on by if it begins a shortest way, or [`NO_CHANNEL`].
    pub(super) preferred: Vec<u32>,
    /// Which xbars send frames to the destination.
    pub(super) sends: &'a [bool],
    /// Xbars from near to far.
    order: Vec<u32>,
    /// Each xbar's place in `order`, or [`NO_PLACE`].
    place: Vec<u32>,
    costs: Vec<u64>,
    /// The next xbars, while their channels are chosen.
    level: Vec<u32>,
    /// The way along the escape tree.
    along: Vec<u32>,
    carries: Vec<bool>,
    sources: Vec<i64>,
}

impl<'a> TreeSearch<'a> {
    pub(super) fn new(subnet: &'a Subnet, sends: &'a [bool]) -> Self {
        let topology = &subnet.topology;
        let xbars = topology.xbar_count();
        let (mut arriving, mut arriving_base) = (Vec::with_capacity(topology.channel_count()), vec![0]);
        for xbar in 0..xbars as u32 {
            let outs = topology.channels_of(xbar).filter(|&out| !topology.is_dead(out));
            arriving.extend(
                outs.map(|out| Arriving { channel: topology.reverse(out), from: topology.head(out).xbar }),
            );
            arriving_base.push(arriving.len() as u32);
        }
        Self {
            subnet,
            arriving,
            arriving_base,
            next: vec![NO_CHANNEL; xbars],
            preferred: vec![NO_CHANNEL; xbars],
            sends,
            order: Vec::with_capacity(xbars),
            place: vec![NO_PLACE; xbars],
            costs: vec![0; xbars],
            level: Vec::new(),
            along: vec![NO_CHANNEL; xbars],
            carries: vec![false; xbars],
            sources: vec![0; xbars],
        }
    }

    /// Finds a tree to a destination and uses its turns.
    pub(super) fn find(&mut self, end: u32, loads: &[u64], turns: &mut Turns<'_>) -> SearchEnd {
        for _ in 0..TRIES {
            self.grow(end, loads, turns);
            if !self.reaches_all(end) {
                self.rescue(end, turns);
                if !self.reaches_all(end) {
                    return SearchEnd::Impasse;
                }
            }
            if self.use_turns(end, turns) {
                return SearchEnd::Tree;
            }
        }
        SearchEnd::Impasse
    }

    /// Takes the escape tree.
    pub(super) fn escape(&mut self, end: u32, trees: &EscapeTrees) {
        trees.lead_to(&self.subnet.topology, end, &mut self.next);
    }

    /// Uses all turns that frames make along the tree in `next`, which reaches all senders. Returns false if
    /// one is blocked.
    pub(super) fn use_turns_of_senders(&mut self, end: u32, turns: &mut Turns<'_>) -> bool {
        let topology = &self.subnet.topology;
        let part = topology.component(end);
        self.carries.fill(false);
        for sender in 0..self.next.len() as u32 {
            if !self.sends[sender as usize] || topology.component(sender) != part {
                continue;
            }
            let mut xbar = sender;
            while xbar != end && !std::mem::replace(&mut self.carries[xbar as usize], true) {
                let channel = self.next[xbar as usize];
                xbar = topology.head(channel).xbar;
                if xbar != end && !turns.make_used(channel, self.next[xbar as usize]) {
                    return false;
                }
            }
        }
        true
    }

    /// Lets xbars that no tree reaches, and that send nothing, go on along the escape tree.
    pub(super) fn complete(&mut self, end: u32, trees: &EscapeTrees) {
        if self.order.len() < self.next.len() {
            trees.lead_to(&self.subnet.topology, end, &mut self.along);
            for (xbar, (next, &along)) in self.next.iter_mut().zip(&self.along).enumerate() {
                if *next == NO_CHANNEL && xbar != end as usize {
                    *next = along;
                }
            }
        }
    }

    /// Grows a tree, level by level, by the cheapest channels whose turns are not blocked.
    fn grow(&mut self, end: u32, loads: &[u64], turns: &Turns<'_>) {
        self.next.fill(NO_CHANNEL);
        self.place.fill(NO_PLACE);
        self.order.clear();
        self.order.push(end);
        self.place[end as usize] = 0;
        self.costs[end as usize] = 0;
        let are_some_blocked = turns.are_some_blocked();
        let mut first = 0;
        while first < self.order.len() {
            let last = self.order.len();
            self.level.clear();
            for &xbar in &self.order[first..last] {
                let (onward, cost_onward) = (self.next[xbar as usize], self.costs[xbar as usize]);
                let arriving = self.arriving_base[xbar as usize]..self.arriving_base[xbar as usize + 1];
                for &Arriving { channel, from } in
                    &self.arriving[arriving.start as usize..arriving.end as usize]
                {
                    let before = from as usize;
                    if self.place[before] != NO_PLACE
                        || are_some_blocked && onward != NO_CHANNEL && !turns.may_use(channel, onward)
                    {
                        continue;
                    }
                    let cost = cost_onward + loads[channel as usize];
                    let best = self.next[before];
                    if best == NO_CHANNEL {
                        self.level.push(from);
                    }
                    let preferred = self.preferred[before];
                    let is_cheaper =
                        (channel != preferred, cost, channel) < (best != preferred, self.costs[before], best);
                    if best == NO_CHANNEL || is_cheaper {
                        self.next[before] = channel;
                        self.costs[before] = cost;
                    }
                }
            }
            for &xbar in &self.level {
                self.place[xbar as usize] = self.order.len() as u32;
                self.order.push(xbar);
            }
            first = last;
        }
    }

    /// Calls `add` with the load that the tree that was found puts on each channel: a frame from each host. Xbars that it does
    /// not reach send none.
    pub(super) fn count_found(&mut self, mut add: impl FnMut(usize, i64)) {
        let topology = &self.subnet.topology;
        for &xbar in &self.order {
            self.sources[xbar as usize] = topology.hosts_of(xbar).len() as i64;
        }
        // Xbars whose frames pass another xbar stand behind it in the order, so from the end all are summed up before it.
        for &xbar in self.order[1..].iter().rev() {
            let (channel, sources) = (self.next[xbar as usize], self.sources[xbar as usize]);
            add(channel as usize, sources);
            self.sources[topology.head(channel).xbar as usize] += sources;
        }
    }

    /// Whether all xbars that send frames to a destination are reached.
    fn reaches_all(&self, end: u32) -> bool {
        let topology = &self.subnet.topology;
        let part = topology.component(end);
        self.order.len() == self.next.len()
            || (0..self.next.len() as u32).all(|xbar| {
                self.place[xbar as usize] != NO_PLACE
                    || !self.sends[xbar as usize]
                    || topology.component(xbar) != part
            })
    }

    /// Joins xbars that were not reached to the tree: directly, or by having another xbar go on by another
    /// channel.
    fn rescue(&mut self, end: u32, turns: &Turns<'_>) {
        let part = self.subnet.topology.component(end);
        let is_lost = |xbar: &u32| self.place[*xbar as usize] == NO_PLACE;
        let mut lost: Vec<u32> = (0..self.next.len() as u32)
            .filter(|&xbar| self.subnet.topology.component(xbar) == part)
            .filter(is_lost)
            .collect();
        loop {
            let before = lost.len();
            lost.retain(|&xbar| !self.join(xbar, end, turns));
            if lost.is_empty() || lost.len() == before {
                return;
            }
        }
    }

    /// Joins an xbar to one that is reached.
    fn join(&mut self, xbar: u32, end: u32, turns: &Turns<'_>) -> bool {
        let topology = &self.subnet.topology;
        for channel in topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel)) {
            let there = topology.head(channel).xbar;
            if self.place[there as usize] == NO_PLACE {
                continue;
            }
            let onward = self.next[there as usize];
            let found = if there == end || turns.may_use(channel, onward) {
                Some(onward)
            } else {
                self.other_way(there, channel, end, turns)
            };
            if let Some(onward) = found {
                self.next[there as usize] = onward;
                self.next[xbar as usize] = channel;
                self.place[xbar as usize] = self.order.len() as u32;
                self.costs[xbar as usize] = self.costs[there as usize];
                self.order.push(xbar);
                return true;
            }
        }
        false
    }

    /// Another channel by which an xbar can go on, which is allowed behind all channels that lead to it and
    /// behind one more.
    fn other_way(&self, xbar: u32, more: u32, end: u32, turns: &Turns<'_>) -> Option<u32> {
        let topology: &Topology = &self.subnet.topology;
        let place = self.place[xbar as usize];
        let suits = |&onward: &u32| {
            let there = topology.head(onward).xbar;
            let goes_on = || there == end || turns.may_use(onward, self.next[there as usize]);
            let arriving = topology.channels_of(xbar).map(|out| topology.reverse(out));
            let mut children =
                arriving.filter(|&channel| self.next[topology.tail(channel).xbar as usize] == channel);
            // An xbar that is not nearer may not be reached at all, or may lead back here.
            !topology.is_dead(onward)
                && self.place[there as usize] < place
                && goes_on()
                && turns.may_use(more, onward)
                && children.all(|child| turns.may_use(child, onward))
        };
        topology.channels_of(xbar).find(suits)
    }

    /// Uses all turns of the tree that frames make. Returns false if some are blocked.
    fn use_turns(&mut self, end: u32, turns: &mut Turns<'_>) -> bool {
        let topology = &self.subnet.topology;
        self.carries.copy_from_slice(self.sends);
        for &xbar in self.order[1..].iter().rev() {
            if self.carries[xbar as usize] {
                self.carries[topology.head(self.next[xbar as usize]).xbar as usize] = true;
            }
        }
        let mut all = true;
        for &xbar in self.order[1..].iter().filter(|&&xbar| self.carries[xbar as usize]) {
            let channel = self.next[xbar as usize];
            let there = topology.head(channel).xbar;
            all &= there == end || turns.make_used(channel, self.next[there as usize]);
        }
        all
    }
}

/// Calls `add` with the load that the tree of a search puts on each channel: a frame from each host.
pub(super) fn count_loads(search: &mut TreeSearch<'_>, end: u32, mut add: impl FnMut(usize, i64)) {
    let topology = &search.subnet.topology;
    // How many frames come to an xbar is known once all that send to it are counted.
    search.place.fill(0);
    for (xbar, &channel) in search.next.iter().enumerate() {
        search.sources[xbar] = topology.hosts_of(xbar as u32).len() as i64;
        if channel != NO_CHANNEL && xbar != end as usize {
            search.place[topology.head(channel).xbar as usize] += 1;
        }
    }
    search.order.clear();
    let ready = |xbar: &u32| search.place[*xbar as usize] == 0;
    search.order.extend((0..search.next.len() as u32).filter(ready));
    while let Some(xbar) = search.order.pop() {
        let channel = search.next[xbar as usize];
        if channel == NO_CHANNEL || xbar == end {
            continue;
        }
        let there = topology.head(channel).xbar as usize;
        let sources = search.sources[xbar as usize];
        add(channel as usize, sources);
        search.sources[there] += sources;
        search.place[there] -= 1;
        if search.place[there] == 0 {
            search.order.push(there as u32);
        }
    }
}
