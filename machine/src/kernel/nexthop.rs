//! Nexthop objects and groups of them in messages of rtnetlink (`nhmsg`).
//!
//! A single nexthop is one of IPv6 unless its gateway is of IPv4: routes of IPv4 take both, while routes of IPv6
//! take no others. A gateway of IPv4 is in no network of the interface, so the kernel is told that it is on the cable.

use std::net::{IpAddr, Ipv6Addr};

use mapper_fib::object::PROTOCOL;
use mapper_fib::{GroupId, Nexthop, NexthopId};

use super::{AF_INET, AF_INET6, tunnel};
use crate::netlink::message::{Attributes, attributes, ip, u16_at, u32_at};

const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_OIF: u16 = 5;
const NHA_GATEWAY: u16 = 6;
const NHA_ENCAP_TYPE: u16 = 7;
const NHA_ENCAP: u16 = 8;
const FIXED_BYTES: usize = 8;
/// The flag of a gateway that is on the cable, whatever networks the interface has (`RTNH_F_ONLINK`).
const ONLINK: u32 = 4;
/// Bytes of a member of a group (`nexthop_grp`): its number, its weight less one, and what is kept free.
const MEMBER_BYTES: usize = 8;

/// A nexthop or a group as the kernel tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    /// A nexthop; one without interface if it is none that this project makes.
    Single(NexthopId, Nexthop),
    /// A group; one without members if they are none that this project makes.
    Group(GroupId, Vec<NexthopId>),
}

/// The fixed part of a message that makes a nexthop.
pub(super) const fn fixed_of_single(nexthop: &Nexthop) -> [u8; FIXED_BYTES] {
    let (family, flags) = match nexthop {
        Nexthop::Gateway { gateway: IpAddr::V4(_), .. } => (AF_INET, ONLINK),
        Nexthop::Gateway { .. } | Nexthop::Segments { .. } => (AF_INET6, 0),
    };
    let [a, b, c, d] = flags.to_ne_bytes();
    [family, 0, PROTOCOL, 0, a, b, c, d]
}

/// The fixed part of a message that makes a group.
pub(super) const fn fixed_of_group() -> [u8; FIXED_BYTES] {
    [0, 0, PROTOCOL, 0, 0, 0, 0, 0]
}

/// The fixed part of a message that takes away a nexthop or a group, or asks for all.
pub(super) const fn fixed_of_none() -> [u8; FIXED_BYTES] {
    [0; FIXED_BYTES]
}

/// Puts the attributes of a nexthop.
pub(super) fn put(attributes: &mut Attributes<'_>, id: NexthopId, nexthop: &Nexthop) {
    put_number(attributes, id.number());
    attributes.put_u32(NHA_OIF, nexthop.interface());
    match nexthop {
        Nexthop::Gateway { gateway, .. } => attributes.put_ip(NHA_GATEWAY, *gateway),
        Nexthop::Segments { segments, .. } => {
            attributes.put(NHA_ENCAP_TYPE, &tunnel::SEGMENTS.to_ne_bytes());
            attributes.nest(NHA_ENCAP, |inside| tunnel::put_segments(inside, segments));
        }
    }
}

/// Puts the attributes of a group.
pub(super) fn put_group(attributes: &mut Attributes<'_>, id: GroupId, members: &[NexthopId]) {
    put_number(attributes, id.number());
    let mut value = Vec::with_capacity(members.len() * MEMBER_BYTES);
    for member in members {
        value.extend(member.number().to_ne_bytes());
        value.extend([0; MEMBER_BYTES - 4]);
    }
    attributes.put(NHA_GROUP, &value);
}

/// Puts the attribute by which a nexthop or a group is found.
pub(super) fn put_number(attributes: &mut Attributes<'_>, number: u32) {
    attributes.put_u32(NHA_ID, number);
}

/// Reads a message about a nexthop or a group; `None` if it is not one of ours, or garbled.
pub(super) fn read(body: &[u8]) -> Option<Told> {
    if *body.get(2)? != PROTOCOL {
        return None;
    }
    let (mut number, mut interface, mut gateway, mut members) = (0, 0, None, Vec::new());
    let (mut tunnel_kind, mut segments) = (0, None);
    for (kind, value) in attributes(body.get(FIXED_BYTES..)?) {
        match kind {
            NHA_ID => number = u32_at(value, 0)?,
            NHA_OIF => interface = u32_at(value, 0)?,
            NHA_GATEWAY => gateway = ip(value),
            NHA_ENCAP_TYPE => tunnel_kind = u16_at(value, 0)?,
            NHA_ENCAP => segments = tunnel::segments(value),
            NHA_GROUP => members = read_members(value),
            _ => {}
        }
    }
    if let Some(id) = GroupId::of_number(number) {
        return Some(Told::Group(id, members));
    }
    let id = NexthopId::of_number(number)?;
    let nexthop = match (gateway, segments) {
        (None, Some(segments)) if tunnel_kind == tunnel::SEGMENTS => {
            Nexthop::Segments { interface, segments }
        }
        (Some(gateway), _) if tunnel_kind == 0 => Nexthop::Gateway { interface, gateway },
        _ => Nexthop::Gateway { interface: 0, gateway: Ipv6Addr::UNSPECIFIED.into() },
    };
    Some(Told::Single(id, nexthop))
}

/// The members of a group; none if one of them is not ours, or counts more than the others.
fn read_members(value: &[u8]) -> Vec<NexthopId> {
    let (members, _) = value.as_chunks::<MEMBER_BYTES>();
    let member = |bytes: &[u8; MEMBER_BYTES]| {
        NexthopId::of_number(u32_at(bytes, 0)?).filter(|_| bytes[4..6] == [0; 2])
    };
    members.iter().map(member).collect::<Option<_>>().unwrap_or_default()
}
