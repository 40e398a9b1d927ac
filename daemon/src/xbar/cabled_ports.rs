//! The neighbours at a machine's ports, each known for a while after it has fallen silent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mapper_fib::crossbar::CabledPort;
use mapper_machine::link::interface::{Interface, LEAST_MTU_OF_IPV6};
use mapper_proto::Instant;
use mapper_proto::neighbours::Neighbour;
use mapper_proto::wire::{HelloEnd, HelloFlags};

/// How long a neighbour that has fallen silent is taken to be there still, while the cable has carrier.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// A port of this machine whose neighbour is known.
#[derive(Debug, Clone)]
pub(crate) struct Cabled {
    /// The port, as the kernel is told of it.
    pub port: CabledPort,
    /// The longest frame that both ends of the cable carry, in bytes behind the Ethernet header.
    pub mtu: u32,
    /// The neighbour.
    pub neighbour: Neighbour,
}

/// Whether a neighbour sends packets by segments, by what it last said, and whether it is heard still.
///
/// One whose kernel knows segments and that goes by destination for others' sake may pass on packets of hosts that do not yet, so
/// as long as it is heard, segments from it are obeyed; it sends packets by their destination to those alone that ask for them.
/// Once its daemon has crashed, its kernel goes on so whatever others ask for. A host without a crossbar goes one way as long as
/// it runs, and says only whether that is by destination.
///
/// One that says nothing of its kernel has just started, or uses it for nothing. Until more is known its kernel goes on as it did
/// `before`, in an earlier run of its daemon.
fn sends_segments(neighbour: &Neighbour, is_heard: bool, before: Option<bool>) -> bool {
    let does = |flag| neighbour.flags.contains(flag);
    let by_destination = does(HelloFlags::ROUTES);
    match neighbour.end {
        HelloEnd::Xbar { .. } if does(HelloFlags::SRV6) => is_heard || !by_destination,
        HelloEnd::Xbar { .. } | HelloEnd::Host { .. } if by_destination => false,
        HelloEnd::Xbar { .. } | HelloEnd::Host { .. } => before.unwrap_or(true),
    }
}

/// The neighbours at all ports, also those that have fallen silent while their cable kept its carrier: their daemon
/// may have crashed, and their kernel go on.
#[derive(Debug, Default)]
pub(crate) struct Acquaintances {
    /// By the number of the port: the neighbour, and when it was last heard.
    known: BTreeMap<u8, (Neighbour, Instant)>,
    /// Whether the neighbours at these ports send packets by segments.
    send_segments: BTreeMap<u8, bool>,
    /// The numbers of the interfaces that had no carrier when they were last looked at.
    without_carrier: BTreeSet<u32>,
    /// The interfaces whose MTU was too small for IPv6 then, with that MTU.
    too_small: BTreeMap<String, u32>,
}

impl Acquaintances {
    /// These interfaces as they are now, by their numbers, and which of them lead to a neighbour. `joined` says whose
    /// hellos are heard at each port. Interfaces on which IPv6 does not work are left out, as the kernel takes nothing there.
    pub(crate) fn cabled(
        &mut self,
        now: Instant,
        interfaces: impl IntoIterator<Item = (u8, String)>,
        joined: &BTreeMap<u8, Neighbour>,
    ) -> (BTreeMap<u32, String>, Vec<Cabled>) {
        self.known.retain(|_, (_, heard_at)| now.since(*heard_at) < KEPT_FOR);
        self.known.extend(joined.iter().map(|(&port, &neighbour)| (port, (neighbour, now))));
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
                // Whoever is there when the carrier comes back may be another.
                self.known.remove(&number);
                self.send_segments.remove(&number);
                self.without_carrier.insert(index);
            }
            if let Some(&(neighbour, _)) = self.known.get(&number) {
                let neighbour_port = match neighbour.end {
                    HelloEnd::Xbar { port, .. } => port,
                    HelloEnd::Host { .. } => 0,
                };
                let before = self.send_segments.get(&number).copied();
                let sends_segments = sends_segments(&neighbour, joined.contains_key(&number), before);
                self.send_segments.insert(number, sends_segments);
                let port = CabledPort {
                    port: number,
                    interface: index,
                    name,
                    neighbour: neighbour.mac,
                    neighbour_port,
                    sends_segments,
                };
                let mtu = mtu.min(neighbour.mtu);
                if mtu >= LEAST_MTU_OF_IPV6 {
                    cabled.push(Cabled { port, mtu, neighbour });
                }
            }
        }
        (names, cabled)
    }

    /// Says in words at which interfaces the kernel carries nothing for their MTU, as [`Self::cabled`] last found them.
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

    /// The numbers of the interfaces that had no carrier when [`Self::cabled`] last looked at them.
    pub(crate) const fn without_carrier(&self) -> &BTreeSet<u32> {
        &self.without_carrier
    }
}

#[cfg(test)]
mod tests {
    use mapper_proto::Mac;

    use super::*;

    #[test]
    fn ports_that_are_too_small_for_ipv6_are_named_with_what_to_do() {
        let mut acquaintances = Acquaintances::default();
        assert_eq!(acquaintances.too_small(), None);
        acquaintances.too_small = BTreeMap::from([("p1".to_owned(), 1200), ("p2".to_owned(), 1279)]);
        let words = acquaintances.too_small().unwrap();
        assert!(words.contains("p1 (1200 bytes), p2 (1279 bytes)") && words.contains("mtu 1500"), "{words}");
        // The loopback interface is wide enough, and one that is not there is of no concern.
        let there = [(1, "lo".to_owned()), (2, "nosuch0".to_owned())];
        let (names, _) = acquaintances.cabled(Instant::ZERO, there, &BTreeMap::new());
        assert!(names.into_values().eq(["lo".to_owned()]));
        assert_eq!(acquaintances.too_small(), None);
    }

    #[test]
    fn segments_come_from_whoever_sends_nothing_by_destination_alone() {
        let mac = Mac::from_position(1);
        let (xbar, host) = (HelloEnd::Xbar { tag: Some(1), port: 1 }, HelloEnd::Host { mac });
        let both = HelloFlags::SRV6.with(HelloFlags::ROUTES);
        let (yes, no) = (Some(true), Some(false));
        let cases = [
            // The neighbour, what it said, whether it sent segments before, and whether it sends some while it is heard, and when it
            // has fallen silent.
            (xbar, HelloFlags::SRV6, no, [true, true]),
            (xbar, both, no, [true, false]),
            (xbar, HelloFlags::ROUTES, yes, [false, false]),
            (xbar, HelloFlags::NONE, yes, [true, true]),
            (xbar, HelloFlags::NONE, no, [false, false]),
            (xbar, HelloFlags::NONE, None, [true, true]),
            (host, HelloFlags::NONE, None, [true, true]),
            (host, HelloFlags::ROUTES, yes, [false, false]),
        ];
        for (end, flags, before, expected) in cases {
            let neighbour = Neighbour { end, mac, mtu: 1500, flags };
            let sends = [true, false].map(|is_heard| sends_segments(&neighbour, is_heard, before));
            assert_eq!(sends, expected, "{neighbour:?}");
        }
    }
}
