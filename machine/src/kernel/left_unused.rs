//! What the kernel takes off the MTU of a route by segments, found by asking it for routes that are tried.
//!
//! A socket that is connected tells how long its packets may be, and connecting sends none. The routes stand in the
//! table of packets that are too long, where the mark of the socket leads, so nobody else sees them.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use mapper_fib::object::TOO_LONG;
use mapper_fib::segments::{self, Element, LeftUnused, MOST_SEGMENTS, Packing};
use mapper_fib::{GroupId, IpPrefix, Nexthop, NexthopId, Objects, Route, RouteKey, Rule, Table};
use rustix::net::sockopt::ipv6_mtu;
use socket2::{Domain, Protocol, Socket, Type};

use super::abilities;

/// The element that the destination of the route by one segment begins with; those by more follow it. It is none of a
/// route, so no packet has such an address.
const FIRST: u16 = 0xf310;
/// The MTU that these routes say. It leaves more than the least one of IPv6, whatever is taken off.
const MTU: u32 = 8192;
/// The most that a kernel could take off. What is more comes of another route.
const MOST: u32 = 512;

/// The number of the nexthop and group of the route by so many segments, among the last ones.
const fn number(segments: usize) -> u32 {
    GroupId::BIT - 2 - segments as u32
}

/// Where the route by so many segments leads.
fn key(segments: usize) -> RouteKey {
    RouteKey { table: Table::TooLong, ..abilities::key(FIRST + segments as u16 - 1) }
}

/// The routes that are tried, one for each number of segments, on this interface.
pub(super) fn tried(interface: u32) -> Objects {
    let mut objects = Objects::default();
    for count in 1..=MOST_SEGMENTS {
        let elements = vec![Element::FirstPort(0); count];
        let Some(segments) = segments::segments(&elements, Packing::Full) else { continue };
        let (nexthop, group) = (NexthopId(number(count)), GroupId(number(count)));
        objects.nexthops.insert(nexthop, Nexthop::Segments { interface, segments });
        objects.groups.insert(group, [nexthop].into());
        objects.routes.insert(key(count), Route::Group { group, source: None, mtu: MTU });
    }
    objects
}

/// What the kernel takes off these routes' MTU, where `there` is what it holds; nothing if it does not tell of each of
/// them, so that packets are too short rather than too long.
pub(super) fn ask(there: &Objects) -> LeftUnused {
    let is_tried = (1..=MOST_SEGMENTS).all(|count| {
        matches!(there.routes.get(&key(count)), Some(Route::Group { group, mtu: MTU, .. })
            if group.0 == number(count))
    });
    if !is_tried || !there.rules.contains(&Rule::TooLong) {
        return LeftUnused::NOTHING;
    }
    let mut all = [0; MOST_SEGMENTS];
    for (at, bytes) in all.iter_mut().enumerate() {
        match of_route(key(at + 1).to) {
            Ok(left) => *bytes = left,
            Err(error) => {
                tracing::debug!(%error, segments = at + 1, "how long packets by segments may be is not told");
                return LeftUnused::NOTHING;
            }
        }
    }
    LeftUnused::new(all)
}

/// What the kernel takes off the MTU of the route to this network.
fn of_route(to: IpPrefix) -> io::Result<u16> {
    let socket = Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_mark(TOO_LONG)?;
    // The machine may have no address yet, so the socket takes one that is nobody's.
    socket.set_freebind_v6(true)?;
    let IpAddr::V6(ip) = to.ip else { return Err(io::ErrorKind::Unsupported.into()) };
    let with_port = |ip: Ipv6Addr, port| SocketAddr::V6(SocketAddrV6::new(ip, port, 0, 0)).into();
    socket.bind(&with_port(ip, 0))?;
    socket.connect(&with_port(ip, 9))?;
    let mtu = ipv6_mtu(&socket)?;
    let left = MTU.checked_sub(mtu).filter(|&left| left <= MOST).and_then(|left| left.try_into().ok());
    left.ok_or_else(|| io::Error::other(format!("a route whose MTU is {MTU} has one of {mtu}")))
}
