//! The packet that carries the datagram of a probe.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::object::PROBE_SERVICE;

use super::{DATAGRAM_BYTES, Datagram, HOP_LIMIT, UDP_PORT};

const IPV4_HEADER_BYTES: usize = 20;
pub(super) const IPV6_HEADER_BYTES: usize = 40;
pub(super) const UDP_HEADER_BYTES: usize = 8;
const NEXT_HEADER_IPV4: u8 = 4;
const NEXT_HEADER_IPV6: u8 = 41;
const NEXT_HEADER_ROUTING: u8 = 43;
pub(super) const NEXT_HEADER_UDP: u8 = 17;
/// The type of a segment routing header (RFC 8754).
const ROUTING_TYPE_SEGMENTS: u8 = 4;

/// Where a datagram comes from, and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramEnds {
    /// Addresses of IPv4.
    V4 {
        /// That of the sender.
        source: Ipv4Addr,
        /// That of the host that is to get it.
        destination: Ipv4Addr,
    },
    /// Addresses of IPv6.
    V6 {
        /// That of the sender.
        source: Ipv6Addr,
        /// That of the host that is to get it.
        destination: Ipv6Addr,
    },
}

impl DatagramEnds {
    const fn header_bytes(self) -> usize {
        match self {
            Self::V4 { .. } => IPV4_HEADER_BYTES,
            Self::V6 { .. } => IPV6_HEADER_BYTES,
        }
    }

    const fn next_header(self) -> u8 {
        match self {
            Self::V4 { .. } => NEXT_HEADER_IPV4,
            Self::V6 { .. } => NEXT_HEADER_IPV6,
        }
    }

    /// The bytes of both addresses.
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::V4 { source, destination } => [source.octets(), destination.octets()].concat(),
            Self::V6 { source, destination } => [source.octets(), destination.octets()].concat(),
        }
    }
}

/// The packet that carries a datagram along a route of segments, from its outer IPv6 header on, which has the address
/// `outer_source`; without segments it has no outer header.
///
/// `inner_bytes` is how long the packet inside is to be, with its headers; it is at least as long as the
/// datagram needs. `hop_limit` is that of the packet inside.
pub fn packet(
    segments: &[Ipv6Addr],
    outer_source: Ipv6Addr,
    ends: DatagramEnds,
    datagram: Datagram,
    inner_bytes: usize,
    hop_limit: u8,
) -> Vec<u8> {
    let least = ends.header_bytes() + UDP_HEADER_BYTES + DATAGRAM_BYTES;
    let inner_bytes = inner_bytes.clamp(least, usize::from(u16::MAX));
    let mut packet = Vec::with_capacity(inner_bytes + IPV6_HEADER_BYTES + 8 + 16 * segments.len());
    outer_headers(&mut packet, segments, outer_source, (inner_bytes, ends.next_header()));
    let udp_bytes = inner_bytes - ends.header_bytes();
    match ends {
        DatagramEnds::V4 { source, destination } => {
            ipv4_header(&mut packet, inner_bytes, hop_limit, (source, destination));
        }
        DatagramEnds::V6 { source, destination } => {
            ipv6_header(&mut packet, udp_bytes, (NEXT_HEADER_UDP, hop_limit), (source, destination));
        }
    }
    let udp_at = packet.len();
    packet.extend(UDP_PORT.to_be_bytes());
    packet.extend(UDP_PORT.to_be_bytes());
    packet.extend((udp_bytes as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(datagram.to_bytes());
    packet.resize(udp_at + udp_bytes, 0);
    let checksum = udp_checksum(ends, &packet[udp_at..]);
    packet[udp_at + 6..udp_at + 8].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// The outer header, and behind it a routing header if there are several segments: the first stands in the
/// destination address alone, as in `encap.red`.
fn outer_headers(
    packet: &mut Vec<u8>,
    segments: &[Ipv6Addr],
    source: Ipv6Addr,
    (inner_bytes, inner): (usize, u8),
) {
    let Some((&first, rest)) = segments.split_first() else { return };
    if rest.is_empty() {
        return ipv6_header(packet, inner_bytes, (inner, HOP_LIMIT), (source, first));
    }
    let header_bytes = 8 + 16 * rest.len();
    ipv6_header(packet, header_bytes + inner_bytes, (NEXT_HEADER_ROUTING, HOP_LIMIT), (source, first));
    packet.push(inner);
    packet.push((2 * rest.len()) as u8);
    packet.push(ROUTING_TYPE_SEGMENTS);
    // Segments left, then the index of the last entry: entries stand in opposite order.
    packet.push(rest.len() as u8);
    packet.push((rest.len() - 1) as u8);
    packet.extend([0; 3]);
    rest.iter().rev().for_each(|segment| packet.extend(segment.octets()));
}

fn ipv6_header(
    packet: &mut Vec<u8>,
    payload_bytes: usize,
    (next, hop_limit): (u8, u8),
    (source, destination): (Ipv6Addr, Ipv6Addr),
) {
    packet.extend([0x60, 0, 0, 0]);
    packet.extend((payload_bytes as u16).to_be_bytes());
    packet.extend([next, hop_limit]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
}

/// The header of a packet of IPv4 that is not to be cut into pieces (RFC 791).
fn ipv4_header(
    packet: &mut Vec<u8>,
    packet_bytes: usize,
    time_to_live: u8,
    (source, destination): (Ipv4Addr, Ipv4Addr),
) {
    const DO_NOT_FRAGMENT: [u8; 2] = [0x40, 0];
    let at = packet.len();
    packet.extend([0x45, PROBE_SERVICE]);
    packet.extend((packet_bytes as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(DO_NOT_FRAGMENT);
    packet.extend([time_to_live, NEXT_HEADER_UDP, 0, 0]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    let checksum = !folded(words(&packet[at..]));
    packet[at + 10..at + 12].copy_from_slice(&checksum.to_be_bytes());
}

/// The checksum of a UDP datagram over IPv6 (RFC 8200, section 8.1) or IPv4 (RFC 768), whose own field is zero.
fn udp_checksum(ends: DatagramEnds, udp: &[u8]) -> u16 {
    let of_header = udp.len() as u64 + u64::from(NEXT_HEADER_UDP);
    match !folded(of_header + words(&ends.bytes()) + words(udp)) {
        // Zero would mean that there is no checksum.
        0 => 0xffff,
        checksum => checksum,
    }
}

/// The sum of the words of 16 bits, the last of which may lack a byte.
fn words(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum()
}

/// A sum of words as one word, whose carry comes in at the other end.
const fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::segments::{Element, Packing, segments};

    const OWN: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    const ENDS: DatagramEnds =
        DatagramEnds::V6 { source: OWN, destination: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2) };
    const ENDS_V4: DatagramEnds =
        DatagramEnds::V4 { source: Ipv4Addr::new(10, 1, 0, 1), destination: Ipv4Addr::new(10, 1, 0, 2) };

    proptest! {
        #[test]
        fn packets_are_as_long_as_their_headers_say(ports in 1..9u8, inner_bytes in 0..9000usize) {
            let route: Vec<_> = (1..=ports).map(Element::Port).chain([Element::DeliverV6]).collect();
            for (packing, ends) in [
                (Packing::Compressed, ENDS), (Packing::Full, ENDS), (Packing::Compressed, ENDS_V4), (Packing::Full, ENDS_V4),
            ] {
                let segments = segments(&route, packing).unwrap();
                let question = Datagram::Question { nonce: 7, is_last: false, asked: None };
                let packet = packet(&segments, OWN, ends, question, inner_bytes, 1);
                let outer = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
                prop_assert_eq!(packet.len(), 40 + outer);
                let (next, inner_at) = match packet[6] {
                    NEXT_HEADER_ROUTING => (packet[40], 40 + 8 + 8 * usize::from(packet[41])),
                    next => (next, 40),
                };
                prop_assert_eq!(next, ends.next_header());
                let inner = &packet[inner_at..];
                let length = |at: usize| usize::from(u16::from_be_bytes([inner[at], inner[at + 1]]));
                let said = match ends {
                    DatagramEnds::V4 { .. } => {
                        // The sum over a header with its checksum is all ones.
                        prop_assert_eq!(folded(words(&inner[..20])), 0xffff);
                        length(2)
                    }
                    DatagramEnds::V6 { .. } => 40 + length(4),
                };
                prop_assert_eq!(inner.len(), said);
                prop_assert_eq!(said, inner_bytes.max(ends.header_bytes() + 40));
                // The sum over a datagram with its checksum is zero, so its complement is all ones.
                prop_assert_eq!(udp_checksum(ends, &inner[ends.header_bytes()..]), 0xffff);
            }
        }
    }
}
