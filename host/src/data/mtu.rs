//! How much of a user's packet fits into a data frame.

use mapper_fib::LEAST_MTU_OF_IPV6;
use mapper_proto::wire::Data;
use thiserror::Error;

use super::ethernet::{HEADER_BYTES, VLAN_TAG_BYTES};

/// The most bytes that one element of a route takes.
const MAX_ELEMENT_BYTES: usize = 2;
/// The least MTU of a tap interface, in bytes.
pub const MIN_TAP_MTU: u32 = LEAST_MTU_OF_IPV6;

/// The error for a link whose frames are too short for IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "an MTU of {link_mtu} bytes leaves less than the {MIN_TAP_MTU} that IPv6 needs: raise the interface's MTU \
     to {needed} or more, or lower max-hops"
)]
pub struct MtuTooSmall {
    /// The link's MTU, in bytes.
    pub link_mtu: usize,
    /// The least MTU that leaves room for IPv6, in bytes.
    pub needed: usize,
}

/// The MTU of the tap interface, in bytes: the link's less all that a data frame adds with the
/// longest routes there may be, there and back, and with a VLAN tag in the user's frame.
///
/// The routes in use are mostly shorter than the longest. But an MTU that changed with the length of routes would change
/// with most maps, so the longest that there may be count.
///
/// # Errors
/// If less is left than IPv6 needs.
pub fn tap_mtu(link_mtu: u32, max_hops: u8) -> Result<u32, MtuTooSmall> {
    let route_bytes = usize::from(max_hops) * MAX_ELEMENT_BYTES;
    let header_bytes = HEADER_BYTES + VLAN_TAG_BYTES;
    let added = route_bytes + Data::OVERHEAD_BYTES + route_bytes + header_bytes;
    let link_mtu = link_mtu as usize;
    let fits_the_link = link_mtu.saturating_sub(added);
    let fits_the_protocol = Data::MAX_PAYLOAD_BYTES - route_bytes - header_bytes;
    let left = fits_the_link.min(fits_the_protocol);
    let least = MIN_TAP_MTU as usize;
    if left < least {
        return Err(MtuTooSmall { link_mtu, needed: added + least });
    }
    Ok(left as u32)
}

#[cfg(test)]
mod tests {
    use mapper_proto::wire::{Element, Route};

    use super::*;

    #[test]
    fn a_packet_of_the_mtu_just_fits_behind_the_longest_routes() {
        for (link_mtu, max_hops) in [(1500, 11), (9000, 11), (1500, 1), (9000, 62), (65_535, 11)] {
            let mtu = tap_mtu(link_mtu, max_hops).unwrap();
            let route: Route = (0..max_hops).map(|_| Element::Absolute(200)).collect();
            let on_the_link = |mtu: u32| {
                let ethernet = vec![0; HEADER_BYTES + VLAN_TAG_BYTES + mtu as usize];
                let data = Data { token: 0, way_back: route.clone(), ethernet: &ethernet };
                data.encode().map(|frame| route.as_bytes().len() + frame.len())
            };
            assert!(on_the_link(mtu).unwrap() <= link_mtu as usize);
            assert!(on_the_link(mtu + 1).map_or(true, |bytes| bytes > link_mtu as usize));
        }
    }

    #[test]
    fn an_ordinary_link_leaves_this_much() {
        assert_eq!(tap_mtu(1500, 11), Ok(1417));
    }

    #[test]
    fn a_link_that_leaves_too_little_for_ipv6_is_refused_with_what_would_do() {
        let refused = tap_mtu(1300, 11).unwrap_err();
        assert_eq!(tap_mtu(refused.needed as u32, 11), Ok(1280));
        assert_eq!(tap_mtu(refused.needed as u32 - 1, 11).unwrap_err().needed, refused.needed);
        assert!(tap_mtu(0, 11).is_err());
    }
}
