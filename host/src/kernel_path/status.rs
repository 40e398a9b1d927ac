//! What the kernel carries, and what it does not, for boards.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use mapper_fib::segments::Element;
use mapper_proto::wire::Route;
use mapper_proto::{Mac, PortSet, crossbar_tag};

use super::destination::KernelDestination;
use super::surroundings::{ByDestination, CABLE};
use super::way::Way;
use super::{KernelPath, KernelPort};
use crate::routes::RouteTable;

/// Which hosts' packets go through the kernel, and which do not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelPathStatus {
    /// How many hosts the kernel sends packets to by segments.
    pub by_segments: usize,
    /// How many hosts the kernel sends packets to by their destination alone.
    pub by_destination: usize,
    /// The host for whose sake packets go by their destination though this kernel knows segments, if that is so and it is known.
    pub for_sake_of: Option<Mac>,
    /// The hosts of the map to which the kernel sends no packets, with the reason.
    pub not_carried: Vec<(Mac, NotCarried)>,
    /// The hosts to which the kernel sends packets of IPv6 alone, as nothing of IPv4 gets through on the ways there.
    pub v4_not_carried: Vec<Mac>,
    /// The hosts to which packets are shorter than the ends of all cables on the way say.
    pub shortened: Vec<(Mac, Shortened)>,
    /// How many objects the kernel is to hold.
    pub objects: usize,
}

/// How long the frames are that get through to a host, in bytes behind the Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shortened {
    /// The longest that do.
    pub to: u32,
    /// The longest by what the ends of all cables on the way say.
    pub said: u32,
}

impl KernelPathStatus {
    /// The same where a host that has told nothing of itself yet may still tell an address.
    #[must_use]
    pub(crate) fn awaiting(mut self, has_told: impl Fn(Mac) -> bool) -> Self {
        for (mac, why) in &mut self.not_carried {
            if *why == NotCarried::NoAddress && !has_told(*mac) {
                *why = NotCarried::BeingTried;
            }
        }
        self
    }

    /// The same of a host that goes by segments, with the cause where another one's kernel knows none, as that one tells all.
    #[must_use]
    pub(crate) fn naming_those_without_segments(mut self, of: impl Fn(Mac) -> ByDestination) -> Self {
        for (mac, why) in &mut self.not_carried {
            if *why == NotCarried::NoAnswer && of(*mac).is_needed() {
                *why = NotCarried::LacksSegments;
            }
        }
        self
    }
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
    /// How many packets its nexthops have taken since they lead along it, as far as the kernel counts: of the packets of a connection
    /// those whose route it looks up, about two a second.
    pub packets: u64,
}

/// Who is behind a port of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Behind {
    /// The port.
    pub port: u8,
    /// The host whose crossbar is there, or that is there itself, as far as it can be told, and otherwise the address of the
    /// interface there.
    pub who: Mac,
}

/// Why the kernel does not send a host's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotCarried {
    /// The kernel of this machine cannot be used, or may not be.
    NotHere,
    /// This host has no address of IPv6, without which no probe can be sent.
    NoOwnAddress,
    /// The host has told no address of IPv6.
    NoAddress,
    /// No route leads there out of a port whose neighbour is known, through crossbars whose ports have numbers.
    NoWay,
    /// The routes lead out of a port whose neighbour's kernel obeys no segments.
    NeighbourLacksSegments(Behind),
    /// This kernel goes by the destination alone, and the neighbours' kernels on the way there do not.
    NeighbourLacksRoutes(Behind),
    /// Probes are under way, or will be once all hosts have the map and the host has told its addresses.
    BeingTried,
    /// No probe was answered, as the host's own kernel obeys no segments, by which this one goes.
    LacksSegments,
    /// No probe was answered: a kernel on the way does not forward, or a firewall drops what it should.
    NoAnswer,
    /// No probe was answered, as the host's IPv6 addresses are in none of this host's networks on the fabric.
    OtherNetwork(NetworksApart),
}

/// The networks of two hosts that have none in common, as far as this host's prefix tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetworksApart {
    /// The first address of the network that this host sends probes from.
    pub own: Ipv6Addr,
    /// The same of the other host's network, if that is as large.
    pub other: Ipv6Addr,
    /// How many bits name them.
    pub prefix_bits: u8,
}

impl NotCarried {
    /// The reason in words, and what to do. `called` is what people call a host.
    pub fn describe(&self, called: impl Fn(Mac) -> String) -> String {
        let words = match self {
            Self::NeighbourLacksSegments(Behind { port, who }) => {
                let who = called(*who);
                return format!(
                    "the kernel of {who}, behind port {port}, has no SRv6 or may not use it: run a kernel with SRv6 \
                     there, without `--data-path tap`, or all machines with `--data-path routes`"
                );
            }
            Self::NeighbourLacksRoutes(Behind { port, who }) => {
                let who = called(*who);
                return format!(
                    "this machine goes by plain routes alone, as its kernel has no SRv6 or may not use it or `--data-path routes` \
                     says so, and the kernel of {who}, behind port {port}, forwards nothing by these: have that machine run \
                     `mapper node` with `--data-path routes`, or this one go by SRv6 (`--data-path auto`)"
                );
            }
            Self::OtherNetwork(NetworksApart { own, other, prefix_bits }) => {
                return format!(
                    "the other host's IPv6 addresses are of the network {other}/{prefix_bits}, and this host's of {own}/{prefix_bits}, so that \
                     neither has a route to the other: start all hosts with the same --fabric-prefix"
                );
            }
            Self::NotHere => "the kernel of this machine has no SRv6 or may not use it",
            Self::LacksSegments => {
                "its kernel has no SRv6 or may not use it, and this machine goes by that: run a kernel with SRv6 there, without \
                 `--data-path tap`, or all machines with `--data-path routes`"
            }
            Self::NoOwnAddress => "this host has no IPv6 address on the fabric",
            Self::NoAddress => "the host has told no IPv6 address of its own",
            Self::NoWay => "no route leads there through crossbars and cables whose kernels are known",
            Self::BeingTried => "ways through kernels are being tried",
            Self::NoAnswer => {
                "probes through the kernels are not answered: a kernel on the way does not forward, goes by other \
                 means (SRv6 here, and none there, or the other way round), or a firewall drops them; `mapper doctor` \
                 and `mapper board-info` there say which"
            }
        };
        words.to_owned()
    }
}

impl KernelPath {
    /// What the kernel carries now.
    pub fn status(&self) -> KernelPathStatus {
        let lacking = self.lacking_neighbours();
        let not_carried = self.not_carried().map(|(mac, it, why)| match why {
            NotCarried::NoWay => (mac, self.why_no_way(it.host, &lacking)),
            why => (mac, why),
        });
        // Until all hosts have the map some ways are not tried.
        let all_have_the_map = self.version().is_some() && self.complete == self.version();
        let not_carried = not_carried.map(|(mac, why)| match why {
            NotCarried::NoWay if !all_have_the_map => (mac, NotCarried::BeingTried),
            why => (mac, why),
        });
        let not_carried = not_carried.collect();
        let carried = || self.destinations.values().filter(|it| it.is_carried());
        let by_segments = carried().filter(|it| it.goes_by_segments()).count();
        let objects = self.destinations.values().map(|it| it.installed.len()).sum::<usize>();
        KernelPathStatus {
            by_segments,
            by_destination: carried().count() - by_segments,
            for_sake_of: self.goes_along_for(),
            not_carried,
            v4_not_carried: self.v4_not_carried().collect(),
            shortened: self.shortened().collect(),
            objects: objects + self.of_ports.len(),
        }
    }

    /// The hosts to which packets are shorter than the ends of all cables on the way say.
    pub fn shortened(&self) -> impl Iterator<Item = (Mac, Shortened)> + '_ {
        self.shortened.iter().map(|(&mac, &shortened)| (mac, shortened))
    }

    /// The hosts to which the kernel sends packets of IPv6 alone, as those of IPv4 do not get through.
    pub fn v4_not_carried(&self) -> impl Iterator<Item = Mac> + '_ {
        let loses_v4 = |it: &KernelDestination| {
            it.is_carried() && it.ends_of_v4(self.v4_probes_from).is_some() && it.loses_v4()
        };
        self.destinations.iter().filter(move |(_, it)| loses_v4(it)).map(|(&mac, _)| mac)
    }

    /// The hosts to which the kernel sends no packets, and why, whichever neighbour's kernel may be the cause.
    fn not_carried(&self) -> impl Iterator<Item = (Mac, &KernelDestination, NotCarried)> {
        let not_carried = self.destinations.iter().filter(|(_, it)| !it.is_carried());
        not_carried.map(|(&mac, it)| {
            let why = match () {
                () if !self.abilities.segments && !self.goes_by_destination() => NotCarried::NotHere,
                () if self.own.source_of_probes().is_none() => NotCarried::NoOwnAddress,
                () if it.target().is_none() => NotCarried::NoAddress,
                () if it.ways.is_empty() => NotCarried::NoWay,
                () if it.ways.iter().all(Way::is_refuted) => self
                    .own
                    .networks_apart(it.addresses())
                    .map_or(NotCarried::NoAnswer, NotCarried::OtherNetwork),
                () => NotCarried::BeingTried,
            };
            (mac, it, why)
        })
    }

    /// Who is behind each port whose neighbour's kernel lacks what this one goes by, which neighbours tell each other.
    fn lacking_neighbours(&self) -> BTreeMap<u8, Behind> {
        let Some(table) = &self.table else { return BTreeMap::new() };
        let goes_on = |port: &KernelPort| {
            if self.used_abilities().segments { port.by_segments } else { port.by_destination }
        };
        let lacking = self.ports.iter().filter(|(_, port)| !goes_on(port));
        lacking.map(|(&at, port)| (at, Behind { port: at, who: who_is_behind(table, port) })).collect()
    }

    /// Why there is no way to a host, by its number: whether it is for what the kernels of these neighbours lack.
    fn why_no_way(&self, host: u32, lacking: &BTreeMap<u8, Behind>) -> NotCarried {
        let Some(table) = self.table.as_ref().filter(|_| !lacking.is_empty()) else {
            return NotCarried::NoWay;
        };
        let goes_by_segments = self.used_abilities().segments;
        let ports: PortSet = match (goes_by_segments, self.agent_port) {
            (true, Some(_)) => {
                table.paths_to(host).filter_map(|path| Some(path.hops.first()?.port)).collect()
            }
            (false, Some(_)) => table.next_hops_to(host).map(|(hop, _)| hop.port).collect(),
            (_, None) => PortSet::from_iter([CABLE]),
        };
        // One whose kernel has what is needed leaves a way, once all hosts have the map.
        let known = ports.iter().filter(|port| self.ports.contains_key(port));
        let behind: Option<Vec<Behind>> = known.map(|port| lacking.get(&port).copied()).collect();
        match (behind.as_deref(), goes_by_segments) {
            (Some(&[first, ..]), true) => NotCarried::NeighbourLacksSegments(first),
            (Some(&[first, ..]), false) => NotCarried::NeighbourLacksRoutes(first),
            _ => NotCarried::NoWay,
        }
    }

    /// Whether all ways were tried that this run may send packets along now, so that what an earlier run left
    /// can go. It does not wait for ways by destination that become usable only once all hosts have the map,
    /// as tables of two maps could send a packet in a circle.
    pub(crate) fn has_tried_all(&self) -> bool {
        let is_tried = |why| match why {
            NotCarried::BeingTried | NotCarried::NoAddress | NotCarried::NoOwnAddress => false,
            NotCarried::NotHere
            | NotCarried::NoWay
            | NotCarried::NeighbourLacksSegments(_)
            | NotCarried::NeighbourLacksRoutes(_)
            | NotCarried::LacksSegments
            | NotCarried::NoAnswer
            | NotCarried::OtherNetwork(_) => true,
        };
        let awaits_v4 = |it: &KernelDestination| it.awaits_v4(self.v4_probes_from);
        self.not_carried().all(|(_, _, why)| is_tried(why)) && !self.destinations.values().any(awaits_v4)
    }

    /// Whether there is a host of which no probe was answered on any of its ways.
    pub(crate) fn lacks_answers(&self) -> bool {
        self.not_carried()
            .any(|(_, _, why)| matches!(why, NotCarried::NoAnswer | NotCarried::OtherNetwork(_)))
    }

    /// The routes that the kernel sends packets along, those to one host together.
    pub fn routes(&self) -> impl Iterator<Item = CarriedRoute> + '_ {
        self.destinations.iter().filter(|(_, it)| it.is_carried()).flat_map(move |(&to, it)| {
            it.ways_in_use().map(move |way| CarriedRoute {
                to,
                route: way.round_trip.there.clone(),
                segments: way.segments(Element::DeliverV4).unwrap_or_default(),
                port: way.port,
                packets: it.packets_along(way.number),
            })
        })
    }
}

/// Who is at the other end of a port's cable.
fn who_is_behind(table: &RouteTable, port: &KernelPort) -> Mac {
    let Some(xbar) = port.tag.and_then(|tag| table.xbar(tag)) else {
        return port.host.unwrap_or(port.cabled.neighbour);
    };
    let there = table.hosts().filter(|&(_, host)| table.is_at(host, xbar)).map(|(mac, _)| mac);
    crossbar_tag::naming_host(port.tag, there).unwrap_or(port.cabled.neighbour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_segments_is_the_cause_also_where_it_is_not_a_neighbour() {
        let [plain, other] = [1, 2].map(Mac::from_position);
        let not_carried = vec![(plain, NotCarried::NoAnswer), (other, NotCarried::NoAnswer)];
        let status = KernelPathStatus { not_carried, ..KernelPathStatus::default() };
        let of = |mac| if mac == plain { ByDestination::Alone } else { ByDestination::Never };
        let told = status.naming_those_without_segments(of).not_carried;
        assert_eq!(told, [(plain, NotCarried::LacksSegments), (other, NotCarried::NoAnswer)]);
    }
}
