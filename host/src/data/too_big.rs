//! Tells the kernel that a packet is too long for a cable on its way. The kernel then sends shorter packets,
//! as it does when a router says so (path MTU discovery, RFC 1191 and RFC 8201).

use super::ethernet::next_header::ICMPV6;
use super::ethernet::{
    ETHERTYPE_AT, HEADER_BYTES, IPV4, IPV6, MAX_VLAN_TAGS, VLAN_TAG_BYTES, VLAN_TAGS, u16_at,
};

const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
const ICMP_HEADER_BYTES: usize = 8;
const ICMP: u8 = 1;
/// The longest IPv4 packet that every host takes, and so the longest answer (RFC 1812, 4.3.2.3).
const MOST_IPV4_BYTES: usize = 576;
/// The longest answer over IPv6: a link's least MTU (RFC 4443, 2.4).
const MOST_IPV6_BYTES: usize = 1280;
const TTL: u8 = 64;

/// The frame that tells the sender of `frame` that only frames of up to `most_bytes` reach the host it is
/// for. Its source is that host, as no router is on the way. `None` if `frame` is not IP, or is one that must
/// not be answered by an ICMP error.
pub(super) fn answer(frame: &[u8], most_bytes: usize) -> Option<Vec<u8>> {
    let mut type_at = ETHERTYPE_AT;
    for _ in 0..MAX_VLAN_TAGS {
        if VLAN_TAGS.contains(&u16_at(frame, type_at)?) {
            type_at += VLAN_TAG_BYTES;
        }
    }
    let header_bytes = type_at - ETHERTYPE_AT + HEADER_BYTES;
    let packet = frame.get(header_bytes..)?;
    let mtu = most_bytes.checked_sub(header_bytes)?;
    let answer = match u16_at(frame, type_at)? {
        IPV4 => ipv4(packet, u16::try_from(mtu).ok()?)?,
        IPV6 => ipv6(packet, u32::try_from(mtu).ok()?)?,
        _ => return None,
    };
    let (to, from) = (frame.get(..6)?, frame.get(6..12)?);
    Some([from, to, frame.get(12..header_bytes)?, &answer[..]].concat())
}

/// The answer to an IPv4 packet: ICMP's "destination unreachable, fragmentation needed".
fn ipv4(packet: &[u8], mtu: u16) -> Option<Vec<u8>> {
    let header_bytes = usize::from(packet.first()? & 0xf) * 4;
    let later_fragment = u16_at(packet, 6)? & 0x1fff != 0;
    if packet.first()? >> 4 != 4 || header_bytes < IPV4_HEADER_BYTES || later_fragment {
        return None;
    }
    let (from, to): (&[u8], &[u8]) = (packet.get(12..16)?, packet.get(16..20)?);
    let is_error = *packet.get(9)? == ICMP && matches!(packet.get(header_bytes)?, 3 | 4 | 5 | 11 | 12);
    // An ICMP error must not be sent about a packet from or to the unspecified address, a group or broadcast.
    let one_host = |address: &[u8]| (1..224).contains(&address[0]);
    if is_error || !one_host(from) || !one_host(to) {
        return None;
    }
    let quoted = &packet[..packet.len().min(MOST_IPV4_BYTES - IPV4_HEADER_BYTES - ICMP_HEADER_BYTES)];
    let [high, low] = mtu.to_be_bytes();
    let mut message = [&[3, 4, 0, 0, 0, 0, high, low], quoted].concat();
    let sum = checksum(&[&message]);
    message[2..4].copy_from_slice(&sum);
    let [high, low] = ((IPV4_HEADER_BYTES + message.len()) as u16).to_be_bytes();
    let mut header = [&[0x45, 0, high, low, 0, 0, 0, 0, TTL, ICMP, 0, 0], to, from].concat();
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum);
    Some([header, message].concat())
}

/// The answer to an IPv6 packet: ICMPv6's "packet too big".
fn ipv6(packet: &[u8], mtu: u32) -> Option<Vec<u8>> {
    if packet.first()? >> 4 != 6 {
        return None;
    }
    let (from, to) = (packet.get(8..24)?, packet.get(24..40)?);
    let is_error = packet[6] == ICMPV6 && *packet.get(IPV6_HEADER_BYTES)? < 128;
    let nobody_or_group = |address: &[u8]| address[0] == 0xff || address.iter().all(|&byte| byte == 0);
    if is_error || nobody_or_group(from) || nobody_or_group(to) {
        return None;
    }
    let quoted = &packet[..packet.len().min(MOST_IPV6_BYTES - IPV6_HEADER_BYTES - ICMP_HEADER_BYTES)];
    let mut message = [&[2, 0, 0, 0], &mtu.to_be_bytes()[..], quoted].concat();
    let length = (message.len() as u16).to_be_bytes();
    let sum = checksum(&[to, from, &length, &[0, ICMPV6], &message]);
    message[2..4].copy_from_slice(&sum);
    let header = [&[0x60, 0, 0, 0], &length[..], &[ICMPV6, TTL], to, from].concat();
    Some([header, message].concat())
}

/// The Internet checksum (RFC 1071) over these parts. All but the last must have an even length.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |word: &[u8]| u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or_default());
    // Answers have less than two kilobytes, so the sum does not overflow.
    let sum: u32 = words.map(word).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    (!(folded as u16)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const FROM: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn frame(kind: &[u8], packet: &[u8]) -> Vec<u8> {
        [&TO[..], &FROM, kind, packet].concat()
    }

    /// A packet from 10.0.0.1 to 10.0.0.2 with these flags and fragment offset.
    fn v4(protocol: u8, fragment: u16, rest: &[u8]) -> Vec<u8> {
        let [high, low] = fragment.to_be_bytes();
        let header = [0x45, 0, 0, 0, 0, 0, high, low, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [&header, rest].concat()
    }

    /// A packet from fd00::1 to fd00::2.
    fn v6(next: u8, rest: &[u8]) -> Vec<u8> {
        let address = |last| [&[0xfd][..], &[0; 14], &[last]].concat();
        [&[0x60, 0, 0, 0, 0, 0, next, 64][..], &address(1), &address(2), rest].concat()
    }

    /// Whether a receiver, who computes the checksum over all that it covers, gets zero.
    fn is_right(parts: &[&[u8]]) -> bool {
        checksum(parts) == [0, 0]
    }

    #[test]
    fn a_packet_of_ipv4_is_answered_with_the_mtu_that_gets_through() {
        let packet = v4(6, 0x4000, &[7; 3000]);
        let answer = answer(&frame(&[8, 0], &packet), 14 + 1417).unwrap();
        assert_eq!((&answer[..6], &answer[6..12], &answer[12..14]), (&FROM[..], &TO[..], &[8, 0][..]));
        let (header, message) = answer[14..].split_at(20);
        assert_eq!((header.len() + message.len(), u16_at(header, 2)), (576, Some(576)));
        assert!(is_right(&[header]) && is_right(&[message]));
        assert_eq!(
            (header[9], &header[12..16], &header[16..20]),
            (1, &[10, 0, 0, 2][..], &[10, 0, 0, 1][..])
        );
        assert_eq!((&message[..2], u16_at(message, 6)), (&[3, 4][..], Some(1417)));
        assert_eq!(message[8..], packet[..548]);
    }

    #[test]
    fn a_packet_of_ipv6_is_answered_with_the_mtu_that_gets_through() {
        let packet = v6(6, &[7; 3000]);
        // A VLAN tag takes four bytes, so the packet may be four bytes shorter.
        let tagged = [0x81, 0, 0, 5, 0x86, 0xdd];
        let answer = answer(&frame(&tagged, &packet), 14 + 1417).unwrap();
        assert_eq!(answer[12..18], tagged);
        let (header, message) = answer[18..].split_at(40);
        assert_eq!((header.len() + message.len(), u16_at(header, 4)), (1280, Some(1240)));
        assert_eq!((header[6], &header[8..24], &header[24..40]), (58, &packet[24..40], &packet[8..24]));
        assert!(is_right(&[&header[8..40], &header[4..6], &[0, 58], message]));
        assert_eq!((&message[..2], &message[4..8]), (&[2, 0][..], &1413_u32.to_be_bytes()[..]));
        assert_eq!(message[8..], packet[..1232]);
    }

    #[test]
    fn what_must_not_be_answered_is_not() {
        let answered = |kind: &[u8], packet: &[u8]| answer(&frame(kind, packet), 1431).is_some();
        let (four, six) = (&[8, 0][..], &[0x86, 0xdd][..]);
        assert!(answered(four, &v4(1, 0, &[8; 9])) && answered(six, &v6(58, &[128; 9])), "an echo request");
        assert!(!answered(four, &v4(1, 0, &[3; 9])) && !answered(six, &v6(58, &[2; 9])), "an error");
        assert!(!answered(four, &v4(17, 100, &[0; 9])), "a later fragment");
        assert!(answered(four, &v4(17, 0x2000, &[0; 9])), "the first fragment");
        let mut to_group = v4(17, 0, &[0; 9]);
        to_group[16] = 224;
        assert!(!answered(four, &to_group));
        let mut from_nobody = v6(17, &[0; 9]);
        from_nobody[8..24].fill(0);
        assert!(!answered(six, &from_nobody));
        assert!(!answered(&[8, 6], &[0; 28]), "ARP");
        // Packets that are cut off or malformed get no answer.
        let whole = [frame(four, &v4(1, 0, &[8; 9])), frame(six, &v6(58, &[128; 9]))];
        for (bytes, frame) in whole.iter().flat_map(|frame| (0..frame.len()).map(move |bytes| (bytes, frame)))
        {
            let _no_panic = answer(&frame[..bytes], 1431);
        }
        assert!(!answered(four, &v4(17, 0, &[0; 9])[..19]) && !answered(six, &v4(17, 0, &[0; 40])));
        assert_eq!(answer(&whole[0], 13), None);
    }
}
