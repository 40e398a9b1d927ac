//! Neighbours in messages of rtnetlink (`ndmsg`): the link address that belongs to an address on a cable.

use std::net::IpAddr;

use mapper_fib::object::PROTOCOL;
use mapper_proto::Mac;

use super::{AF_INET, AF_INET6};
use crate::netlink::message::{Attributes, attributes, ip, u16_at, u32_at};

const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NDA_PROTOCOL: u16 = 12;
/// The state of an entry that the kernel never asks for again and never forgets.
const NUD_PERMANENT: u16 = 0x80;
const FIXED_BYTES: usize = 12;

/// A neighbour as the kernel tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Neighbour {
    pub(super) interface: u32,
    pub(super) ip: IpAddr,
    /// Its link address; zero if the entry is not one that stays.
    pub(super) mac: Mac,
    pub(super) protocol: u8,
}

/// The fixed part of a message about the neighbour with this address on this interface.
pub(super) fn fixed(interface: u32, ip: IpAddr) -> [u8; FIXED_BYTES] {
    let mut fixed = [0; FIXED_BYTES];
    fixed[0] = if ip.is_ipv4() { AF_INET } else { AF_INET6 };
    fixed[4..8].copy_from_slice(&interface.to_ne_bytes());
    fixed[8..10].copy_from_slice(&NUD_PERMANENT.to_ne_bytes());
    fixed
}

/// The fixed part of a message that asks for all neighbours, of both versions of IP.
pub(super) const fn fixed_of_all() -> [u8; FIXED_BYTES] {
    [0; FIXED_BYTES]
}

/// Puts the attributes of an entry that is made.
pub(super) fn put(attributes: &mut Attributes<'_>, ip: IpAddr, mac: Mac) {
    put_key(attributes, ip);
    attributes.put(NDA_LLADDR, &mac.0);
    attributes.put(NDA_PROTOCOL, &[PROTOCOL]);
}

/// Puts the attributes by which an entry is found.
pub(super) fn put_key(attributes: &mut Attributes<'_>, ip: IpAddr) {
    attributes.put_ip(NDA_DST, ip);
}

/// Reads a message about a neighbour; `None` if it is of another family, or garbled.
pub(super) fn read(body: &[u8]) -> Option<Neighbour> {
    if ![AF_INET, AF_INET6].contains(body.first()?) {
        return None;
    }
    let interface = u32_at(body, 4)?;
    let permanent = u16_at(body, 8)? & NUD_PERMANENT != 0;
    let (mut address, mut mac, mut protocol) = (None, Mac::default(), 0);
    for (kind, value) in attributes(body.get(FIXED_BYTES..)?) {
        match kind {
            NDA_DST => address = ip(value),
            NDA_LLADDR if permanent => mac = value.try_into().map(Mac).unwrap_or_default(),
            NDA_PROTOCOL => protocol = value.first().copied().unwrap_or(0),
            _ => {}
        }
    }
    Some(Neighbour { interface, ip: address?, mac, protocol })
}
