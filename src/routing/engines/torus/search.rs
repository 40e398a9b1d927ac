//! Routes to one destination by search, where the rules' own choices do not arrive.

use super::lattice::Lattice;
use super::regions::Regions;
use super::rules::{Aim, Phase, choose, wanted};
use super::heading::Heading;
use super::tree::{Dodge, Tree, after};

const FAR: u16 = u16::MAX;

/// Searches all routes that keep to R0 and R2. Memory for many destinations in turn.
///
/// A state is a router and the phase of a frame there. Backwards from the destination, breadth first, the
/// search finds how far it is from each state. So it knows exactly which pairs the rules can connect, and
/// by how short a route.
///
/// Tables hold one heading a router, whatever the phase of the frame. So headings are chosen downwards:
/// each router is first asked for phase A only, in which frames begin. The heading that it chooses asks the
/// next router for the phase after that step. A router that is asked for a later phase chooses again, a
/// heading that is shortest in that phase. It serves all earlier phases, too: a later phase forbids more.
///
/// No loop can come of it: along the headings, the phase that routers are asked for never falls, and while
/// it stays the same, the distance in it falls by one a step. And every state that is asked for can reach
/// the destination, as the one that asked could. So every pair that the rules can connect is connected.
#[derive(Debug, Clone)]
pub(super) struct Search {
    /// Steps to the destination: `distance[3 * router + phase]`.
    distance: Vec<u16>,
    queue: Vec<(u32, Phase)>,
    /// The last phase that each router is asked for.
    asked: Vec<Phase>,
    dirty: Vec<bool>,
}

impl Search {
    /// For a lattice of so many routers.
    pub(super) fn new(routers: usize) -> Self {
        Self {
            distance: vec![FAR; 3 * routers],
            queue: Vec::new(),
            asked: vec![Phase::A; routers],
            dirty: vec![false; routers],
        }
    }

    /// Puts a heading into the tree for each router that can reach the destination.
    pub(super) fn run(
        &mut self,
        lattice: &Lattice,
        regions: &Regions,
        destination: u32,
        dodge: Dodge,
        tree: &mut Tree,
    ) {
        self.measure(lattice, destination, dodge);
        tree.headings.fill(None);
        self.asked.fill(Phase::A);
        self.dirty.fill(false);
        // The farthest first: then most routers choose once, after all that send to them.
        let mut order: Vec<u32> =
            self.queue.iter().rev().filter(|(_, phase)| *phase == Phase::A).map(|state| state.0).collect();
        order.retain(|&router| router != destination);
        for &router in &order {
            self.dirty[router as usize] = true;
        }
        let aim = Aim::router(lattice.coordinates(destination));
        let mut changed = true;
        while changed {
            changed = false;
            for &router in &order {
                if std::mem::take(&mut self.dirty[router as usize]) {
                    changed = true;
                    tree.headings[router as usize] = self.decide(lattice, regions, router, &aim, dodge);
                }
            }
        }
    }

    /// Finds how far it is from each state to the destination.
    fn measure(&mut self, lattice: &Lattice, destination: u32, dodge: Dodge) {
        self.distance.fill(FAR);
        self.queue.clear();
        for phase in Phase::ALL {
            self.distance[3 * destination as usize + phase as usize] = 0;
            self.queue.push((destination, phase));
        }
        let mut first = 0;
        while let Some(&(router, phase)) = self.queue.get(first) {
            first += 1;
            let steps = self.distance[3 * router as usize + phase as usize] + 1;
            for heading in Heading::ALL {
                let Some(before) = lattice.next(router, heading.back()) else { continue };
                for earlier in Phase::ALL {
                    let at = 3 * before as usize + earlier as usize;
                    if self.distance[at] == FAR
                        && after(lattice, before, earlier, heading, dodge) == Some(phase)
                    {
                        self.distance[at] = steps;
                        self.queue.push((before, earlier));
                    }
                }
            }
        }
    }

    /// A router's heading for the phase that it is asked for: of the shortest ones the default, else what
    /// the rules would take, else the first in the order of dimensions.
    fn decide(
        &mut self,
        lattice: &Lattice,
        regions: &Regions,
        router: u32,
        aim: &Aim,
        dodge: Dodge,
    ) -> Option<Heading> {
        let phase = self.asked[router as usize];
        let distance = self.distance[3 * router as usize + phase as usize];
        let onward = |heading: Heading| {
            let next = lattice.next(router, heading)?;
            let phase = after(lattice, router, phase, heading, dodge)?;
            let shortest = self.distance[3 * next as usize + phase as usize].saturating_add(1) == distance;
            shortest.then_some((heading, next, phase))
        };
        let preferred = [wanted(lattice, router, aim), choose(lattice, regions, router, aim)];
        let mut all = preferred.into_iter().flatten().chain(Heading::ALL);
        let (heading, next, phase) = all.find_map(onward)?;
        if self.asked[next as usize] < phase {
            self.asked[next as usize] = phase;
            self.dirty[next as usize] = true;
        }
        Some(heading)
    }
}
