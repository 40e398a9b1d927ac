//! Gives an interface IP addresses and takes them away, by messages of rtnetlink (RFC 3549).

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::str::FromStr;

use mapper_fib::object::PROTOCOL;
use mapper_proto::IpNetworkAddress;

use crate::netlink::message::Attributes;
use crate::netlink::socket::RequestSocket;

const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_CREATE: u16 = 0x400;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_BROADCAST: u16 = 4;
const IFA_FLAGS: u16 = 8;
const IFA_PROTO: u16 = 11;
const IFA_F_NODAD: u32 = 2;

/// An IP address that an interface can be given, and the length of its network prefix, written `10.1.0.1/24` or
/// `fd00::1/64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceAddress(IpNetworkAddress);

impl InterfaceAddress {
    /// The address, if an interface can be given it. It cannot if it is unspecified, broadcast, multicast or
    /// loopback, or names an IPv4 network as a whole.
    pub fn new(address: IpNetworkAddress) -> Option<Self> {
        let ip = address.ip();
        let is_special = ip.is_unspecified() || ip.is_multicast() || ip.is_loopback();
        let is_of_no_host = address.is_network() || address.broadcast().map(IpAddr::V4) == Some(ip);
        (!is_special && !is_of_no_host).then_some(Self(address))
    }

    /// Gives the address to the interface with this number, which may have it already. Needs `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// If the kernel refuses: no such interface, no permission, or IPv6 is disabled there.
    pub(super) fn add_to(&self, index: u32) -> io::Result<()> {
        self.request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, index)
    }

    /// Takes the address from the interface with this number. Needs `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// If the kernel refuses: the interface does not have the address, or no permission.
    pub(super) fn remove_from(&self, index: u32) -> io::Result<()> {
        self.request(RTM_DELADDR, 0, index)
    }

    fn request(&self, kind: u16, flags: u16, index: u32) -> io::Result<()> {
        let put = |attributes: &mut Attributes<'_>| self.put(attributes);
        RequestSocket::open()?.carry_out(kind, flags, &self.fixed(index), put)
    }

    /// The fixed part of the request (`ifaddrmsg`): family, prefix, flags, scope (0 for everywhere) and index.
    fn fixed(&self, index: u32) -> Vec<u8> {
        let family = if self.0.ip().is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        [&[family as u8, self.0.prefix_bits(), 0, 0][..], &index.to_ne_bytes()].concat()
    }

    /// Puts the attributes of the request.
    fn put(&self, attributes: &mut Attributes<'_>) {
        attributes.put_ip(IFA_LOCAL, self.0.ip());
        attributes.put_ip(IFA_ADDRESS, self.0.ip());
        // By it a run finds what an earlier one has left. Kernels before Linux 5.18 do not look there.
        attributes.put(IFA_PROTO, &[PROTOCOL]);
        if let Some(broadcast) = self.0.broadcast() {
            attributes.put(IFA_BROADCAST, &broadcast.octets());
        }
        if self.0.ip().is_ipv6() {
            // Duplicate address detection is switched off: its question would be sent before the fabric has
            // routes, so nobody could hear it, and programs could not use the address until it has ended.
            attributes.put_u32(IFA_FLAGS, IFA_F_NODAD);
        }
    }
}

impl From<InterfaceAddress> for IpNetworkAddress {
    fn from(address: InterfaceAddress) -> Self {
        address.0
    }
}

impl FromStr for InterfaceAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address: IpNetworkAddress = text.parse().map_err(|error| format!("{error}"))?;
        Self::new(address).ok_or_else(|| {
            format!(
                "`{text}` cannot be a host's address on a network; expected ADDRESS/PREFIX, as 10.1.0.1/24 or \
                 fd00::1/64"
            )
        })
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::{Header, write};

    #[test]
    fn what_is_written_as_usual_is_read_and_shown_alike() {
        for text in ["10.1.0.1/24", "fd00::1/64", "192.0.2.0/31", "192.0.2.9/32", "fe80::7/10", "fd00::/64"] {
            assert_eq!(text.parse::<InterfaceAddress>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_no_host_can_have_is_refused_with_what_would_do() {
        for text in [
            "10.1.0.1",
            "10.1.0/24",
            "10.1.0.1/",
            "10.1.0.1/33",
            "10.1.0.1/0",
            "fd00::1/129",
            "10.1.0.0/24",
            "10.1.0.255/24",
            "0.0.0.0/8",
            "224.0.0.1/24",
            "127.0.0.1/8",
            "::1/128",
            "::/64",
            "ff02::1/64",
        ] {
            let error = text.parse::<InterfaceAddress>().unwrap_err();
            assert!(error.contains("as 10.1.0.1/24"), "{text}: {error}");
        }
    }

    #[test]
    fn a_request_has_what_the_kernel_wants_of_each_version() {
        let request = |text: &str| {
            let address: InterfaceAddress = text.parse().unwrap();
            let mut request = Vec::new();
            let header = Header { kind: RTM_NEWADDR, flags: 0, sequence: 1, port: 0 };
            write(&mut request, header, &address.fixed(7), |attributes| address.put(attributes));
            request
        };
        let four = request("10.1.0.1/24");
        // The message has a header, the fixed part, the address twice, the protocol and the broadcast address.
        assert_eq!(four.len(), 16 + 8 + 4 * 8);
        assert_eq!(four[16..24], [&[2, 24, 0, 0][..], &7u32.to_ne_bytes()].concat());
        assert_eq!(four[52..], [10, 1, 0, 255]);
        assert_eq!(request("10.1.0.1/32").len(), 16 + 8 + 3 * 8);
        let six = request("fd00::1/64");
        assert_eq!((six.len(), &six[16..18]), (16 + 8 + 2 * 20 + 2 * 8, &[10, 64][..]));
    }
}
