//! The searches of a table.

use rand_chacha::ChaCha8Rng;

use super::below;
use super::choices::{Choices, StateEntry};
use super::loads::Loads;
use crate::{HostRoutes, Topology};

/// How many searches there are for each route of a destination, as far as a word has bits for them.
const SEARCHES_PER_PASS: usize = 2;

/// The searches of a table, one after the other.
pub(super) struct Searches<'a> {
    topology: &'a Topology,
    choices: &'a Choices,
    routes: &'a mut HostRoutes,
    /// How many states there are: one for each phase of each xbar.
    states: usize,
    loads: Loads,
    /// For each search and state, the first search that had the same route.
    likeness: Vec<u8>,
    /// For each entry, the routes to the state before it that it was chosen with (a bit each, by
    /// likeness).
    used: Vec<u64>,
}

impl<'a> Searches<'a> {
    pub(super) fn new(topology: &'a Topology, choices: &'a Choices, routes: &'a mut HostRoutes) -> Self {
        let states = usize::from(routes.phases) * topology.xbar_count();
        Self {
            topology,
            choices,
            routes,
            states,
            loads: Loads::new(topology.channel_count(), states, choices.len()),
            likeness: Vec::new(),
            used: vec![0; choices.entry_count()],
        }
    }

    /// Searches until there are enough routes, or a search finds no new one.
    pub(super) fn run(mut self, rng: &mut ChaCha8Rng) {
        let most = SEARCHES_PER_PASS * usize::from(self.routes.options.passes);
        for search in 0..most.min(u64::BITS as usize) {
            self.routes.entries.resize((search + 1) * self.states, 0);
            self.likeness.resize((search + 1) * self.states, 0);
            if !self.search(search, rng) {
                self.routes.entries.truncate(search * self.states);
                break;
            }
        }
        self.routes.entries.shrink_to_fit();
    }

    /// Chooses an entry for every state, earlier states first. Tells whether some host has a new
    /// route.
    fn search(&mut self, search: usize, rng: &mut ChaCha8Rng) -> bool {
        let mut any_new = false;
        let row = search * self.states;
        let choices = self.choices;
        self.loads.clear();
        for (state, first, entries) in choices.outwards() {
            let used = &mut self.used[first..first + entries.len()];
            let likeness = &self.likeness[row..];
            let choice = choose(entries, rng, |i| {
                let again = used[i] >> likeness[entries[i].from as usize] & 1;
                again << 32 | u64::from(self.loads.by(entries[i]))
            });
            let entry = entries[choice];
            self.loads.enter(state, entry);
            let before = likeness[entry.from as usize];
            let new = used[choice] >> before & 1 == 0;
            used[choice] |= 1 << before;
            self.record(search, state.state, entry, new);
            let hosts = self.topology.hosts_of(state.state % self.topology.xbar_count() as u32);
            let ends_here = (state.state as usize) < self.topology.xbar_count() && !hosts.is_empty();
            if new && ends_here {
                any_new = true;
                self.routes.distinct[state.state as usize] |= 1 << search;
                self.loads.assign(state, hosts.len() as u32);
            }
        }
        any_new
    }

    /// Writes an entry into the table, and finds the first search that had the same route.
    fn record(&mut self, search: usize, state: u32, entry: StateEntry, new: bool) {
        let xbars = self.topology.xbar_count() as u32;
        let (at, from) = (state as usize, entry.from as usize);
        let place = (entry.channel - self.topology.channels_of(state % xbars).start) as u8;
        let row = search * self.states;
        self.routes.entries[row + at] = place;
        let same = |&earlier: &usize| {
            let earlier = earlier * self.states;
            self.routes.entries[earlier + at] == place
                && self.likeness[earlier + from] == self.likeness[row + from]
        };
        let first = if new { None } else { (0..search).find(same) };
        self.likeness[row + at] = first.unwrap_or(search) as u8;
    }
}

/// The entry with the least key; among equals, the first in a circle from a random place.
fn choose(entries: &[StateEntry], rng: &mut ChaCha8Rng, key: impl Fn(usize) -> u64) -> usize {
    if entries.len() == 1 {
        return 0;
    }
    let start = below(rng, entries.len());
    let (mut best, mut least) = (start, u64::MAX);
    for i in (start..entries.len()).chain(0..start) {
        let key = key(i);
        if key < least {
            (best, least) = (i, key);
        }
    }
    best
}
