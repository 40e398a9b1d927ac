//! An IP address on a network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use thiserror::Error;

/// An IP address and the length of its network prefix, written `10.1.0.1/24` or `fd00::1/64`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpNetworkAddress {
    ip: IpAddr,
    prefix_bits: u8,
}

/// Why a text, or an address with a prefix, is no address on a network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotANetworkAddress {
    /// There is no prefix.
    #[error("`{0}` has no prefix; expected ADDRESS/PREFIX, as 10.1.0.1/24 or fd00::1/64")]
    NoPrefix(String),
    /// What stands before the prefix is no IP address.
    #[error("`{0}` is no address of IP; expected ADDRESS/PREFIX, as 10.1.0.1/24 or fd00::1/64")]
    NoAddress(String),
    /// The prefix is no number, zero, or longer than an address.
    #[error(
        "the prefix of `{text}` is not from 1 to {most}; expected ADDRESS/PREFIX, as 10.1.0.1/24 or fd00::1/64"
    )]
    Prefix {
        /// What was given.
        text: String,
        /// How many bits an address of this version has.
        most: u8,
    },
}

impl IpNetworkAddress {
    /// The address `ip` on the network that its first `prefix_bits` bits name; `None` if that is 0 or more
    /// bits than the address has.
    pub fn new(ip: IpAddr, prefix_bits: u8) -> Option<Self> {
        (1..=bits_of(ip)).contains(&prefix_bits).then_some(Self { ip, prefix_bits })
    }

    /// The address.
    pub const fn ip(&self) -> IpAddr {
        self.ip
    }

    /// How many of its bits name the network.
    pub const fn prefix_bits(&self) -> u8 {
        self.prefix_bits
    }

    /// The broadcast address of the network, which those of IPv4 with a prefix shorter than 31 have.
    pub fn broadcast(&self) -> Option<Ipv4Addr> {
        match self.ip {
            IpAddr::V4(ip) if self.prefix_bits < 31 => {
                Some(Ipv4Addr::from_bits(ip.to_bits() | u32::MAX >> self.prefix_bits))
            }
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        }
    }

    /// Whether it is the address that names an IPv4 network, such as 10.1.0.0/24, and is no host's.
    pub fn is_network(&self) -> bool {
        match (self.ip, self.broadcast()) {
            (IpAddr::V4(ip), Some(_)) => ip.to_bits() & u32::MAX >> self.prefix_bits == 0,
            _ => false,
        }
    }

    /// Whether a host can have this address and tell it others. It cannot if the address is unspecified,
    /// broadcast, multicast, loopback, link-local, or that of a network as a whole.
    pub fn is_of_host(&self) -> bool {
        let is_local = match self.ip {
            IpAddr::V4(ip) => ip.is_link_local() || self.broadcast() == Some(ip) || ip.is_broadcast(),
            IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.to_ipv4_mapped().is_some(),
        };
        let is_special = self.ip.is_unspecified() || self.ip.is_multicast() || self.ip.is_loopback();
        !is_local && !is_special && !self.is_network()
    }

    /// Whether `ip` is an address of the same network.
    pub fn contains(&self, ip: IpAddr) -> bool {
        match (self.ip, ip) {
            (IpAddr::V4(own), IpAddr::V4(ip)) => {
                (own.to_bits() ^ ip.to_bits()).leading_zeros() >= u32::from(self.prefix_bits)
            }
            (IpAddr::V6(own), IpAddr::V6(ip)) => {
                (own.to_bits() ^ ip.to_bits()).leading_zeros() >= u32::from(self.prefix_bits)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// How many bits an address has.
const fn bits_of(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

impl FromStr for IpNetworkAddress {
    type Err = NotANetworkAddress;

    fn from_str(text: &str) -> Result<Self, NotANetworkAddress> {
        let (ip, prefix) =
            text.split_once('/').ok_or_else(|| NotANetworkAddress::NoPrefix(text.to_owned()))?;
        let ip: IpAddr = ip.parse().map_err(|_| NotANetworkAddress::NoAddress(ip.to_owned()))?;
        let address = prefix.parse().ok().and_then(|prefix| Self::new(ip, prefix));
        address.ok_or_else(|| NotANetworkAddress::Prefix { text: text.to_owned(), most: bits_of(ip) })
    }
}

impl fmt::Display for IpNetworkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix_bits)
    }
}

impl fmt::Debug for IpNetworkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpNetworkAddress {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_written_as_usual_is_read_and_shown_alike() {
        for text in ["10.1.0.1/24", "fd00::1/64", "192.0.2.0/31", "0.0.0.0/8", "fe80::7/10", "::/128"] {
            assert_eq!(address(text).to_string(), text);
        }
        for text in ["10.1.0.1", "10.1.0/24", "10.1.0.1/", "10.1.0.1/33", "10.1.0.1/0", "fd00::1/129"] {
            let error = text.parse::<IpNetworkAddress>().unwrap_err().to_string();
            assert!(error.contains("as 10.1.0.1/24"), "{text}: {error}");
        }
    }

    #[test]
    fn hosts_are_told_from_networks_and_from_what_nobody_else_can_use() {
        for text in
            ["10.1.0.1/24", "192.0.2.0/31", "192.0.2.9/32", "fd00::1/64", "fd00::/64", "2001:db8::7/48"]
        {
            assert!(address(text).is_of_host(), "{text}");
        }
        let nobodys = "10.1.0.0/24 10.1.0.255/24 0.0.0.0/8 224.0.0.1/24 127.0.0.1/8 ::1/128 ::/64 ff02::1/64 \
                       169.254.7.7/16 fe80::1/64 255.255.255.255/32 ::ffff:10.1.0.1/96";
        for text in nobodys.split(' ') {
            assert!(!address(text).is_of_host(), "{text}");
        }
        assert!(address("10.1.0.0/24").is_network());
        assert!(!address("10.1.0.0/31").is_network() && !address("fd00::/64").is_network());
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_alike() {
        let has = |network: &str, ip: &str| address(network).contains(ip.parse().unwrap());
        assert!(has("10.1.0.0/24", "10.1.0.255") && !has("10.1.0.0/24", "10.1.1.0"));
        assert!(has("10.1.0.9/32", "10.1.0.9") && !has("10.1.0.9/32", "10.1.0.8"));
        assert!(has("fd00::1/64", "fd00::ffff:0:0:1") && !has("fd00::1/64", "fd00:0:0:1::1"));
        assert!(!has("10.1.0.0/24", "::ffff:10.1.0.1"));
    }
}
