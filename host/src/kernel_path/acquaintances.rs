//! The neighbours at a machine's ports, each known for a while after it has fallen silent: its daemon may have crashed, and its
//! kernel go on.

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_fib::crossbar::CabledPort;
use mapper_proto::neighbours::Neighbour;
use mapper_proto::wire::{HelloEnd, HelloFlags};
use mapper_proto::{Instant, PortSet};

use super::{KernelPort, PortInterface};

/// How long a neighbour that has fallen silent is taken to be there still, while the cable has carrier.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The neighbours at all ports of a machine.
#[derive(Debug, Default)]
pub(super) struct Acquaintances {
    /// By the number of the port: the neighbour, and when it was last heard.
    known: BTreeMap<u8, (Neighbour, Instant)>,
    /// The ports whose neighbour is heard now.
    heard: PortSet,
    /// Whether the neighbours at these ports send packets by segments.
    send_segments: BTreeMap<u8, bool>,
}

impl Acquaintances {
    /// Takes in whose hellos are heard now, and at which ports, and forgets who has been silent for too long.
    pub(super) fn hear(&mut self, now: Instant, heard: impl IntoIterator<Item = (u8, Neighbour)>) {
        self.known.retain(|_, (_, heard_at)| now.since(*heard_at) < KEPT_FOR);
        self.heard = PortSet::NONE;
        for (port, neighbour) in heard {
            self.heard.insert(port);
            self.known.insert(port, (neighbour, now));
        }
    }

    /// Takes in that a port has no carrier. Whoever is there when it comes back may be another.
    pub(super) fn lose_carrier(&mut self, port: u8) {
        self.known.remove(&port);
        self.send_segments.remove(&port);
    }

    /// What the kernel is told of the port with this interface; `None` if its neighbour is not known.
    pub(super) fn kernel_port(&mut self, interface: &PortInterface) -> Option<KernelPort> {
        let &PortInterface { port, index, ref name, mtu, has_carrier: _ } = interface;
        let &(neighbour, _) = self.known.get(&port)?;
        let before = self.send_segments.get(&port).copied();
        let sends_segments = sends_segments(&neighbour, self.heard.contains(port), before);
        self.send_segments.insert(port, sends_segments);
        let neighbour_port = match neighbour.end {
            HelloEnd::Xbar { port, .. } => port,
            HelloEnd::Host { .. } => 0,
        };
        let neighbour_mac = neighbour.mac;
        let cabled = CabledPort {
            port,
            interface: index,
            name: name.clone(),
            neighbour: neighbour_mac,
            neighbour_port,
            sends_segments,
        };
        Some(KernelPort::of(cabled, mtu.min(neighbour.mtu), neighbour.end, neighbour.flags))
    }
}

/// Whether a neighbour sends packets by segments, by what it last said, and whether it is heard still.
///
/// A neighbour whose kernel knows segments may go by destination for the sake of others. As long as it is heard, segments from it
/// are obeyed, as it may pass on packets of hosts that still send by segments; by their destination it sends packets to those
/// neighbours alone that ask for it. Once its daemon has crashed, its kernel goes on so, whatever others ask for. A host without a crossbar goes one way as long as
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

#[cfg(test)]
mod tests {
    use mapper_proto::Mac;

    use super::*;

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

    #[test]
    fn who_falls_silent_is_known_for_a_minute_while_the_port_keeps_its_carrier() {
        let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
        let end = HelloEnd::Xbar { tag: Some(1), port: 3 };
        let neighbour = Neighbour { end, mac: Mac::from_position(1), mtu: 1400, flags: HelloFlags::SRV6 };
        let mut acquaintances = Acquaintances::default();
        acquaintances.hear(at(1), [(1, neighbour), (2, neighbour)]);
        let interface =
            |port| PortInterface { port, index: 7, name: "p".to_owned(), mtu: 1500, has_carrier: true };
        let told = |acquaintances: &mut Acquaintances| {
            let ports = [1, 2].map(|port| acquaintances.kernel_port(&interface(port)));
            ports.map(|port| port.map(|port| (port.mtu, port.cabled.neighbour_port, port.by_segments)))
        };
        let known = Some((1400, 3, true));
        assert_eq!(told(&mut acquaintances), [known, known]);
        acquaintances.lose_carrier(2);
        acquaintances.hear(at(60), []);
        assert_eq!(told(&mut acquaintances), [known, None]);
        acquaintances.hear(at(61), []);
        assert_eq!(told(&mut acquaintances), [None, None]);
    }
}
