//! One way to each xbar that all agents derive alike from a map: from the nearest xbar with hosts.
//!
//! [`Ways`](super::ways::Ways) differ from host to host. What several agents find out about a plain
//! xbar fits together only if they reach it by one and the same way, as it has no name but the way
//! that leads to it.

use std::collections::VecDeque;

use super::ways::{CablesByXbar, Crossing, Way};
use super::{Map, PortRef};

/// A breadth-first forest over all xbars. Its roots are the xbars with hosts.
#[derive(Clone, Debug)]
pub(crate) struct Forest {
    /// By xbar; `None` if no host reaches it.
    grown: Vec<Option<Grown>>,
}

/// An xbar's place in the forest.
#[derive(Clone, Copy, Debug)]
struct Grown {
    /// The root of its tree.
    root: u32,
    /// The cable by which the tree enters this xbar: the end before it, and the port of this xbar. `None` for a root.
    cable: Option<(PortRef, u8)>,
    /// Cables from the root.
    depth: u32,
}

impl Forest {
    /// The forest of a map.
    ///
    /// Of several shortest ways to an xbar its index decides, so that neighbouring xbars hang on
    /// different roots as far as the cables let them.
    pub(crate) fn new(map: &Map, neighbours: &CablesByXbar) -> Self {
        let mut grown: Vec<Option<Grown>> = vec![None; map.xbars.len()];
        let mut queue = VecDeque::new();
        for at in map.hosts.iter().filter_map(|host| host.at) {
            if let Some(slot @ None) = grown.get_mut(at.xbar as usize) {
                *slot = Some(Grown { root: at.xbar, cable: None, depth: 0 });
                queue.push_back(at.xbar);
            }
        }
        while let Some(xbar) = queue.pop_front() {
            let Some(here) = grown[xbar as usize] else { continue };
            for (_, far) in neighbours.of(xbar) {
                if let Some(slot @ None) = grown.get_mut(far.xbar as usize) {
                    // The cable is chosen below, once all of the last depth are known.
                    *slot = Some(Grown { root: far.xbar, cable: None, depth: here.depth + 1 });
                    queue.push_back(far.xbar);
                }
            }
            if here.depth > 0 {
                grown[xbar as usize] = choose(neighbours, &grown, xbar, here.depth);
            }
        }
        Self { grown }
    }

    /// The root of the tree that an xbar is in.
    pub(crate) fn root(&self, xbar: u32) -> Option<u32> {
        (*self.grown.get(xbar as usize)?).map(|grown| grown.root)
    }

    /// Whether the forest leads from `near` to the xbar of `far` by the cable between these two.
    pub(crate) fn crosses(&self, near: PortRef, far: PortRef) -> bool {
        let grown = self.grown.get(far.xbar as usize).copied().flatten();
        grown.and_then(|grown| grown.cable) == Some((near, far.port))
    }

    /// The way through the forest from the host at `from` (the port of a root that it is cabled to)
    /// to an xbar. `None` if that is in another tree.
    pub(crate) fn way(&self, from: PortRef, xbar: u32) -> Option<Way> {
        let last = (*self.grown.get(xbar as usize)?).filter(|grown| grown.root == from.xbar)?;
        let entry = PortRef { xbar, port: last.cable.map_or(from.port, |(_, port)| port) };
        let mut crossings = Vec::with_capacity(last.depth as usize);
        let mut cable = last.cable;
        while let Some((near, _)) = cable {
            cable = (*self.grown.get(near.xbar as usize)?)?.cable;
            let arrival = cable.map_or(from.port, |(_, port)| port);
            crossings.push(Crossing { xbar: near.xbar, arrival, leave: near.port });
        }
        crossings.reverse();
        Some(Way { crossings, entry })
    }
}

/// The place of an xbar that is `depth` cables from the nearest host: one of the cables that come
/// from one less. All of those have their places.
fn choose(neighbours: &CablesByXbar, grown: &[Option<Grown>], xbar: u32, depth: u32) -> Option<Grown> {
    let nearer = || {
        let of_far = |far: PortRef| grown.get(far.xbar as usize).copied().flatten();
        neighbours.of(xbar).filter_map(move |(near, far)| {
            let above = of_far(far).filter(|above| above.depth + 1 == depth)?;
            Some(Grown { root: above.root, cable: Some((far, near.port)), depth })
        })
    };
    nearer().nth(xbar as usize % nearer().count().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mac;
    use crate::map::{Cable, Host, Xbar};

    /// Two leaves with a host each on port 9, joined by two spines that have nothing else, and an
    /// xbar behind the second spine.
    fn clos() -> Map {
        let at = |xbar, port| PortRef { xbar, port };
        let host = |position, xbar| Host {
            mac: Mac::from_position(position),
            level: 1,
            host_type: 4,
            at: Some(at(xbar, 9)),
        };
        let cable = |a: (u32, u8), b: (u32, u8)| Cable::new(at(a.0, a.1), at(b.0, b.1));
        Map {
            hosts: vec![host(1, 0), host(2, 1)],
            xbars: vec![Xbar { ports: 16, tag: None, ports_known: false }; 5],
            cables: vec![
                cable((0, 1), (2, 1)),
                cable((0, 2), (3, 1)),
                cable((1, 1), (2, 2)),
                cable((1, 2), (3, 2)),
                cable((3, 5), (4, 7)),
            ],
            ..Map::default()
        }
    }

    #[test]
    fn each_xbar_is_in_one_tree_and_trees_are_shared_out() {
        let forest = Forest::new(&clos(), &CablesByXbar::new(&clos()));
        let roots: Vec<_> = (0..5).map(|xbar| forest.root(xbar).unwrap()).collect();
        assert_eq!(roots, [0, 1, 0, 1, 1]);
        assert_eq!(forest.root(5), None);
    }

    #[test]
    fn ways_lead_through_the_own_tree_only() {
        let forest = Forest::new(&clos(), &CablesByXbar::new(&clos()));
        let at = |xbar, port| PortRef { xbar, port };
        let way = forest.way(at(1, 9), 4).unwrap();
        assert_eq!(way.entry, at(4, 7));
        assert_eq!(way.forward().to_string(), "-7,3");
        assert_eq!(way.back().to_string(), "-3,7");
        assert_eq!(forest.way(at(0, 9), 4), None);
        assert!(forest.way(at(0, 9), 0).unwrap().crossings.is_empty());
        assert!(forest.crosses(at(3, 5), at(4, 7)) && !forest.crosses(at(4, 7), at(3, 5)));
        assert!(forest.crosses(at(1, 2), at(3, 2)) && !forest.crosses(at(0, 2), at(3, 1)));
    }

    #[test]
    fn an_xbar_that_no_host_reaches_is_in_no_tree() {
        let mut map = clos();
        map.cables.pop();
        assert_eq!(Forest::new(&map, &CablesByXbar::new(&map)).root(4), None);
    }
}
