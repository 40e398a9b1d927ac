//! The ports of a machine as they are now, and which of them lead to a known neighbour.

use std::collections::{BTreeMap, BTreeSet};

use mapper_fib::LEAST_MTU_OF_IPV6;
use mapper_proto::Instant;
use mapper_proto::neighbours::Neighbour;

use super::KernelPort;
use super::acquaintances::Acquaintances;

/// The interface at a port of a machine, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortInterface {
    /// The number of the port.
    pub port: u8,
    /// The number of the interface.
    pub index: u32,
    /// What the interface is called.
    pub name: String,
    /// The longest packet that it sends, in bytes.
    pub mtu: u32,
    /// Whether it has carrier.
    pub has_carrier: bool,
}

impl PortInterface {
    /// Whether the kernel carries packets by it, if somebody is there. Below [`LEAST_MTU_OF_IPV6`] it has no IPv6.
    pub const fn speaks_v6(&self) -> bool {
        self.mtu >= LEAST_MTU_OF_IPV6
    }
}

/// The ports of a machine, and who is at the other ends of their cables.
#[derive(Debug, Default)]
pub struct CabledPorts {
    acquaintances: Acquaintances,
    /// The numbers of the interfaces that had no carrier when they were last looked at.
    without_carrier: BTreeSet<u32>,
}

impl CabledPorts {
    /// Which of these interfaces lead to a neighbour by which the kernel can send packets. `heard` says whose hellos are heard at
    /// each port.
    pub fn look(
        &mut self,
        now: Instant,
        interfaces: &[PortInterface],
        heard: &BTreeMap<u8, Neighbour>,
    ) -> Vec<KernelPort> {
        self.acquaintances.hear(now, heard.iter().map(|(&port, &neighbour)| (port, neighbour)));
        let dark = interfaces.iter().filter(|it| !it.has_carrier);
        self.without_carrier = dark.clone().map(|it| it.index).collect();
        dark.for_each(|it| self.acquaintances.lose_carrier(it.port));
        let ports = interfaces.iter().filter(|it| it.speaks_v6());
        let ports = ports.filter_map(|it| self.acquaintances.kernel_port(it));
        ports.filter(|port| port.mtu >= LEAST_MTU_OF_IPV6).collect()
    }

    /// Whether an interface had no carrier when [`Self::look`] last looked at it.
    pub(super) fn is_dark(&self, interface: u32) -> bool {
        self.without_carrier.contains(&interface)
    }

    /// The numbers of the interfaces that had no carrier then.
    pub(super) const fn without_carrier(&self) -> &BTreeSet<u32> {
        &self.without_carrier
    }
}

#[cfg(test)]
mod tests {
    use mapper_proto::Mac;
    use mapper_proto::wire::{HelloEnd, HelloFlags};

    use super::*;

    #[test]
    fn a_port_counts_that_has_carrier_a_neighbour_and_room_for_ipv6_at_both_ends() {
        let neighbour = |mtu| {
            let end = HelloEnd::Xbar { tag: Some(1), port: 3 };
            Neighbour { end, mac: Mac::from_position(1), mtu, flags: HelloFlags::SRV6 }
        };
        let interface = |port: u8, mtu, has_carrier| PortInterface {
            port,
            index: u32::from(port) + 10,
            name: format!("p{port}"),
            mtu,
            has_carrier,
        };
        let interfaces = [
            interface(1, 1500, true),
            interface(2, 1500, false),
            interface(3, 1279, true),
            interface(4, 1500, true),
            interface(5, 1500, true),
        ];
        let heard = [(1, 1400), (2, 1500), (3, 1500), (4, 1279)].map(|(port, mtu)| (port, neighbour(mtu)));
        let mut ports = CabledPorts::default();
        let cabled = ports.look(Instant::ZERO, &interfaces, &heard.into());
        let found: Vec<_> =
            cabled.iter().map(|port| (port.cabled.port, port.cabled.interface, port.mtu)).collect();
        assert_eq!(found, [(1, 11, 1400)]);
        assert_eq!([11, 12].map(|interface| ports.is_dark(interface)), [false, true]);
    }
}
