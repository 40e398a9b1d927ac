//! The map in force, and this agent's place in the tree over it.
//!
//! The tree is the binary tree over the map's hosts by falling rank: n is the parent of 2n and
//! 2n+1, counted from 1. Phantoms rank last and have no place in it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::checks::{self, Check};
use crate::Mac;
use crate::map::ways::{CablesByXbar, Ways};
use crate::map::{
    AddressConflict, Contested, Host, Map, MapVersion, Place, PortRef, Rank, decode_pieces, host_type,
};
use crate::wire::{AgentState, Info, RoundTrip};

/// A child in the tree, and what it last said.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) mac: Mac,
    /// Its level, as the map has it.
    level: u8,
    /// Whether it was told of this map and has answered.
    pub(super) aware: bool,
    /// Whether it and all below it are configured with this map.
    pub(super) complete: bool,
    /// Cycles of verification in a row in which it held another map or none when it was asked,
    /// whatever it said in between.
    pub(super) stale_cycles: u8,
    /// What is wrong with it, in words.
    pub(super) trouble: Option<String>,
}

/// The map in force. It stays, with its routes, while it is invalid: users' traffic goes on until
/// a new one replaces it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) version: MapVersion,
    /// The global mapper that made it.
    pub(super) leader: Rank,
    /// Whether it still holds, as far as this agent knows.
    pub(super) valid: bool,
    /// The map as it travels; to be handed to the children.
    pub(super) pieces: Vec<Vec<u8>>,
    pub(super) digest: u64,
    pub(super) parent: Option<Rank>,
    pub(super) children: Vec<Child>,
    /// This agent's share of verification.
    pub(super) share: Vec<Check>,
    /// Ways to parent and children, there and back: the shortest, until proved routes are there whose
    /// way back can be told.
    pub(super) routes: BTreeMap<Mac, RoundTrip>,
    /// Whether routes to all hosts are in place.
    pub(super) routed: bool,
    /// Why there are no routes.
    pub(super) routing_failure: Option<String>,
    /// The global mapper has said that all are configured with this map.
    pub(super) network_complete: bool,
    /// What the parent was last told of this agent and all below it.
    pub(super) reported_complete: bool,
    /// Where this agent is cabled.
    pub(super) at: Option<PortRef>,
    /// The addresses that several hosts have, according to the map.
    pub(super) conflicts: Vec<AddressConflict>,
    /// The contested ports, with the ways there and back, if this agent is the global mapper.
    pub(super) contested: Vec<(Contested, RoundTrip)>,
    /// Whether all hosts of the map route by up*/down*.
    pub(super) non_clos: bool,
    pub(super) hosts: usize,
    pub(super) xbars: usize,
    pub(super) cables: usize,
}

impl Held {
    /// Takes a map in force. `None` if `own` is not in it.
    pub(super) fn new(map: &Map, pieces: Vec<Vec<u8>>, own: Mac, xbar_check: bool) -> Option<Self> {
        let index = map.hosts.iter().position(|h| h.mac == own)?;
        let agent = |i: usize| map.hosts.get(i).filter(|h| h.host_type != host_type::PHANTOM);
        let parent = map.parent_index(index).and_then(agent).map(Host::rank);
        let children = map.children_indices(index).filter_map(agent).map(Child::new).collect();
        let routable = map.routable();
        let neighbours = CablesByXbar::new(&routable);
        let ways = map.hosts[index].at.map(|at| Ways::over(&neighbours, at));
        let ways_to_contested = ways.as_ref().filter(|_| parent.is_none()).into_iter();
        let contested = ways_to_contested.flat_map(|ways| contested_ways(map, ways)).collect();
        let mut held = Self {
            version: map.version,
            leader: map.hosts.first()?.rank(),
            valid: true,
            digest: digest(&pieces),
            pieces,
            parent,
            children,
            share: checks::share(map, &neighbours, index, xbar_check.then_some(&routable.cables)),
            routes: BTreeMap::new(),
            routed: false,
            routing_failure: None,
            network_complete: false,
            reported_complete: false,
            at: map.hosts[index].at,
            conflicts: map.address_conflicts(),
            contested,
            non_clos: map.rules.non_clos,
            hosts: map.hosts.len(),
            xbars: map.xbars.len(),
            cables: map.cables.len(),
        };
        let in_tree = held.neighbours();
        held.routes = ways_to(map, ways.as_ref(), |mac| in_tree.contains(&mac)).collect();
        Some(held)
    }

    /// Takes other ways to the neighbours in the tree than those through these ports: word that a
    /// cable is dead must not be sent along it.
    pub(super) fn avoid(&mut self, suspects: &[PortRef], own: Mac) {
        let Ok(mut map) = decode_pieces(self.version, &self.pieces) else { return };
        if let Cow::Owned(without) = map.routable() {
            map = without;
        }
        let cables = map.cables.len();
        map.cables.retain(|cable| !suspects.contains(&cable.a) && !suspects.contains(&cable.b));
        if map.cables.len() == cables {
            return;
        }
        let neighbours = self.neighbours();
        for (mac, way) in short_ways(&map, own) {
            if neighbours.contains(&mac) {
                self.routes.insert(mac, way);
            }
        }
    }

    /// The addresses of parent and children.
    pub(super) fn neighbours(&self) -> Vec<Mac> {
        self.parent.iter().map(|p| p.mac).chain(self.children.iter().map(|c| c.mac)).collect()
    }

    /// The level of the global mapper, the parent or a child, as the map has it.
    pub(super) fn level_of(&self, mac: Mac) -> Option<u8> {
        let above = self.parent.iter().chain([&self.leader]).map(|rank| (rank.mac, rank.level));
        let below = self.children.iter().map(|child| (child.mac, child.level));
        above.chain(below).find(|(known, _)| *known == mac).map(|(_, level)| level)
    }

    /// Where hosts with a contested address are.
    pub(super) fn places_of(&self, mac: Mac) -> &[Place] {
        self.conflicts.iter().find(|conflict| conflict.mac == mac).map_or(&[], |conflict| &conflict.places)
    }

    /// The child with this address.
    pub(super) fn child_mut(&mut self, mac: Mac) -> Option<&mut Child> {
        self.children.iter_mut().find(|c| c.mac == mac)
    }

    /// Whether no other agent is in the map.
    pub(super) const fn is_alone(&self) -> bool {
        self.parent.is_none() && self.children.is_empty()
    }

    /// Whether routes are in place, or it is known that there are none.
    pub(super) const fn is_done(&self) -> bool {
        self.routed || self.routing_failure.is_some()
    }

    /// Whether this agent and all below it are configured with this map.
    pub(super) fn subtree_complete(&self) -> bool {
        self.valid && self.routed && self.children.iter().all(|c| c.complete)
    }
}

impl Child {
    fn new(host: &Host) -> Self {
        Self {
            mac: host.mac,
            level: host.level,
            aware: false,
            complete: false,
            stale_cycles: 0,
            trouble: None,
        }
    }

    /// Takes in what the child says of itself. True if it holds this very map.
    pub(super) fn hear(&mut self, info: &Info, version: MapVersion) -> bool {
        let same = info.version == version;
        self.complete = same && info.flags.subtree_complete;
        if same {
            self.trouble =
                (info.state == AgentState::Routing).then(|| "has no routes, or not yet".to_owned());
        } else {
            self.trouble = Some(if info.version.is_some() {
                format!("holds map {} instead of {version}", info.version)
            } else {
                format!("holds no valid map ({})", info.state)
            });
        }
        same
    }
}

/// The shortest ways there and back between the host at `own` and all others, for small messages
/// to hosts that no proved route is at hand for.
pub(super) fn short_ways(map: &Map, own: Mac) -> Vec<(Mac, RoundTrip)> {
    let at = map.hosts.iter().find(|host| host.mac == own).and_then(|host| host.at);
    let ways = at.map(|at| Ways::new(&map.routable(), at));
    ways_to(map, ways.as_ref(), |mac| mac != own).collect()
}

/// The ways to those hosts that are wanted. Without an xbar there is one cable, to one host.
fn ways_to<'a>(
    map: &'a Map,
    ways: Option<&'a Ways>,
    wanted: impl Fn(Mac) -> bool + 'a,
) -> impl Iterator<Item = (Mac, RoundTrip)> + 'a {
    let wanted = move |host: &&Host| host.host_type != host_type::PHANTOM && wanted(host.mac);
    map.hosts.iter().filter(wanted).filter_map(move |host| {
        let Some(ways) = ways else { return Some((host.mac, RoundTrip::default())) };
        Some((host.mac, way_to(ways, host.at?)?))
    })
}

/// The way to what is cabled to a port, and back.
fn way_to(ways: &Ways, there: PortRef) -> Option<RoundTrip> {
    Some(ways.to(there.xbar)?.to_port(there.port))
}

/// The contested ports, with the ways to what is cabled there.
fn contested_ways<'a>(map: &'a Map, ways: &'a Ways) -> impl Iterator<Item = (Contested, RoundTrip)> + 'a {
    let hosts = map.contested.iter().filter(|contested| contested.mac != Mac::NOBODY);
    hosts.filter_map(|&contested| Some((contested, way_to(ways, contested.at)?)))
}

/// A hash of all pieces, word by word (as Firefox and rustc hash): equal for equal maps. Every agent takes it of every
/// map, and a map of many hosts is long.
fn digest(pieces: &[Vec<u8>]) -> u64 {
    let words = pieces.iter().flat_map(|piece| piece.chunks(8)).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let lengths = pieces.iter().map(|piece| piece.len() as u64);
    words
        .chain(lengths)
        .fold(0, |hash, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95))
}
