//! Channel dependencies between routers, by the class of the routes that they come from.

use super::heading::Heading;
use super::lattice::{Lattice, NOWHERE};
use super::tree::{CLASSES, Tree};

/// A set of classes, a bit each.
pub(super) type ClassSet = u16;

const _: () = assert!(CLASSES <= ClassSet::BITS as usize, "a bit for each class");

/// For each channel and each heading on from its end, the classes of the routes that turn so.
///
/// A channel here is a router and a heading, so parallel cables count as one. If these are free of circles,
/// so are single cables: a circle of cables would be one of headings.
#[derive(Debug, Clone)]
pub(super) struct TorusDependencies {
    /// `turns[6 * (6 * router + heading) + onward]`.
    turns: Vec<ClassSet>,
    /// For each router, the classes of the routes that pass it, while a tree is added.
    passing: Vec<ClassSet>,
}

impl TorusDependencies {
    /// No dependencies yet, between so many routers.
    pub(super) fn new(routers: usize) -> Self {
        Self { turns: vec![0; 36 * routers], passing: vec![0; routers] }
    }

    /// Adds the routes of a traced tree from the routers that send frames.
    pub(super) fn add(&mut self, lattice: &Lattice, tree: &Tree, sends: &[bool]) {
        for &router in &tree.order {
            let router = router as usize;
            self.passing[router] = ClassSet::from(sends[router]) << tree.classes[router];
        }
        // Each router after all that send to it.
        for &router in tree.order.iter().skip(1).rev() {
            let Some((heading, next)) = tree.next(lattice, router) else { continue };
            let passing = self.passing[router as usize];
            if let Some(onward) = tree.headings[next as usize] {
                self.passing[next as usize] |= passing;
                self.turns[6 * (6 * router as usize + heading.index()) + onward.index()] |= passing;
            }
        }
    }

    /// Adds that routes of some classes turn so: from the channel that leaves a router on a heading to the
    /// onward heading at its end.
    pub(super) fn add_turn(&mut self, router: u32, heading: Heading, onward: Heading, classes: ClassSet) {
        self.turns[6 * (6 * router as usize + heading.index()) + onward.index()] |= classes;
    }

    /// Whether routes of some classes follow each other all the way round a ring. Such a circle is found
    /// quickly.
    pub(super) fn closes_a_ring(&self, lattice: &Lattice, classes: ClassSet) -> bool {
        let rings = Heading::ALL.into_iter().filter(|heading| lattice.rings[heading.dimension()]);
        let goes_on = |router: u32, heading: Heading| {
            self.turns[6 * (6 * router as usize + heading.index()) + heading.index()] & classes != 0
        };
        rings.into_iter().any(|heading| {
            let mut starts = (0..lattice.router_count() as u32)
                .filter(|&router| lattice.coordinates(router)[heading.dimension()] == 0);
            starts.any(|start| {
                let mut at = start;
                loop {
                    match lattice.next(at, heading).filter(|_| goes_on(at, heading)) {
                        Some(next) if next == start => return true,
                        Some(next) => at = next,
                        None => return false,
                    }
                }
            })
        })
    }

    /// Adds the dependencies of another set.
    pub(super) fn merge(mut self, other: &Self) -> Self {
        for (turn, other) in self.turns.iter_mut().zip(&other.turns) {
            *turn |= other;
        }
        self
    }

    /// Whether it holds all dependencies of another set.
    #[cfg(test)]
    pub(super) fn holds(&self, other: &Self) -> bool {
        self.turns.iter().zip(&other.turns).all(|(own, other)| own & other == *other)
    }

    /// The classes of all routes that make dependencies.
    pub(super) fn classes(&self) -> ClassSet {
        self.turns.iter().fold(0, |all, turn| all | turn)
    }

    /// A circle of dependencies of some classes, if there is one.
    pub(super) fn circle(&self, lattice: &Lattice, classes: ClassSet) -> Option<Vec<(u32, Heading)>> {
        let channels = self.turns.len() / 6;
        let next = |channel: usize, onward: Heading| {
            let heading = Heading::from_index((channel % 6) as u8)?;
            let head = lattice.next((channel / 6) as u32, heading)?;
            let turns = self.turns[6 * channel + onward.index()] & classes != 0;
            turns.then_some(6 * head as usize + onward.index())
        };
        let mut waiting = vec![0_u8; channels];
        for channel in 0..channels {
            for onward in Heading::ALL.into_iter().filter_map(|onward| next(channel, onward)) {
                waiting[onward] += 1;
            }
        }
        let mut free: Vec<usize> = (0..channels).filter(|&channel| waiting[channel] == 0).collect();
        let mut left = channels - free.len();
        while let Some(channel) = free.pop() {
            for onward in Heading::ALL.into_iter().filter_map(|onward| next(channel, onward)) {
                waiting[onward] -= 1;
                if waiting[onward] == 0 {
                    free.push(onward);
                    left -= 1;
                }
            }
        }
        if left == 0 {
            return None;
        }
        // Each channel that is left has a predecessor that is left, too, so walking back meets a channel
        // twice.
        let mut before = vec![NOWHERE; channels];
        for channel in (0..channels).filter(|&channel| waiting[channel] != 0) {
            for onward in Heading::ALL.into_iter().filter_map(|onward| next(channel, onward)) {
                before[onward] = channel as u32;
            }
        }
        let mut at = waiting.iter().position(|&count| count != 0)? as u32;
        for _ in 0..channels {
            at = before[at as usize];
        }
        let start = at;
        let mut circle = Vec::new();
        loop {
            circle.push((at / 6, Heading::from_index((at % 6) as u8)?));
            at = before[at as usize];
            if at == start {
                break;
            }
        }
        circle.reverse();
        Some(circle)
    }
}
