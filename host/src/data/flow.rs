//! Which flow an Ethernet frame belongs to.
//!
//! Frames of one flow must stay in order, so they all take one route; different flows may take different
//! routes. A flow is identified by a hash over what all its frames have alike: addresses, protocol and
//! ports of TCP, UDP, DCCP, SCTP and UDP-Lite over IPv4 and IPv6. Fragments other than the first
//! have no ports, so of all fragments only the IP addresses are hashed. Of what is not IP the MACs and
//! the EtherType are hashed.

use super::ethernet::next_header::{
    AUTHENTICATION, DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, MOBILITY, ROUTING,
};
use super::ethernet::{self, IPV4, IPV6, MAX_VLAN_TAGS, VLAN_TAGS, u16_at};

/// The twelve bits of a tag that name a VLAN. The others may differ within a flow.
const VLAN_ID_MASK: u16 = 0x0fff;

/// Protocols whose header begins with source and destination port.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// The most IPv6 extension headers that are looked behind: more than any honest frame has. RFC 8504 lets
/// receivers limit them.
const MAX_EXTENSION_HEADERS: usize = 8;

/// A hash that is the same for all frames of a flow. All its bits are mixed, the high ones best.
pub(super) fn hash(frame: &[u8]) -> u64 {
    let mut rest = frame.get(ethernet::ETHERTYPE_AT..).unwrap_or_default();
    let mut mix = Mix(0);
    for _ in 0..MAX_VLAN_TAGS {
        match (u16_at(rest, 0), u16_at(rest, 2)) {
            (Some(kind), Some(tag)) if VLAN_TAGS.contains(&kind) => {
                mix.add(u64::from(tag & VLAN_ID_MASK));
                rest = &rest[4..];
            }
            _ => break,
        }
    }
    let kind = u16_at(rest, 0);
    let packet = rest.get(2..).unwrap_or_default();
    let known = match kind {
        Some(IPV4) => ipv4(packet, mix),
        Some(IPV6) => ipv6(packet, mix),
        _ => None,
    };
    let by_addresses = || {
        frame.chunks(4).take(3).for_each(|chunk| mix.add_bytes(chunk));
        mix.add(u64::from(kind.unwrap_or_default()));
        mix
    };
    known.unwrap_or_else(by_addresses).finish()
}

fn ipv4(packet: &[u8], mut mix: Mix) -> Option<Mix> {
    let first = *packet.first()?;
    let header_bytes = usize::from(first & 0xf) * 4;
    if first >> 4 != 4 || header_bytes < 20 {
        return None;
    }
    mix.add_bytes(packet.get(12..20)?);
    let more_or_offset = u16_at(packet, 6)? & 0x3fff;
    if more_or_offset == 0 {
        mix.add_transport(*packet.get(9)?, packet.get(header_bytes..).unwrap_or_default());
    }
    Some(mix)
}

fn ipv6(packet: &[u8], mut mix: Mix) -> Option<Mix> {
    if packet.first()? >> 4 != 6 {
        return None;
    }
    packet.get(8..40)?.chunks(8).for_each(|chunk| mix.add_bytes(chunk));
    let (mut next, mut rest) = (*packet.get(6)?, packet.get(40..)?);
    for _ in 0..MAX_EXTENSION_HEADERS {
        let bytes = match (next, rest) {
            (FRAGMENT, _) => return Some(mix),
            (HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY, [_, length, ..]) => {
                8 + 8 * usize::from(*length)
            }
            (AUTHENTICATION, [_, length, ..]) => 8 + 4 * usize::from(*length),
            _ => break,
        };
        (next, rest) = (rest[0], rest.get(bytes..).unwrap_or_default());
    }
    mix.add_transport(next, rest);
    Some(mix)
}

/// A hash over words. Each word is mixed in by the finalizer of SplitMix64, so it changes all bits.
#[derive(Clone, Copy)]
struct Mix(u64);

impl Mix {
    fn add(&mut self, word: u64) {
        let mut x = (self.0 ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = x ^ (x >> 31);
    }

    /// Mixes up to eight bytes into the hash.
    fn add_bytes(&mut self, bytes: &[u8]) {
        self.add(bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
    }

    fn add_transport(&mut self, protocol: u8, header: &[u8]) {
        let ports = header.first_chunk().filter(|_| WITH_PORTS.contains(&protocol));
        let ports = ports.map_or(0, |&ports: &[u8; 4]| u32::from_be_bytes(ports));
        self.add(u64::from(protocol) << 32 | u64::from(ports));
    }

    fn finish(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

    fn frame(parts: &[&[u8]]) -> Vec<u8> {
        [&[&MACS[..]][..], parts].concat().concat()
    }

    fn v4(protocol: u8, fragment: u16, rest: &[u8]) -> Vec<u8> {
        let [high, low] = fragment.to_be_bytes();
        let mut header =
            [0x45, 0, 0, 0, 0, 0, high, low, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2].to_vec();
        header.extend(rest);
        header
    }

    fn v6(next: u8, rest: &[u8]) -> Vec<u8> {
        let mut header = vec![0x60, 0, 0, 0, 0, 0, next, 64];
        header.extend([0xfd; 32]);
        header.extend(rest);
        header
    }

    fn hash_v4(packet: &[u8]) -> u64 {
        hash(&frame(&[&IPV4.to_be_bytes(), packet]))
    }

    fn hash_v6(packet: &[u8]) -> u64 {
        hash(&frame(&[&IPV6.to_be_bytes(), packet]))
    }

    const PORTS: [u8; 8] = [0, 80, 0x80, 1, 9, 9, 9, 9];
    const OTHER_PORTS: [u8; 8] = [0, 80, 0x80, 2, 9, 9, 9, 9];

    #[test]
    fn ports_and_protocol_tell_flows_apart_and_what_follows_does_not() {
        let mut later = PORTS;
        later[4..].fill(7);
        assert_eq!(hash_v4(&v4(6, 0, &PORTS)), hash_v4(&v4(6, 0, &later)));
        assert_ne!(hash_v4(&v4(6, 0, &PORTS)), hash_v4(&v4(6, 0, &OTHER_PORTS)));
        assert_ne!(hash_v4(&v4(6, 0, &PORTS)), hash_v4(&v4(17, 0, &PORTS)));
        assert_eq!(hash_v4(&v4(1, 0, &PORTS)), hash_v4(&v4(1, 0, &OTHER_PORTS)), "ICMP has no ports");
        assert_eq!(hash_v6(&v6(6, &PORTS)), hash_v6(&v6(6, &later)));
        assert_ne!(hash_v6(&v6(6, &PORTS)), hash_v6(&v6(6, &OTHER_PORTS)));
    }

    #[test]
    fn fragments_go_by_their_addresses_alone() {
        let first = hash_v4(&v4(17, 0x2000, &PORTS));
        assert_eq!(first, hash_v4(&v4(17, 0x00b9, &OTHER_PORTS)));
        assert_ne!(hash_v4(&v4(17, 0, &PORTS)), hash_v4(&v4(17, 0, &OTHER_PORTS)));
        let fragment = |rest: &[u8]| v6(FRAGMENT, &[&[17, 0, 0, 1, 0, 0, 0, 1], rest].concat());
        assert_eq!(hash_v6(&fragment(&PORTS)), hash_v6(&fragment(&OTHER_PORTS)));
        // The frames of one flow may differ in the bit `don't fragment`, so it does not count.
        assert_eq!(hash_v4(&v4(17, 0x4000, &PORTS)), hash_v4(&v4(17, 0, &PORTS)));
    }

    #[test]
    fn extension_headers_are_stepped_over() {
        let options = |next: u8, rest: &[u8]| [&[next, 1][..], &[0; 14], rest].concat();
        let plain = hash_v6(&v6(6, &PORTS));
        assert_eq!(plain, hash_v6(&v6(HOP_BY_HOP, &options(6, &PORTS))));
        let two = options(DESTINATION_OPTIONS, &options(6, &PORTS));
        assert_eq!(plain, hash_v6(&v6(ROUTING, &two)));
        assert_ne!(plain, hash_v6(&v6(HOP_BY_HOP, &options(6, &OTHER_PORTS))));
        let authenticated = [&[6, 4][..], &[0; 22], &PORTS].concat();
        assert_eq!(plain, hash_v6(&v6(AUTHENTICATION, &authenticated)));
    }

    #[test]
    fn a_vlan_tag_is_looked_behind_and_its_priority_does_not_matter() {
        let tagged = |tag: u16, rest: &[u8]| {
            hash(&frame(&[
                &0x8100u16.to_be_bytes(),
                &tag.to_be_bytes(),
                &IPV4.to_be_bytes(),
                &v4(6, 0, rest),
            ]))
        };
        assert_eq!(tagged(0x2005, &PORTS), tagged(0xe005, &PORTS));
        assert_ne!(tagged(5, &PORTS), tagged(6, &PORTS));
        assert_ne!(tagged(5, &PORTS), tagged(5, &OTHER_PORTS));
    }

    #[test]
    fn what_is_not_ip_goes_by_addresses_and_ethertype() {
        let arp = |rest: &[u8]| hash(&frame(&[&0x0806u16.to_be_bytes(), rest]));
        assert_eq!(arp(&[1, 2, 3]), arp(&[4, 5, 6]));
        assert_ne!(arp(&[1]), hash(&frame(&[&0x88ccu16.to_be_bytes(), &[1]])));
        let mut other = frame(&[&0x0806u16.to_be_bytes(), &[1, 2, 3]]);
        other[11] = 9;
        assert_ne!(hash(&other), arp(&[1, 2, 3]));
        let short = |rest: &[u8]| hash(&frame(&[&IPV4.to_be_bytes(), rest]));
        assert_eq!(
            short(&[0x45, 0]),
            short(&[0x45, 1]),
            "a packet that is cut off goes by its MAC addresses"
        );
    }

    #[test]
    fn ports_spread_over_the_high_bits() {
        let mut counts = [0; 64];
        for port in 0..6400u16 {
            let [high, low] = port.to_be_bytes();
            counts[(hash_v4(&v4(6, 0, &[high, low, 0, 80])) >> 58) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (50..=160).contains(count)), "{counts:?}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_trouble(
            kind in prop_oneof![Just(IPV4), Just(IPV6), Just(0x8100)],
            first in any::<u8>(),
            rest in proptest::collection::vec(any::<u8>(), 0..120),
        ) {
            hash(&frame(&[&kind.to_be_bytes(), &[first], &rest]));
            hash(&rest);
        }
    }
}
