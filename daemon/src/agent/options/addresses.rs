//! Which addresses of IP the interface over the fabric gets.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use mapper_machine::link::address::InterfaceAddress;
use mapper_proto::{IpNetworkAddress, Mac};

/// What one `address` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedAddress {
    /// This address.
    Stated(InterfaceAddress),
    /// Any address of this network of IPv4 that no other host has.
    Picked(IpNetworkAddress),
}

impl FromStr for WantedAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<IpNetworkAddress>() {
            Ok(network) if network.is_network() && is_for_hosts(network.ip()) => Ok(Self::Picked(network)),
            _ => text.parse().map(Self::Stated).map_err(|error| {
                format!("{error}, or 10.1.0.0/24 to have an address of that network picked")
            }),
        }
    }
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
            assert!(read(wrong).unwrap_err().contains("10.1.0.0/24 to have"), "{wrong}");
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
