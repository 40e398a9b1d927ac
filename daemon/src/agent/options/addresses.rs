//! Which addresses of IP the interface over the fabric gets.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use mapper_machine::link::address::InterfaceAddress;
use mapper_proto::{IpNetworkAddress, Mac, NotANetworkAddress};
use thiserror::Error;

/// What one `address` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedAddress {
    /// This address.
    Stated(InterfaceAddress),
    /// Any address of this network of IPv4 that no other host has.
    Picked(IpNetworkAddress),
}

/// Why a text is no address of a host on the fabric.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WrongAddress {
    /// It is no address with a prefix.
    #[error("{0}, or 10.1.0.0/24 to have an address of that network picked")]
    Unreadable(#[from] NotANetworkAddress),
    /// No host can have it, or none of its network.
    #[error(
        "`{address}` is {kind}, which no host of a fabric can have; expected ADDRESS/PREFIX, as 10.1.0.1/24 or fd00::1/64, or \
         10.1.0.0/24 to have an address of that network picked"
    )]
    OfNoHost {
        /// What was given.
        address: IpNetworkAddress,
        /// What it is, in words.
        kind: &'static str,
    },
    /// It is link-local, and so means another host on each network.
    #[error(
        "`{0}` is a link-local address, which is not valid beyond a cable; expected one as 10.1.0.1/24 or fd00::1/64, or \
         10.1.0.0/24 to have an address of that network picked. Without any, hosts have the address that --fabric-prefix and \
         their MAC make"
    )]
    LinkLocal(IpNetworkAddress),
    /// It names a network of IPv6, of which none is picked.
    #[error(
        "`{0}` is a network of IPv6, not an address, and addresses are picked of networks of IPv4 alone; to have the address \
         that a network of 64 bits and the MAC make, give it as --fabric-prefix NETWORK, as in fd00:1:2:3::/64, or state an \
         address, as fd00::1/64"
    )]
    NetworkOfIpv6(IpNetworkAddress),
}

impl FromStr for WantedAddress {
    type Err = WrongAddress;

    fn from_str(text: &str) -> Result<Self, WrongAddress> {
        let address = text.parse::<IpNetworkAddress>()?;
        if let Some(kind) = kind_of_no_host(address) {
            return Err(WrongAddress::OfNoHost { address, kind });
        }
        if is_link_local(address.ip()) {
            return Err(WrongAddress::LinkLocal(address));
        }
        if is_network_of_ipv6(address) {
            return Err(WrongAddress::NetworkOfIpv6(address));
        }
        if address.is_network() {
            return Ok(Self::Picked(address));
        }
        let stated = InterfaceAddress::new(address).filter(|_| address.is_of_host());
        let kind = "no address of its own";
        stated.map(Self::Stated).ok_or(WrongAddress::OfNoHost { address, kind })
    }
}

/// What an address is called that no host can have wherever it is.
fn kind_of_no_host(address: IpNetworkAddress) -> Option<&'static str> {
    let ip = address.ip();
    let is_broadcast = match ip {
        IpAddr::V4(v4) => v4.is_broadcast() || address.broadcast() == Some(v4),
        IpAddr::V6(_) => false,
    };
    let kinds = [
        (ip.is_unspecified(), "the unspecified address"),
        (ip.is_loopback(), "a loopback address"),
        (ip.is_multicast(), "a multicast address"),
        (is_broadcast, "a broadcast address"),
        (is_mapped(ip), "an address of IPv4 in the form of IPv6"),
    ];
    kinds.into_iter().find(|(is_so, _)| *is_so).map(|(_, kind)| kind)
}

/// Whether it is an address of IPv4 in the form of IPv6, as ::ffff:10.1.0.1.
fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// Whether nothing is left of an address of IPv6 behind its prefix. One of a network of two addresses, or of its own, is a host's.
fn is_network_of_ipv6(address: IpNetworkAddress) -> bool {
    let IpAddr::V6(ip) = address.ip() else { return false };
    address.prefix_bits() < 127 && ip.to_bits() & u128::MAX >> address.prefix_bits() == 0
}

/// Whether the network that begins at this address has addresses that hosts may have.
fn is_for_hosts(ip: IpAddr) -> bool {
    !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback()
}

/// The network of IPv6, of 64 bits, in which each host of a fabric has the address that its MAC makes; or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FabricPrefix(Option<Ipv6Addr>);

impl FabricPrefix {
    /// Fd, then `mapper` in ASCII: a unique local network (RFC 4193) that is the same for all fabrics, so that
    /// hosts reach each other with nothing configured.
    pub const DEFAULT: Self = Self(Some(Ipv6Addr::new(0xfd6d, 0x6170, 0x7065, 0x7200, 0, 0, 0, 0)));
    const BITS: u8 = 64;

    /// The address of the host with this MAC, by its modified EUI-64 (RFC 4291, appendix A); `None` if hosts get
    /// none.
    pub fn address_of(self, mac: Mac) -> Option<InterfaceAddress> {
        let [a, b, c, d, e, f] = mac.0;
        // This bit is 0 in a MAC that is unique in the world, and 1 in the address that is made of it.
        let own = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
        let ip = Ipv6Addr::from_bits(self.0?.to_bits() | u128::from(own));
        InterfaceAddress::new(IpNetworkAddress::new(ip.into(), Self::BITS)?)
    }

    /// The MAC of the host that has this address by [`Self::address_of`]; `None` if no MAC makes it.
    pub fn mac_of(self, ip: Ipv6Addr) -> Option<Mac> {
        let own = ip.to_bits().checked_sub(self.0?.to_bits()).and_then(|own| u64::try_from(own).ok())?;
        match own.to_be_bytes() {
            [a, b, c, 0xff, 0xfe, d, e, f] => Some(Mac([a ^ 2, b, c, d, e, f])),
            _ => None,
        }
    }
}

impl Default for FabricPrefix {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl FromStr for FabricPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let network = text.parse::<IpNetworkAddress>().ok().filter(|it| it.prefix_bits() == Self::BITS);
        let ip = match network.map(|network| network.ip()) {
            Some(IpAddr::V6(ip)) if ip.to_bits() as u64 == 0 => Some(ip),
            _ => None,
        };
        let ip = ip.filter(|&ip| is_for_hosts(ip.into()) && !ip.is_unicast_link_local());
        ip.map(|ip| Self(Some(ip))).ok_or_else(|| {
            format!("`{text}` is no network of IPv6 of 64 bits; expected one as fd00:1:2:3::/64, or none")
        })
    }
}

impl fmt::Display for FabricPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ip) => write!(f, "{ip}/{}", Self::BITS),
            None => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_network_has_one_picked_and_any_other_is_stated() {
        let read = |text: &str| text.parse::<WantedAddress>();
        assert_eq!(read("10.1.0.0/24"), Ok(WantedAddress::Picked("10.1.0.0/24".parse().unwrap())));
        assert_eq!(read("10.1.0.3/24"), Ok(WantedAddress::Stated("10.1.0.3/24".parse().unwrap())));
        assert_eq!(read("192.0.2.0/31"), Ok(WantedAddress::Stated("192.0.2.0/31".parse().unwrap())));
        for wrong in ["0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/24", "10.1.0.255/24", "10.1.0.0", "x"] {
            assert!(read(wrong).unwrap_err().to_string().contains("10.1.0.0/24 to have"), "{wrong}");
        }
    }

    #[test]
    fn what_no_host_of_a_fabric_can_have_is_refused_with_what_it_is_and_what_would_do() {
        let refused = |text: &str| text.parse::<WantedAddress>().unwrap_err();
        let kinds = [
            ("0.0.0.0/8", "unspecified"),
            ("::/64", "unspecified"),
            ("127.0.0.1/8", "loopback"),
            ("::1/128", "loopback"),
            ("224.0.0.1/24", "multicast"),
            ("ff02::1/64", "multicast"),
            ("10.1.0.255/24", "broadcast"),
            ("255.255.255.255/32", "broadcast"),
            ("::ffff:10.1.0.1/96", "of IPv4 in the form of IPv6"),
        ];
        for (text, kind) in kinds {
            let error = refused(text);
            assert!(matches!(error, WrongAddress::OfNoHost { .. }), "{text}: {error}");
            let error = error.to_string();
            assert!(error.contains(kind) && error.contains("fd00::1/64"), "{text}: {error}");
        }
        for text in ["fe80::1/64", "fe80::/64", "169.254.0.1/16", "169.254.0.0/16"] {
            assert!(matches!(refused(text), WrongAddress::LinkLocal(_)), "{text}");
        }
        for text in ["fd00::/64", "fd00::/48", "2001:db8::/126"] {
            let error = refused(text);
            assert!(matches!(error, WrongAddress::NetworkOfIpv6(_)), "{text}: {error}");
            assert!(error.to_string().contains("--fabric-prefix"), "{error}");
        }
        for text in ["fd00::1/64", "fd00::/127", "fd00::/128", "2001:db8::9/125"] {
            assert_eq!(text.parse(), Ok(WantedAddress::Stated(text.parse().unwrap())), "{text}");
        }
    }

    #[test]
    fn the_fabrics_prefix_and_a_mac_make_an_address() {
        let of =
            |prefix: FabricPrefix| prefix.address_of(Mac([0x02, 0, 0, 0, 0, 9])).map(|it| it.to_string());
        assert_eq!(of(FabricPrefix::DEFAULT).as_deref(), Some("fd6d:6170:7065:7200:0:ff:fe00:9/64"));
        assert_eq!(of("fd00:1:2:3::/64".parse().unwrap()).as_deref(), Some("fd00:1:2:3:0:ff:fe00:9/64"));
        assert_eq!(of("none".parse().unwrap()), None);
        let mac = |prefix: FabricPrefix, ip: &str| prefix.mac_of(ip.parse().unwrap());
        assert_eq!(
            mac(FabricPrefix::DEFAULT, "fd6d:6170:7065:7200:0:ff:fe00:9"),
            Some(Mac([2, 0, 0, 0, 0, 9]))
        );
        for other in ["fd6d:6170:7065:7200::9", "fd6d:6170:7065:7201:0:ff:fe00:9", "::1", "ff02::1"] {
            assert_eq!(mac(FabricPrefix::DEFAULT, other), None, "{other}");
        }
        assert_eq!(mac("none".parse().unwrap(), "fd6d:6170:7065:7200:0:ff:fe00:9"), None);
        for wrong in ["fd00::/48", "fd00::1/64", "10.1.0.0/24", "fe80::/64", "ff02::/64", "::/64", "nothing"]
        {
            let error = wrong.parse::<FabricPrefix>().unwrap_err();
            assert!(error.contains("expected one as fd00:1:2:3::/64"), "{wrong}: {error}");
        }
        for text in ["fd6d:6170:7065:7200::/64", "none"] {
            assert_eq!(text.parse::<FabricPrefix>().unwrap().to_string(), text);
        }
    }
}
