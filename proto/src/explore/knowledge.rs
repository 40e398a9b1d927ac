//! What is known of a fabric while it is explored: nodes, ports, and what follows from them.
//!
//! A node is one sight of an xbar: the xbar at the end of one route. Its ports are named by
//! deltas from the port by which that route enters, so delta 0 is the entry. Nodes that are found
//! to be one xbar are joined in a union-find that keeps the offset between their deltas
//! (Mainwaring, Chun, Schleimer, Wilkerson, "System Area Network Mapping", SPAA 1997, deduce
//! likewise). Three rules join nodes, and each joint can set off others:
//!
//! 1. A host (an address and a session) has one cable: two ports that lead to one host are one port.
//! 2. A port holds one cable: two ports at the far end of one port are one port.
//! 3. A tag names one xbar.
//!
//! Facts that cannot all be true are an error: the fabric changed meanwhile, or somebody lies.

use std::collections::BTreeMap;

use super::ExploreError;
use super::contested::Met;
use super::xbar::{Stage, XbarState};
use crate::Mac;
use crate::map::Host;

/// A port: a node, and the delta from that node's entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct At {
    pub(super) node: u32,
    pub(super) delta: i16,
}

/// What is at the other end of a port's cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Far {
    /// The host with this index.
    Host(u32),
    /// A port of an xbar.
    Xbar(At),
}

/// One sight of an xbar.
#[derive(Clone, Debug)]
struct Sight {
    /// The node that this one was joined to (itself for a root).
    joined: u32,
    /// What to add to a delta of this node to get that of `joined`.
    shift: i16,
    /// The port whose cable leads here, in the frame of that node; `None` for our own cable.
    parent: Option<At>,
    /// How many xbars the route crosses, this one included.
    depth: usize,
    /// The place of what is known of the xbar among all such states; that of a root counts.
    state: u32,
}

/// Something learned whose consequences are still to be drawn.
#[derive(Clone, Copy, Debug)]
enum Fact {
    Leads(At, Far),
    Same(At, At),
}

/// A host that was met.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownHost {
    pub(super) host: Host,
    pub(super) session: u32,
    /// Whether it says itself that another host has its address.
    pub(super) contested: bool,
    /// The port that it is cabled to, once known.
    pub(super) at: Option<At>,
}

/// All nodes and hosts, and what is known of their ports: see the module.
#[derive(Clone, Debug)]
pub(super) struct Knowledge {
    nodes: Vec<Sight>,
    /// What is known of each xbar. A root has one of its own.
    states: Vec<XbarState>,
    /// Places in `states` that joined nodes have left, for those that come.
    vacant: Vec<u32>,
    hosts: Vec<KnownHost>,
    /// The index of each host but this one, by address and session.
    host_index: BTreeMap<(Mac, u32), u32>,
    /// The nodes that showed each tag, each a sight of another xbar, unless they were joined since.
    tags: BTreeMap<u64, Vec<u32>>,
    /// Facts not yet worked in.
    facts: Vec<Fact>,
    /// Roots of which something new is known since this was last drained.
    touched: Vec<u32>,
}

impl Knowledge {
    /// Most nodes: several sights of each of the 65,535 xbars that a map can hold.
    const MAX_NODES: usize = 4 * 65_535;
    /// Most hosts.
    const MAX_HOSTS: usize = 65_535;

    /// The knowledge at the start: this host alone, which has index 0.
    pub(super) fn new(own: Host) -> Self {
        Self {
            nodes: Vec::new(),
            states: Vec::new(),
            vacant: Vec::new(),
            hosts: vec![KnownHost { host: own, session: 0, contested: false, at: None }],
            host_index: BTreeMap::new(),
            tags: BTreeMap::new(),
            facts: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// A port under the name that all sights of its xbar share: that of their root.
    pub(super) fn root(&self, mut at: At) -> At {
        loop {
            let node = &self.nodes[at.node as usize];
            if node.joined == at.node {
                return at;
            }
            at = At { node: node.joined, delta: at.delta + node.shift };
        }
    }

    /// A far end under the name that all sights of its xbar share.
    pub(super) fn far_root(&self, far: Far) -> Far {
        match far {
            Far::Host(_) => far,
            Far::Xbar(at) => Far::Xbar(self.root(at)),
        }
    }

    /// Whether this node stands for an xbar and was not joined to another.
    pub(super) fn is_root(&self, node: u32) -> bool {
        self.nodes[node as usize].joined == node
    }

    /// What is known of the xbar that this node is a sight of.
    pub(super) fn xbar(&self, node: u32) -> &XbarState {
        let root = self.root(At { node, delta: 0 }).node;
        &self.states[self.nodes[root as usize].state as usize]
    }

    /// What is known of the xbar that this node is a sight of, to change it.
    pub(super) fn xbar_mut(&mut self, node: u32) -> &mut XbarState {
        let root = self.root(At { node, delta: 0 }).node;
        &mut self.states[self.nodes[root as usize].state as usize]
    }

    /// The xbar that a far end is a port of, if it is one.
    pub(super) fn xbar_of(&self, far: Far) -> Option<&XbarState> {
        match far {
            Far::Xbar(at) => Some(self.xbar(at.node)),
            Far::Host(_) => None,
        }
    }

    /// How many sights there are.
    pub(super) const fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// How many sights there are, and ports of which something is known.
    pub(super) fn load(&self) -> usize {
        self.nodes.len() + self.states.iter().map(|xbar| xbar.ports().count()).sum::<usize>()
    }

    /// All roots, oldest first.
    pub(super) fn roots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.nodes.len() as u32).filter(|&node| self.is_root(node))
    }

    /// The port whose cable leads to this node.
    pub(super) fn parent(&self, node: u32) -> Option<At> {
        self.nodes[node as usize].parent
    }

    /// How many xbars the route to this node crosses, its own included.
    pub(super) fn node_depth(&self, node: u32) -> usize {
        self.nodes[node as usize].depth
    }

    /// How many xbars the shortest known route to this xbar crosses, itself included.
    pub(super) fn depth(&self, node: u32) -> usize {
        self.node_depth(self.xbar(node).via)
    }

    /// All hosts met; this host is first.
    pub(super) fn hosts(&self) -> &[KnownHost] {
        &self.hosts
    }

    /// Roots of which something new is known since the last call, oldest first.
    pub(super) fn drain_touched(&mut self) -> Vec<u32> {
        let mut touched = std::mem::take(&mut self.touched);
        for node in &mut touched {
            *node = self.root(At { node: *node, delta: 0 }).node;
        }
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// Adds a new sight of an xbar, behind the port `parent` (`None`: behind our own cable), and returns its node.
    pub(super) fn add_node(&mut self, parent: Option<At>) -> Result<u32, ExploreError> {
        if self.nodes.len() >= Self::MAX_NODES {
            return Err(ExploreError::TooManyXbars);
        }
        let node = self.nodes.len() as u32;
        let depth = parent.map_or(1, |at| self.node_depth(at.node) + 1);
        let late = parent.is_some_and(|at| self.xbar(at.node).late);
        let mut xbar = XbarState::new(node);
        xbar.late = late;
        let state = match self.vacant.pop() {
            Some(vacant) => {
                self.states[vacant as usize] = xbar;
                vacant
            }
            None => {
                self.states.push(xbar);
                self.states.len() as u32 - 1
            }
        };
        self.nodes.push(Sight { joined: node, shift: 0, parent, depth, state });
        self.touched.push(node);
        let far = parent.map_or(Far::Host(0), Far::Xbar);
        self.learn(At { node, delta: 0 }, far)?;
        Ok(node)
    }

    /// The index of a host, which is not the one that explores. It may be new or have been met before.
    pub(super) fn meet(&mut self, met: Met) -> Result<u32, ExploreError> {
        let Met { host, session, contested } = met;
        if let Some(&index) = self.host_index.get(&(host.mac, session)) {
            self.hosts[index as usize].contested |= contested;
            return Ok(index);
        }
        if self.hosts.len() >= Self::MAX_HOSTS {
            return Err(ExploreError::TooManyHosts);
        }
        let index = self.hosts.len() as u32;
        self.hosts.push(KnownHost { host: Host { at: None, ..host }, session, contested, at: None });
        self.host_index.insert((host.mac, session), index);
        Ok(index)
    }

    /// Learns that the port `at` leads to `far`, and draws all consequences.
    pub(super) fn learn(&mut self, at: At, far: Far) -> Result<(), ExploreError> {
        self.facts.push(Fact::Leads(at, far));
        self.settle()
    }

    /// Marks the xbar that this node is a sight of as resolved: it is none of those resolved before.
    pub(super) fn resolve(&mut self, node: u32) {
        self.xbar_mut(node).stage = Stage::Resolved;
        self.touched.push(node);
    }

    /// Draws all consequences of the facts at hand.
    fn settle(&mut self) -> Result<(), ExploreError> {
        while let Some(fact) = self.facts.pop() {
            match fact {
                Fact::Leads(at, far) => self.leads(at, far)?,
                Fact::Same(a, b) => self.same(a, b)?,
            }
        }
        Ok(())
    }

    /// Works in that the port `at` leads to `far`, by rules 1 and 2.
    fn leads(&mut self, at: At, far: Far) -> Result<(), ExploreError> {
        let at = self.root(at);
        let far = self.far_root(far);
        let Some(known) = self.xbar(at.node).far(at.delta).map(|known| self.far_root(known)) else {
            self.xbar_mut(at.node).set_far(at.delta, far)?;
            self.touched.push(at.node);
            match far {
                Far::Xbar(other) => self.facts.push(Fact::Leads(other, Far::Xbar(at))),
                Far::Host(index) => match self.hosts[index as usize].at {
                    Some(other) => self.facts.push(Fact::Same(at, other)),
                    None => self.hosts[index as usize].at = Some(at),
                },
            }
            return Ok(());
        };
        match (known, far) {
            (Far::Host(a), Far::Host(b)) if a == b => Ok(()),
            (Far::Xbar(a), Far::Xbar(b)) => {
                if a != b {
                    self.facts.push(Fact::Same(a, b));
                }
                Ok(())
            }
            (Far::Host(_), Far::Host(_)) => Err(ExploreError::Contradiction("two hosts on one port")),
            _ => Err(ExploreError::Contradiction("a host and an xbar on one port")),
        }
    }

    /// Works in that two names are of one port, so that their nodes are of one xbar.
    fn same(&mut self, a: At, b: At) -> Result<(), ExploreError> {
        let (a, b) = (self.root(a), self.root(b));
        if a.node == b.node {
            let agree = a.delta == b.delta;
            return agree.then_some(()).ok_or(ExploreError::Contradiction("two ports that would be one"));
        }
        // The larger stays, so that chains of joints grow only with the logarithm of the sights.
        let weight = |at: At| (self.xbar(at.node).sights, std::cmp::Reverse(at.node));
        let (keep, gone) = if weight(a) >= weight(b) { (a, b) } else { (b, a) };
        let shift = keep.delta - gone.delta;
        let node = &mut self.nodes[gone.node as usize];
        (node.joined, node.shift) = (keep.node, shift);
        // Nothing is left at that place that could be taken for an xbar's.
        let old = std::mem::replace(&mut self.states[node.state as usize], XbarState::new(gone.node));
        self.vacant.push(node.state);

        let (old_via, keep_via) = (old.via, self.xbar(keep.node).via);
        let better = (self.node_depth(old_via), old_via) < (self.node_depth(keep_via), keep_via);
        for (delta, far) in old.fars() {
            self.facts.push(Fact::Leads(At { node: keep.node, delta: delta + shift }, far));
        }
        let xbar = self.xbar_mut(keep.node);
        if better {
            xbar.via = old_via;
        }
        xbar.absorb(old, shift)?;
        self.touched.push(keep.node);
        Ok(())
    }

    /// Whether the xbar has a neighbour whose identity is settled or is being settled: only then
    /// is it worth a glance.
    pub(super) fn is_near(&self, node: u32) -> bool {
        self.neighbours(node).any(|at| self.xbar(at.node).stage > Stage::Seen)
    }

    /// The ports at the far ends of this xbar's cables to xbars.
    pub(super) fn neighbours(&self, node: u32) -> impl Iterator<Item = At> + '_ {
        self.xbar(node).fars().filter_map(|(_, far)| match far {
            Far::Xbar(at) => Some(self.root(at)),
            Far::Host(_) => None,
        })
    }
}

mod tags;
#[cfg(test)]
mod tests;
