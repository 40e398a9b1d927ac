//! What the kernel carries, and what it does not, for boards.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use mapper_fib::NexthopId;
use mapper_fib::segments::Element;
use mapper_proto::Mac;
use mapper_proto::wire::Route;

use super::KernelPath;

/// Which hosts' packets go through the kernel, and which do not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelPathStatus {
    /// How many hosts the kernel sends packets to by segments.
    pub by_segments: usize,
    /// How many hosts the kernel sends packets to by their destination alone.
    pub by_destination: usize,
    /// The hosts of the map to which the kernel sends no packets, with the reason.
    pub not_carried: Vec<(Mac, NotCarried)>,
    /// How many objects the kernel is to hold.
    pub objects: usize,
}

/// A route that the kernel sends packets along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedRoute {
    /// The host at its end.
    pub to: Mac,
    /// The route of the agent's own frames through the same ports; empty where crossbars go by the destination.
    pub route: Route,
    /// The segments of packets of IPv4; none where crossbars go by the destination.
    pub segments: Vec<Ipv6Addr>,
    /// The port of this host that packets leave by.
    pub port: u8,
    /// How many packets its nexthops have taken since they lead along it, as far as the kernel counts.
    pub packets: u64,
}

/// Why the kernel does not send a host's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotCarried {
    /// The kernel of this machine cannot be used, or may not be.
    NotHere,
    /// This host has no address of IPv6, without which no probe can be sent.
    NoOwnAddress,
    /// The host has told no address of IPv6.
    NoAddress,
    /// No route leads there out of a port whose neighbour is known, through crossbars whose ports have numbers.
    NoWay,
    /// Probes are under way.
    BeingTried,
    /// No probe was answered: a kernel on the way does not forward, or a firewall drops what it should.
    NoAnswer,
}

impl std::fmt::Display for NotCarried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotHere => "the kernel of this machine is not used",
            Self::NoOwnAddress => "this host has no IPv6 address on the fabric",
            Self::NoAddress => "the host has told no IPv6 address of its own",
            Self::NoWay => "no route leads there through crossbars and cables whose kernels are known",
            Self::BeingTried => "its ways are being tried",
            Self::NoAnswer => {
                "probes through the kernels are not answered: a kernel on the way does not forward, or a \
                 firewall drops them"
            }
        })
    }
}

impl KernelPath {
    /// What the kernel carries now.
    pub fn status(&self) -> KernelPathStatus {
        let why_not = |mac: &Mac| {
            let it = self.destinations.get(mac)?;
            if it.is_carried() {
                return None;
            }
            Some(match () {
                () if !self.abilities.segments && !self.abilities.by_destination => NotCarried::NotHere,
                () if self.own.source_of_probes().is_none() => NotCarried::NoOwnAddress,
                () if it.target().is_none() => NotCarried::NoAddress,
                () if it.ways.is_empty() => NotCarried::NoWay,
                () if it.ways.iter().all(super::way::Way::is_refuted) => NotCarried::NoAnswer,
                () => NotCarried::BeingTried,
            })
        };
        let not_carried: Vec<_> =
            self.destinations.keys().filter_map(|mac| Some((*mac, why_not(mac)?))).collect();
        let carried = || self.destinations.values().filter(|it| it.is_carried());
        let by_segments = carried().filter(|it| it.goes_by_segments()).count();
        let objects = self.destinations.values().map(|it| it.installed.len()).sum::<usize>();
        KernelPathStatus {
            by_segments,
            by_destination: carried().count() - by_segments,
            not_carried,
            objects: objects + self.of_ports.len(),
        }
    }

    /// Whether all ways were tried that this run may send packets along now, so that what an earlier run left
    /// can go. It does not wait for ways by destination that become usable only once all hosts have the map,
    /// as tables of two maps could send a packet in a circle.
    pub fn has_tried_all(&self) -> bool {
        let is_tried = |why| match why {
            NotCarried::BeingTried | NotCarried::NoAddress | NotCarried::NoOwnAddress => false,
            NotCarried::NotHere | NotCarried::NoWay | NotCarried::NoAnswer => true,
        };
        self.status().not_carried.iter().all(|(_, why)| is_tried(*why))
    }

    /// Whether there is a host of which no probe was answered on any of its ways.
    pub fn lacks_answers(&self) -> bool {
        self.status().not_carried.iter().any(|(_, why)| *why == NotCarried::NoAnswer)
    }

    /// The routes that the kernel sends packets along, those to one host together. `counts` are the packets that each
    /// nexthop has taken.
    pub fn routes<'a>(
        &'a self,
        counts: &'a BTreeMap<NexthopId, u64>,
    ) -> impl Iterator<Item = CarriedRoute> + 'a {
        self.destinations.iter().filter(|(_, it)| it.is_carried()).flat_map(move |(&to, it)| {
            it.ways_in_use().map(move |way| CarriedRoute {
                to,
                route: way.round_trip.there.clone(),
                segments: way.segments(Element::DeliverV4).unwrap_or_default(),
                port: way.port,
                packets: it.nexthops_along(way.number).filter_map(|id| counts.get(&id)).sum(),
            })
        })
    }
}
