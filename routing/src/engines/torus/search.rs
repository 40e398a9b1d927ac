//! Finds routes by search, for destinations that the rules' own choices do not reach, and towards regions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::heading::Heading;
use super::lattice::Lattice;
use super::regions::Regions;
use super::rules::{Aim, Phase, choose, wanted};
use super::tree::{Dodge, after};

/// The distance of a state from which nothing leads to the aim.
pub(super) const FAR: u32 = u32::MAX;

/// What is searched for.
pub(super) struct Task<'a> {
    pub(super) lattice: &'a Lattice,
    pub(super) regions: &'a Regions,
    /// Whether R3's exception is in use.
    pub(super) dodge: Dodge,
    /// Where routes are to get to.
    pub(super) aim: Aim,
    /// Routes keep inside this box.
    pub(super) inside: Aim,
    /// How much a step counts.
    pub(super) step: u32,
}

/// Searches all routes that keep to R0 and R2. Memory for many aims in turn.
///
/// A state is a router and the phase of a frame there. Backwards from the aim, the nearest first, the search
/// finds how far it is from each state. So it knows exactly which pairs the rules can connect, and by how
/// short a route.
///
/// Tables hold one heading a router, whatever the phase of the frame. So headings are chosen downwards:
/// each router is first asked for phase A only, in which frames begin. The heading that it chooses asks the
/// next router for the phase after that step. A router that is asked for a later phase chooses again, a
/// heading that is shortest in that phase. It serves all earlier phases, too: a later phase forbids more.
///
/// That cannot make a loop: along the headings, the phase that routers are asked for never falls, and while
/// it stays the same, the distance in it falls at each step. Every state that is asked for can reach the aim,
/// as the state that asked could. So every pair that the rules can connect is connected.
#[derive(Debug, Clone)]
pub(super) struct PhaseSearch {
    /// How far the aim is from each state: `distances[3 * router + phase]`.
    distances: Vec<u32>,
    heap: BinaryHeap<Reverse<(u32, u32)>>,
    /// Routers from which phase A leads to the aim, the nearest first.
    order: Vec<u32>,
    /// The last phase that each router is asked for.
    asked: Vec<Phase>,
    dirty: Vec<bool>,
}

impl PhaseSearch {
    /// Memory for a lattice of so many routers.
    pub(super) fn new(routers: usize) -> Self {
        Self {
            distances: vec![FAR; 3 * routers],
            heap: BinaryHeap::new(),
            order: Vec::new(),
            asked: vec![Phase::A; routers],
            dirty: vec![false; routers],
        }
    }

    /// Finds the distance of each state by way of the nearest of these ends, which have distances of their
    /// own.
    pub(super) fn measure(&mut self, task: &Task<'_>, ends: impl Iterator<Item = (u32, Phase, u32)>) {
        self.distances.fill(FAR);
        self.order.clear();
        self.heap.clear();
        for (router, phase, distance) in ends.filter(|end| end.2 != FAR) {
            let state = 3 * router + phase as u32;
            self.distances[state as usize] = distance;
            self.heap.push(Reverse((distance, state)));
        }
        while let Some(Reverse((distance, state))) = self.heap.pop() {
            if self.distances[state as usize] != distance {
                continue;
            }
            let (router, phase) = (state / 3, Phase::ALL[state as usize % 3]);
            if phase == Phase::A && !task.aim.contains(task.lattice.coordinates(router)) {
                self.order.push(router);
            }
            self.relax(task, router, phase, distance.saturating_add(task.step));
        }
    }

    /// Updates the distances of the states from which a step leads to one.
    fn relax(&mut self, task: &Task<'_>, router: u32, phase: Phase, distance: u32) {
        for heading in Heading::ALL {
            let Some(before) = task.lattice.next(router, heading.back()) else { continue };
            let place = task.lattice.coordinates(before);
            if !task.inside.contains(place) || task.aim.contains(place) {
                continue;
            }
            for earlier in Phase::ALL {
                let state = 3 * before + earlier as u32;
                if self.distances[state as usize] > distance
                    && after(task.lattice, before, earlier, heading, task.dodge) == Some(phase)
                {
                    self.distances[state as usize] = distance;
                    self.heap.push(Reverse((distance, state)));
                }
            }
        }
    }

    /// How far it is from a state.
    pub(super) fn distance(&self, router: u32, phase: Phase) -> u32 {
        self.distances[3 * router as usize + phase as usize]
    }

    /// The last phase that each router is asked for, after [`Self::assign`].
    pub(super) fn asked(&self) -> &[Phase] {
        &self.asked
    }

    /// Chooses a heading for each router that was found to reach the aim, if frames begin there in phase A
    /// and come in up to the phases that `asked` says.
    pub(super) fn assign(&mut self, task: &Task<'_>, asked: &[Phase], headings: &mut [Option<Heading>]) {
        self.asked.copy_from_slice(asked);
        self.dirty.fill(false);
        for &router in &self.order {
            self.dirty[router as usize] = true;
        }
        // The farthest routers come first, so that most routers choose only once, after all that send to
        // them.
        let order = std::mem::take(&mut self.order);
        let mut changed = true;
        while changed {
            changed = false;
            for &router in order.iter().rev() {
                if std::mem::take(&mut self.dirty[router as usize]) {
                    changed = true;
                    headings[router as usize] = self.decide(task, router);
                }
            }
        }
        self.order = order;
    }

    /// A router's heading for the phase that it is asked for. Of those on shortest routes it is the default
    /// one, or else what the rules would take, or else the first in the order of dimensions.
    fn decide(&mut self, task: &Task<'_>, router: u32) -> Option<Heading> {
        let phase = self.asked[router as usize];
        let distance = self.distance(router, phase);
        if distance == FAR {
            return None;
        }
        let onward = |heading: Heading| {
            let next = task.lattice.next(router, heading)?;
            let phase = after(task.lattice, router, phase, heading, task.dodge)?;
            let shortest = self.distance(next, phase).saturating_add(task.step) == distance;
            shortest.then_some((heading, next, phase))
        };
        let preferred =
            [wanted(task.lattice, router, &task.aim), choose(task.lattice, task.regions, router, &task.aim)];
        let mut all = preferred.into_iter().flatten().chain(Heading::ALL);
        let (heading, next, phase) = all.find_map(onward)?;
        if self.asked[next as usize] < phase {
            self.asked[next as usize] = phase;
            self.dirty[next as usize] = true;
        }
        Some(heading)
    }
}
