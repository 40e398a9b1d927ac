//! What routes and nexthops do with segments (`lwtunnel`): they wrap packets, or obey a segment.

use std::net::{Ipv4Addr, Ipv6Addr};

use mapper_fib::Strips;
use mapper_fib::segments::{BLOCK_BITS, ELEMENT_BITS, Packing};

use crate::netlink::message::{Attributes, attributes, ipv6, u32_at};

/// The kind of tunnel that wraps packets (`LWTUNNEL_ENCAP_SEG6`).
pub(super) const SEGMENTS: u16 = 5;
/// The kind of tunnel that obeys a segment (`LWTUNNEL_ENCAP_SEG6_LOCAL`).
pub(super) const LOCAL: u16 = 7;

const SEG6_IPTUNNEL_SRH: u16 = 1;
/// The first segment stands in the outer header alone, and a routing header is there only if there are more.
const SEG6_IPTUN_MODE_ENCAP_RED: u32 = 3;
/// The routing type of segments (RFC 8754).
const SEGMENT_ROUTING: u8 = 4;
/// Bytes of the mode, and of a routing header without segments.
const HEAD_BYTES: usize = 4 + 8;

const SEG6_LOCAL_ACTION: u16 = 1;
const SEG6_LOCAL_TABLE: u16 = 3;
const SEG6_LOCAL_NH4: u16 = 4;
const SEG6_LOCAL_NH6: u16 = 5;
const SEG6_LOCAL_FLAVORS: u16 = 11;
const SEG6_LOCAL_ACTION_END: u32 = 1;
const SEG6_LOCAL_ACTION_END_X: u32 = 2;
const SEG6_LOCAL_ACTION_END_DX4: u32 = 6;
const SEG6_LOCAL_ACTION_END_DT6: u32 = 7;
const SEG6_LOCAL_FLV_OPERATION: u16 = 1;
const SEG6_LOCAL_FLV_LCBLOCK_BITS: u16 = 2;
const SEG6_LOCAL_FLV_LCNODE_FN_BITS: u16 = 3;
/// The bit of `SEG6_LOCAL_FLV_OP_NEXT_CSID`: several elements stand in one address.
const NEXT_CSID: u32 = 1 << 4;

/// The table of the machine's own addresses.
const RT_TABLE_LOCAL: u32 = 255;

/// How a segment is obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Local {
    /// The next one is looked up.
    End { packing: Packing },
    /// The next one is sent where this address leads.
    EndX { towards: Ipv6Addr, strips: Strips },
    /// An IPv4 packet is taken out, for this address.
    EndDx4 { to: Ipv4Addr },
    /// An IPv6 packet is taken out, for an address of this machine.
    EndDt6,
}

/// Puts what wraps packets for these segments.
pub(super) fn put_segments(attributes: &mut Attributes<'_>, segments: &[Ipv6Addr]) {
    let last = (segments.len() as u8).saturating_sub(1);
    let mut value = Vec::with_capacity(HEAD_BYTES + 16 * segments.len());
    value.extend(SEG6_IPTUN_MODE_ENCAP_RED.to_ne_bytes());
    // Next header, length in units of 8 bytes behind the first ones, type, segments left, last entry, flags, tag.
    value.extend([0, 2 * segments.len() as u8, SEGMENT_ROUTING, last, last, 0, 0, 0]);
    // The header has the last segment first.
    value.extend(segments.iter().rev().flat_map(Ipv6Addr::octets));
    attributes.put(SEG6_IPTUNNEL_SRH, &value);
}

/// The segments that packets are wrapped for; `None` if that is done in another way than here.
pub(super) fn segments(tunnel: &[u8]) -> Option<Vec<Ipv6Addr>> {
    let (_, value) = attributes(tunnel).find(|(kind, _)| *kind == SEG6_IPTUNNEL_SRH)?;
    if u32_at(value, 0)? != SEG6_IPTUN_MODE_ENCAP_RED {
        return None;
    }
    let (segments, rest) = value.get(HEAD_BYTES..)?.as_chunks::<16>();
    // Wrapping with more than segments, such as a signature, was not made by this program.
    let whole = rest.is_empty() && *value.get(8)? as usize + 1 == segments.len();
    whole.then(|| segments.iter().rev().map(|&segment| Ipv6Addr::from(segment)).collect())
}

/// Puts how a segment is obeyed.
pub(super) fn put_local(attributes: &mut Attributes<'_>, local: Local) {
    match local {
        Local::End { packing } => {
            attributes.put_u32(SEG6_LOCAL_ACTION, SEG6_LOCAL_ACTION_END);
            put_flavor(attributes, (packing == Packing::Compressed).then_some(ELEMENT_BITS));
        }
        Local::EndX { towards, strips } => {
            attributes.put_u32(SEG6_LOCAL_ACTION, SEG6_LOCAL_ACTION_END_X);
            attributes.put_ip(SEG6_LOCAL_NH6, towards.into());
            put_flavor(attributes, stripped_bits(strips));
        }
        Local::EndDx4 { to } => {
            attributes.put_u32(SEG6_LOCAL_ACTION, SEG6_LOCAL_ACTION_END_DX4);
            attributes.put_ip(SEG6_LOCAL_NH4, to.into());
        }
        Local::EndDt6 => {
            attributes.put_u32(SEG6_LOCAL_ACTION, SEG6_LOCAL_ACTION_END_DT6);
            attributes.put_u32(SEG6_LOCAL_TABLE, RT_TABLE_LOCAL);
        }
    }
}

/// How many bits are stripped of an address with several elements; `None` if it has one.
const fn stripped_bits(strips: Strips) -> Option<u8> {
    match strips {
        Strips::Segment => None,
        Strips::Element => Some(ELEMENT_BITS),
        Strips::TwoElements => Some(2 * ELEMENT_BITS),
    }
}

fn put_flavor(attributes: &mut Attributes<'_>, stripped_bits: Option<u8>) {
    if let Some(bits) = stripped_bits {
        attributes.nest(SEG6_LOCAL_FLAVORS, |inside| {
            inside.put_u32(SEG6_LOCAL_FLV_OPERATION, NEXT_CSID);
            inside.put(SEG6_LOCAL_FLV_LCBLOCK_BITS, &[BLOCK_BITS]);
            inside.put(SEG6_LOCAL_FLV_LCNODE_FN_BITS, &[bits]);
        });
    }
}

/// How a segment is obeyed; `None` if in none of the ways of this project.
pub(super) fn local(tunnel: &[u8]) -> Option<Local> {
    let (mut action, mut table, mut to, mut towards) = (0, 0, None, None);
    let mut strips = Some(Strips::Segment);
    for (kind, value) in attributes(tunnel) {
        match kind {
            SEG6_LOCAL_ACTION => action = u32_at(value, 0)?,
            SEG6_LOCAL_TABLE => table = u32_at(value, 0)?,
            SEG6_LOCAL_NH4 => to = <[u8; 4]>::try_from(value).ok().map(Ipv4Addr::from),
            SEG6_LOCAL_NH6 => towards = ipv6(value),
            SEG6_LOCAL_FLAVORS => strips = stripped(value),
            // The kernel tells the counters of each segment, which it counts only where it was asked to.
            _ => {}
        }
    }
    let strips = strips?;
    match action {
        SEG6_LOCAL_ACTION_END => match strips {
            Strips::Segment => Some(Local::End { packing: Packing::Full }),
            Strips::Element => Some(Local::End { packing: Packing::Compressed }),
            Strips::TwoElements => None,
        },
        SEG6_LOCAL_ACTION_END_X => towards.map(|towards| Local::EndX { towards, strips }),
        SEG6_LOCAL_ACTION_END_DX4 => to.map(|to| Local::EndDx4 { to }),
        SEG6_LOCAL_ACTION_END_DT6 if table == RT_TABLE_LOCAL => Some(Local::EndDt6),
        _ => None,
    }
}

/// How much is stripped where a segment has these flavors; `None` if they are others than those of elements.
fn stripped(flavors: &[u8]) -> Option<Strips> {
    let (mut operation, mut block, mut element) = (0, 0, 0);
    for (kind, value) in attributes(flavors) {
        match kind {
            SEG6_LOCAL_FLV_OPERATION => operation = u32_at(value, 0)?,
            SEG6_LOCAL_FLV_LCBLOCK_BITS => block = *value.first()?,
            SEG6_LOCAL_FLV_LCNODE_FN_BITS => element = *value.first()?,
            _ => {}
        }
    }
    match operation {
        0 => Some(Strips::Segment),
        NEXT_CSID if block == BLOCK_BITS => {
            [Strips::Element, Strips::TwoElements].into_iter().find(|&it| stripped_bits(it) == Some(element))
        }
        _ => None,
    }
}
