//! A fabric that answers datagrams, for tests, and what carries them with loss and delay.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mapper_proto::map::{LaneRate, LinkSpeed};
use mapper_proto::time::Instant;

use super::{Found, PortOf, Sweep};
use crate::mad::{Attribute, Make, Method, NodeDescription, NodeInfo, NodeKind, PortInfo, Smp};

/// A node of the model.
#[derive(Clone, Debug)]
pub(super) struct SweptNode {
    pub(super) info: NodeInfo,
    pub(super) description: String,
    pub(super) is_silent: bool,
}

/// Nodes and cables. Node 0 is the one that asks, by its port 1.
#[derive(Clone, Debug, Default)]
pub(super) struct SweptModel {
    pub(super) nodes: Vec<SweptNode>,
    pub(super) cables: BTreeMap<PortOf, PortOf>,
}

/// A fabric in comparable form: nodes by GUID with description, LIDs by port, cables by GUID and port.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Seen {
    pub(super) nodes: BTreeSet<(u64, NodeKind, u8, String)>,
    pub(super) lids: BTreeSet<((u64, u8), u16)>,
    pub(super) cables: BTreeSet<[(u64, u8); 2]>,
}

pub(super) const SPEED: LinkSpeed = LinkSpeed { lanes: 4, rate: LaneRate::Edr };

impl SweptModel {
    pub(super) fn add(&mut self, kind: NodeKind, ports: u8) -> usize {
        let node = self.nodes.len();
        let guid = 0x1000 + (node as u64) * 0x100;
        let info = NodeInfo {
            kind,
            ports,
            system_guid: 7,
            guid,
            port_guid: guid,
            local_port: 1,
            make: Make::default(),
        };
        self.nodes.push(SweptNode { info, description: format!("node {node}"), is_silent: false });
        node
    }

    pub(super) fn cable(&mut self, a: PortOf, b: PortOf) {
        self.cables.insert(a, b);
        self.cables.insert(b, a);
    }

    fn lid(&self, (node, port): PortOf) -> u16 {
        (1 + node * 16) as u16 + u16::from(port)
    }

    /// What one port of a node says of itself.
    fn info(&self, (node, port): PortOf) -> NodeInfo {
        let info = self.nodes[node].info;
        let own = if info.kind == NodeKind::Switch { 0 } else { port };
        NodeInfo { port_guid: info.guid + u64::from(own), local_port: port, ..info }
    }

    /// The port that a route ends at.
    fn walk(&self, route: &[u8]) -> Option<PortOf> {
        let mut at = (0, 1);
        for (hop, &port) in route.iter().enumerate() {
            let is_switch = self.nodes[at.0].info.kind == NodeKind::Switch;
            if (!is_switch && hop > 0) || self.nodes[at.0].is_silent {
                return None;
            }
            at = *self.cables.get(&(at.0, port))?;
        }
        Some(at).filter(|at| !self.nodes[at.0].is_silent)
    }

    /// The answer to a sweep that was told the truth so far, if there is one.
    pub(super) fn answer(&self, mad: &[u8]) -> Option<Smp> {
        let asked = Smp::<Method>::parse(mad).unwrap();
        if asked.attribute == Attribute::PortInfo
            && let Some((node, port)) = self.walk(asked.route.ports())
        {
            let is_switch = self.nodes[node].info.kind == NodeKind::Switch;
            assert!(is_switch || asked.modifier as u8 == port, "an adapter's port is asked by itself");
        }
        self.answer_misled(mad)
    }

    /// The answer to a sweep that may have been misled, if there is one.
    pub(super) fn answer_misled(&self, mad: &[u8]) -> Option<Smp> {
        let asked = Smp::<Method>::parse(mad).unwrap();
        assert_eq!(asked.method, Method::Get, "a sweep never writes");
        let at = self.walk(asked.route.ports())?;
        let node = &self.nodes[at.0];
        let is_switch = node.info.kind == NodeKind::Switch;
        let data = match asked.attribute {
            Attribute::NodeInfo => self.info(at).emit(),
            Attribute::NodeDescription => NodeDescription(node.description.clone()).emit(),
            Attribute::PortInfo => {
                let end = (at.0, asked.modifier as u8);
                let is_up = self.cables.contains_key(&end);
                let lid = Some(self.lid(end)).filter(|_| !is_switch || end.1 == 0);
                PortInfo { lid, lmc: 0, is_up, speed: is_up.then_some(SPEED) }.emit()
            }
            other => panic!("a sweep does not ask for {}", other.name()),
        };
        Some(Smp { method: Method::GetResponse, data, ..asked })
    }

    /// What a sweep that begins at node 0 can find.
    pub(super) fn reachable(&self) -> Seen {
        let mut ends = BTreeSet::from([(0, 1)]);
        let mut next = vec![(0, 1)];
        let mut cables = BTreeSet::new();
        let id = |(node, port): PortOf| (self.nodes[node].info.guid, port);
        while let Some(at) = next.pop() {
            let hands_on = self.nodes[at.0].info.kind == NodeKind::Switch || at == (0, 1);
            for (&from, &to) in self.cables.iter().filter(|(from, _)| from.0 == at.0 && hands_on) {
                if self.nodes[at.0].info.kind == NodeKind::Switch || from.1 == 1 {
                    cables.insert([id(from).min(id(to)), id(from).max(id(to))]);
                    if ends.insert(to) {
                        next.push(to);
                    }
                }
            }
        }
        let lids = ends.iter().map(|&(node, port)| {
            let port = if self.nodes[node].info.kind == NodeKind::Switch { 0 } else { port };
            (id((node, port)), self.lid((node, port)))
        });
        let nodes = ends.iter().map(|&(node, _)| {
            let SweptNode { info, description, .. } = &self.nodes[node];
            (info.guid, info.kind, info.ports, description.clone())
        });
        Seen { nodes: nodes.collect(), lids: lids.collect(), cables }
    }
}

impl Seen {
    pub(super) fn of(found: &Found) -> Self {
        let id = |(node, port): PortOf| (found.nodes[node].info.guid, port);
        let nodes = found.nodes.iter();
        let nodes =
            nodes.map(|node| (node.info.guid, node.info.kind, node.info.ports, node.description.clone()));
        let lids = found.nodes.iter().flat_map(|node| {
            let lid = |(&port, of): (&u8, &super::Port)| Some(((node.info.guid, port), of.info?.lid?));
            node.ports.iter().filter_map(lid)
        });
        let cables = found.cables.iter().map(|&[a, b]| [id(a).min(id(b)), id(a).max(id(b))]);
        Self { nodes: nodes.collect(), lids: lids.collect(), cables: cables.collect() }
    }
}

/// Runs a sweep. `answers` gives the answers to a datagram, each with how long it takes.
///
/// Returns what was found, and when it was done.
pub(super) fn run(
    mut sweep: Sweep,
    mut answers: impl FnMut(&[u8]) -> Vec<(Duration, Vec<u8>)>,
) -> (Found, Instant) {
    let mut now = Instant::ZERO;
    let mut on_the_way: BTreeMap<(Instant, u64), Vec<u8>> = BTreeMap::new();
    let mut number = 0;
    while !sweep.is_done() {
        while let Some(mad) = sweep.poll_transmit(now).map(|smp| smp.emit()) {
            for (delay, answer) in answers(&mad) {
                number += 1;
                on_the_way.insert((now + delay, number), answer);
            }
        }
        let arrival = on_the_way.first_key_value().map(|(&(moment, _), _)| moment);
        let deadline = sweep.poll_timeout();
        now = arrival
            .into_iter()
            .chain(deadline)
            .min()
            .expect("a sweep that is not done waits for something")
            .max(now);
        while let Some(first) = on_the_way.first_entry().filter(|first| first.key().0 <= now) {
            sweep.handle_mad(&first.remove());
        }
        sweep.handle_timeout(now);
    }
    (sweep.finish(), now)
}
