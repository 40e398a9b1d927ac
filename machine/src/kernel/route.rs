//! Routes in messages of rtnetlink (`rtmsg`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mapper_fib::object::{PROBE_SERVICE, PROTOCOL, TOO_LONG_SERVICE};
use mapper_fib::{GroupId, IpPrefix, Route, RouteKey, Table};

use super::tunnel::{self, Local};
use super::{AF_INET, AF_INET6};
use crate::netlink::message::{Attributes, attributes, ip, ipv6, u16_at, u32_at};

pub(super) const RTA_DST: u16 = 1;
pub(super) const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
pub(super) const RTA_PRIORITY: u16 = 6;
pub(super) const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
pub(super) const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_ENCAP: u16 = 22;
const RTA_NH_ID: u16 = 30;
const RTAX_MTU: u16 = 2;
pub(super) const RTN_UNICAST: u8 = 1;
/// The scope of a route that may lead anywhere.
const RT_SCOPE_UNIVERSE: u8 = 0;
/// The scope in a request to remove a route, which fits a route of any scope.
const RT_SCOPE_NOWHERE: u8 = 255;
pub(super) const FIXED_BYTES: usize = 12;

/// The metric of all our routes. It is larger than those that administrators, network managers and the kernel
/// give, so a route that somebody made for the same destination wins; and nobody else has it, so that putting a
/// route of ours never takes the place of another's (the kernel replaces by destination and metric).
pub(super) const METRIC: u32 = 0x6d61;

/// A route as the kernel tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) key: RouteKey,
    /// What it does; a gateway without interface if that is nothing that this project installs.
    pub(super) route: Route,
    pub(super) protocol: u8,
}

/// The type of service that a route is for, 0 for any, and its table: packets of IPv4 that are too long, or pass, have no table of
/// their own.
fn place(key: RouteKey) -> (u8, Table) {
    match key.table {
        Table::TooLong if key.to.ip.is_ipv4() => (TOO_LONG_SERVICE, Table::Main),
        Table::Passing if key.to.ip.is_ipv4() => (PROBE_SERVICE, Table::Main),
        table => (0, table),
    }
}

/// The table of a route of this family that is for this type of service, and stands in the table of this number.
fn table(family: u8, service: u8, number: u32) -> Option<Table> {
    let all = [Table::Main, Table::Segments, Table::TooLong, Table::Passing];
    let table = all.into_iter().find(|table| table.number() == number)?;
    match (family, service, table) {
        (AF_INET, TOO_LONG_SERVICE, Table::Main) => Some(Table::TooLong),
        (AF_INET, PROBE_SERVICE, Table::Main) => Some(Table::Passing),
        (AF_INET, 0, Table::TooLong | Table::Passing) => None,
        (_, 0, table) => Some(table),
        _ => None,
    }
}

/// The fixed part of a message that makes a route.
pub(super) fn fixed(key: RouteKey) -> [u8; FIXED_BYTES] {
    let mut fixed = fixed_of_family(family(key.to.ip));
    fixed[1] = key.to.bits;
    fixed[3] = place(key).0;
    fixed[5] = PROTOCOL;
    fixed[6] = RT_SCOPE_UNIVERSE;
    fixed[7] = RTN_UNICAST;
    fixed
}

/// The fixed part of a message that removes a route.
pub(super) fn fixed_to_remove(key: RouteKey) -> [u8; FIXED_BYTES] {
    let mut fixed = fixed(key);
    fixed[6] = RT_SCOPE_NOWHERE;
    fixed[7] = 0;
    fixed
}

/// The fixed part of a message that removes a route of ours that was told with this fixed part.
pub(super) fn fixed_to_remove_told(told: &[u8]) -> [u8; FIXED_BYTES] {
    let mut fixed = [0; FIXED_BYTES];
    // The family, the length of the network, and the type of service. A flag that says how its interface is, as others of
    // what was told, would have the kernel refuse the message.
    fixed[..4].copy_from_slice(&told[..4]);
    (fixed[5], fixed[6]) = (PROTOCOL, RT_SCOPE_NOWHERE);
    fixed
}

/// The fixed part of a message that asks for all our routes of a family. A kernel that does not know such
/// questions tells all routes.
pub(super) fn fixed_of_all(family: u8) -> [u8; FIXED_BYTES] {
    let mut fixed = fixed_of_family(family);
    fixed[5] = PROTOCOL;
    fixed
}

/// The fixed part of a message that asks for everybody's routes of a family.
pub(super) fn fixed_of_any(family: u8) -> [u8; FIXED_BYTES] {
    fixed_of_family(family)
}

fn fixed_of_family(family: u8) -> [u8; FIXED_BYTES] {
    let mut fixed = [0; FIXED_BYTES];
    fixed[0] = family;
    fixed
}

const fn family(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { AF_INET } else { AF_INET6 }
}

/// Puts the attributes by which a route is found. Its metric is not among them: with the protocol that is enough,
/// and finds also what an earlier release installed with another one.
pub(super) fn put_key(attributes: &mut Attributes<'_>, key: RouteKey) {
    attributes.put_ip(RTA_DST, key.to.ip);
    attributes.put_u32(RTA_TABLE, place(key).1.number());
}

/// Puts the attributes of a route.
pub(super) fn put(attributes: &mut Attributes<'_>, key: RouteKey, route: &Route) {
    put_key(attributes, key);
    attributes.put_u32(RTA_PRIORITY, METRIC);
    let mut obey = |interface, local| {
        attributes.put_u32(RTA_OIF, interface);
        attributes.put(RTA_ENCAP_TYPE, &tunnel::LOCAL.to_ne_bytes());
        attributes.nest(RTA_ENCAP, |inside| tunnel::put_local(inside, local));
    };
    match *route {
        Route::Strip { interface, packing } => obey(interface, Local::End { packing }),
        Route::StripAndLeave { interface, towards, strips } => {
            obey(interface, Local::EndX { towards, strips });
        }
        Route::DeliverV4 { interface, to } => obey(interface, Local::EndDx4 { to }),
        Route::DeliverV6 { interface } => obey(interface, Local::EndDt6),
        Route::Gateway { interface, gateway } => {
            attributes.put_u32(RTA_OIF, interface);
            if key.to.ip.is_ipv4() {
                let mut via = u16::from(AF_INET6).to_ne_bytes().to_vec();
                via.extend(gateway.octets());
                attributes.put(RTA_VIA, &via);
            } else {
                attributes.put_ip(RTA_GATEWAY, gateway.into());
            }
        }
        Route::Link { interface, source, mtu } => {
            attributes.put_u32(RTA_OIF, interface);
            if let Some(source) = source {
                attributes.put_ip(RTA_PREFSRC, source);
            }
            if mtu > 0 {
                put_mtu(attributes, mtu);
            }
        }
        Route::Group { group, source, mtu } => {
            attributes.put_u32(RTA_NH_ID, group.number());
            if let Some(source) = source {
                attributes.put_ip(RTA_PREFSRC, source);
            }
            if mtu > 0 {
                put_mtu(attributes, mtu);
            }
        }
    }
}

/// Puts the MTU that a route says.
fn put_mtu(attributes: &mut Attributes<'_>, mtu: u32) {
    attributes.nest(RTA_METRICS, |inside| inside.put_u32(RTAX_MTU, mtu));
}

/// The protocol number of a route that is told, and the number of its table.
pub(super) fn stands_in(body: &[u8]) -> Option<(u8, u32)> {
    let table = attributes(body.get(FIXED_BYTES..)?).find(|(kind, _)| *kind == RTA_TABLE);
    Some((*body.get(5)?, u32_at(table?.1, 0)?))
}

/// Reads a message about a route; `None` if it is in none of our tables, or garbled.
pub(super) fn read(body: &[u8]) -> Option<Told> {
    let mut read = Read::default();
    for (kind, value) in attributes(body.get(FIXED_BYTES..)?) {
        read.take(kind, value);
    }
    let (family, bits, service, protocol) = (body[0], body[1], body[3], body[5]);
    let table = table(family, service, read.table.unwrap_or_else(|| body[4].into()))?;
    let nowhere = match family {
        AF_INET => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        AF_INET6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => return None,
    };
    let key = RouteKey { table, to: IpPrefix { ip: read.to.unwrap_or(nowhere), bits } };
    let not_ours = Route::Gateway { interface: 0, gateway: Ipv6Addr::UNSPECIFIED };
    let route = read.route().filter(|_| body[7] == RTN_UNICAST).unwrap_or(not_ours);
    Some(Told { key, route, protocol })
}

/// The attributes of a route that was told.
#[derive(Debug, Default)]
struct Read {
    table: Option<u32>,
    to: Option<IpAddr>,
    metric: u32,
    interface: u32,
    gateway: Option<Ipv6Addr>,
    source: Option<IpAddr>,
    mtu: u32,
    group: Option<u32>,
    tunnel_kind: u16,
    local: Option<Local>,
}

impl Read {
    fn take(&mut self, kind: u16, value: &[u8]) {
        let number = u32_at(value, 0);
        match kind {
            RTA_TABLE => self.table = number,
            RTA_DST => self.to = ip(value),
            RTA_PRIORITY => self.metric = number.unwrap_or(0),
            RTA_OIF => self.interface = number.unwrap_or(0),
            RTA_GATEWAY => self.gateway = ipv6(value),
            RTA_VIA => self.gateway = value.get(2..).and_then(ipv6),
            RTA_PREFSRC => self.source = ip(value),
            RTA_METRICS => {
                let mtu = attributes(value).find(|(kind, _)| *kind == RTAX_MTU);
                self.mtu = mtu.and_then(|(_, value)| u32_at(value, 0)).unwrap_or(0);
            }
            RTA_NH_ID => self.group = number,
            RTA_ENCAP_TYPE => self.tunnel_kind = u16_at(value, 0).unwrap_or(0),
            RTA_ENCAP => self.local = tunnel::local(value),
            _ => {}
        }
    }

    /// What the route does, if that is something this project installs.
    fn route(&self) -> Option<Route> {
        let interface = self.interface;
        if self.metric != METRIC {
            return None;
        }
        if let Some(number) = self.group {
            let group = GroupId::of_number(number)?;
            return Some(Route::Group { group, source: self.source, mtu: self.mtu });
        }
        match (self.tunnel_kind, self.local, self.gateway) {
            (0, _, Some(gateway)) => Some(Route::Gateway { interface, gateway }),
            (0, _, None) if interface != 0 => {
                Some(Route::Link { interface, source: self.source, mtu: self.mtu })
            }
            (tunnel::LOCAL, Some(local), None) => Some(match local {
                Local::End { packing } => Route::Strip { interface, packing },
                Local::EndX { towards, strips } => Route::StripAndLeave { interface, towards, strips },
                Local::EndDx4 { to } => Route::DeliverV4 { interface, to },
                Local::EndDt6 => Route::DeliverV6 { interface },
            }),
            _ => None,
        }
    }
}
