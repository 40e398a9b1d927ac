//! How many routes each channel carries, and how many the way to each state meets.

use super::choices::{PassedState, StateEntry};

/// How often a search counts again what its ways meet.
const REFRESHES: usize = 16;

/// The tree that the current search grows, and the routes over each channel.
pub(super) struct Loads {
    /// The entry chosen for each state; none for the source.
    way: Vec<Option<StateEntry>>,
    /// Routes over each channel so far, in all searches, counted at its way back.
    routes: Vec<u32>,
    /// Routes over the channels on the way to each state. Routes that were assigned since the last
    /// refresh, and share a part of the way without passing the state, are not in it.
    met: Vec<u32>,
    /// The states that routes of the current search may go on from, in order.
    inner: Vec<u32>,
    assigned: usize,
    period: usize,
}

impl Loads {
    /// Loads of no routes, for so many channels and states, of which a search enters `entered`.
    pub(super) fn new(channels: usize, states: usize, entered: usize) -> Self {
        Self {
            way: vec![None; states],
            routes: vec![0; channels],
            met: vec![0; states],
            inner: Vec::new(),
            assigned: 0,
            period: entered.div_ceil(REFRESHES),
        }
    }

    /// Begins a search.
    pub(super) fn clear(&mut self) {
        self.inner.clear();
        self.assigned = 0;
    }

    /// Routes over the channels on the way to a state, by an entry.
    pub(super) fn by(&self, entry: StateEntry) -> u32 {
        self.met[entry.from as usize].saturating_add(self.routes[entry.channel as usize])
    }

    /// Takes an entry for a state.
    pub(super) fn enter(&mut self, state: &PassedState, entry: StateEntry) {
        self.met[state.state as usize] = self.by(entry);
        self.way[state.state as usize] = Some(entry);
        if state.inner {
            self.inner.push(state.state);
        }
    }

    /// Assigns routes to hosts at a state, over the channels on the way to it.
    pub(super) fn assign(&mut self, state: &PassedState, routes: u32) {
        let (mut at, mut steps) = (state.state as usize, state.steps);
        while let Some(StateEntry { from, channel }) = self.way[at] {
            self.met[at] = self.met[at].saturating_add(routes.saturating_mul(steps));
            let load = &mut self.routes[channel as usize];
            *load = load.saturating_add(routes);
            at = from as usize;
            steps -= 1;
        }
        self.assigned += 1;
        if self.assigned.is_multiple_of(self.period) {
            self.refresh();
        }
    }

    /// Counts again what the way to each state meets.
    fn refresh(&mut self) {
        for i in 0..self.inner.len() {
            let state = self.inner[i] as usize;
            if let Some(entry) = self.way[state] {
                self.met[state] = self.by(entry);
            }
        }
    }
}
