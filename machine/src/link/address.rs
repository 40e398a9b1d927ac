//! Gives an interface IP addresses, by messages of rtnetlink (RFC 3549) that are built here.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::str::FromStr;

use super::set_link::{acknowledged, message};

const RTM_NEWADDR: u16 = 20;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_CREATE: u16 = 0x400;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_BROADCAST: u16 = 4;
const IFA_FLAGS: u16 = 8;
const IFA_F_NODAD: u32 = 2;

/// An IP address and the length of its network prefix, written `10.1.0.1/24` or `fd00::1/64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceAddress {
    ip: IpAddr,
    prefix: u8,
}

impl InterfaceAddress {
    /// Gives the address to the interface with this number, which may have it already. Needs `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// If the kernel refuses: no such interface, no permission, or IPv6 is disabled there.
    pub(super) fn add_to(&self, index: u32) -> io::Result<()> {
        acknowledged(&self.request(index))
    }

    fn request(&self, index: u32) -> Vec<u8> {
        let (family, bytes) = match self.ip {
            IpAddr::V4(ip) => (libc::AF_INET, ip.octets().to_vec()),
            IpAddr::V6(ip) => (libc::AF_INET6, ip.octets().to_vec()),
        };
        // The fields of ifaddrmsg are family, prefix, flags, scope (0 for everywhere) and index.
        let mut fixed = vec![family as u8, self.prefix, 0, 0];
        fixed.extend(index.to_ne_bytes());
        let (broadcast, flags) = (self.broadcast(), IFA_F_NODAD.to_ne_bytes());
        let mut attributes = vec![(IFA_LOCAL, &bytes[..]), (IFA_ADDRESS, &bytes[..])];
        if let Some(broadcast) = &broadcast {
            attributes.push((IFA_BROADCAST, &broadcast[..]));
        }
        if self.ip.is_ipv6() {
            // Duplicate address detection is switched off: its question would be sent before the fabric has
            // routes, so nobody could hear it, and programs could not use the address until it has ended.
            attributes.push((IFA_FLAGS, &flags[..]));
        }
        message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &fixed, &attributes)
    }

    /// The broadcast address, which IPv4 networks with a prefix shorter than 31 have.
    fn broadcast(&self) -> Option<[u8; 4]> {
        match self.ip {
            IpAddr::V4(ip) if self.prefix < 31 => {
                Some((ip.to_bits() | u32::MAX >> self.prefix).to_be_bytes())
            }
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        }
    }

    /// Whether it is the network's own address or its broadcast address, which no host may have.
    fn is_of_no_host(&self) -> bool {
        match (self.ip, self.broadcast()) {
            (IpAddr::V4(ip), Some(broadcast)) => {
                ip.octets() == broadcast || ip.to_bits() & u32::MAX >> self.prefix == 0
            }
            _ => false,
        }
    }
}

impl FromStr for InterfaceAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = "expected ADDRESS/PREFIX, as 10.1.0.1/24 or fd00::1/64";
        let (ip, prefix) = text.split_once('/').ok_or_else(|| format!("`{text}` has no prefix; {wanted}"))?;
        let ip: IpAddr = ip.parse().map_err(|_| format!("`{ip}` is no address of IP; {wanted}"))?;
        let bits = if ip.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.parse().ok().filter(|prefix| (1..=bits).contains(prefix));
        let prefix =
            prefix.ok_or_else(|| format!("the prefix of `{text}` is not from 1 to {bits}; {wanted}"))?;
        let address = Self { ip, prefix };
        if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() || address.is_of_no_host() {
            return Err(format!("`{text}` cannot be a host's address on a network; {wanted}"));
        }
        Ok(address)
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let request = |text: &str| text.parse::<InterfaceAddress>().unwrap().request(7);
        let four = request("10.1.0.1/24");
        // The message has a header, the fixed part, the address twice and the broadcast address.
        assert_eq!(four.len(), 16 + 8 + 3 * 8);
        assert_eq!(four[16..24], [&[2, 24, 0, 0][..], &7u32.to_ne_bytes()].concat());
        assert_eq!(four[44..], [10, 1, 0, 255]);
        assert_eq!(request("10.1.0.1/32").len(), 16 + 8 + 2 * 8);
        let six = request("fd00::1/64");
        assert_eq!((six.len(), &six[16..18]), (16 + 8 + 2 * 20 + 8, &[10, 64][..]));
    }
}
