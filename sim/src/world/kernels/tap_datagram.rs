//! Datagrams of probes in frames of a tap interface, by which answers go where the kernel has no route.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mapper_fib::probe::Datagram;
use mapper_proto::Mac;

/// Bytes of the addresses and the type in front of a packet.
const ETHERNET_BYTES: usize = 12 + 2;
const UDP_BYTES: usize = 8;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
/// Where the source address stands in the header of each version of IP.
const IPV4_SOURCE_AT: usize = 12;
const IPV6_SOURCE_AT: usize = 8;
const PROTOCOL_UDP: u8 = 17;

/// Bytes of the headers of IP and UDP in front of a datagram from this address.
pub(super) const fn headers_bytes(from: IpAddr) -> usize {
    match from {
        IpAddr::V4(_) => IPV4_BYTES + UDP_BYTES,
        IpAddr::V6(_) => IPV6_BYTES + UDP_BYTES,
    }
}

/// The frame that carries a datagram from one address to another of the same version, with the link addresses of who gets it
/// and who sends it.
pub(super) fn frame([to, from]: [Mac; 2], ends: (IpAddr, IpAddr), datagram: &[u8]) -> Option<Vec<u8>> {
    let (kind, header) = match ends {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let start = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, PROTOCOL_UDP, 0, 0];
            ([0x08, 0x00], [&start[..], &source.octets(), &destination.octets()].concat())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let start = [0x60, 0, 0, 0, 0, 0, PROTOCOL_UDP, 64];
            ([0x86, 0xdd], [&start[..], &source.octets(), &destination.octets()].concat())
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return None,
    };
    Some([&to.0[..], &from.0, &kind, &header, &[0; UDP_BYTES], datagram].concat())
}

/// The datagram of a probe that a frame carries, and the address that it came from; `None` if it carries none.
pub(super) fn read(frame: &[u8]) -> Option<(IpAddr, &[u8])> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET_BYTES)?;
    let from: IpAddr = match ethernet {
        [.., 0x08, 0x00] => Ipv4Addr::from(*packet.get(IPV4_SOURCE_AT..)?.first_chunk::<4>()?).into(),
        [.., 0x86, 0xdd] => Ipv6Addr::from(*packet.get(IPV6_SOURCE_AT..)?.first_chunk::<16>()?).into(),
        _ => return None,
    };
    let datagram = packet.get(headers_bytes(from)..)?;
    Datagram::read(datagram)?;
    Some((from, datagram))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_read_from_the_frame_that_carries_it() {
        let macs = [1, 2].map(Mac::from_position);
        let datagram = Datagram::Question { nonce: 7, is_last: false, asked: None }.to_bytes();
        let v4 = [1, 2].map(|number| IpAddr::from([10, 0, 0, number]));
        let v6 = [1, 2].map(|number| IpAddr::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number)));
        for [from, to] in [v4, v6] {
            let frame = frame(macs, (from, to), &datagram).unwrap();
            assert_eq!(read(&frame), Some((from, &datagram[..])));
            (0..frame.len() - datagram.len()).for_each(|bytes| assert_eq!(read(&frame[..bytes]), None));
        }
        assert_eq!(frame(macs, (v4[0], v6[1]), &datagram), None);
    }
}
