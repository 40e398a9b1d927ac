//! The least loaded ways on, one destination xbar after another.

use std::ops::Range;

use super::super::reach::Reach;
use super::super::spines::{Spine, Spines};
use super::super::tree::Tree;
use super::cover::Cover;
use super::{Detour, Served};

/// A number above the steps of the longest way, as a tree has at most 8 ranks.
const MOST_LEVELS: usize = 16;

/// No place.
const NOWHERE: u32 = u32::MAX;

/// All channels of a tree, those up and then those down, by the xbar that they leave.
///
/// The values that are compared stand side by side in memory, as thousands of choices are made here for each
/// host.
pub(super) struct StepsOn<'a> {
    tree: &'a Tree<'a>,
    channels: Vec<u32>,
    /// The xbar that each leads to.
    far: Vec<u32>,
    /// Where the channels down begin.
    down: usize,
    /// The place of each channel here.
    places: Vec<u32>,
}

impl<'a> StepsOn<'a> {
    pub(super) fn new(tree: &'a Tree<'a>) -> Self {
        let topology = &tree.subnet.topology;
        let channels: Vec<u32> =
            tree.up.all_channels().iter().chain(tree.down.all_channels()).copied().collect();
        let far = channels.iter().map(|&channel| topology.head(channel).xbar).collect();
        let mut places = vec![NOWHERE; topology.channel_count()];
        (0..).zip(&channels).for_each(|(place, &channel)| places[channel as usize] = place);
        Self { tree, channels, far, down: tree.up.all_channels().len(), places }
    }

    /// Numbers by channel, put in this order.
    pub(super) fn in_order(&self, by_channel: &[u32]) -> Vec<u32> {
        self.channels.iter().map(|&channel| by_channel[channel as usize]).collect()
    }

    fn out_of(&self, xbar: u32, up: bool) -> Range<usize> {
        if up {
            return self.tree.up.places(xbar);
        }
        let places = self.tree.down.places(xbar);
        self.down + places.start..self.down + places.end
    }

    /// Whether a channel is one of several between the same xbars: they stand side by side.
    fn is_parallel(&self, place: usize) -> bool {
        let ends = |at: usize| (self.tail(at), self.far[at]);
        let twin = |other: usize| other < self.far.len() && ends(other) == ends(place);
        twin(place + 1) || place > 0 && twin(place - 1)
    }

    fn tail(&self, place: usize) -> u32 {
        self.tree.subnet.topology.tail(self.channels[place]).xbar
    }

    /// The place of the channel against another one.
    fn reverse(&self, channel: u32) -> usize {
        self.places[self.tree.subnet.topology.reverse(channel) as usize] as usize
    }
}

/// Gives ways, one after another, by how many routes all channels carry so far.
///
/// In traffic where each host receives from one other at a time, routes to the same host never meet. So a way
/// costs the routes to *other* hosts on its channels: a detour that comes down where its host's other
/// routes do costs nothing there, and routes to the same other host are counted once, wherever on the
/// way down they are met.
pub(super) struct Ways<'a> {
    tree: &'a Tree<'a>,
    reach: &'a Reach,
    steps_on: &'a StepsOn<'a>,
    /// How many routes lead to one host: one from each host.
    hosts: u32,
    /// The loads, by place in `steps_on`. While an xbar is served, the routes along its hosts' spines are not
    /// counted, except on the last channels.
    loads: Vec<u32>,
    /// For the destination xbar at hand, what the cheapest way costs from each xbar by which a way may go on,
    /// and the place of its first step.
    ahead: Vec<u32>,
    first: Vec<u32>,
    /// For the host at hand, what the cheapest way costs from each xbar by which a way may go on.
    ahead_of_host: Vec<u32>,
    /// For the host at hand, the xbars that still need a way, by their steps from it.
    levels: Vec<Vec<u32>>,
    /// How many hosts send by each of these xbars.
    weights: Vec<u32>,
}

impl<'a> Ways<'a> {
    pub(super) fn new(
        tree: &'a Tree<'a>,
        reach: &'a Reach,
        steps_on: &'a StepsOn<'a>,
        loads: Vec<u32>,
    ) -> Self {
        let xbars = tree.xbar_count();
        Self {
            tree,
            reach,
            steps_on,
            hosts: (0..xbars as u32).map(|xbar| tree.hosts_at(xbar)).sum(),
            loads,
            ahead: vec![u32::MAX; xbars],
            first: vec![NOWHERE; xbars],
            ahead_of_host: vec![u32::MAX; xbars],
            levels: vec![Vec::new(); MOST_LEVELS],
            weights: vec![0; xbars],
        }
    }

    /// Adds what others have loaded.
    pub(super) fn add(&mut self, routes: &[(u32, u32)]) {
        for &(place, routes) in routes {
            let load = &mut self.loads[place as usize];
            *load = load.saturating_add(routes);
        }
    }

    /// Serves the hosts of an xbar.
    pub(super) fn serve_all(&mut self, to: u32, spines: &Spines, slots: &[(u32, Vec<u32>)]) -> Served {
        let mut served = Served { entries: Vec::with_capacity(slots.len()), routes: Vec::new() };
        self.count_spines(to, spines, u32::wrapping_sub);
        self.look_ahead(to);
        for (slot, missing) in slots {
            let spine = spines.of_slot(*slot);
            self.look_ahead_for_host(to, spine);
            let entries = self.serve(to, spine, missing, &mut served.routes);
            served.entries.push((*slot, entries));
        }
        self.count_spines(to, spines, u32::wrapping_add);
        served
    }

    /// Takes the routes down the spines of an xbar's hosts from the loads, except on the last channels, or
    /// adds them again.
    fn count_spines(&mut self, to: u32, spines: &Spines, count: fn(u32, u32) -> u32) {
        for slot in self.tree.subnet.destinations.host_slots_of(to) {
            for &channel in spines.of_slot(slot).channels().iter().skip(1) {
                let load = &mut self.loads[self.steps_on.reverse(channel)];
                *load = count(*load, self.hosts);
            }
        }
    }

    /// Finds the cheapest way to an xbar from all other xbars that have xbars below them.
    fn look_ahead(&mut self, to: u32) {
        self.ahead.fill(u32::MAX);
        self.first.fill(NOWHERE);
        self.look_up(to);
        let steps = self.reach.of(to);
        // From the other xbars ways go up first, so higher ranks are computed before lower ones.
        for &xbar in self.tree.ranks.xbars.iter().flatten() {
            let at = xbar as usize;
            let passed = !self.tree.down.of(xbar).is_empty();
            if passed && self.ahead[at] == u32::MAX && steps[at] != Reach::NONE {
                let places = self.steps_on.out_of(xbar, true);
                if let Some((cost, place)) = self.cheapest(places, &self.ahead, steps, steps[at] - 1) {
                    (self.ahead[at], self.first[at]) = (cost, place as u32);
                }
            }
        }
    }

    /// Finds the cheapest way to an xbar from the xbars above it, rank by rank.
    fn look_up(&mut self, to: u32) {
        self.ahead[to as usize] = 0;
        let (mut rank, mut above) = (vec![to], Vec::new());
        while !rank.is_empty() {
            for &low in &rank {
                for place in self.steps_on.out_of(low, true) {
                    let high = self.steps_on.far[place];
                    let back = self.steps_on.reverse(self.steps_on.channels[place]);
                    let cost = self.loads[back].saturating_add(self.ahead[low as usize]);
                    let (ahead, first) = (&mut self.ahead[high as usize], &mut self.first[high as usize]);
                    if *first == NOWHERE {
                        above.push(high);
                    }
                    if *first == NOWHERE || cost < *ahead {
                        (*ahead, *first) = (cost, back as u32);
                    }
                }
            }
            rank.clear();
            std::mem::swap(&mut rank, &mut above);
        }
    }

    /// Finds the cheapest way to an xbar for one host: its own routes down the last channel of its spine cost nothing.
    fn look_ahead_for_host(&mut self, to: u32, spine: &Spine) {
        let first = spine.channels().first();
        let Some(&first) = first else { return self.ahead_of_host.copy_from_slice(&self.ahead) };
        let last = self.tree.subnet.topology.head(first).xbar;
        let (over_last, steps) = (self.reach.of(last), self.reach.of(to));
        let ahead = self.ahead.iter().zip(over_last.iter().zip(steps));
        for (of_host, (&ahead, (&over_last, &steps))) in self.ahead_of_host.iter_mut().zip(ahead) {
            let own = u32::from(over_last.wrapping_add(1) == steps).wrapping_neg() & self.hosts;
            *of_host = ahead.saturating_sub(own);
        }
    }

    /// Serves one host, far xbars first, so that it is known how many hosts send by an xbar before its way is
    /// chosen.
    fn serve(
        &mut self,
        to: u32,
        spine: &Spine,
        missing: &[u32],
        routes: &mut Vec<(u32, u32)>,
    ) -> Vec<Detour> {
        let cover = Cover::new(self.tree, self.reach, to, spine);
        let topology = &self.tree.subnet.topology;
        let steps = self.reach.of(to);
        for &source in missing {
            self.weights[source as usize] = self.tree.hosts_at(source);
            self.levels[usize::from(steps[source as usize])].push(source);
        }
        let mut detours: Vec<Detour> = Vec::with_capacity(missing.len() + missing.len() / 2);
        for level in (1..MOST_LEVELS).rev() {
            let mut xbars = std::mem::take(&mut self.levels[level]);
            for at in xbars.drain(..) {
                let weight = std::mem::take(&mut self.weights[at as usize]);
                let Some(place) = self.next(to, at, steps) else { continue };
                let channel = self.steps_on.channels[place];
                detours.push(Detour { xbar: at, port: topology.tail(channel).port });
                let load = &mut self.loads[place];
                *load = load.saturating_add(weight);
                routes.push((place as u32, weight));
                let next = self.steps_on.far[place];
                let waits = self.weights[next as usize] > 0;
                if waits || next != to && !cover.covers(next) {
                    self.weights[next as usize] += weight;
                    if !waits {
                        self.levels[level - 1].push(next);
                    }
                }
            }
            // The memory is kept for the next host.
            self.levels[level] = xbars;
        }
        detours
    }

    /// The first step of the cheapest way from an xbar.
    fn next(&self, to: u32, at: u32, steps: &[u8]) -> Option<usize> {
        let first = self.first[at as usize];
        if first != NOWHERE && !self.steps_on.is_parallel(first as usize) {
            return Some(first as usize);
        }
        let nearer = steps[at as usize].checked_sub(1)?;
        let above = self.tree.rank(at).saturating_add(nearer + 1) == self.tree.rank(to);
        let places = self.steps_on.out_of(at, !above);
        self.cheapest(places, &self.ahead_of_host, steps, nearer).map(|(_, place)| place)
    }

    /// The cost and the place of the cheapest way that begins at one of some places and whose next xbar has
    /// so many steps to go. Among equals it is the first.
    fn cheapest(
        &self,
        places: Range<usize>,
        ahead: &[u32],
        steps: &[u8],
        nearer: u8,
    ) -> Option<(u32, usize)> {
        let (loads, far) = (&self.loads[places.clone()], &self.steps_on.far[places.clone()]);
        // There are no branches here, as a processor could not predict which way is cheapest.
        let best = (0_u64..).zip(loads).zip(far).fold(u64::MAX, |best, ((place, &load), &far)| {
            let farther = u64::from(steps[far as usize] != nearer).wrapping_neg();
            let cost = load.saturating_add(ahead[far as usize]);
            best.min(u64::from(cost) << u32::BITS | place | farther)
        });
        (best != u64::MAX).then(|| ((best >> u32::BITS) as u32, places.start + (best as u32) as usize))
    }
}
