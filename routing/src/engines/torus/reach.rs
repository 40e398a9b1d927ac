//! Which routers a frame can get to by any route of R0 to R3, whatever tables say.

use super::heading::Heading;
use super::lattice::Lattice;
use super::rules::{Phase, after_dodge};

/// Searches forwards from one router, over states of a router and the phase of a frame there. Memory for many
/// searches in turn.
#[derive(Debug, Clone)]
pub(super) struct RouterReach {
    /// `seen[3 * router + phase]`.
    seen: Vec<bool>,
    queue: Vec<u32>,
}

impl RouterReach {
    /// Memory for a lattice of so many routers.
    pub(super) fn new(routers: usize) -> Self {
        Self { seen: vec![false; 3 * routers], queue: Vec::new() }
    }

    /// Finds all states that a router's frames can get to. Returns how many these are.
    pub(super) fn search(&mut self, lattice: &Lattice, source: u32) -> usize {
        self.seen.fill(false);
        self.queue.clear();
        self.enter(source, Phase::A);
        let mut looked_at = 0;
        while let Some(&state) = self.queue.get(looked_at) {
            looked_at += 1;
            let (router, phase) = (state / 3, Phase::ALL[state as usize % 3]);
            for heading in Heading::ALL {
                if let Some(next) = lattice.next(router, heading)
                    && let Some(phase) = after_dodge(lattice, router, phase, heading)
                {
                    self.enter(next, phase);
                }
            }
        }
        looked_at
    }

    fn enter(&mut self, router: u32, phase: Phase) {
        let state = 3 * router + phase as u32;
        if !std::mem::replace(&mut self.seen[state as usize], true) {
            self.queue.push(state);
        }
    }

    /// Whether the last search got to a router.
    pub(super) fn contains(&self, router: u32) -> bool {
        self.seen[3 * router as usize..][..3].contains(&true)
    }

    /// Whether frames can get from one router to another.
    pub(super) fn joins(&mut self, lattice: &Lattice, source: u32, destination: u32) -> bool {
        self.search(lattice, source);
        self.contains(destination)
    }
}
