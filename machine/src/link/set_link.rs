//! Changes an interface, by messages of rtnetlink (RFC 3549) that are built here.

use std::io;

use mapper_proto::Mac;
use rustix::net::{RecvFlags, SendFlags, SocketFlags};

use super::interface::open_netlink;

const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const IFLA_ADDRESS: u16 = 1;
const IFLA_MTU: u16 = 4;
const IFF_UP: u32 = 1;
const HEADER_BYTES: usize = 16;

/// Gives an interface an address and an MTU, and sets it up.
pub(super) fn set_up(index: u32, mac: Mac, mtu: u32) -> io::Result<()> {
    acknowledged(&request(index, &[(IFLA_ADDRESS, &mac.0[..]), (IFLA_MTU, &mtu.to_ne_bytes())]))
}

/// Sets an interface up, and leaves everything else about it as it is.
pub(super) fn set_up_only(index: u32) -> io::Result<()> {
    acknowledged(&request(index, &[]))
}

/// Sends a request, and waits for the kernel to say that it is done.
pub(super) fn acknowledged(request: &[u8]) -> io::Result<()> {
    let socket = open_netlink(SocketFlags::empty(), 0)?;
    rustix::net::send(&socket, request, SendFlags::empty())?;
    let mut answer = [0; 1024];
    let (bytes, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let answer = &answer[..bytes];
    // The kernel acknowledges by an error message with the number 0.
    let kind = answer.get(4..6).and_then(|kind| kind.try_into().ok()).map(u16::from_ne_bytes);
    let code = answer.get(HEADER_BYTES..HEADER_BYTES + 4).and_then(|code| code.try_into().ok());
    match (kind, code.map(i32::from_ne_bytes)) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(code)) => Err(io::Error::from_raw_os_error(-code)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn request(index: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    // The fields of ifinfomsg are family and type (both unspecified), index, flags, and which flags to
    // change.
    let mut info = vec![0; 4];
    info.extend(index.to_ne_bytes());
    info.extend(IFF_UP.to_ne_bytes());
    info.extend(IFF_UP.to_ne_bytes());
    message(RTM_NEWLINK, 0, &info, attributes)
}

/// A request that the kernel is to acknowledge, of this type, with these flags besides, this fixed part and
/// these attributes.
pub(super) fn message(kind: u16, flags: u16, fixed: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut request = Vec::with_capacity(64);
    request.extend([0; 4]);
    request.extend(kind.to_ne_bytes());
    request.extend((NLM_F_REQUEST | NLM_F_ACK | flags).to_ne_bytes());
    request.extend([0; 8]);
    request.extend(fixed);
    for (kind, value) in attributes {
        request.extend((4 + value.len() as u16).to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend(*value);
        request.resize(request.len().next_multiple_of(4), 0);
    }
    let total = request.len() as u32;
    request[..4].copy_from_slice(&total.to_ne_bytes());
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_as_long_as_it_says_and_its_parts_are_aligned() {
        let mac = Mac::from_position(1);
        let request = request(7, &[(IFLA_ADDRESS, &mac.0), (IFLA_MTU, &1417u32.to_ne_bytes())]);
        assert_eq!(request.len(), 16 + 16 + 12 + 8);
        assert_eq!(request[..4], 52u32.to_ne_bytes());
        assert_eq!(request[20..24], 7u32.to_ne_bytes());
        assert_eq!(request[36..42], Mac::from_position(1).0);
        assert_eq!(request[48..], 1417u32.to_ne_bytes());
    }
}
