//! The ways in which shortest legal routes may enter each state.

use rand_chacha::ChaCha8Rng;

use super::below;
use super::distances::Distances;
use crate::{Orientation, Topology};

/// A way for a shortest legal route to enter a state.
#[derive(Clone, Copy)]
pub(super) struct StateEntry {
    /// The state that it comes from.
    pub(super) from: u32,
    /// The way back of the channel that it takes.
    pub(super) channel: u32,
}

/// A state that routes to hosts pass.
pub(super) struct PassedState {
    /// Its number: see [`Distances`].
    pub(super) state: u32,
    /// Steps from the source.
    pub(super) steps: u32,
    /// Whether routes go on to other xbars from here.
    pub(super) inner: bool,
    /// Where its entries begin among those of the table.
    first: u32,
}

/// What every search of a table chooses from.
pub(super) struct Choices {
    /// The states, later ones first.
    states: Vec<PassedState>,
    entries: Vec<StateEntry>,
}

impl Choices {
    /// Finds the entries of every state that a route to a host may pass, and shuffles them.
    pub(super) fn of(
        topology: &Topology,
        orientation: &Orientation,
        distances: &Distances,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let xbars = topology.xbar_count();
        let mut choices = Self { states: Vec::new(), entries: Vec::new() };
        let mut inner = vec![false; distances.steps.len()];
        // Early phases come last: they lead to later ones, but not the other way round.
        for &state in distances.by_phase.iter().rev().flat_map(|states| states.iter().rev()) {
            let at = state as usize;
            let ends_here = at < xbars && !topology.hosts_of(state).is_empty();
            if inner[at] || ends_here {
                let first = choices.entries.len();
                let steps = distances.steps[at].into();
                choices.states.push(PassedState { state, steps, inner: inner[at], first: first as u32 });
                choices.add_entries(topology, orientation, distances, state);
                let entries = &mut choices.entries[first..];
                for i in (1..entries.len()).rev() {
                    entries.swap(i, below(rng, i + 1));
                }
                entries.iter().for_each(|entry| inner[entry.from as usize] = true);
            }
        }
        choices
    }

    fn add_entries(
        &mut self,
        topology: &Topology,
        orientation: &Orientation,
        distances: &Distances,
        state: u32,
    ) {
        let (xbar, phase) = distances.xbar_and_phase(state);
        let before = distances.steps[state as usize] - 1;
        for channel in topology.channels_of(xbar) {
            // A channel that leads here is the reverse of one that leads out.
            let passage = orientation.passage_back(channel);
            let Some(earlier) = passage.before(phase) else { continue };
            let from = distances.state(topology.head(channel).xbar, earlier);
            if distances.steps[from as usize] == before {
                self.entries.push(StateEntry { from, channel });
            }
        }
    }

    /// How many states there are.
    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// How many entries all states have.
    pub(super) fn entry_count(&self) -> usize {
        self.entries.len()
    }

    /// The states, earlier ones first, each with its entries and the number of the first of them.
    pub(super) fn outwards(&self) -> impl Iterator<Item = (&PassedState, usize, &[StateEntry])> {
        let mut end = self.entries.len();
        self.states.iter().rev().map(move |state| {
            let first = state.first as usize;
            let entries = &self.entries[first..end];
            end = first;
            (state, first, entries)
        })
    }
}
