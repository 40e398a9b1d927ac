//! The routes of probes, and their ways back.

use super::knowledge::{At, Knowledge};
use crate::wire::{Element, Route};

/// The farthest that a relative element reaches either way.
const REACH: i16 = 31;

/// One xbar's turn: what takes a frame on, and what takes it back the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Turn {
    forward: Element,
    back: Element,
    /// The tag of the xbar and the port that the turn leaves by, if it is tagged.
    leaves: Option<(u64, u8)>,
}

/// A way from this host out of a port.
#[derive(Clone, Default, Debug)]
pub(super) struct WayOut {
    turns: Vec<Turn>,
}

/// A probe that asks whether two ports are the ends of one cable.
pub(super) struct ComparePath {
    pub(super) route: Route,
    /// Elements left over where it turns, the turning one included.
    pub(super) left: u8,
    /// The tag and arrival port that it must be stamped with to be proof; `None` if coming back
    /// is proof already.
    pub(super) stamp: Option<(u64, u8)>,
}

impl WayOut {
    /// The way out of the port at `delta` of the xbar that `node` is a sight of. `None` if a turn
    /// cannot be expressed or the port is not known well enough to be addressed.
    pub(super) fn out_of(knowledge: &Knowledge, node: u32, delta: i16) -> Option<Self> {
        let root = knowledge.root(At { node, delta });
        let via = knowledge.xbar(root.node).via;
        let shift = knowledge.root(At { node: via, delta: 0 }).delta;
        Self::along(knowledge, Some(At { node: via, delta: root.delta - shift }))
    }

    /// The way by which `node` was found, to its entry.
    pub(super) fn to(knowledge: &Knowledge, node: u32) -> Option<Self> {
        Self::along(knowledge, knowledge.parent(node))
    }

    /// The way by which a node was found, and on by the exit `at` in that node's own frame.
    fn along(knowledge: &Knowledge, mut at: Option<At>) -> Option<Self> {
        let mut turns = Vec::new();
        while let Some(exit) = at {
            turns.push(Turn::new(knowledge, exit)?);
            at = knowledge.parent(exit.node);
        }
        turns.reverse();
        Some(Self { turns })
    }

    /// How many xbars it crosses.
    pub(super) fn hops(&self) -> usize {
        self.turns.len()
    }

    fn forward(&self) -> impl Iterator<Item = Element> + '_ {
        self.turns.iter().map(|turn| turn.forward)
    }

    fn back(&self) -> impl Iterator<Item = Element> + '_ {
        self.turns.iter().rev().map(|turn| turn.back)
    }

    /// The route that leads there.
    pub(super) fn there(&self) -> Route {
        self.forward().collect()
    }

    /// The way back from what is there.
    pub(super) fn way_back(&self) -> Route {
        self.back().collect()
    }

    /// The route there, a turning element, and the route back; and how many elements are left from the turn
    /// on.
    pub(super) fn and_back(&self, turn: Element) -> Option<(Route, u8)> {
        let route: Route = self.forward().chain([turn]).chain(self.back()).collect();
        let left = u8::try_from(self.turns.len() + 1).ok()?;
        (route.as_bytes().len() <= Route::MAX_BYTES).then_some((route, left))
    }

    /// Whether this way and `other` leave by the two ends of one cable: out here and back there.
    ///
    /// Deltas can be undone, so a frame that comes home by the reverse of `other` did arrive by
    /// the cable where `other` leaves. An absolute element cannot be undone: it leads home from
    /// every port. Where `other` needs one, the frame goes back only to the last tagged xbar of
    /// `other`, which stamps it with the port where it came in, and then retraces its steps.
    pub(super) fn compare(&self, other: &Self) -> Option<ComparePath> {
        let absolute = other.turns.iter().any(|turn| matches!(turn.back, Element::Absolute(_)));
        let path = if absolute {
            let tagged = other.turns.iter().rposition(|turn| turn.leaves.is_some())?;
            let plain = &other.turns[tagged + 1..];
            let route = self
                .forward()
                .chain(plain.iter().rev().map(|turn| turn.back))
                .chain([Element::Identify])
                .chain(plain.iter().map(|turn| turn.forward))
                .chain(self.back())
                .collect();
            let left = plain.len() + self.turns.len() + 1;
            ComparePath { route, left: u8::try_from(left).ok()?, stamp: other.turns[tagged].leaves }
        } else {
            let route = self.forward().chain(other.back()).collect();
            ComparePath { route, left: u8::try_from(other.turns.len() + 1).ok()?, stamp: None }
        };
        (path.route.as_bytes().len() <= Route::MAX_BYTES).then_some(path)
    }
}

impl Turn {
    /// From the entry of a node to an exit in its frame.
    fn new(knowledge: &Knowledge, exit: At) -> Option<Self> {
        let number = |delta: i16| {
            let root = knowledge.root(At { node: exit.node, delta });
            let tag = knowledge.xbar(root.node).tag?;
            u8::try_from(tag.base + root.delta).ok()
        };
        let leaves = knowledge.xbar(exit.node).tag.and_then(|tag| Some((tag.tag, number(exit.delta)?)));
        if exit.delta.abs() <= REACH {
            let delta = i8::try_from(exit.delta).ok()?;
            return Some(Self { forward: Element::Relative(delta), back: Element::Relative(-delta), leaves });
        }
        let forward = Element::Absolute(number(exit.delta)?);
        Some(Self { forward, back: Element::Absolute(number(0)?), leaves })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(deltas: &[i8]) -> WayOut {
        let turn =
            |&d: &i8| Turn { forward: Element::Relative(d), back: Element::Relative(-d), leaves: None };
        WayOut { turns: deltas.iter().map(turn).collect() }
    }

    #[test]
    fn a_loopback_turns_and_retraces_its_steps() {
        let (route, left) = way(&[3, -2]).and_back(Element::Relative(0)).unwrap();
        assert_eq!(route.to_string(), "3,-2,0,2,-3");
        assert_eq!(left, 3);
        assert_eq!(way(&[]).and_back(Element::Identify).unwrap().0.to_string(), "?");
    }

    #[test]
    fn a_compare_leaves_by_one_way_and_comes_back_by_the_other() {
        let path = way(&[1, 2]).compare(&way(&[5])).unwrap();
        assert_eq!((path.route.to_string().as_str(), path.left, path.stamp), ("1,2,-5", 2, None));
    }

    #[test]
    fn a_compare_over_absolute_ports_is_stamped() {
        let mut other = way(&[1, 2]);
        other.turns[0] =
            Turn { forward: Element::Absolute(40), back: Element::Absolute(2), leaves: Some((7, 40)) };
        let path = way(&[4]).compare(&other).unwrap();
        assert_eq!(path.route.to_string(), "4,-2,?,2,-4");
        assert_eq!((path.left, path.stamp), (3, Some((7, 40))));
    }
}
