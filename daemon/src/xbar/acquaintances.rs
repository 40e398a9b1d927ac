//! The neighbours at a machine's ports, each known for a while after it has fallen silent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mapper_fib::crossbar::CabledPort;
use mapper_machine::link::interface::Interface;
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
}

impl Acquaintances {
    /// These interfaces as they are now, by their numbers, and which of them lead to a neighbour. `joined` says whose
    /// hellos are heard at each port.
    pub(crate) fn cabled(
        &mut self,
        now: Instant,
        interfaces: impl IntoIterator<Item = (u8, String)>,
        joined: &BTreeMap<u8, Neighbour>,
    ) -> (BTreeMap<u32, String>, Vec<Cabled>) {
        self.known.retain(|_, (_, heard_at)| now.since(*heard_at) < KEPT_FOR);
        self.known.extend(joined.iter().map(|(&port, &neighbour)| (port, (neighbour, now))));
        self.without_carrier.clear();
        let (mut names, mut cabled) = (BTreeMap::new(), Vec::new());
        for (number, name) in interfaces {
            let Ok(Some(Interface { index, mtu, carrier, .. })) = Interface::look_up(&name) else { continue };
            names.insert(index, name.clone());
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
                cabled.push(Cabled { port, mtu: mtu.min(neighbour.mtu), neighbour });
            }
        }
        (names, cabled)
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
