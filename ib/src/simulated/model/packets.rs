//! Where packets come to by the tables that the switches of a model hold, and what must be true of that.

use std::collections::{BTreeMap, BTreeSet};

use super::Model;
use crate::mad::{MulticastTable, NodeKind, PortSettings, PortState};
use crate::sweep::PortOf;

impl Model {
    /// The LID of each host's port.
    pub(crate) fn hosts(&self) -> Vec<(usize, u16)> {
        let hosts = self.nodes.iter().enumerate().filter(|(_, node)| node.info.kind == NodeKind::Adapter);
        hosts.map(|(at, node)| (at, node.ports[&1].lid())).collect()
    }

    /// The port to which a packet comes that leaves by a port, if that port is active and the one behind it
    /// takes packets.
    fn beyond(&self, from: PortOf) -> Option<PortOf> {
        let state = |(node, port): PortOf| self.nodes[node].ports[&port].state();
        let to = *self.cables.get(&from)?;
        (state(from) == PortState::Active && state(to) >= PortState::Armed).then_some(to)
    }

    /// The node and port at which a packet from a node to a LID arrives by the tables in force. The LID may
    /// be that of a switch.
    pub(crate) fn reached(&self, from: usize, lid: u16) -> Option<PortOf> {
        let entry = |node: usize| {
            let here = &self.nodes[node];
            if lid > here.switch.linear_top() { 0xFF } else { here.table[usize::from(lid)] }
        };
        let mut at = (from, if self.is_switch(from) { entry(from) } else { 1 });
        for _ in 0..=self.nodes.len() {
            let (node, port) = self.beyond(at)?;
            let out = if self.is_switch(node) { entry(node) } else { 0 };
            if out == 0 {
                let own = if self.is_switch(node) { 0 } else { port };
                return (self.nodes[node].ports[&own].lid() == lid).then_some((node, port));
            }
            at = (node, out);
        }
        None
    }

    /// The cables that a packet takes, by the ports that it leaves by, and whether it arrives.
    pub(crate) fn trace(&self, from: usize, to: u16) -> (Vec<PortOf>, bool) {
        let mut way = Vec::new();
        let mut at = self.beyond((from, 1));
        while let Some((node, port)) = at {
            let here = &self.nodes[node];
            if here.info.kind != NodeKind::Switch {
                return (way, here.ports[&port].lid() == to);
            }
            let out = if to > here.switch.linear_top() { 0xFF } else { here.table[usize::from(to)] };
            // A packet that comes by a cable again goes round for ever, which is a circle.
            let is_again = way.contains(&(node, out));
            way.push((node, out));
            if is_again {
                return (way, false);
            }
            at = self.beyond((node, out));
        }
        (way, false)
    }

    /// The hosts that a packet to a multicast LID reaches, each as often as a copy reaches it.
    ///
    /// # Errors
    /// If it goes round.
    pub(crate) fn flood(&self, from: usize, lid: u16) -> Result<Vec<usize>, String> {
        let mut reached = Vec::new();
        // The copies that are under way, each with the ports that it left by.
        let mut open: Vec<(PortOf, Vec<PortOf>)> =
            self.beyond((from, 1)).into_iter().map(|at| (at, Vec::new())).collect();
        while let Some(((at, came_by), way)) = open.pop() {
            let node = &self.nodes[at];
            if node.info.kind != NodeKind::Switch {
                reached.push(at);
                continue;
            }
            let place = lid - 0xC000;
            let leads = |port: &u8| {
                let modifier = MulticastTable::modifier(place / 32, port / 16);
                node.multicast
                    .get(&modifier)
                    .is_some_and(|part| part.ports(place % 32) >> (port % 16) & 1 == 1)
            };
            for port in (1..=node.info.ports).filter(|&port| port != came_by).filter(leads) {
                let Some(next) = self.beyond((at, port)) else { continue };
                if way.contains(&(at, port)) {
                    return Err(format!("a packet to {lid:#x} from node {from} goes round"));
                }
                open.push((next, [&way[..], &[(at, port)]].concat()));
            }
        }
        reached.sort_unstable();
        Ok(reached)
    }

    /// Checks that a packet to the broadcast group of IPoIB never goes round, wherever it comes from.
    ///
    /// # Errors
    /// If one goes round.
    pub(crate) fn check_storms(&self) -> Result<(), String> {
        self.hosts().into_iter().try_for_each(|(host, _)| self.flood(host, 0xC000).map(drop))
    }

    /// Checks that a packet to a multicast LID from each of these hosts reaches each of the others exactly
    /// once.
    ///
    /// # Errors
    /// If it reaches others.
    pub(crate) fn check_group(&self, lid: u16, members: &[usize]) -> Result<(), String> {
        for &from in members {
            let others: Vec<usize> = members.iter().copied().filter(|&member| member != from).collect();
            let reached = self.flood(from, lid)?;
            if reached != others {
                return Err(format!(
                    "from node {from} to group {lid:#x}: nodes {reached:?} instead of {others:?}"
                ));
            }
        }
        Ok(())
    }

    /// Checks that packets between hosts cannot wait for each other in a circle, by the tables that switches
    /// hold now, if all are of one level.
    ///
    /// # Errors
    /// If they can.
    pub(crate) fn check_circles(&self) -> Result<(), String> {
        self.check_circles_by(|_, _| 0)
    }

    /// The same, where packets from one LID to another are of this level, and each level has a lane of its own.
    ///
    /// # Errors
    /// If they can. The error names levels and ports that are left, each with those that follow it, and the circle is among
    /// them.
    pub(crate) fn check_circles_by(&self, level: impl Fn(u16, u16) -> u8) -> Result<(), String> {
        let mut after: BTreeMap<(u8, PortOf), BTreeSet<(u8, PortOf)>> = BTreeMap::new();
        let lids: BTreeSet<u16> =
            self.hosts().into_iter().map(|(_, lid)| lid).filter(|&lid| lid > 0).collect();
        for (from, lid) in self.hosts() {
            for &to in &lids {
                let level = level(lid, to);
                for pair in self.trace(from, to).0.windows(2) {
                    after.entry((level, pair[0])).or_default().insert((level, pair[1]));
                    after.entry((level, pair[1])).or_default();
                }
            }
        }
        while let Some(end) = after.iter().find(|(_, next)| next.is_empty()).map(|(&end, _)| end) {
            after.remove(&end);
            for next in after.values_mut() {
                next.remove(&end);
            }
        }
        if after.is_empty() { Ok(()) } else { Err(format!("packets wait in a circle: {after:?}")) }
    }

    /// Checks that every cable is up, and that every host has a LID of its own and reaches every other.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn check_up(&self) -> Result<(), String> {
        for (node, port) in self.cables.keys() {
            let state = self.nodes[*node].ports.get(port).map(PortSettings::state);
            if state != Some(PortState::Active) {
                return Err(format!("node {node} port {port} is {state:?}"));
            }
        }
        let hosts = self.hosts();
        let lids: BTreeSet<u16> = hosts.iter().map(|&(_, lid)| lid).collect();
        if lids.len() < hosts.len() || lids.contains(&0) {
            return Err(format!("hosts without a LID of their own: {hosts:?}"));
        }
        for &(from, _) in &hosts {
            for &(to, lid) in hosts.iter().filter(|&&(to, _)| to != from) {
                if !self.trace(from, lid).1 {
                    return Err(format!("nothing comes from node {from} to node {to}"));
                }
            }
        }
        let all: Vec<usize> = hosts.iter().map(|&(host, _)| host).collect();
        self.check_group(0xC000, &all)
    }
}
