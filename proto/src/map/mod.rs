//! What is known of a fabric.
//!
//! A [`Map`] is what the global mapper found and what travels: hosts, xbars, cables, no names.
//! A [`Fabric`] is what a file or a generator describes: a map and what only people know of it.

mod check;
mod contested;
mod correspondence;
mod difference;
mod fabric;
pub(crate) mod forest;
mod frame_sizes;
mod isomorphism;
mod link_speed;
mod lossy;
mod order;
mod part;
mod pieces;
mod ports;
#[cfg(test)]
mod random;
mod rules;
pub mod ways;

pub use check::MapDefect;
pub use contested::{AddressConflict, Contested, Place};
pub use correspondence::Correspondence;
pub use difference::{Difference, MovedCable, MovedHost};
pub use fabric::{Fabric, HostLabel, XbarLabel};
pub use frame_sizes::{FrameSizes, LinkMtu, NarrowEnd};
pub use isomorphism::{Mismatch, is_isomorphic};
pub use link_speed::{LaneRate, LinkSpeed, ParseLinkSpeedError};
pub use lossy::TaggedPort;
pub use order::HostIndex;
pub use part::Part;
pub use pieces::{Assembly, PieceError, decode_pieces, encode_pieces};
pub use ports::{Attached, FarEnd, PortsInUse};
pub use rules::Rules;

use std::fmt;

use crate::Mac;

/// How much a host wants to be the global mapper: level first, then MAC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rank {
    /// The level that the user set; 0 never maps.
    pub level: u8,
    /// The host's address, which breaks ties.
    pub mac: Mac,
}

/// Which map: the global mapper's address and its counter.
///
/// The counter starts at random and grows with each new map, so a mapper that restarts is told
/// from its former self. Counter 0 means no valid map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct MapVersion {
    /// The global mapper that made the map.
    pub mac: Mac,
    /// Its counter; 0 for no valid map.
    pub counter: u32,
}

impl MapVersion {
    /// No valid map.
    pub const NONE: Self = Self { mac: Mac([0; 6]), counter: 0 };

    /// Whether this names a map at all.
    pub const fn is_some(self) -> bool {
        self.counter != 0
    }
}

impl fmt::Display for MapVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_some() { write!(f, "{}/{}", self.mac, self.counter) } else { f.write_str("none") }
    }
}

/// A port of an xbar. Ordered by xbar, then port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortRef {
    /// Index into [`Map::xbars`].
    pub xbar: u32,
    /// The port's number, as the fabric numbers it.
    pub port: u8,
}

/// What kind of transport a host runs. GM's numbers, and ours beside them.
pub mod host_type {
    /// A host that exists only to inflate a map (`--extra-hosts`): it has no agent and no cable.
    pub const PHANTOM: u8 = 0;
    /// GM.
    pub const GM: u8 = 1;
    /// XM.
    pub const XM: u8 = 2;
    /// MX.
    pub const MX: u8 = 3;
    /// Raw Ethernet.
    pub const ETHERNET: u8 = 4;
    /// InfiniBand.
    pub const INFINIBAND: u8 = 5;
}

/// A host in a map.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Host {
    /// Its address.
    pub mac: Mac,
    /// Its level in the election.
    pub level: u8,
    /// What it runs: see [`host_type`].
    pub host_type: u8,
    /// The xbar port that it is cabled to. `None` if it is cabled straight to the only other
    /// host, or to nothing.
    pub at: Option<PortRef>,
}

impl Host {
    /// Its rank in the election.
    pub const fn rank(&self) -> Rank {
        Rank { level: self.level, mac: self.mac }
    }

    /// Whether it exists only to inflate the map.
    pub const fn is_phantom(&self) -> bool {
        self.host_type == host_type::PHANTOM && self.at.is_none()
    }
}

/// An xbar in a map.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Xbar {
    /// How many ports it has; for a plain xbar in an explored map, the most that it can have.
    pub ports: u8,
    /// The 64-bit identity of a tagged xbar; `None` for a plain one.
    pub tag: Option<u64>,
    /// False while the port numbers are right only up to an offset: a plain xbar whose ports in
    /// use do not span it.
    pub ports_known: bool,
}

/// A cable between two xbar ports (of one xbar, if it is cabled to itself). `a <= b`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cable {
    /// The end with the smaller xbar index, then port.
    pub a: PortRef,
    /// The end with the larger xbar index, then port.
    pub b: PortRef,
}

impl Cable {
    /// A cable between two ports, its ends put in order.
    pub fn new(x: PortRef, y: PortRef) -> Self {
        Self { a: x.min(y), b: x.max(y) }
    }
}

/// A fabric as a mapper found it, or as a file describes it.
///
/// In a map that agents exchange, hosts stand by falling [`Rank`], so the global mapper is first
/// and the host at index `n-1` is the parent of those at `2n-1` and `2n` (n counted from 1).
/// Cables stand in rising order. At most 65,535 xbars.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Map {
    /// Which map this is; [`MapVersion::NONE`] for a file's.
    pub version: MapVersion,
    /// All hosts.
    pub hosts: Vec<Host>,
    /// All xbars.
    pub xbars: Vec<Xbar>,
    /// All cables between xbars. Cables of hosts are in [`Host::at`].
    pub cables: Vec<Cable>,
    /// Ports whose hosts are left out of the map, as another host has the same address. In rising
    /// order.
    pub contested: Vec<Contested>,
    /// What the global mapper is set to and all hosts obey.
    pub rules: Rules,
    /// Which hosts carry shorter frames than others send.
    pub frame_sizes: FrameSizes,
    /// The cables that carry frames and lose many, as hosts found, in rising order: they stand in [`Self::cables`] as well. Routes
    /// leave them out ([`Self::routable`]).
    pub lossy: Vec<Cable>,
}

impl Map {
    /// The two hosts that one cable joins without an xbar: those of a map that has no xbar, and no other host
    /// but phantoms.
    pub fn face_to_face(&self) -> Option<[usize; 2]> {
        let mut real = self.hosts.iter().enumerate().filter(|(_, host)| !host.is_phantom());
        let (Some((a, x)), Some((b, y)), None) = (real.next(), real.next(), real.next()) else { return None };
        (self.xbars.is_empty() && x.at.is_none() && y.at.is_none()).then_some([a, b])
    }
}
