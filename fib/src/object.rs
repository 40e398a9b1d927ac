//! The objects of Linux's forwarding tables that this project installs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mapper_proto::Mac;

use crate::segments::Packing;

/// The protocol number of all that this project installs (`proto` of iproute2, the field `rtm_protocol` of
/// rtnetlink and its likes). By it the objects of a daemon that crashed are found, and nothing else is touched.
pub const PROTOCOL: u8 = 109;

/// The numbers of nexthops that are ours have these upper eight bits, and the bit [`GroupId::BIT`] tells groups
/// from single ones.
pub const NEXTHOP_BASE: u32 = 0x6d00_0000;

/// The mark that packets of IPv6 get which are too long for an outer header. Linux puts that header around a whole packet
/// and then takes the result apart, and no kernel puts it together where the header is to be taken off. So such packets
/// leave by an interface that takes themselves apart.
pub const TOO_LONG: u32 = 0x6d61;

/// The type of service by which packets of IPv4 that are too long for an outer header are looked up, while they bear it:
/// the differentiated services code point 3, which is for local use (RFC 2474, section 6). A mark would take a rule, and
/// a kernel that has had one of IPv4 looks all packets up the long way. Older kernels look up by the bits `0x1c` alone, in
/// which no code point in general use is the same.
pub const TOO_LONG_SERVICE: u8 = 3 << 2;

/// The type of service of probes of IPv4 and of the answers to them: the differentiated services code point 7, which is for local
/// use, too. Where they pass a machine by their destination they are looked up apart, and are not counted as what it sends.
pub const PROBE_SERVICE: u8 = 7 << 2;

/// A network of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpPrefix {
    /// The network's address. Bits behind the prefix are zero.
    pub ip: IpAddr,
    /// How many bits count.
    pub bits: u8,
}

impl IpPrefix {
    /// The network of one address alone.
    pub const fn host(ip: IpAddr) -> Self {
        Self { ip, bits: if ip.is_ipv4() { 32 } else { 128 } }
    }

    /// A network of IPv6. Bits behind the prefix are cleared.
    pub fn v6(ip: Ipv6Addr, bits: u8) -> Self {
        let kept = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
        Self { ip: Ipv6Addr::from_bits(ip.to_bits() & kept).into(), bits: bits.min(128) }
    }

    /// Whether an address is in this network.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let same = |own: u128, other: u128, width: u32| {
            let behind = width - u32::from(self.bits).min(width);
            own.checked_shr(behind).unwrap_or(0) == other.checked_shr(behind).unwrap_or(0)
        };
        match (self.ip, ip) {
            (IpAddr::V4(own), IpAddr::V4(ip)) => same(own.to_bits().into(), ip.to_bits().into(), 32),
            (IpAddr::V6(own), IpAddr::V6(ip)) => same(own.to_bits(), ip.to_bits(), 128),
            _ => false,
        }
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.bits)
    }
}

/// A routing table of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// The table `main`.
    Main,
    /// The table of segments, which is looked up only for packets that came in by a port of the fabric.
    Segments,
    /// The table of packets that are too long for an outer header, which is looked up only for those that bear
    /// [`TOO_LONG`]. That is so for IPv6; its routes of IPv4 stand in the table `main`, for packets of
    /// [`TOO_LONG_SERVICE`] alone.
    TooLong,
    /// The table of packets that pass by their destination: they came in by a port of the fabric, and are for another
    /// machine. Its routes lead where those of the table `main` do, by groups of the same nexthops. So what the kernel counts of
    /// the groups of `main` is what this machine itself sends, without the probes of others. That is so for IPv6; its routes of
    /// IPv4 stand in the table `main`, for packets of [`PROBE_SERVICE`] alone, as a kernel that has had a rule of IPv4 looks all
    /// packets up the long way.
    Passing,
}

impl Table {
    /// The kernel's number for it, where it is a table of its own.
    pub const fn number(self) -> u32 {
        match self {
            Self::Main => 254,
            Self::Segments => 0x6d61,
            Self::TooLong => 0x6d62,
            Self::Passing => 0x6d63,
        }
    }
}

/// The number of a nexthop object, below [`GroupId::BIT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NexthopId(pub u32);

/// The number of a group of nexthop objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl NexthopId {
    /// The kernel's number for it.
    pub const fn number(self) -> u32 {
        NEXTHOP_BASE | self.0
    }

    /// The nexthop that the kernel knows by this number, if it is one of ours.
    pub const fn of_number(number: u32) -> Option<Self> {
        match number ^ NEXTHOP_BASE {
            id @ ..GroupId::BIT => Some(Self(id)),
            _ => None,
        }
    }
}

impl GroupId {
    /// The bit that tells the numbers of groups from those of single nexthops.
    pub const BIT: u32 = 0x0080_0000;

    /// The bit of the groups that routes of [`Table::Passing`] lead to.
    pub(crate) const PASSING: u32 = 0x0040_0000;

    /// The group of the same nexthops for packets that pass.
    #[must_use]
    pub const fn of_passing(self) -> Self {
        Self(self.0 | Self::PASSING)
    }

    /// Whether it is one for packets that pass.
    pub const fn is_of_passing(self) -> bool {
        self.0 & Self::PASSING != 0
    }

    /// The group of the same nexthops for packets that this machine sends; itself if it is that.
    #[must_use]
    pub const fn of_own(self) -> Self {
        Self(self.0 & !Self::PASSING)
    }

    /// The kernel's number for it.
    pub const fn number(self) -> u32 {
        NEXTHOP_BASE | Self::BIT | self.0
    }

    /// The group that the kernel knows by this number, if it is one of ours.
    pub const fn of_number(number: u32) -> Option<Self> {
        match number ^ NEXTHOP_BASE {
            id @ Self::BIT..=0x00ff_ffff => Some(Self(id ^ Self::BIT)),
            _ => None,
        }
    }
}

/// A way on, that routes name by its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nexthop {
    /// Plain: out of this interface, to the neighbour with this address.
    Gateway {
        /// The number of the interface.
        interface: u32,
        /// The neighbour's address on that cable. One of IPv4 takes packets of IPv4 alone.
        gateway: IpAddr,
    },
    /// In an IPv6 header that has these segments (`encap seg6 mode encap.red`).
    Segments {
        /// The number of the interface that the packets leave by.
        interface: u32,
        /// The segments, the first one first.
        segments: Vec<Ipv6Addr>,
    },
}

impl Nexthop {
    /// The number of the interface that packets leave by.
    pub const fn interface(&self) -> u32 {
        match self {
            Self::Gateway { interface, .. } | Self::Segments { interface, .. } => *interface,
        }
    }
}

/// A rule: which packets are looked up in another table than `main` first, or not in `main` at all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Packets to a segment that came in by this interface are looked up in [`Table::Segments`].
    Segments {
        /// The name of the interface.
        interface: String,
        /// The network of all segments.
        to: IpPrefix,
    },
    /// Packets of IPv6 that bear [`TOO_LONG`] are looked up in [`Table::TooLong`].
    TooLong,
    /// Packets to a segment that came in by this interface and for which [`Table::Segments`] has no route, as before it is filled or
    /// when somebody has emptied it, are dropped. By the routes in `main` that this machine's own packets leave by they would go
    /// back, or to a neighbour that they are not for.
    Unknown {
        /// The name of the interface.
        interface: String,
        /// The network of all segments.
        to: IpPrefix,
    },
    /// Packets of IPv6 that came in by this interface are looked up in [`Table::Passing`].
    Passing {
        /// The name of the interface.
        interface: String,
    },
}

/// What a route leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteKey {
    /// The table that it is in.
    pub table: Table,
    /// The destinations.
    pub to: IpPrefix,
}

/// What is done with packets that a route is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// They leave by this interface, to this neighbour.
    Gateway {
        /// The number of the interface.
        interface: u32,
        /// The neighbour's address on that cable.
        gateway: Ipv6Addr,
    },
    /// They leave by this interface, to whoever has their destination there.
    Link {
        /// The number of the interface.
        interface: u32,
        /// The source address of packets that this machine sends and that have none yet; `None` for one that the kernel chooses.
        source: Option<IpAddr>,
        /// The longest packet, in bytes; 0 for that of the interface.
        mtu: u32,
    },
    /// They take a nexthop of a group by the hash of their flow.
    Group {
        /// The group.
        group: GroupId,
        /// The source address of packets that this machine sends and that have none yet.
        source: Option<IpAddr>,
        /// The longest packet, in bytes.
        mtu: u32,
    },
    /// This element of the route is stripped, and what is left looked up again (End).
    Strip {
        /// An interface that exists. The kernel wants one and does not use it.
        interface: u32,
        /// How elements stand in the address: compressed, what is stripped is one of them (NEXT-C-SID).
        packing: Packing,
    },
    /// This element of the route is stripped, and the packet leaves the way that this address leads (End.X).
    StripAndLeave {
        /// The number of the interface that it leaves by.
        interface: u32,
        /// The address whose route in [`Table::Segments`] leads out of the interface.
        towards: Ipv6Addr,
        /// How much is stripped.
        strips: Strips,
    },
    /// The outer header is taken off an IPv4 packet, which is delivered here (End.DX4).
    DeliverV4 {
        /// An interface that exists.
        interface: u32,
        /// An IPv4 address of this machine.
        to: Ipv4Addr,
    },
    /// The outer header is taken off an IPv6 packet, which is delivered here (End.DT6, by the local table).
    DeliverV6 {
        /// An interface that exists.
        interface: u32,
    },
}

/// How much of a segment is stripped by who obeys it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strips {
    /// All of it, as it has one element.
    Segment,
    /// One element of several in the address (NEXT-C-SID).
    Element,
    /// Two of them at once: that by which the packet left its sender, and the one behind it.
    TwoElements,
}

/// A set of objects in the kernel's tables: those that are wanted, or those that are there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Objects {
    /// The link addresses of neighbours, by interface and address.
    pub neighbours: BTreeMap<(u32, IpAddr), Mac>,
    /// Single nexthops.
    pub nexthops: BTreeMap<NexthopId, Nexthop>,
    /// Groups of nexthops. None is empty.
    pub groups: BTreeMap<GroupId, Vec<NexthopId>>,
    /// Rules.
    pub rules: BTreeSet<Rule>,
    /// Routes.
    pub routes: BTreeMap<RouteKey, Route>,
    /// Packets of this machine's own that are longer, in bytes, are looked up in [`Table::TooLong`]. Those of TCP are
    /// not, as they are taken apart in any case; nor are those that bear a mark of somebody else's.
    pub marked_above: Option<u32>,
}

impl Objects {
    /// How many objects these are.
    pub fn len(&self) -> usize {
        let Self { neighbours, nexthops, groups, rules, routes, marked_above } = self;
        let marks = usize::from(marked_above.is_some());
        neighbours.len() + nexthops.len() + groups.len() + rules.len() + routes.len() + marks
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds all objects of another set; where both have one of the same key, the other's counts.
    pub fn extend(&mut self, other: Self) {
        let Self { neighbours, nexthops, groups, rules, routes, marked_above } = other;
        self.neighbours.extend(neighbours);
        self.nexthops.extend(nexthops);
        self.groups.extend(groups);
        self.rules.extend(rules);
        self.routes.extend(routes);
        self.marked_above = marked_above.or(self.marked_above);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_nexthops_and_groups_come_back_and_others_are_not_ours() {
        assert_eq!(NexthopId::of_number(NexthopId(7).number()), Some(NexthopId(7)));
        assert_eq!(GroupId::of_number(GroupId(7).number()), Some(GroupId(7)));
        assert_eq!(GroupId::of_number(NexthopId(7).number()), None);
        assert_eq!(NexthopId::of_number(GroupId(7).number()), None);
        for foreign in [0, 7, 0x8007, 0x6c00_0007, u32::MAX] {
            assert_eq!((NexthopId::of_number(foreign), GroupId::of_number(foreign)), (None, None));
        }
        let passing = GroupId(7).of_passing();
        assert!(
            passing.is_of_passing() && !GroupId(7).is_of_passing() && passing.number() != GroupId(7).number()
        );
        assert_eq!((passing.of_own(), GroupId::of_number(passing.number())), (GroupId(7), Some(passing)));
    }

    #[test]
    fn a_network_holds_the_addresses_that_begin_like_it() {
        let ten = IpPrefix { ip: "10.1.0.0".parse().unwrap(), bits: 24 };
        assert!(ten.contains("10.1.0.255".parse().unwrap()) && !ten.contains("10.1.1.0".parse().unwrap()));
        let six = IpPrefix::v6("fcbb:bb00:2:3::".parse().unwrap(), 48);
        assert_eq!(six.to_string(), "fcbb:bb00:2::/48");
        assert!(
            six.contains("fcbb:bb00:2:9::1".parse().unwrap()) && !six.contains("10.1.0.1".parse().unwrap())
        );
        assert!(IpPrefix::v6(Ipv6Addr::UNSPECIFIED, 0).contains("::1".parse().unwrap()));
    }
}
