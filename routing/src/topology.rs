//! A fabric as flat arrays, for search and for proof.

mod cut;
mod parts;

pub use parts::HostPart;

use std::ops::Range;

use mapper_proto::Mac;
use mapper_proto::map::{Fabric, Host, Map, MapVersion, PortRef};
use thiserror::Error;

use mapper_fabric::names::Names;

/// What a map puts somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// A cable, by its number.
    Cable(usize),
    /// A host, by its number.
    Host(u32, Mac),
}

impl Placed {
    fn describe(self, names: &Names) -> String {
        match self {
            Self::Cable(cable) => format!("cable {cable}"),
            Self::Host(host, mac) => names.hosts.get(host as usize).cloned().unwrap_or(format!("host {mac}")),
        }
    }
}

/// A map that no fabric can look like.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// The map has more xbars than it may have.
    #[error("the map has {count} xbars; at most {max} can be routed", max = Topology::MAX_XBARS)]
    TooManyXbars {
        /// How many xbars the map has.
        count: usize,
    },
    /// A cable or a host names an xbar that the map does not list.
    #[error("{} is at xbar {xbar}, but the map lists {xbars} xbars, counted from 0", .what.describe(&Names::default()))]
    NoSuchXbar {
        /// Which cable or host.
        what: Placed,
        /// The xbar that it names.
        xbar: u32,
        /// How many xbars the map lists.
        xbars: usize,
    },
    /// Two cables are in one port.
    #[error("xbar {} port {} holds two cables; one of them must be elsewhere", .port.xbar, .port.port)]
    PortTwice {
        /// The port.
        port: PortRef,
    },
}

/// What a host is cabled to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attachment {
    /// An xbar's port.
    Port(PortRef),
    /// The only other host, by its index.
    Host(u32),
    /// The host is cabled to nothing, so no route leads there.
    Nothing,
}

/// What an xbar's port leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Far {
    /// The port has no cable.
    Nothing,
    /// A host, by its index.
    Host(u32),
    /// Another xbar's port (or this xbar's), along this channel.
    Channel(u32),
}

/// A fabric as flat arrays: compressed adjacency, hosts grouped by xbar.
///
/// A *channel* is a cable between xbars in one direction. Channels are numbered by the port that
/// they leave, xbar by xbar, so the channels out of an xbar are a range of numbers in the order of
/// its ports, and the order in which a map lists its cables does not matter. Cables of hosts are no
/// channels: nothing can wait for them in a circle.
#[derive(Clone, Debug)]
pub struct Topology {
    version: MapVersion,
    macs: Vec<Mac>,
    attachments: Vec<Attachment>,
    /// Hosts that have no cable because they exist only to inflate a map.
    phantoms: Vec<bool>,
    tagged: Vec<bool>,
    component: Vec<u32>,
    /// Channels whose cable is dead; empty if none is.
    dead: Vec<bool>,
    /// Hosts of xbar x: `hosts[host_base[x]..host_base[x + 1]]`, by rising index.
    host_base: Vec<u32>,
    hosts: Vec<u32>,
    /// Channels out of xbar x: `channel_base[x]..channel_base[x + 1]`.
    channel_base: Vec<u32>,
    tails: Vec<PortRef>,
    heads: Vec<PortRef>,
    reverse: Vec<u32>,
    /// What xbar x's port p leads to: `ports[port_base[x] + p - first_port[x]]`.
    port_base: Vec<u32>,
    first_port: Vec<u8>,
    ports: Vec<Far>,
}

impl TopologyError {
    /// Says what is wrong, with the names that the fabric has.
    pub fn describe(&self, names: &Names) -> String {
        match self {
            Self::NoSuchXbar { what, xbar, xbars } => {
                let what = what.describe(names);
                format!("{what} is at xbar {xbar}, but the map lists {xbars} xbars, counted from 0")
            }
            Self::PortTwice { port } => {
                format!("{} holds two cables; one of them must be elsewhere", names.port(*port))
            }
            Self::TooManyXbars { .. } => self.to_string(),
        }
    }
}

impl Topology {
    /// The most xbars that a map may have.
    pub const MAX_XBARS: usize = 65_535;

    /// The topology of a map.
    ///
    /// Two hosts without xbar ports are cabled to each other if the map has no xbar, and no other host but
    /// phantoms. Any other host without an xbar port is cabled to nothing.
    ///
    /// # Errors
    /// If the map names an xbar that it does not list, or puts two cables into one port.
    pub fn from_map(map: &Map) -> Result<Self, TopologyError> {
        let count = map.xbars.len();
        if count > Self::MAX_XBARS {
            return Err(TopologyError::TooManyXbars { count });
        }
        let ports = PortIndex::of(map)?;
        let mut topology = Self {
            version: map.version,
            macs: map.hosts.iter().map(|host| host.mac).collect(),
            attachments: attachments(map),
            phantoms: map.hosts.iter().map(Host::is_phantom).collect(),
            tagged: map.xbars.iter().map(|xbar| xbar.tag.is_some()).collect(),
            component: Vec::new(),
            dead: Vec::new(),
            host_base: Vec::with_capacity(count + 1),
            hosts: Vec::with_capacity(map.hosts.len()),
            channel_base: Vec::with_capacity(count + 1),
            tails: Vec::with_capacity(2 * map.cables.len()),
            heads: Vec::with_capacity(2 * map.cables.len()),
            reverse: Vec::with_capacity(2 * map.cables.len()),
            port_base: ports.base,
            first_port: ports.first,
            ports: Vec::new(),
        };
        topology.ports = topology.number_channels(map, ports.ends);
        topology.component = topology.components();
        Ok(topology)
    }

    /// The topology of a fabric, whose labels may know of two hosts that no cable joins them.
    ///
    /// # Errors
    /// In the same cases as [`Self::from_map`].
    pub fn from_fabric(fabric: &Fabric) -> Result<Self, TopologyError> {
        let mut topology = Self::from_map(&fabric.map)?;
        if fabric.face_to_face().is_none() {
            let direct = |attachment: &&mut Attachment| matches!(attachment, Attachment::Host(_));
            topology.attachments.iter_mut().filter(direct).for_each(|it| *it = Attachment::Nothing);
        }
        Ok(topology)
    }

    /// Numbers the channels in the order of ports, and groups the hosts by xbar.
    fn number_channels(&mut self, map: &Map, ends: Vec<Far>) -> Vec<Far> {
        let mut channel_of_end = vec![0; 2 * map.cables.len()];
        let mut ends_in_order = Vec::with_capacity(2 * map.cables.len());
        let mut far = ends;
        for xbar in 0..map.xbars.len() {
            self.host_base.push(self.hosts.len() as u32);
            self.channel_base.push(ends_in_order.len() as u32);
            let first_host = self.hosts.len();
            for at in self.port_base[xbar]..self.port_base[xbar + 1] {
                match &mut far[at as usize] {
                    Far::Nothing => {}
                    Far::Host(host) => self.hosts.push(*host),
                    Far::Channel(end) => {
                        let channel = ends_in_order.len() as u32;
                        channel_of_end[*end as usize] = channel;
                        ends_in_order.push(*end);
                        *end = channel;
                    }
                }
            }
            self.hosts[first_host..].sort_unstable();
        }
        self.host_base.push(self.hosts.len() as u32);
        self.channel_base.push(ends_in_order.len() as u32);
        for &end in &ends_in_order {
            let cable = map.cables[end as usize / 2];
            let (tail, head) = if end % 2 == 0 { (cable.a, cable.b) } else { (cable.b, cable.a) };
            self.tails.push(tail);
            self.heads.push(head);
            // A plug that joins a port to itself has one end only, and is its own way back.
            let other = if cable.a == cable.b { end } else { end ^ 1 };
            self.reverse.push(channel_of_end[other as usize]);
        }
        far
    }

    /// The connected part of each xbar, numbered by its smallest xbar.
    fn components(&self) -> Vec<u32> {
        let mut component = vec![u32::MAX; self.xbar_count()];
        let mut queue = Vec::new();
        for start in 0..self.xbar_count() as u32 {
            if component[start as usize] != u32::MAX {
                continue;
            }
            component[start as usize] = start;
            queue.push(start);
            while let Some(xbar) = queue.pop() {
                for channel in self.channels_of(xbar).filter(|&channel| !self.is_dead(channel)) {
                    let next = self.head(channel).xbar;
                    if component[next as usize] == u32::MAX {
                        component[next as usize] = start;
                        queue.push(next);
                    }
                }
            }
        }
        component
    }

    /// The version of the map that this was built from.
    pub fn version(&self) -> MapVersion {
        self.version
    }

    /// How many xbars there are; they are numbered as in the map.
    pub fn xbar_count(&self) -> usize {
        self.tagged.len()
    }

    /// How many hosts there are, phantoms included; they are numbered as in the map.
    pub fn host_count(&self) -> usize {
        self.macs.len()
    }

    /// How many channels there are.
    pub fn channel_count(&self) -> usize {
        self.heads.len()
    }

    /// A host's address.
    pub fn mac(&self, host: u32) -> Mac {
        self.macs[host as usize]
    }

    /// What a host is cabled to.
    pub fn attachment(&self, host: u32) -> Attachment {
        self.attachments[host as usize]
    }

    /// Whether a host exists only to inflate the map.
    pub fn is_phantom(&self, host: u32) -> bool {
        self.phantoms[host as usize]
    }

    /// Whether an xbar obeys absolute route elements.
    pub fn is_tagged(&self, xbar: u32) -> bool {
        self.tagged[xbar as usize]
    }

    /// The hosts cabled to an xbar, by rising index.
    pub fn hosts_of(&self, xbar: u32) -> &[u32] {
        &self.hosts[self.host_base[xbar as usize] as usize..self.host_base[xbar as usize + 1] as usize]
    }

    /// The channels out of an xbar, by rising port.
    pub fn channels_of(&self, xbar: u32) -> Range<u32> {
        self.channel_base[xbar as usize]..self.channel_base[xbar as usize + 1]
    }

    /// The port that a channel leaves.
    pub fn tail(&self, channel: u32) -> PortRef {
        self.tails[channel as usize]
    }

    /// The port that a channel arrives at.
    pub fn head(&self, channel: u32) -> PortRef {
        self.heads[channel as usize]
    }

    /// The channel along the same cable the other way; itself for a port that is joined to itself.
    pub fn reverse(&self, channel: u32) -> u32 {
        self.reverse[channel as usize]
    }

    /// What a port leads to. It is [`Far::Nothing`] also if there is no such port or xbar.
    pub fn far(&self, port: PortRef) -> Far {
        let xbar = port.xbar as usize;
        if xbar >= self.xbar_count() || port.port < self.first_port[xbar] {
            return Far::Nothing;
        }
        let at = self.port_base[xbar] + u32::from(port.port - self.first_port[xbar]);
        if at < self.port_base[xbar + 1] { self.ports[at as usize] } else { Far::Nothing }
    }

    /// The connected part that an xbar is in, as the number of its smallest xbar.
    pub fn component(&self, xbar: u32) -> u32 {
        self.component[xbar as usize]
    }

    /// Whether cables lead from one host to another.
    pub fn connected(&self, from: u32, to: u32) -> bool {
        match (self.attachment(from), self.attachment(to)) {
            (Attachment::Port(a), Attachment::Port(b)) => self.component(a.xbar) == self.component(b.xbar),
            (Attachment::Host(other), Attachment::Host(_)) => other == to,
            _ => false,
        }
    }
}

fn attachments(map: &Map) -> Vec<Attachment> {
    let at = |host: &Host| host.at.map_or(Attachment::Nothing, Attachment::Port);
    let mut all: Vec<_> = map.hosts.iter().map(at).collect();
    if let Some([a, b]) = map.face_to_face() {
        all[a] = Attachment::Host(b as u32);
        all[b] = Attachment::Host(a as u32);
    }
    all
}

/// What each port holds: a host, or one end of a cable (cable `i` has the ends `2i` and `2i + 1`).
struct PortIndex {
    base: Vec<u32>,
    first: Vec<u8>,
    ends: Vec<Far>,
}

impl PortIndex {
    fn of(map: &Map) -> Result<Self, TopologyError> {
        let mut first = vec![u8::MAX; map.xbars.len()];
        let mut last = vec![0; map.xbars.len()];
        let mut see = |port: PortRef, what: Placed| {
            let xbar = port.xbar as usize;
            if xbar >= first.len() {
                return Err(TopologyError::NoSuchXbar { what, xbar: port.xbar, xbars: first.len() });
            }
            first[xbar] = first[xbar].min(port.port);
            last[xbar] = last[xbar].max(port.port);
            Ok(())
        };
        for (i, cable) in map.cables.iter().enumerate() {
            see(cable.a, Placed::Cable(i))?;
            see(cable.b, Placed::Cable(i))?;
        }
        for (i, host) in (0..).zip(&map.hosts) {
            if let Some(at) = host.at {
                see(at, Placed::Host(i, host.mac))?;
            }
        }
        let mut base = Vec::with_capacity(map.xbars.len() + 1);
        let mut total = 0;
        for (&first, &last) in first.iter().zip(&last) {
            base.push(total);
            total += if first <= last { u32::from(last - first) + 1 } else { 0 };
        }
        base.push(total);
        let mut ports = Self { base, first, ends: vec![Far::Nothing; total as usize] };
        ports.fill(map)?;
        Ok(ports)
    }

    fn fill(&mut self, map: &Map) -> Result<(), TopologyError> {
        for (i, cable) in map.cables.iter().enumerate() {
            self.put(cable.a, Far::Channel(2 * i as u32))?;
            if cable.a != cable.b {
                self.put(cable.b, Far::Channel(2 * i as u32 + 1))?;
            }
        }
        for (i, host) in map.hosts.iter().enumerate() {
            if let Some(at) = host.at {
                self.put(at, Far::Host(i as u32))?;
            }
        }
        Ok(())
    }

    fn put(&mut self, port: PortRef, end: Far) -> Result<(), TopologyError> {
        let xbar = port.xbar as usize;
        let at = self.base[xbar] + u32::from(port.port - self.first[xbar]);
        let place = &mut self.ends[at as usize];
        if *place != Far::Nothing {
            return Err(TopologyError::PortTwice { port });
        }
        *place = end;
        Ok(())
    }
}
