//! One host that the kernel sends packets to: the ways there, and the objects that they come to.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use mapper_fib::segments::{self, Element, LeftUnused};
use mapper_fib::{Change, GroupId, IpPrefix, Nexthop, NexthopId, Objects, Route, RouteKey, Table, changes};
use mapper_proto::Instant;
use mapper_proto::IpNetworkAddress;
use mapper_proto::map::PortRef;
use mapper_proto::wire::RoundTrip;

use super::slots::Slots;
use super::way::{Course, Leaving, Way};
use super::{KernelPort, Numbers, Surroundings, TablesByDestination};
use crate::routes::{RoutePath, RouteTable};

/// The least MTU that IPv6 works with (RFC 8200, section 5).
const LEAST_MTU: u32 = 1280;

/// For so long after a host answered itself probes may turn before it. By then there is a map without a host whose agent
/// has crashed.
const TURNS_FOR: Duration = Duration::from_secs(10);
/// A host counts as used for this long after packets to it were counted last.
const USED_FOR: Duration = Duration::from_secs(1);

/// The addresses of this host, in the order in which others are told of them: those by which it is reached whatever
/// routes there are come first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OwnAddresses(Vec<IpNetworkAddress>);

impl OwnAddresses {
    pub(super) const fn new(addresses: Vec<IpNetworkAddress>) -> Self {
        Self(addresses)
    }

    /// The first IPv4 address.
    pub(super) fn first_v4(&self) -> Option<Ipv4Addr> {
        self.0.iter().find_map(|own| match own.ip() {
            IpAddr::V4(ip) => Some(ip),
            IpAddr::V6(_) => None,
        })
    }

    /// Whether there is an IPv6 address.
    pub(super) fn has_v6(&self) -> bool {
        self.source_of_probes().is_some()
    }

    /// The IPv6 address that probes come from: the first, as others send theirs there. Answers to another one might find no
    /// way back until ways are proved.
    pub(super) fn source_of_probes(&self) -> Option<Ipv6Addr> {
        self.0.iter().find_map(|own| match own.ip() {
            IpAddr::V6(ip) => Some(ip),
            IpAddr::V4(_) => None,
        })
    }

    /// The source address of packets to another host's address: one in the same network, or the first of the
    /// same version. `None` if there is none.
    fn source_towards(&self, to: IpAddr) -> Option<IpAddr> {
        let same = |own: &&IpNetworkAddress| own.ip().is_ipv4() == to.is_ipv4();
        let found = self.0.iter().find(|own| own.contains(to)).or_else(|| self.0.iter().find(same));
        found.map(IpNetworkAddress::ip)
    }

    fn has(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|own| own.ip() == ip)
    }
}

/// A route of the table as the kernels would take it.
pub(super) struct Found {
    path: RoutePath,
    course: Course,
    leaving: Leaving,
}

impl Found {
    /// Whether it is this way. Crossbars have other numbers in each map, so hops are not compared.
    fn is(&self, way: &Way) -> bool {
        way.round_trip == self.path.way && way.course.is_same(&self.course) && way.leaving() == self.leaving
    }
}

/// A host that packets are sent to.
#[derive(Debug)]
pub(super) struct Destination {
    /// Its number in the table.
    pub(super) host: u32,
    /// Its groups are numbered by this.
    number: u32,
    addresses: Vec<IpAddr>,
    pub(super) ways: Vec<Way>,
    slots: Slots,
    /// Whether the table that ways were last derived from went around dead cables, so that another table of the
    /// same map may have other routes.
    is_altered: bool,
    /// Ports that tables by destination lead out of, over a cable that is held for dead. Ways by them stay known, as the
    /// agent at the cable's end may be what is silent.
    left_ports: BTreeSet<u8>,
    /// The objects that the kernel was told to hold.
    pub(super) installed: Objects,
    /// How many packets its nexthops of IPv4, and those of IPv6, had taken when they were last counted.
    packets: [u64; 2],
    /// How many answers to probes of that host were sent since its nexthops were last counted.
    answers: u64,
    /// When the kernel last had sent it packets; `None` for never.
    used_at: Option<Instant>,
    /// When it last answered a probe itself; `None` for never.
    pub(super) answered_at: Option<Instant>,
}

impl Destination {
    pub(super) fn new(host: u32, number: u32) -> Self {
        let (addresses, ways, installed) = (Vec::new(), Vec::new(), Objects::default());
        Self {
            host,
            number,
            addresses,
            ways,
            slots: Slots::default(),
            is_altered: false,
            left_ports: BTreeSet::new(),
            installed,
            packets: [0, 0],
            answers: 0,
            used_at: None,
            answered_at: None,
        }
    }

    /// Adds the addresses that are known of the host to these.
    pub(super) fn add_known_addresses(&self, addresses: &mut Vec<IpAddr>) {
        let missing: Vec<IpAddr> =
            self.addresses.iter().filter(|ip| !addresses.contains(ip)).copied().collect();
        addresses.extend(missing);
    }

    /// Takes in the host's addresses. Returns whether they are others than before.
    pub(super) fn take_addresses(&mut self, addresses: Vec<IpAddr>) -> bool {
        let changed = self.addresses != addresses;
        self.addresses = addresses;
        changed
    }

    /// The address that probes go to.
    pub(super) fn target(&self) -> Option<Ipv6Addr> {
        self.addresses.iter().find_map(|address| match address {
            IpAddr::V6(ip) => Some(*ip),
            IpAddr::V4(_) => None,
        })
    }

    /// Takes in how many packets nexthops have taken. `passing_probes` is how many of them may be probes of others that
    /// go on here by their destination, and their answers: those are of IPv6, and no use of the ways either.
    pub(super) fn count(&mut self, now: Instant, counts: &BTreeMap<NexthopId, u64>, passing_probes: u64) {
        let sum = |v6: bool| {
            let nexthops = self.installed.nexthops.keys().filter(move |id| is_of_v6(**id) == v6);
            nexthops.filter_map(|id| counts.get(id)).sum::<u64>()
        };
        let packets = [sum(false), sum(true)];
        // A nexthop that is made anew counts from nothing.
        let sent = |at: usize| packets[at].checked_sub(self.packets[at]).unwrap_or(packets[at]);
        let (v4, v6) = (sent(0), sent(1));
        // Answers to that host's probes are counted, too, and are no use of the ways. Each is sent at once, so what
        // was not counted by now went by the tap interface and must not hide a user's packet later.
        let answers = std::mem::take(&mut self.answers);
        let passing_probes = if self.goes_by_segments() { 0 } else { passing_probes };
        let is_used =
            if counts.is_empty() { self.is_carried() } else { v4 > 0 || v6 > answers + passing_probes };
        self.packets = packets;
        if is_used {
            self.used_at = Some(now);
        }
    }

    /// Takes in that a probe of that host is answered, by a packet that the kernel sends.
    pub(super) fn answer(&mut self) {
        self.answers += 1;
    }

    /// Whether the kernel has sent it packets lately.
    pub(super) fn is_used(&self, now: Instant) -> bool {
        self.used_at.is_some_and(|at| now.since(at) < USED_FOR)
    }

    /// Whether it answered a probe itself not long ago, so that nothing there keeps packets from it, as far as one can
    /// tell.
    pub(super) fn has_answered_lately(&self, now: Instant) -> bool {
        self.answered_at.is_some_and(|at| now.since(at) < TURNS_FOR)
    }

    /// Whether the kernel sends packets to it.
    pub(super) fn is_carried(&self) -> bool {
        !self.installed.routes.is_empty()
    }

    /// The ways that packets take.
    pub(super) fn ways_in_use(&self) -> impl Iterator<Item = &Way> {
        self.ways.iter().filter(|way| self.slots.iter().any(|slot| slot.way == way.number))
    }

    /// The nexthops that lead along the way with this number, of both versions of IP.
    pub(super) fn nexthops_along(&self, way: u32) -> impl Iterator<Item = NexthopId> + '_ {
        let slots = self.slots.iter().filter(move |slot| slot.way == way);
        slots.flat_map(|slot| [false, true].map(|v6| nexthop_id(slot.number, v6)))
    }

    /// Whether packets to it have segments.
    pub(super) fn goes_by_segments(&self) -> bool {
        self.ways_in_use().any(|way| way.course != Course::Destination)
    }

    /// Takes cables that are held for dead for what they were before: the host's agent is what is gone.
    pub(super) fn trust_dead_cables(&mut self) {
        self.left_ports.clear();
    }

    /// Forgets the ways of which `is_lost` says so. Returns whether there were some.
    pub(super) fn lose_ways(&mut self, is_lost: impl Fn(&Way) -> bool, numbers: &mut Numbers) -> bool {
        let before = self.ways.len();
        self.ways.iter().filter(|way| is_lost(way)).for_each(|way| numbers.give_back(way.number));
        self.ways.retain(|way| !is_lost(way));
        self.ways.len() != before
    }

    /// Whether the routes to it may be others in this table, of the same map, than when ways were last derived.
    pub(super) fn is_touched_by(&self, table: &RouteTable) -> bool {
        self.is_altered || self.ways.iter().any(|way| way.hops.iter().any(|&hop| table.is_dead(hop)))
    }

    /// The routes that kernels could take to it.
    pub(super) fn routes(&mut self, table: &RouteTable, around: &Surroundings<'_>) -> Vec<Found> {
        self.is_altered = !table.is_whole();
        // As with source routes, dead cables are the last resort.
        let is_left = |hop: &PortRef| table.is_dead(*hop) && !table.is_cut_off(self.host);
        self.left_ports = table.next_hops_to(self.host).filter(is_left).map(|hop| hop.port).collect();
        let mut found = Vec::new();
        if around.abilities.segments {
            found.extend(table.paths_to(self.host).filter_map(|path| by_segments(table, around, path)));
        }
        match around.tables {
            TablesByDestination::Unused => {}
            TablesByDestination::Alike => {
                let by_destination = self.by_destination(table, around).into_iter();
                found.extend(by_destination.filter(|found| self.ways.iter().any(|way| found.is(way))));
            }
            TablesByDestination::OfThisMap => found.extend(self.by_destination(table, around)),
        }
        found
    }

    /// The ways by the crossbars' own tables: out of each port that these know for the destination.
    fn by_destination(&self, table: &RouteTable, around: &Surroundings<'_>) -> Vec<Found> {
        let mut found = Vec::new();
        for hop in table.next_hops_to(self.host) {
            let port = around.ports.get(&hop.port).filter(|port| port.by_destination);
            let Some(port) = port.filter(|port| leads_as_mapped(table, hop, port)) else { continue };
            let leaving = Leaving { port: hop.port, interface: port.cabled.interface, link_mtu: port.mtu };
            let path = RoutePath { hops: vec![hop], way: RoundTrip::default() };
            found.push(Found { path, course: Course::Destination, leaving });
        }
        found
    }

    /// Whether it has this address, as far as is known.
    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
    }

    /// Whether a nexthop that an earlier run has left leads along a route of the table, proved or not.
    pub(super) fn has_route_along(
        &self,
        nexthop: &Nexthop,
        table: &RouteTable,
        around: &Surroundings<'_>,
    ) -> bool {
        match nexthop {
            Nexthop::Gateway { interface, .. } => {
                let is_there = |found: &Found| {
                    found.leaving.interface == *interface && !self.left_ports.contains(&found.leaving.port)
                };
                around.tables != TablesByDestination::Unused
                    && self.by_destination(table, around).iter().any(is_there)
            }
            Nexthop::Segments { interface, segments } => {
                let left = segments::elements(segments);
                let Some((_, left)) = left.as_deref().and_then(<[Element]>::split_last) else { return false };
                let mut ways = self.ways.iter().filter(|way| way.interface == *interface);
                ways.any(|way| match &way.course {
                    Course::Segments { elements, .. } => elements == left,
                    Course::Destination => false,
                })
            }
        }
    }

    /// Replaces the ways. One that goes through the same ports as one before is that one. Returns the numbers of
    /// those that are new.
    pub(super) fn replace_ways(&mut self, found: Vec<Found>, numbers: &mut Numbers) -> Vec<u32> {
        let mut before: Vec<Way> = std::mem::take(&mut self.ways);
        let mut fresh = Vec::new();
        for found in found {
            let same = before.iter().position(|way| found.is(way));
            let Found { path: RoutePath { hops, way: round_trip }, course, leaving } = found;
            let mut way = match same {
                Some(at) => {
                    let mut way = before.swap_remove(at);
                    way.hops = hops;
                    way
                }
                None => {
                    let number = numbers.take();
                    fresh.push(number);
                    Way::new(number, (round_trip, hops), course, leaving)
                }
            };
            way.place = self.ways.len() as u32;
            self.ways.push(way);
        }
        before.into_iter().for_each(|way| numbers.give_back(way.number));
        fresh
    }

    /// All numbers that it holds.
    pub(super) fn numbers(self) -> impl Iterator<Item = u32> {
        let slots: Vec<u32> = self.slots.iter().map(|slot| slot.number).collect();
        [self.number].into_iter().chain(slots).chain(self.ways.into_iter().map(|way| way.number))
    }

    /// Has the group lead along the ways that are proved. Source routes come before tables of crossbars, as they need
    /// nobody to agree.
    fn fill_slots(&mut self, numbers: &mut Numbers) {
        let is_left = |way: &Way| way.course == Course::Destination && self.left_ports.contains(&way.port);
        let is_usable = |way: &&Way| way.is_proved() && way.mtu() >= LEAST_MTU && !is_left(way);
        let usable = || self.ways.iter().filter(is_usable);
        let by_segments = usable().any(|way| way.course != Course::Destination);
        let ways: Vec<u32> = usable()
            .filter(|way| (way.course != Course::Destination) == by_segments)
            .map(|way| way.number)
            .collect();
        self.slots.assign(&ways, numbers);
    }

    /// Derives the objects that the kernel is to hold anew from the ways. Returns the changes that lead there.
    pub(super) fn refill(
        &mut self,
        numbers: &mut Numbers,
        own: &OwnAddresses,
        tap: u32,
        left_unused: &LeftUnused,
    ) -> Vec<Change> {
        self.fill_slots(numbers);
        let wanted = self.objects(own, tap, left_unused);
        let changes = changes(&self.installed, &wanted);
        self.installed = wanted;
        changes
    }

    /// The longest packet that all ways by segments carry which packets to it take, in bytes; `None` if they take none.
    pub(super) fn least_mtu_of_segments(&self) -> Option<u32> {
        if !self.is_carried() || !self.goes_by_segments() {
            return None;
        }
        self.ways_in_use().map(Way::mtu).min()
    }

    /// What the kernel is to hold for it: for each version of IP a nexthop a place in the group, the group, and a
    /// route an address; and where packets have segments, a route out of the interface `tap` for those that are too
    /// long. `left_unused` is what the kernel takes off the MTU that a route says.
    fn objects(&self, own: &OwnAddresses, tap: u32, left_unused: &LeftUnused) -> Objects {
        let mut objects = Objects::default();
        let way_of = |number: u32| self.ways.iter().find(|way| way.number == number);
        let slots: Vec<(u32, &Way)> =
            self.slots.iter().filter_map(|slot| Some((slot.number, way_of(slot.way)?))).collect();
        let Some(mtu) = slots.iter().map(|(_, way)| way.mtu_of_route(left_unused)).min() else {
            return objects;
        };
        for (kind, last) in [(0, Element::DeliverV4), (1, Element::DeliverV6)] {
            let of_kind = |ip: &&IpAddr| ip.is_ipv6() == (kind == 1) && !own.has(**ip);
            let towards = |&to: &IpAddr| Some((to, own.source_towards(to)?));
            let routes: Vec<_> = self.addresses.iter().filter(of_kind).filter_map(towards).collect();
            let number = |slot: u32| nexthop_id(slot, kind == 1);
            let nexthops: Vec<_> = match routes.is_empty() {
                true => Vec::new(),
                false => slots
                    .iter()
                    .filter_map(|&(slot, way)| Some((number(slot), nexthop(way, last)?)))
                    .collect(),
            };
            if nexthops.is_empty() {
                continue;
            }
            let group = GroupId(2 * self.number + kind);
            objects.groups.insert(group, nexthops.iter().map(|(id, _)| *id).collect());
            objects.nexthops.extend(nexthops);
            for (to, source) in routes {
                let key = RouteKey { table: Table::Main, to: IpPrefix::host(to) };
                objects.routes.insert(key, Route::Group { group, source: Some(source), mtu });
                if self.goes_by_segments() {
                    let key = RouteKey { table: Table::TooLong, ..key };
                    objects.routes.insert(key, Route::Link { interface: tap });
                }
            }
        }
        objects
    }
}

/// The number of the nexthop of one version of IP at a place with this number.
const fn nexthop_id(slot: u32, v6: bool) -> NexthopId {
    NexthopId(2 * slot + v6 as u32)
}

/// Whether the nexthop with this number is of IPv6.
const fn is_of_v6(id: NexthopId) -> bool {
    id.0 % 2 == 1
}

/// The nexthop of packets of one kind along a way.
fn nexthop(way: &Way, last: Element) -> Option<Nexthop> {
    let interface = way.interface;
    Some(match way.segments(last)? {
        segments if segments.is_empty() => Nexthop::Gateway { interface, gateway: segments::NEIGHBOUR },
        segments => Nexthop::Segments { interface, segments },
    })
}

/// Whether a port leads where the table's map says, which is of the cables as they were when the fabric was mapped: to a
/// port of a crossbar, or to a host.
fn leads_as_mapped(table: &RouteTable, hop: PortRef, port: &KernelPort) -> bool {
    let mapped = table.far_port(hop);
    let Some(tag) = port.tag else { return mapped.is_none() };
    let far = table.xbar(tag).map(|xbar| PortRef { xbar, port: port.cabled.neighbour_port });
    far.is_some() && far == mapped
}

/// A route through crossbars whose ports are known by number, and out of a port whose neighbour is known.
fn by_segments(table: &RouteTable, around: &Surroundings<'_>, path: RoutePath) -> Option<Found> {
    let is_tagged = |hop: &PortRef| table.topology().is_tagged(hop.xbar);
    // A route that crosses a cable held for dead is the table's last resort. The agents at the cable's ends may be what
    // is silent, and the kernels go on, which a probe tells.
    if !path.hops.iter().all(is_tagged) {
        return None;
    }
    let (first, rest) = match around.agent_port {
        // The own crossbar's port is the sender's own, and no crossbar has to be told of it.
        Some(_) => path.hops.split_first().map(|(first, rest)| (first.port, rest))?,
        None => (0, path.hops.as_slice()),
    };
    let port = around.ports.get(&first).filter(|port| port.by_segments)?;
    // Behind a cable that was moved the same elements may lead to another host.
    let own_hop = around.agent_port.and(path.hops.first());
    if !own_hop.is_none_or(|&hop| leads_as_mapped(table, hop, port)) {
        return None;
    }
    let elements = [Element::FirstPort(first)].into_iter();
    let elements = elements.chain(rest.iter().map(|hop| Element::Port(hop.port))).collect();
    let least = path.hops.iter().filter_map(|hop| around.narrow.get(hop)).min();
    let link_mtu = least.map_or(port.mtu, |&least| port.mtu.min(least.into()));
    let leaving = Leaving { port: first, interface: port.cabled.interface, link_mtu };
    let course = Course::Segments { elements, packing: around.packing() };
    Some(Found { path, course, leaving })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A destination whose packets take the nexthops of IPv4 and IPv6 numbered 4 and 5, by their destination.
    fn destination() -> Destination {
        let mut destination = Destination::new(0, 0);
        for id in [4, 5] {
            let nexthop = Nexthop::Gateway { interface: 1, gateway: segments::NEIGHBOUR };
            destination.installed.nexthops.insert(NexthopId(id), nexthop);
        }
        destination
    }

    #[test]
    fn answers_that_no_nexthop_counted_hide_no_packet_that_is_counted_later() {
        let mut destination = destination();
        let mut count = |answers: u64, packets: u64, now: Instant| {
            (0..answers).for_each(|_| destination.answer());
            destination.count(now, &BTreeMap::from([(NexthopId(5), packets)]), 0);
            destination.is_used(now)
        };
        let (second, start) = (Duration::from_secs(1), Instant::ZERO);
        assert!(!count(40, 0, start), "they went by the tap interface");
        assert!(!count(3, 3, start + second), "all that was sent answers probes");
        assert!(count(1, 5, start + 2 * second), "one of two packets is a user's");
        assert!(!count(0, 5, start + 4 * second), "nothing was sent for longer than a use counts");
    }

    #[test]
    fn probes_of_others_that_pass_by_their_destination_are_no_use_and_users_packets_are() {
        let mut destination = destination();
        let mut count = |v4: u64, v6: u64, now: Instant| {
            destination.count(now, &BTreeMap::from([(NexthopId(4), v4), (NexthopId(5), v6)]), 10);
            destination.is_used(now)
        };
        let (second, start) = (Duration::from_secs(1), Instant::ZERO);
        assert!(!count(0, 10, start), "as many as there may be probes");
        assert!(count(0, 21, start + second), "one more than that");
        assert!(!count(0, 31, start + 3 * second));
        assert!(count(1, 31, start + 4 * second), "no probe is of IPv4");
    }
}
