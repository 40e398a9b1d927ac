//! Asks the kernel which IP addresses interfaces have, and hears when that changes, by messages of rtnetlink
//! (RFC 3549).

use std::io::{self, Read};
use std::net::IpAddr;

use mapper_fib::object::PROTOCOL;
use mapper_proto::IpNetworkAddress;
use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{LinkError, readiness};
use crate::netlink::message::{Message, attributes, u32_at};
use crate::netlink::socket::{RequestSocket, notices};

const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTNLGRP_IPV4_IFADDR: u32 = 5;
const RTNLGRP_IPV6_IFADDR: u32 = 9;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
const IFA_PROTO: u16 = 11;
/// Of IPv6 alone. Of IPv4 the same bit says that the interface has another address of the network, too (`IFA_F_SECONDARY`).
const IFA_F_TEMPORARY: u32 = 1;
const IFA_F_DADFAILED: u32 = 8;
const IFA_F_TENTATIVE: u32 = 0x40;
const IFA_F_PERMANENT: u32 = 0x80;
/// The scopes from here on are those of one cable, and of the machine itself.
const RT_SCOPE_LINK: u8 = 253;
/// Bytes of the `ifaddrmsg` that stands before the attributes.
const INFO_BYTES: usize = 8;
/// The room for a notice, which is more than any about one address takes.
const BUFFER_BYTES: usize = 64 * 1024;

/// An address that an interface has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldAddress {
    /// The number of the interface.
    pub index: u32,
    /// The address.
    pub address: IpNetworkAddress,
    /// Whether it is good beyond one cable, ready for use, and not one that the kernel made up for a while.
    pub is_for_others: bool,
    /// Whether somebody gave it to the interface for good: it was not leased, nor made of what a router said.
    pub is_permanent: bool,
    /// Whether a run of this program gave it to the interface. Kernels before Linux 5.18 do not know.
    pub is_ours: bool,
}

impl HeldAddress {
    /// All addresses of all interfaces of this network namespace.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn all() -> Result<Vec<Self>, LinkError> {
        let read = || Self::all_told_by(&mut RequestSocket::open()?);
        read().map_err(LinkError::Netlink)
    }

    /// All addresses of all interfaces of the network namespace that this socket was opened in.
    pub(crate) fn all_told_by(socket: &mut RequestSocket) -> io::Result<Vec<Self>> {
        socket.dump(RTM_GETADDR, &[0; INFO_BYTES], Vec::new, |found, message| found.extend(parse(message)))
    }
}

/// Tells when any interface of this network namespace gets or loses an address.
#[derive(Debug)]
pub struct AddressMonitor {
    socket: AsyncFd<Socket>,
}

impl AddressMonitor {
    /// Begins to listen. Call before [`HeldAddress::all`], and no change is missed.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn new() -> Result<Self, LinkError> {
        let open = || -> io::Result<Self> {
            let socket = notices(&[RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR], None)?;
            Ok(Self { socket: readiness::watch(socket)? })
        };
        open().map_err(LinkError::Netlink)
    }

    /// Waits until something has changed. What it was [`HeldAddress::all`] tells.
    ///
    /// # Errors
    /// If the kernel's answer cannot be read.
    pub async fn changed(&self) -> Result<(), LinkError> {
        let read = |mut socket: &Socket| socket.read(&mut [0; BUFFER_BYTES]).map(drop);
        match self.socket.async_io(Interest::READABLE, read).await {
            // More changes came than the socket had room for. They are looked up all the same.
            Err(error) if error.raw_os_error() != Some(libc::ENOBUFS) => Err(LinkError::Netlink(error)),
            _ => Ok(()),
        }
    }
}

fn parse(message: Message<'_>) -> Option<HeldAddress> {
    if message.header.kind != RTM_NEWADDR {
        return None;
    }
    let info = message.body;
    let &[family, prefix_bits, flags, scope] = info.first_chunk()?;
    let index = u32_at(info, 4)?;
    let (mut address, mut local, mut flags, mut protocol) = (None, None, u32::from(flags), None);
    for (kind, value) in attributes(info.get(INFO_BYTES..)?) {
        match kind {
            IFA_ADDRESS => address = ip(family, value),
            IFA_LOCAL => local = ip(family, value),
            IFA_FLAGS => flags = u32_at(value, 0)?,
            IFA_PROTO => protocol = value.first().copied(),
            _ => {}
        }
    }
    // Where both are there and differ, the interface leads to one other machine, whose address is the other one.
    let address = IpNetworkAddress::new(local.or(address)?, prefix_bits)?;
    let temporary = if address.ip().is_ipv6() { IFA_F_TEMPORARY } else { 0 };
    let unusable = temporary | IFA_F_DADFAILED | IFA_F_TENTATIVE;
    Some(HeldAddress {
        index,
        address,
        is_for_others: scope < RT_SCOPE_LINK && flags & unusable == 0 && address.is_of_host(),
        is_permanent: flags & IFA_F_PERMANENT != 0,
        is_ours: protocol == Some(PROTOCOL),
    })
}

fn ip(family: u8, value: &[u8]) -> Option<IpAddr> {
    match i32::from(family) {
        libc::AF_INET => Some(IpAddr::from(<[u8; 4]>::try_from(value).ok()?)),
        libc::AF_INET6 => Some(IpAddr::from(<[u8; 16]>::try_from(value).ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::netlink::message::Header;

    /// The message with this body that tells of an address.
    fn of_address(body: &[u8]) -> Message<'_> {
        Message { header: Header { kind: RTM_NEWADDR, flags: 0, sequence: 0, port: 0 }, body }
    }

    #[test]
    fn the_loopback_address_is_there_and_not_for_others() {
        let all = HeldAddress::all().unwrap();
        let lo = all.iter().find(|held| held.address.to_string() == "127.0.0.1/8");
        let lo = lo.expect("every machine's lo has it");
        assert_eq!((lo.index, lo.is_for_others, lo.is_permanent), (1, false, true));
    }

    #[test]
    fn of_an_address_towards_one_machine_the_own_one_counts() {
        let mut message = vec![libc::AF_INET as u8, 32, IFA_F_PERMANENT as u8, 0];
        message.extend(7u32.to_ne_bytes());
        for (kind, last) in [(IFA_ADDRESS, 9), (IFA_LOCAL, 1)] {
            message.extend(8u16.to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend([10, 1, 0, last]);
        }
        let expected = HeldAddress {
            index: 7,
            address: "10.1.0.1/32".parse().unwrap(),
            is_for_others: true,
            is_permanent: true,
            is_ours: false,
        };
        assert_eq!(parse(of_address(&message)), Some(expected));
    }

    #[test]
    fn a_second_address_of_a_network_is_for_others_and_a_temporary_one_of_ipv6_is_not() {
        let held = |family: i32, address: &[u8]| {
            let mut message = vec![family as u8, 24, (IFA_F_PERMANENT | IFA_F_TEMPORARY) as u8, 0];
            message.extend(7u32.to_ne_bytes());
            message.extend((4 + address.len() as u16).to_ne_bytes());
            message.extend(IFA_ADDRESS.to_ne_bytes());
            message.extend(address);
            message.extend(5u16.to_ne_bytes());
            message.extend(IFA_PROTO.to_ne_bytes());
            message.extend([PROTOCOL, 0, 0, 0]);
            parse(of_address(&message)).unwrap()
        };
        let second = held(libc::AF_INET, &[10, 1, 0, 77]);
        assert!(second.is_for_others && second.is_ours);
        assert!(!held(libc::AF_INET6, &Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 7).octets()).is_for_others);
    }

    proptest! {
        #[test]
        fn garbled_messages_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse(of_address(&bytes));
        }
    }
}
