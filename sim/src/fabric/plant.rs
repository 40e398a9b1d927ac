//! The plant: sockets and what is plugged into them.

use mapper_proto::PortSet;
use std::collections::BTreeMap;

use mapper_fabric::names::{Named, Names};
use mapper_proto::map::{Fabric, PortRef};
use mapper_proto::wire::{Crossbar, CrossbarKind};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A host or an xbar of the plant, by its position in the description.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
pub enum PlantNode {
    /// Index into the description's hosts.
    Host(u32),
    /// Index into the description's xbars.
    Xbar(u32),
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CableState {
    /// The cable carries frames.
    #[default]
    Up,
    /// The cable is broken, so neither end has carrier.
    Cut,
    /// Both ends have carrier, but every frame on the cable is lost.
    Silent,
}

/// Which kind of xbars the fabric is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Xbars {
    /// Each xbar is of the kind that the description says.
    #[default]
    AsDescribed,
    /// All xbars are plain: they are anonymous and obey only relative route elements.
    Plain,
    /// All xbars are tagged: they have an identity and obey all kinds of route elements.
    Tagged,
    /// Each xbar is plain or tagged with equal probability, drawn from the seed.
    Mixed,
}

/// Why no plant can be built from a description.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlantError {
    /// A cable or host refers to an xbar that is not there.
    #[error("a cable refers to xbar number {xbar}, but the fabric has only {xbars}")]
    NoSuchXbar {
        /// The index.
        xbar: u32,
        /// How many there are.
        xbars: usize,
    },
    /// A cable is plugged into a port that the xbar does not have.
    #[error("xbar {xbar} has ports {first} to {last}, but a cable is plugged into port {port}")]
    NoSuchPort {
        /// The xbar's name.
        xbar: String,
        /// The port.
        port: u8,
        /// The first port.
        first: u8,
        /// The last port.
        last: u8,
    },
    /// Two cables are plugged into one port.
    #[error("two cables are plugged into port {port} of xbar {xbar}")]
    PortTaken {
        /// The xbar's name.
        xbar: String,
        /// The port.
        port: u8,
    },
    /// A plain xbar has more ports than relative route elements reach.
    #[error(
        "xbar {xbar} has {ports} ports, but a plain xbar can have at most {max}: make it tagged (--xbars tagged)",
        max = Plant::MAX_PLAIN_PORTS
    )]
    PlainTooWide {
        /// The xbar's name.
        xbar: String,
        /// Its ports.
        ports: u8,
    },
    /// There are more hosts or xbars than agents can map.
    #[error("the fabric has {count} {what}, but a map holds at most {max}: simulate a part of it", max = Plant::MAX_NODES)]
    TooLarge {
        /// `hosts` or `xbars`.
        what: &'static str,
        /// How many.
        count: usize,
    },
    /// Two nodes have one name.
    #[error("two nodes are named `{0}`")]
    DuplicateName(String),
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
}

impl Plant {
    /// The most ports of a plain xbar. From any of them a signed six-bit delta reaches all others.
    const MAX_PLAIN_PORTS: u8 = 32;

    /// The most hosts, and the most xbars, that a map holds.
    pub const MAX_NODES: usize = 65_535;

    /// Builds the described fabric with all cables up. `seed` decides which xbars are plain under
    /// [`Xbars::Mixed`].
    ///
    /// # Errors
    /// If the description contradicts itself, a plain xbar has too many ports, or no map could hold
    /// the fabric.
    pub fn new(fabric: &Fabric, kinds: Xbars, seed: u64) -> Result<Self, PlantError> {
        let map = &fabric.map;
        for (what, count) in [("hosts", map.hosts.len()), ("xbars", map.xbars.len())] {
            if count > Self::MAX_NODES {
                return Err(PlantError::TooLarge { what, count });
            }
        }
        let host_names: Vec<String> = (0..map.hosts.len())
            .map(|i| fabric.hosts.get(i).map_or_else(|| format!("host{i}"), |label| label.name.clone()))
            .collect();
        let xbar_names: Vec<String> = (0..map.xbars.len())
            .map(|i| fabric.xbars.get(i).map_or_else(|| format!("xbar{i}"), |label| label.name.clone()))
            .collect();
        let mut by_name = index_names(&host_names, &xbar_names)?;
        // In fault files a node may also be called by its description, unless that is another node's id.
        for (name, node) in Names::of(fabric).nodes() {
            by_name.entry(name.to_owned()).or_insert(match node {
                Named::Host(host) => PlantNode::Host(host),
                Named::Xbar(xbar) => PlantNode::Xbar(xbar),
            });
        }
        let first_port = first_port(fabric);
        let tags = super::change::tags(fabric, kinds, seed);
        let mut sockets: Vec<Socket> =
            (0..map.hosts.len() as u32).map(|i| Socket::empty(PlantNode::Host(i), 0)).collect();
        let mut xbars = Vec::with_capacity(map.xbars.len());
        for (i, xbar) in map.xbars.iter().enumerate() {
            if tags[i].is_none() && xbar.ports > Self::MAX_PLAIN_PORTS {
                return Err(PlantError::PlainTooWide { xbar: xbar_names[i].clone(), ports: xbar.ports });
            }
            let kind = tags[i].map_or(CrossbarKind::Plain, |tag| CrossbarKind::Tagged { tag });
            let crossbar = Crossbar { kind, first_port, ports: xbar.ports, carriers: PortSet::NONE };
            xbars.push(PhysicalXbar { crossbar, base: sockets.len() as u32, powered: true });
            sockets.extend((0..xbar.ports).map(|p| Socket::empty(PlantNode::Xbar(i as u32), first_port + p)));
        }
        let present = vec![true; map.hosts.len()];
        let mut plant = Self { sockets, xbars, present, host_names, xbar_names, by_name, generation: 0 };
        for (i, host) in map.hosts.iter().enumerate() {
            if let Some(at) = host.at {
                plant.plug(i as u32, plant.described_socket(at)?)?;
            }
        }
        for cable in &map.cables {
            plant.plug(plant.described_socket(cable.a)?, plant.described_socket(cable.b)?)?;
        }
        if let Some([a, b]) = fabric.face_to_face() {
            plant.plug(a as u32, b as u32)?;
        }
        plant.changed();
        Ok(plant)
    }

    fn described_socket(&self, at: PortRef) -> Result<u32, PlantError> {
        let xbar = self
            .xbars
            .get(at.xbar as usize)
            .ok_or(PlantError::NoSuchXbar { xbar: at.xbar, xbars: self.xbars.len() })?;
        let (first, ports) = (xbar.crossbar.first_port, xbar.crossbar.ports);
        let end = PlantPort { node: PlantNode::Xbar(at.xbar), port: at.port };
        self.socket(end).ok_or_else(|| PlantError::NoSuchPort {
            xbar: self.xbar_names[at.xbar as usize].clone(),
            port: at.port,
            first,
            last: (first + ports).saturating_sub(1),
        })
    }

    fn plug(&mut self, x: u32, y: u32) -> Result<(), PlantError> {
        for socket in [x, y] {
            let socket = &self.sockets[socket as usize];
            if socket.peer.is_some() {
                let xbar = self.name(socket.end.node).to_owned();
                return Err(PlantError::PortTaken { xbar, port: socket.end.port });
            }
        }
        self.sockets[x as usize].peer = Some(y);
        self.sockets[y as usize].peer = Some(x);
        Ok(())
    }

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

    /// Whether frames get through the cable that is plugged in there.
    pub fn carries(&self, end: PlantPort) -> bool {
        let is_up = |socket: u32| self.sockets[socket as usize].cable == CableState::Up;
        self.socket(end).is_some_and(|socket| self.has_carrier(socket) && is_up(socket))
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
            self.xbars[i].crossbar.carriers = carriers;
        }
    }
}

impl Socket {
    fn empty(node: PlantNode, port: u8) -> Self {
        Self { end: PlantPort { node, port }, peer: None, cable: CableState::Up }
    }
}

fn index_names(hosts: &[String], xbars: &[String]) -> Result<BTreeMap<String, PlantNode>, PlantError> {
    let hosts = hosts.iter().enumerate().map(|(i, name)| (name, PlantNode::Host(i as u32)));
    let xbars = xbars.iter().enumerate().map(|(i, name)| (name, PlantNode::Xbar(i as u32)));
    let mut by_name = BTreeMap::new();
    for (name, node) in hosts.chain(xbars) {
        if by_name.insert(name.clone(), node).is_some() {
            return Err(PlantError::DuplicateName(name.clone()));
        }
    }
    Ok(by_name)
}

/// The number of every xbar's first port: 0 if any port 0 is in use, as in GM's files, else 1.
fn first_port(fabric: &Fabric) -> u8 {
    let hosts = fabric.map.hosts.iter().filter_map(|host| host.at);
    let cables = fabric.map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    u8::from(!hosts.chain(cables).any(|at| at.port == 0))
}
