//! Builds a plant from the description of a fabric.

use std::collections::{BTreeMap, VecDeque};

use mapper_fabric::names::{Named, Names};
use mapper_proto::PortSet;
use mapper_proto::map::{Fabric, PortRef};
use mapper_proto::wire::{Crossbar, CrossbarKind, PassedChecks};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{CableState, PhysicalXbar, Plant, PlantNode, PlantPort, Socket};
use crate::fabric::change;

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
        let tags = change::tags(fabric, kinds, seed);
        let mut sockets: Vec<Socket> =
            (0..map.hosts.len() as u32).map(|i| Socket::empty(PlantNode::Host(i), 0)).collect();
        let mut xbars = Vec::with_capacity(map.xbars.len());
        for (i, xbar) in map.xbars.iter().enumerate() {
            if tags[i].is_none() && xbar.ports > Self::MAX_PLAIN_PORTS {
                return Err(PlantError::PlainTooWide { xbar: xbar_names[i].clone(), ports: xbar.ports });
            }
            let kind = tags[i].map_or(CrossbarKind::Plain, |tag| CrossbarKind::Tagged { tag });
            let crossbar = Crossbar { kind, first_port, ports: xbar.ports, carriers: PortSet::NONE };
            xbars.push(PhysicalXbar {
                crossbar,
                base: sockets.len() as u32,
                powered: true,
                is_running: true,
                passed: PassedChecks::default(),
            });
            sockets.extend((0..xbar.ports).map(|p| Socket::empty(PlantNode::Xbar(i as u32), first_port + p)));
        }
        let present = vec![true; map.hosts.len()];
        let mut plant = Self {
            sockets,
            xbars,
            present,
            host_names,
            xbar_names,
            by_name,
            generation: 0,
            notices: VecDeque::new(),
        };
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
