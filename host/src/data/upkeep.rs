//! Frames that hosts send each other on their own account, not for a user.

use mapper_fib::probe::UDP_PORT;

use super::ethernet::next_header::ICMPV6;
use super::ethernet::{ARP, ETHERTYPE_AT, IPV4, IPV6, u16_at};
use super::sources::NEIGHBOUR_DISCOVERY;

const UDP: u8 = 17;

/// Whether a frame is one by which kernels find each other's link addresses, or a probe of a path through the kernels or
/// its answer. All hosts exchange such frames after each new map, so they do not tell which paths carry users' frames.
pub(super) fn is_upkeep(frame: &[u8]) -> bool {
    let packet = frame.get(ETHERTYPE_AT + 2..).unwrap_or_default();
    // Both ports are ours: a user's program may have one of them by chance.
    let is_of_probe = |udp: usize| [udp, udp + 2].iter().all(|&at| u16_at(packet, at) == Some(UDP_PORT));
    match u16_at(frame, ETHERTYPE_AT) {
        Some(ARP) => true,
        // Neither a question nor an answer has options in its header.
        Some(IPV4) => packet.first() == Some(&0x45) && packet.get(9) == Some(&UDP) && is_of_probe(20),
        Some(IPV6) => match (packet.get(6), packet.get(40)) {
            (Some(&ICMPV6), Some(kind)) => NEIGHBOUR_DISCOVERY.contains(kind),
            (Some(&UDP), _) => is_of_probe(40),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u16, packet: &[u8]) -> Vec<u8> {
        [&[2; 12][..], &kind.to_be_bytes(), packet].concat()
    }

    fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
        let header = [&[0x60, 0, 0, 0, 0, 8, next, 64][..], &[0xfd; 32]].concat();
        frame(IPV6, &[&header, payload].concat())
    }

    #[test]
    fn only_address_resolution_and_probes_are_upkeep() {
        let udp = |to: u16| [&[0x88, 0xb5][..], &to.to_be_bytes(), &[0, 8, 0, 0]].concat();
        assert!(is_upkeep(&frame(ARP, &[0; 28])));
        assert!(is_upkeep(&ipv6(ICMPV6, &[135, 0, 0, 0])), "a neighbour solicitation");
        assert!(is_upkeep(&ipv6(UDP, &udp(UDP_PORT))));
        assert!(!is_upkeep(&ipv6(UDP, &udp(53))));
        let answer = [&53_u16.to_be_bytes()[..], &UDP_PORT.to_be_bytes(), &[0, 8, 0, 0]].concat();
        assert!(!is_upkeep(&ipv6(UDP, &answer)), "a user's program may have the port of probes");
        assert!(!is_upkeep(&ipv6(ICMPV6, &[128, 0, 0, 0])), "an echo request is a user's");
        assert!(!is_upkeep(&ipv6(6, &udp(UDP_PORT))), "TCP");
        assert!(!is_upkeep(&frame(IPV4, &[0x45; 40])));
        let v4 = |protocol| {
            [&[0x45, 0, 0, 28, 0, 0, 0, 0, 64, protocol][..], &[0; 10], &udp(UDP_PORT)[..]].concat()
        };
        assert!(is_upkeep(&frame(IPV4, &v4(UDP))) && !is_upkeep(&frame(IPV4, &v4(6))));
        let whole = ipv6(UDP, &udp(UDP_PORT));
        (0..12 + 2 + 40).for_each(|bytes| assert!(!is_upkeep(&whole[..bytes]), "cut to {bytes}"));
    }
}
