//! The addresses of this host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mapper_proto::IpNetworkAddress;

use super::NetworksApart;

/// The addresses of this host, in the order in which others are told of them: first those at which it is
/// reached whatever routes there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OwnAddresses {
    all: Vec<IpNetworkAddress>,
    /// The addresses of the tap interface. Each host of their networks is reached there.
    of_tap: Vec<IpNetworkAddress>,
}

impl OwnAddresses {
    pub(super) const fn new(all: Vec<IpNetworkAddress>, of_tap: Vec<IpNetworkAddress>) -> Self {
        Self { all, of_tap }
    }

    /// The first IPv4 address.
    pub(super) fn first_v4(&self) -> Option<Ipv4Addr> {
        self.all.iter().find_map(|own| match own.ip() {
            IpAddr::V4(ip) => Some(ip),
            IpAddr::V6(_) => None,
        })
    }

    /// Whether there is an IPv6 address.
    pub(super) fn has_v6(&self) -> bool {
        self.source_of_probes().is_some()
    }

    /// The IPv6 address that probes come from. It is the first one, to which other hosts send their probes:
    /// answers to another one might find no way back until ways are proved.
    pub(super) fn source_of_probes(&self) -> Option<Ipv6Addr> {
        self.all.iter().find_map(|own| match own.ip() {
            IpAddr::V6(ip) => Some(ip),
            IpAddr::V4(_) => None,
        })
    }

    /// The source address of packets to another host's address: one in the same network, or the first of the
    /// same version. `None` if there is none.
    pub(super) fn source_towards(&self, to: IpAddr) -> Option<IpAddr> {
        let same = |own: &&IpNetworkAddress| own.ip().is_ipv4() == to.is_ipv4();
        let found = self.all.iter().find(|own| own.contains(to)).or_else(|| self.all.iter().find(same));
        found.map(IpNetworkAddress::ip)
    }

    /// The network of this host's first IPv6 address, and that of another host's, if none of the other's is in one of this
    /// host's networks.
    pub(super) fn networks_apart(&self, others: impl Iterator<Item = IpAddr>) -> Option<NetworksApart> {
        let mut others = others.filter(IpAddr::is_ipv6).peekable();
        let IpAddr::V6(first) = *others.peek()? else { return None };
        if others.any(|ip| self.all.iter().any(|own| own.contains(ip))) {
            return None;
        }
        let own = self.all.iter().find(|own| own.ip().is_ipv6())?;
        let IpAddr::V6(ip) = own.ip() else { return None };
        let prefix_bits = own.prefix_bits();
        let network = |ip: Ipv6Addr| {
            let of_host = u128::MAX.checked_shr(u32::from(prefix_bits)).unwrap_or(0);
            Ipv6Addr::from_bits(ip.to_bits() & !of_host)
        };
        Some(NetworksApart { own: network(ip), other: network(first), prefix_bits })
    }

    /// Whether an address is in a network of the tap interface, so that the kernel has a route out of it by itself, or is this
    /// host's. The network of a port may be that of its cable alone, and may be that of all ports of all hosts.
    pub(super) fn reaches_by_tap(&self, ip: IpAddr) -> bool {
        self.has(ip) || self.of_tap.iter().any(|own| own.contains(ip))
    }

    pub(super) fn has(&self, ip: IpAddr) -> bool {
        self.all.iter().any(|own| own.ip() == ip)
    }
}
