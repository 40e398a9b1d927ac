//! The plant: sockets and what is plugged into them.

mod build;

use std::collections::{BTreeMap, VecDeque};

use mapper_proto::PortSet;
use mapper_proto::wire::{Crossbar, CrossbarKind, PassedChecks};
use serde::{Deserialize, Serialize};

pub use build::{PlantError, Xbars};

/// A host or an xbar of the plant, by its position in the description.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
pub enum PlantNode {
    /// Index into the description's hosts.
    Host(u32),
    /// Index into the description's xbars.
    Xbar(u32),
}

impl PlantNode {
    /// The index of an xbar; `None` for a host.
    pub(crate) const fn xbar(self) -> Option<u32> {
        match self {
            Self::Xbar(xbar) => Some(xbar),
            Self::Host(_) => None,
        }
    }
}

/// A port of a node, with or without a cable in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
pub struct PlantPort {
    /// The node.
    pub node: PlantNode,
    /// The port on the node; a host has only port 0.
    pub port: u8,
}

/// The state of a cable.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum CableState {
    /// The cable carries frames.
    #[default]
    Up,
    /// The cable is broken, so neither end has carrier.
    Cut,
    /// Both ends have carrier, but every frame on the cable is lost.
    Silent,
    /// The cable carries frames, and loses each with this probability.
    Lossy(f64),
}

impl CableState {
    /// Whether frames get through.
    const fn carries(self) -> bool {
        matches!(self, Self::Up | Self::Lossy(_))
    }

    /// With which probability a frame gets lost on a cable that carries frames.
    pub(crate) const fn loss(self) -> f64 {
        match self {
            Self::Lossy(rate) => rate,
            Self::Up | Self::Cut | Self::Silent => 0.0,
        }
    }
}

/// The interface of a host, or a port of an xbar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Socket {
    pub(super) end: PlantPort,
    /// The socket at the other end of the cable.
    pub(super) peer: Option<u32>,
    /// The state of the cable, which is the same at both ends.
    pub(super) cable: CableState,
}

/// A crossbar of the plant, and where its ports are among the sockets.
#[derive(Clone, Debug)]
pub(super) struct PhysicalXbar {
    /// The rules by which the xbar forwards frames. Its carriers follow the plant's state.
    pub(super) crossbar: Crossbar,
    /// Index of its first port's socket.
    pub(super) base: u32,
    pub(super) powered: bool,
    /// Whether what forwards its frames runs. While it does not, cables keep their carrier and frames are lost.
    pub(super) is_running: bool,
    /// The checks that it sent on lately.
    pub(super) passed: PassedChecks,
}

/// All hardware of a fabric and the state that it is in.
#[derive(Clone, Debug)]
pub struct Plant {
    /// The sockets of all hosts, in order, and then those of all xbars.
    pub(super) sockets: Vec<Socket>,
    pub(super) xbars: Vec<PhysicalXbar>,
    /// Whether each host's interface is there at all.
    pub(super) present: Vec<bool>,
    host_names: Vec<String>,
    xbar_names: Vec<String>,
    by_name: BTreeMap<String, PlantNode>,
    /// How often the plant has changed.
    pub(super) generation: u64,
    /// Notices that xbars send as ports of theirs have lost carrier, each with the socket that it leaves by.
    notices: VecDeque<(u32, Vec<u8>)>,
}

impl Plant {
    /// The socket at `end`, if there is such a port.
    pub(super) fn socket(&self, end: PlantPort) -> Option<u32> {
        match end.node {
            PlantNode::Host(host) => (end.port == 0 && (host as usize) < self.hosts()).then_some(host),
            PlantNode::Xbar(xbar) => {
                let xbar = self.xbars.get(xbar as usize)?;
                let offset = end.port.checked_sub(xbar.crossbar.first_port)?;
                (offset < xbar.crossbar.ports).then(|| xbar.base + u32::from(offset))
            }
        }
    }

    /// How many hosts there are, present or not.
    pub fn hosts(&self) -> usize {
        self.present.len()
    }

    /// How many xbars there are, powered or not.
    pub fn xbars(&self) -> usize {
        self.xbars.len()
    }

    /// The identity of an xbar; `None` for a plain one.
    pub fn tag(&self, xbar: u32) -> Option<u64> {
        match self.xbars[xbar as usize].crossbar.kind {
            CrossbarKind::Tagged { tag } => Some(tag),
            CrossbarKind::Plain => None,
        }
    }

    /// The largest port count among the plain xbars; `None` without any.
    pub fn plain_ports(&self) -> Option<u8> {
        let plain = |xbar: &&PhysicalXbar| xbar.crossbar.kind == CrossbarKind::Plain;
        self.xbars.iter().filter(plain).map(|xbar| xbar.crossbar.ports).max()
    }

    /// The id of a node.
    pub fn name(&self, node: PlantNode) -> &str {
        match node {
            PlantNode::Host(i) => &self.host_names[i as usize],
            PlantNode::Xbar(i) => &self.xbar_names[i as usize],
        }
    }

    /// The node with this id or description.
    pub fn node(&self, name: &str) -> Option<PlantNode> {
        self.by_name.get(name).copied()
    }

    /// An end as people write it: `xbar:port`, or a host's name.
    pub fn end_name(&self, end: PlantPort) -> String {
        match end.node {
            PlantNode::Host(_) => self.name(end.node).to_owned(),
            PlantNode::Xbar(_) => format!("{}:{}", self.name(end.node), end.port),
        }
    }

    /// How often the plant has changed. What was derived from it holds until this grows.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// All ports, with and without a cable: those of hosts first, then those of xbars.
    pub fn ends(&self) -> impl Iterator<Item = PlantPort> + '_ {
        self.sockets.iter().map(|socket| socket.end)
    }

    /// The end at a socket, by its place in [`Self::ends`].
    pub(crate) fn end_of(&self, socket: u32) -> PlantPort {
        self.sockets[socket as usize].end
    }

    /// Whether a cable is plugged in there.
    pub fn is_plugged(&self, end: PlantPort) -> bool {
        self.socket(end).is_some_and(|socket| self.sockets[socket as usize].peer.is_some())
    }

    /// The other end of the cable that is plugged in there.
    pub fn peer(&self, end: PlantPort) -> Option<PlantPort> {
        let peer = self.sockets[self.socket(end)? as usize].peer?;
        Some(self.sockets[peer as usize].end)
    }

    pub(super) fn is_on(&self, node: PlantNode) -> bool {
        match node {
            PlantNode::Host(i) => self.present[i as usize],
            PlantNode::Xbar(i) => self.xbars[i as usize].powered,
        }
    }

    /// Whether this socket has carrier: its cable is not cut, and the nodes at both ends have power.
    pub(super) fn has_carrier(&self, socket: u32) -> bool {
        let here = &self.sockets[socket as usize];
        let Some(peer) = here.peer else { return false };
        let there = &self.sockets[peer as usize];
        here.cable != CableState::Cut && self.is_on(here.end.node) && self.is_on(there.end.node)
    }

    /// Whether frames get from this socket to the other end of its cable, and the crossbars at both ends take
    /// them on.
    pub(super) fn joins(&self, socket: u32) -> bool {
        let is_running = |socket: u32| match self.sockets[socket as usize].end.node {
            PlantNode::Host(_) => true,
            PlantNode::Xbar(xbar) => self.xbars[xbar as usize].is_running,
        };
        let here = &self.sockets[socket as usize];
        here.cable.carries()
            && self.has_carrier(socket)
            && is_running(socket)
            && here.peer.is_some_and(is_running)
    }

    /// Whether frames get through the cable that is plugged in there.
    pub fn carries(&self, end: PlantPort) -> bool {
        let is_up = |socket: u32| self.sockets[socket as usize].cable.carries();
        self.socket(end).is_some_and(|socket| self.has_carrier(socket) && is_up(socket))
    }

    /// Whether there is a cable that loses some of its frames.
    pub(crate) fn has_lossy_cables(&self) -> bool {
        self.sockets.iter().any(|socket| socket.cable.loss() > 0.0)
    }

    /// With which probability a frame gets lost on the cable at this socket.
    pub(crate) fn loss_at(&self, socket: u32) -> f64 {
        self.sockets[socket as usize].cable.loss()
    }

    /// Whether a host's interface has carrier.
    pub(crate) fn sees_carrier(&self, host: u32) -> bool {
        self.has_carrier(host)
    }

    /// The tag and carriers of the tagged xbar to which this host and no other is cabled. `None` if there is
    /// no such xbar, or it has no power.
    pub(crate) fn own_crossbar(&self, host: u32) -> Option<(u64, PortSet)> {
        let PlantNode::Xbar(xbar) = self.own_xbar(host)?.node else { return None };
        let PhysicalXbar { crossbar, powered, .. } = &self.xbars[xbar as usize];
        let CrossbarKind::Tagged { tag } = crossbar.kind else { return None };
        powered.then_some((tag, crossbar.carriers))
    }

    /// The port that a host is cabled to, if it is of a tagged xbar to which no other host is cabled. The
    /// xbar may be without power.
    pub(crate) fn own_xbar(&self, host: u32) -> Option<PlantPort> {
        let end = self.sockets[self.sockets[host as usize].peer? as usize].end;
        let PlantNode::Xbar(xbar) = end.node else { return None };
        let PhysicalXbar { crossbar, base, .. } = &self.xbars[xbar as usize];
        let ports = *base..base + u32::from(crossbar.ports);
        let is_host = |socket: &u32| {
            let peer = self.sockets[*socket as usize].peer;
            peer.is_some_and(|peer| matches!(self.sockets[peer as usize].end.node, PlantNode::Host(_)))
        };
        let is_tagged = matches!(crossbar.kind, CrossbarKind::Tagged { .. });
        (is_tagged && ports.filter(is_host).count() == 1).then_some(end)
    }

    /// The host that has this xbar to itself, as [`Self::own_xbar`] says.
    pub(crate) fn node_of(&self, xbar: u32) -> Option<u32> {
        let PhysicalXbar { crossbar, base, .. } = &self.xbars[xbar as usize];
        let ports = *base..base + u32::from(crossbar.ports);
        let peers = ports.filter_map(|socket| self.sockets[socket as usize].peer);
        let hosts = peers.filter_map(|peer| match self.sockets[peer as usize].end.node {
            PlantNode::Host(host) => Some(host),
            PlantNode::Xbar(_) => None,
        });
        hosts.into_iter().find(|&host| self.own_xbar(host).is_some())
    }

    /// All ports of an xbar.
    pub(crate) fn ports_of(&self, xbar: u32) -> impl Iterator<Item = PlantPort> + '_ {
        let PhysicalXbar { crossbar, base, .. } = &self.xbars[xbar as usize];
        (*base..base + u32::from(crossbar.ports)).map(|socket| self.sockets[socket as usize].end)
    }

    /// The ports of an xbar that have carrier and are cabled to other nodes, each with the other end of its
    /// cable.
    pub(crate) fn cabled_ports(&self, xbar: u32) -> Vec<(PlantPort, PlantPort)> {
        let PhysicalXbar { crossbar, base, .. } = &self.xbars[xbar as usize];
        let ports = (*base..base + u32::from(crossbar.ports)).filter(|&socket| self.has_carrier(socket));
        ports
            .filter_map(|socket| {
                let near = self.sockets[socket as usize];
                Some((near.end, self.sockets[near.peer? as usize].end))
            })
            .collect()
    }

    /// The number of a port, as [`Self::channels`] gives it.
    pub(crate) fn channel(&self, end: PlantPort) -> Option<u32> {
        self.socket(end)
    }

    /// All ports of the xbar that a host is cabled to, as if each had carrier.
    pub(crate) fn wired_ports(&self, host: u32) -> PortSet {
        let mut ports = PortSet::NONE;
        let xbar = self.sockets[host as usize].peer.map(|peer| self.sockets[peer as usize].end.node);
        if let Some(PlantNode::Xbar(xbar)) = xbar {
            let Crossbar { first_port, ports: count, .. } = self.xbars[xbar as usize].crossbar;
            (first_port..first_port + count).for_each(|port| ports.insert(port));
        }
        ports
    }

    /// Brings the carriers that xbars report in line with the plant.
    pub(super) fn changed(&mut self) {
        self.generation += 1;
        for i in 0..self.xbars.len() {
            let (base, first) = (self.xbars[i].base, self.xbars[i].crossbar.first_port);
            let mut carriers = PortSet::NONE;
            for offset in 0..self.xbars[i].crossbar.ports {
                if self.has_carrier(base + u32::from(offset)) {
                    carriers.insert(first + offset);
                }
            }
            let before = std::mem::replace(&mut self.xbars[i].crossbar.carriers, carriers);
            if self.xbars[i].powered && self.xbars[i].is_running {
                self.tell_of_lost(i, before);
            }
        }
    }

    /// Has an xbar send notices to those whose checks of paths left lately by ports that have carrier no more.
    fn tell_of_lost(&mut self, xbar: usize, before: PortSet) {
        let PhysicalXbar { crossbar, base, passed, .. } = &mut self.xbars[xbar];
        for port in before.iter().filter(|&port| !crossbar.has_carrier(port)) {
            let lost = passed.take_lost(crossbar, port).into_iter();
            self.notices.extend(lost.map(|(towards, notice)| {
                let offset = towards - crossbar.first_port;
                (*base + u32::from(offset), notice)
            }));
        }
    }

    /// A notice that an xbar sends as one of its ports has lost carrier: the socket that it leaves by, and the notice, route
    /// first.
    pub(crate) fn poll_notice(&mut self) -> Option<(u32, Vec<u8>)> {
        self.notices.pop_front()
    }
}
