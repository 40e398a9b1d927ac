//! The header of users' Ethernet frames.

use mapper_proto::Mac;

/// Bytes of the header: destination, source, EtherType.
pub(super) const HEADER_BYTES: usize = 14;
/// Bytes that an IEEE 802.1Q tag adds to the header.
pub(super) const VLAN_TAG_BYTES: usize = 4;
/// The offset of the EtherType in a frame without a VLAN tag.
pub(super) const ETHERTYPE_AT: usize = 12;

/// The EtherTypes of what a frame carries.
pub(super) const IPV4: u16 = 0x0800;
pub(super) const ARP: u16 = 0x0806;
pub(super) const IPV6: u16 = 0x86dd;

/// What follows a header of IPv6, by its number there.
pub(super) mod next_header {
    pub(in super::super) const HOP_BY_HOP: u8 = 0;
    pub(in super::super) const ROUTING: u8 = 43;
    pub(in super::super) const FRAGMENT: u8 = 44;
    pub(in super::super) const AUTHENTICATION: u8 = 51;
    pub(in super::super) const ICMPV6: u8 = 58;
    pub(in super::super) const DESTINATION_OPTIONS: u8 = 60;
    pub(in super::super) const MOBILITY: u8 = 135;
}

/// The EtherTypes that announce a VLAN tag: of IEEE 802.1Q, of 802.1ad, and the one in use before 802.1ad.
pub(super) const VLAN_TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// The most VLAN tags that an honest frame has. Linux looks behind any number of tags that name no VLAN, so a frame with more
/// tags than are looked behind here cannot be trusted.
pub(super) const MAX_VLAN_TAGS: usize = 2;

/// The big-endian number at offset `at`, unless the bytes end before it does.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Destination and source of a frame; `None` if it has no whole header.
pub(super) fn addresses(frame: &[u8]) -> Option<(Mac, Mac)> {
    let header: &[u8; HEADER_BYTES] = frame.first_chunk()?;
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, ..] = *header;
    Some((Mac([d0, d1, d2, d3, d4, d5]), Mac([s0, s1, s2, s3, s4, s5])))
}

/// Whether an address is that of a group of hosts: broadcast or multicast.
pub(super) fn is_group(mac: Mac) -> bool {
    mac.0[0] & 1 != 0
}
