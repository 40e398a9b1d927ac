//! Trees of cables: one for each group, out of a central switch.
//!
//! Which switch that is depends only on the switches, on where there are hosts, and on the group's LID, and
//! not on who is a member. So a tree does not move when members come or go, another manager makes the same
//! trees, and if many switches are central, groups spread over all of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Members;
use crate::manager::inventory::{Inventory, Switch};

/// The ports by which packets of a group leave switches, by GUID and port.
pub(super) type Leads = BTreeSet<(u64, u8)>;

/// A cable from one switch to another.
#[derive(Clone, Copy, Debug)]
struct Hop {
    port: u8,
    peer: usize,
    peer_port: u8,
}

/// The switches that have room for groups, with their cables and hosts, of which trees are made.
#[derive(Debug)]
pub(super) struct Trees {
    guids: Vec<u64>,
    /// The cables of each switch, by rising port.
    hops: Vec<Vec<Hop>>,
    /// The switch and the port that each port of an adapter is at, by its GUID.
    members: BTreeMap<u64, (usize, u8)>,
    /// The central switches: those whose farthest host is nearest.
    middle: Vec<usize>,
}

/// For each switch the first cable of its way to the root; `None` for the root and for switches that cannot
/// reach it.
type Up = Vec<Option<Hop>>;

impl Trees {
    pub(super) fn new<'a>(inventory: &Inventory, switches: impl Iterator<Item = &'a Switch>) -> Self {
        let by_guid: BTreeMap<u64, &Switch> = switches.map(|switch| (switch.guid, switch)).collect();
        let guids: Vec<u64> = by_guid.keys().copied().collect();
        let place = |guid: u64| guids.binary_search(&guid).ok();
        let hop = |(&port, &(peer, peer_port)): (&u8, &(u64, u8))| {
            Some(Hop { port, peer: place(peer)?, peer_port })
        };
        let hops = by_guid.values().map(|switch| switch.cables.iter().filter_map(hop).collect()).collect();
        let at = inventory.adapters.iter().filter_map(|adapter| {
            let (guid, port) = adapter.at?;
            Some((adapter.port_guid, (place(guid)?, port)))
        });
        let mut trees = Self { members: at.collect(), hops, middle: Vec::new(), guids };
        trees.middle = trees.most_central();
        trees
    }

    /// Whether a switch takes part.
    pub(super) fn has(&self, guid: u64) -> bool {
        self.guids.binary_search(&guid).is_ok()
    }

    /// The switches whose farthest host is nearest, and of these the ones with the shortest ways to all hosts
    /// together.
    fn most_central(&self) -> Vec<usize> {
        let ends: BTreeSet<usize> = self.members.values().map(|&(switch, _)| switch).collect();
        let mut best = (usize::MAX, usize::MAX);
        let mut middle = Vec::new();
        for switch in 0..self.guids.len() {
            let (_, far) = self.ways_to(switch);
            // A host that is not reached counts as farther away than any other.
            let far = |end: &usize| far[*end].unwrap_or(self.guids.len());
            let key = (ends.iter().map(far).max().unwrap_or(0), ends.iter().map(far).sum());
            if key < best {
                best = key;
                middle.clear();
            }
            if key == best {
                middle.push(switch);
            }
        }
        middle
    }

    /// The shortest way from each switch to `root`, and its length.
    fn ways_to(&self, root: usize) -> (Up, Vec<Option<usize>>) {
        let mut up = vec![None; self.guids.len()];
        let mut far = vec![None; self.guids.len()];
        far[root] = Some(0);
        let mut next = VecDeque::from([(root, 0)]);
        while let Some((switch, distance)) = next.pop_front() {
            for hop in &self.hops[switch] {
                if far[hop.peer].is_none() {
                    far[hop.peer] = Some(distance + 1);
                    up[hop.peer] = Some(Hop { port: hop.peer_port, peer: switch, peer_port: hop.port });
                    next.push_back((hop.peer, distance + 1));
                }
            }
        }
        (up, far)
    }

    /// The tree of a group: the cables on the ways from all its members to a central switch, in both
    /// directions.
    pub(super) fn of(&self, lid: u16, members: &Members) -> Leads {
        let mut leads = Leads::new();
        let Some(&root) = self.middle.iter().max_by_key(|&&switch| draw(self.guids[switch], lid)) else {
            return leads;
        };
        let (up, _) = self.ways_to(root);
        let at: Vec<(usize, u8)> = match members {
            Members::All => self.members.values().copied().collect(),
            Members::Ports(ports) => {
                ports.iter().filter_map(|guid| self.members.get(guid)).copied().collect()
            }
        };
        for (switch, port) in at {
            leads.insert((self.guids[switch], port));
            let mut below = switch;
            while let Some(hop) = up[below] {
                leads.insert((self.guids[hop.peer], hop.peer_port));
                if !leads.insert((self.guids[below], hop.port)) {
                    break;
                }
                below = hop.peer;
            }
        }
        leads
    }

    /// Whether packets can go round by the cables of which at least one end `leads`.
    pub(super) fn closes_a_circle(&self, leads: impl Fn(u64, u8) -> bool) -> bool {
        let mut part: Vec<usize> = (0..self.guids.len()).collect();
        let part_of = |part: &[usize], mut at: usize| {
            while part[at] != at {
                at = part[at];
            }
            at
        };
        for (switch, hops) in self.hops.iter().enumerate() {
            for hop in hops {
                let is_used =
                    leads(self.guids[switch], hop.port) || leads(self.guids[hop.peer], hop.peer_port);
                // Each cable is looked at once, at its lower end.
                if !is_used || (switch, hop.port) > (hop.peer, hop.peer_port) {
                    continue;
                }
                let ends = [part_of(&part, switch), part_of(&part, hop.peer)];
                if ends[0] == ends[1] {
                    return true;
                }
                part[ends[0]] = ends[1];
            }
        }
        false
    }
}

/// A number for a switch and a group, which is always the same. The central switch with the highest number is
/// the root. So if a switch goes, only the groups whose root it was get another one.
const fn draw(guid: u64, lid: u16) -> u64 {
    let mixed = (guid ^ (lid as u64) << 48).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}
