//! The ports of a machine as the kernel is told of them: its interfaces, and the neighbours that are heard there.

use std::collections::{BTreeMap, BTreeSet};

use mapper_host::kernel_path::{Acquaintances, KernelPort};
use mapper_machine::link::interface::{Interface, LEAST_MTU_OF_IPV6};
use mapper_proto::Instant;
use mapper_proto::neighbours::Neighbour;

/// The ports of a machine, and who is at the other ends of their cables.
#[derive(Debug, Default)]
pub(crate) struct CabledPorts {
    acquaintances: Acquaintances,
    /// The numbers of the interfaces that had no carrier when they were last looked at.
    without_carrier: BTreeSet<u32>,
    /// The interfaces whose MTU was too small for IPv6 then, with that MTU.
    too_small: BTreeMap<String, u32>,
}

impl CabledPorts {
    /// These interfaces as they are now, by their numbers, and which of them lead to a neighbour. `joined` says whose
    /// hellos are heard at each port. Interfaces on which IPv6 does not work are left out, as the kernel takes nothing there.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        interfaces: impl IntoIterator<Item = (u8, String)>,
        joined: &BTreeMap<u8, Neighbour>,
    ) -> (BTreeMap<u32, String>, Vec<KernelPort>) {
        self.acquaintances.hear(now, joined.iter().map(|(&port, &neighbour)| (port, neighbour)));
        self.without_carrier.clear();
        self.too_small.clear();
        let (mut names, mut cabled) = (BTreeMap::new(), Vec::new());
        for (number, name) in interfaces {
            let Ok(Some(Interface { index, mtu, carrier, .. })) = Interface::look_up(&name) else { continue };
            if mtu < LEAST_MTU_OF_IPV6 {
                self.too_small.insert(name.clone(), mtu);
            } else {
                names.insert(index, name.clone());
            }
            if !carrier {
                self.acquaintances.lose_carrier(number);
                self.without_carrier.insert(index);
            }
            let port = self.acquaintances.kernel_port(number, index, name, mtu);
            cabled.extend(port.filter(|port| port.mtu >= LEAST_MTU_OF_IPV6));
        }
        (names, cabled)
    }

    /// Says in words at which interfaces the kernel carries nothing for their MTU, as [`Self::look`] last found them.
    pub(crate) fn too_small(&self) -> Option<String> {
        let ports: Vec<_> =
            self.too_small.iter().map(|(name, mtu)| format!("{name} ({mtu} bytes)")).collect();
        let first = self.too_small.keys().next()?;
        Some(format!(
            "the MTU is too small for IPv6 at {}: Linux switches IPv6 off below {LEAST_MTU_OF_IPV6}, so the kernel carries no \
             packets there; raise it at both ends of the cable, as with `ip link set {first} mtu 1500`",
            ports.join(", ")
        ))
    }

    /// The numbers of the interfaces that had no carrier when [`Self::look`] last looked at them.
    pub(crate) const fn without_carrier(&self) -> &BTreeSet<u32> {
        &self.without_carrier
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_are_too_small_for_ipv6_are_named_with_what_to_do() {
        let mut ports = CabledPorts::default();
        assert_eq!(ports.too_small(), None);
        ports.too_small = BTreeMap::from([("p1".to_owned(), 1200), ("p2".to_owned(), 1279)]);
        let words = ports.too_small().unwrap();
        assert!(words.contains("p1 (1200 bytes), p2 (1279 bytes)") && words.contains("mtu 1500"), "{words}");
        // The loopback interface is wide enough, and one that is not there is of no concern.
        let there = [(1, "lo".to_owned()), (2, "nosuch0".to_owned())];
        let (names, _) = ports.look(Instant::ZERO, there, &BTreeMap::new());
        assert!(names.into_values().eq(["lo".to_owned()]));
        assert_eq!(ports.too_small(), None);
    }
}
