//! The complete channel-dependency graph: which turns are used, and which would close a circle with them.

use crate::Topology;
use crate::engines::acyclic::AcyclicGraph;
use crate::engines::layer::DependencyNumbers;

/// What is known of a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TurnState {
    /// Nothing is known of the turn yet.
    Free,
    /// The turn is in the graph.
    Used,
    /// The turn would close a circle. This stays so until used turns are forgotten.
    Blocked,
}

/// The turns of one layer, from a channel to one that begins where it ends.
pub(super) struct Turns<'a> {
    numbers: DependencyNumbers<'a>,
    states: Vec<TurnState>,
    graph: AcyclicGraph,
    some_blocked: bool,
}

impl<'a> Turns<'a> {
    /// Turns of which none is used yet. The graph's order of channels begins with these places.
    pub(super) fn new(topology: &'a Topology, places: &[u32]) -> Self {
        let numbers = DependencyNumbers::new(topology);
        let states = vec![TurnState::Free; numbers.count()];
        Self { numbers, states, graph: AcyclicGraph::in_order(places), some_blocked: false }
    }

    /// Forgets which turns are used and which are blocked. The order of channels stays, so that using the
    /// same turns again costs little.
    pub(super) fn forget(&mut self) {
        self.states.fill(TurnState::Free);
        self.graph.clear();
        self.some_blocked = false;
    }

    /// Whether any turn was found to close a circle.
    pub(super) fn are_some_blocked(&self) -> bool {
        self.some_blocked
    }

    /// Whether a turn is not known to close a circle.
    #[inline]
    pub(super) fn may_use(&self, held: u32, wanted: u32) -> bool {
        self.states[self.numbers.dependency(held, wanted).number as usize] != TurnState::Blocked
    }

    /// Uses a turn. Returns false if it would close a circle, so that it is blocked.
    pub(super) fn make_used(&mut self, held: u32, wanted: u32) -> bool {
        let state = &mut self.states[self.numbers.dependency(held, wanted).number as usize];
        if *state == TurnState::Free {
            let is_free = self.graph.insert(held, wanted);
            *state = if is_free { TurnState::Used } else { TurnState::Blocked };
            self.some_blocked |= !is_free;
        }
        *state == TurnState::Used
    }
}
