//! Decides whose frames are delivered to the user: those of the hosts that the map lists.
//!
//! Nothing proves the source of a user's frame, with keys or without: whoever is on a cable can write a
//! host's address into it. But a source that is in no map belongs to no host. And an ARP or neighbour
//! message that gives another link address than the frame's source would have others send to a third host.

use std::time::Duration;

use mapper_proto::map::{Map, host_type};
use mapper_proto::{Instant, Mac};

use super::ethernet::next_header::{
    AUTHENTICATION, DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, ICMPV6, ROUTING,
};
use super::ethernet::{self, ARP, ETHERTYPE_AT, IPV6, MAX_VLAN_TAGS, VLAN_TAG_BYTES, VLAN_TAGS};

/// How long after a new map frames from hosts of the map before are still delivered. Such a host may not have
/// heard yet that it is in the map no more, or may be missing for a moment only.
const OVERLAP: Duration = Duration::from_secs(1);

const IPV6_HEADER_BYTES: usize = 40;
/// The bits of a fragment header that hold the fragment's offset in its packet.
const FRAGMENT_OFFSET: u16 = 0xfff8;
/// The ICMPv6 types that are checked: router solicitation and advertisement, neighbour solicitation and
/// advertisement, and redirect. An honest router may redirect to a third host and give that host's link
/// address. Nobody could tell this from a forged redirect, so it is dropped as well: where a redirect gives
/// no link address, hosts ask for it themselves.
pub(super) const NEIGHBOUR_DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;
const SOURCE_LINK_ADDRESS: u8 = 1;
const TARGET_LINK_ADDRESS: u8 = 2;

/// The hosts whose frames are delivered.
#[derive(Debug)]
pub(super) struct Sources {
    /// Hosts of the newest map, by address.
    newest: Vec<Mac>,
    /// Hosts of the map before, and until when their frames are delivered.
    before: (Vec<Mac>, Instant),
}

impl Sources {
    /// No hosts at all, as long as there is no map.
    pub(super) const fn none() -> Self {
        Self { newest: Vec::new(), before: (Vec::new(), Instant::ZERO) }
    }

    /// Takes in a new map. Frames from hosts of the map before are delivered for [`OVERLAP`] more.
    pub(super) fn take_map(&mut self, now: Instant, map: &Map) {
        let real = map.hosts.iter().filter(|host| host.host_type != host_type::PHANTOM);
        let mut hosts: Vec<_> = real.map(|host| host.mac).collect();
        hosts.sort_unstable();
        self.before = (std::mem::replace(&mut self.newest, hosts), now + OVERLAP);
    }

    /// Whether frames from this host are delivered now.
    pub(super) fn knows(&self, now: Instant, mac: Mac) -> bool {
        let (before, until) = &self.before;
        self.newest.binary_search(&mac).is_ok() || (now < *until && before.binary_search(&mac).is_ok())
    }
}

/// Whether a frame tells others to send to another address than the one that it comes from. That is an ARP
/// message with another sender, a message of IPv6 neighbour discovery with another link address, or a frame
/// with so many VLAN tags that nobody can say what is behind them.
pub(super) fn points_elsewhere(frame: &[u8], from: Mac) -> bool {
    let mut rest = frame.get(ETHERTYPE_AT..).unwrap_or_default();
    let mut tags = 0;
    while ethernet::u16_at(rest, 0).is_some_and(|kind| VLAN_TAGS.contains(&kind)) {
        if tags == MAX_VLAN_TAGS {
            return true;
        }
        tags += 1;
        rest = rest.get(VLAN_TAG_BYTES..).unwrap_or_default();
    }
    let packet = rest.get(2..).unwrap_or_default();
    match ethernet::u16_at(rest, 0) {
        // The hardware type is not checked: Linux accepts more than one, that of Ethernet and that of IEEE
        // 802.
        Some(ARP) => packet.get(8..14).is_some_and(|sender| *sender != from.0),
        Some(IPV6) => neighbour_elsewhere(packet, from),
        _ => false,
    }
}

/// Whether an IPv6 packet is a message of neighbour discovery (RFC 4861) that gives another link address than
/// `from`. Hosts take such a message behind extension headers as well, so it is looked for there.
fn neighbour_elsewhere(packet: &[u8], from: Mac) -> bool {
    let Some(message) = icmpv6_of(packet) else { return false };
    let Some(kind) = message.first().filter(|kind| NEIGHBOUR_DISCOVERY.contains(kind)) else { return false };
    // Options begin behind the message's fixed part, whose length depends on the type.
    let fixed_bytes = match kind {
        133 => 8,
        134 => 16,
        137 => 40,
        _ => 24,
    };
    let mut options = message.get(fixed_bytes..).unwrap_or_default();
    while let [kind, units, ..] = *options {
        let bytes = 8 * usize::from(units);
        let Some(option) = options.get(..bytes).filter(|option| !option.is_empty()) else { return false };
        if matches!(kind, SOURCE_LINK_ADDRESS | TARGET_LINK_ADDRESS) && option.get(2..8) != Some(&from.0) {
            return true;
        }
        options = &options[bytes..];
    }
    false
}

/// The ICMPv6 message in an IPv6 packet, behind any extension headers (RFC 8200). `None` if the packet has
/// none, or is a fragment other than the first.
fn icmpv6_of(packet: &[u8]) -> Option<&[u8]> {
    let mut next = *packet.get(6)?;
    let mut rest = packet.get(IPV6_HEADER_BYTES..)?;
    // Each header takes at least eight bytes, so the packet's length bounds the number of rounds.
    while next != ICMPV6 {
        let units = usize::from(*rest.get(1)?);
        let bytes = match next {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => 8 + 8 * units,
            AUTHENTICATION => 8 + 4 * units,
            FRAGMENT if ethernet::u16_at(rest, 2)? & FRAGMENT_OFFSET == 0 => 8,
            _ => return None,
        };
        next = *rest.first()?;
        rest = rest.get(bytes..)?;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use mapper_proto::map::Host;

    use super::*;

    const FROM: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const OTHER: Mac = Mac([2, 0, 0, 0, 0, 9]);

    fn map(hosts: &[(Mac, u8)]) -> Map {
        let host = |&(mac, host_type)| Host { mac, level: 1, host_type, at: None };
        Map { hosts: hosts.iter().map(host).collect(), ..Map::default() }
    }

    fn frame(tags: &[u8], kind: u16, packet: &[u8]) -> Vec<u8> {
        [&[0xff; 6][..], &FROM.0, tags, &kind.to_be_bytes(), packet].concat()
    }

    fn arp(sender: Mac) -> Vec<u8> {
        [&[0, 1, 8, 0, 6, 4, 0, 2][..], &sender.0, &[10, 0, 0, 1], &[0; 6], &[10, 0, 0, 2]].concat()
    }

    fn neighbour(kind: u8, fixed_bytes: usize, options: &[&[u8]]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, ICMPV6, 255];
        packet.extend([0xfd; 32]);
        packet.push(kind);
        packet.resize(40 + fixed_bytes, 0);
        packet.extend(options.concat());
        packet
    }

    fn link_address(option: u8, mac: Mac) -> Vec<u8> {
        [&[option, 1][..], &mac.0].concat()
    }

    #[test]
    fn hosts_of_the_newest_map_are_known_and_those_of_the_map_before_for_a_second() {
        let at_ms = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut sources = Sources::none();
        assert!(!sources.knows(at_ms(0), FROM));
        sources.take_map(at_ms(0), &map(&[(FROM, host_type::ETHERNET), (OTHER, host_type::PHANTOM)]));
        assert!(sources.knows(at_ms(60_000), FROM));
        assert!(!sources.knows(at_ms(1), OTHER), "a phantom sends no frames");
        sources.take_map(at_ms(5_000), &map(&[(OTHER, host_type::ETHERNET)]));
        assert!(sources.knows(at_ms(5_999), FROM) && sources.knows(at_ms(5_000), OTHER));
        assert!(!sources.knows(at_ms(6_000), FROM));
    }

    #[test]
    fn arp_must_give_the_address_that_the_frame_comes_from() {
        assert!(!points_elsewhere(&frame(&[], ARP, &arp(FROM)), FROM));
        assert!(points_elsewhere(&frame(&[], ARP, &arp(OTHER)), FROM));
        let tag = [0x81, 0, 0, 5];
        assert!(points_elsewhere(&frame(&tag, ARP, &arp(OTHER)), FROM), "behind a VLAN tag");
        assert!(points_elsewhere(&frame(&[tag, tag].concat(), ARP, &arp(OTHER)), FROM), "behind two");
        assert!(
            !points_elsewhere(&frame(&[tag, tag].concat(), ARP, &arp(FROM)), FROM),
            "the sender's own address behind two tags"
        );
        assert!(!points_elsewhere(&frame(&[], 0x0800, &arp(OTHER)), FROM), "no ARP");
        assert!(
            !points_elsewhere(&frame(&[], ARP, &[0; 9]), FROM),
            "nobody understands an ARP message that is cut off"
        );
    }

    #[test]
    fn nothing_hides_behind_more_tags_than_are_looked_through() {
        // Linux takes off any number of tags of VLAN 0.
        for kind in VLAN_TAGS {
            let tag = [kind.to_be_bytes(), [0, 0]].concat();
            for tags in [3, 4, 100] {
                let tags = tag.repeat(tags);
                assert!(points_elsewhere(&frame(&tags, ARP, &arp(OTHER)), FROM), "{kind:#x} {tags:?}");
                let forged = neighbour(136, 24, &[&link_address(TARGET_LINK_ADDRESS, OTHER)]);
                assert!(points_elsewhere(&frame(&tags, IPV6, &forged), FROM), "{kind:#x} {tags:?}");
                assert!(
                    points_elsewhere(&frame(&tags, 0x0800, &[0; 20]), FROM),
                    "nobody can say what is behind so many tags"
                );
            }
            assert!(!points_elsewhere(&frame(&tag.repeat(2), 0x0800, &[0; 20]), FROM), "two are in use");
        }
    }

    #[test]
    fn neighbour_discovery_must_give_the_address_that_the_frame_comes_from() {
        let says = |kind, fixed_bytes, options: &[&[u8]]| {
            points_elsewhere(&frame(&[], IPV6, &neighbour(kind, fixed_bytes, options)), FROM)
        };
        let (own, other) =
            (link_address(TARGET_LINK_ADDRESS, FROM), link_address(TARGET_LINK_ADDRESS, OTHER));
        let nonce = [14, 2].iter().chain(&[0; 14]).copied().collect::<Vec<u8>>();
        assert!(!says(136, 24, &[&own]));
        assert!(says(136, 24, &[&other]));
        assert!(says(136, 24, &[&nonce, &other]) && says(136, 24, &[&own, &other]));
        assert!(says(135, 24, &[&link_address(SOURCE_LINK_ADDRESS, OTHER)]));
        assert!(says(134, 16, &[&link_address(SOURCE_LINK_ADDRESS, OTHER)]));
        assert!(says(133, 8, &[&link_address(SOURCE_LINK_ADDRESS, OTHER)]));
        assert!(says(137, 40, &[&other]) && says(137, 40, &[&nonce, &other]), "a redirect to a third host");
        assert!(!says(137, 40, &[]) && !says(137, 40, &[&own]), "it gives no address, or the sender's own");
        assert!(!says(136, 24, &[&[2, 0]]), "an option without length ends the search");
        assert!(!says(128, 24, &[&other]), "an echo");
    }

    #[test]
    fn extension_headers_hide_no_forged_neighbour() {
        let behind = |first: u8, extensions: &[u8], mac| {
            let mut packet = neighbour(136, 24, &[&link_address(TARGET_LINK_ADDRESS, mac)]);
            packet[6] = first;
            packet.splice(40..40, extensions.iter().copied());
            points_elsewhere(&frame(&[], IPV6, &packet), FROM)
        };
        let (hop_by_hop, options) = ([60, 0, 0, 0, 0, 0, 0, 0], [&[ICMPV6, 1][..], &[0; 14]].concat());
        let both = [&hop_by_hop[..], &options].concat();
        assert!(behind(60, &options, OTHER) && behind(0, &both, OTHER));
        assert!(!behind(60, &options, FROM) && !behind(0, &both, FROM));
        let fragment = [ICMPV6, 0, 0, 1, 0, 0, 0, 7];
        assert!(behind(44, &fragment, OTHER), "the first fragment has the message");
        let later = [ICMPV6, 0, 0, 9, 0, 0, 0, 7];
        assert!(!behind(44, &later, OTHER), "a later fragment has no message");
        assert!(
            behind(51, &[ICMPV6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], OTHER),
            "behind an authentication header"
        );
        assert!(!behind(60, &[60, 0, 0, 0, 0, 0, 0, 0].repeat(2)[..9], FROM), "cut off");
    }
}
