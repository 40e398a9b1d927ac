//! The kernel's objects that lead along the proved ways to a host.

use std::net::{IpAddr, Ipv4Addr};

use mapper_fib::segments::{self, Element, LeftUnused};
use mapper_fib::{Change, GroupId, IpPrefix, Nexthop, Objects, Route, RouteKey, Table, changes};

use super::super::Numbers;
use super::super::own_addresses::OwnAddresses;
use super::super::tap::Tap;
use super::super::way::Way;
use super::{KernelDestination, nexthop_id};

impl KernelDestination {
    /// Derives the objects that the kernel is to hold anew from the ways. `passes` says whether it also forwards others' packets to
    /// the host by their destination. Returns the changes that lead there.
    pub(in super::super) fn refill(
        &mut self,
        numbers: &mut Numbers,
        (own, v4_probes_from): (&OwnAddresses, Option<Ipv4Addr>),
        tap: Tap,
        left_unused: &LeftUnused,
        passes: bool,
    ) -> Vec<Change> {
        self.fill_slots(numbers);
        let proves_v4 = self.ends_of_v4(v4_probes_from).is_some();
        let mut wanted = self.objects((own, proves_v4), tap, left_unused);
        if passes && !self.goes_by_segments() {
            wanted.extend(self.of_passing(&wanted));
        }
        let changes = changes(&self.installed, &wanted);
        self.installed = wanted;
        for change in &changes {
            if let Change::PutGroup(group, members) = change {
                self.counts_begin_anew(*group, members);
            }
        }
        changes
    }

    /// These routes and their groups, for packets that pass: of IPv6 all of them, of IPv4 the probes. Where those of IPv4 take the
    /// same ways they take the same group, too, as the kernel is slow to remove one.
    fn of_passing(&self, own: &Objects) -> Objects {
        let [of_v4, of_v6] = [0, 1].map(|kind| GroupId(2 * self.number + kind));
        let interfaces = |group: GroupId| {
            let members = own.groups.get(&group)?.iter();
            members.map(|id| Some(own.nexthops.get(id)?.interface())).collect::<Option<Vec<u32>>>()
        };
        let are_alike = interfaces(of_v4) == interfaces(of_v6);
        let mut passing = Objects::default();
        for (key, route) in &own.routes {
            let &Route::Group { group, mtu, .. } = route else { continue };
            let group = if are_alike { of_v6 } else { group };
            let Some(members) = own.groups.get(&group) else { continue };
            passing.groups.insert(group.of_passing(), members.clone());
            // Packets that pass have a source address already, so the route names none.
            let route = Route::Group { group: group.of_passing(), source: None, mtu };
            passing.routes.insert(RouteKey { table: Table::Passing, ..*key }, route);
        }
        passing
    }

    /// The longest packet that all ways by segments carry that packets to the host take, in bytes; `None` if
    /// they take no such way.
    pub(in super::super) fn least_mtu_of_segments(&self) -> Option<u32> {
        if !self.is_carried() || !self.goes_by_segments() {
            return None;
        }
        self.ways_in_use().map(Way::mtu).min()
    }

    /// Routes out of the tap interface to the addresses of IPv4 that are in none of its networks, such as those of ports, or those
    /// that stand alone: no other route leads to them by which they are reached, and answers to their probes can go, before the
    /// kernels carry packets there. Whoever has an address of IPv6 has one in the network of the fabric, too.
    fn reached_by_tap(&self, own: &OwnAddresses, tap: Tap) -> Objects {
        let is_apart = |ip: &&IpAddr| ip.is_ipv4() && !own.reaches_by_tap(**ip);
        let routes = self.addresses.iter().filter(is_apart).filter_map(|&to| {
            let source = Some(own.source_towards(to)?);
            let key = RouteKey { table: Table::Main, to: IpPrefix::host(to) };
            Some((key, Route::Link { interface: tap.interface, source, mtu: 0 }))
        });
        Objects { routes: routes.collect(), ..Objects::default() }
    }

    /// What the kernel is to hold for the host. For each version of IP these are a nexthop for each place in
    /// the group, the group, and a route for each address; where packets have segments, there is also a route
    /// out of the interface `tap` for those that are too long. `left_unused` is what the kernel takes off the
    /// MTU that a route says. Where it can be asked whether packets of IPv4 get through, which `proves_v4` says, they begin to take
    /// ways only once they do.
    fn objects(
        &self,
        (own, proves_v4): (&OwnAddresses, bool),
        tap: Tap,
        left_unused: &LeftUnused,
    ) -> Objects {
        let mut objects = self.reached_by_tap(own, tap);
        let way_of = |number: u32| self.all_ways().find(|way| way.number == number);
        let slots: Vec<(u32, &Way)> =
            self.slots.iter().filter_map(|slot| Some((slot.number, way_of(slot.way)?))).collect();
        let Some(mtu) = slots.iter().map(|(_, way)| way.mtu_of_route(left_unused)).min() else {
            return objects;
        };
        let least_carried = slots.iter().map(|(_, way)| way.carried_mtu()).min().unwrap_or_default();
        let mtu_of_too_long = tap.mtu(least_carried);
        for (kind, last) in [(0, Element::DeliverV4), (1, Element::DeliverV6)] {
            let of_kind = |ip: &&IpAddr| ip.is_ipv6() == (kind == 1) && !own.has(**ip);
            let towards = |&to: &IpAddr| Some((to, own.source_towards(to)?));
            let routes: Vec<_> = self.addresses.iter().filter(of_kind).filter_map(towards).collect();
            let number = |slot: u32| nexthop_id(slot, kind == 1);
            // A place whose own way is no use takes another one's, as a group is to have several places: see `Slots`.
            // Packets that take the kernel's routes already go on by ways of which it is not known yet: new ways, and those to a host
            // that has only just said that it answers probes of IPv4.
            let goes_on = self.installed.groups.contains_key(&GroupId(2 * self.number));
            // So do those to a host whose agent is silent, by ways on which probes turn before it: that agent would have to deliver what
            // the tap interface carries.
            let goes_on = |way: &Way| way.is_v4_unknown() && (goes_on || way.is_silent_behind());
            let carries = |way: &Way| kind == 1 || !proves_v4 || way.carries_v4() || goes_on(way);
            let instead = slots.iter().map(|&(_, way)| way).find(|way| carries(way));
            let way_of_slot = |way| if carries(way) { Some(way) } else { instead };
            let nexthops: Vec<_> = match routes.is_empty() {
                true => Vec::new(),
                false => slots
                    .iter()
                    .filter_map(|&(slot, way)| Some((number(slot), nexthop(way_of_slot(way)?, last)?)))
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
                    objects.routes.insert(
                        key,
                        Route::Link { interface: tap.interface, source: None, mtu: mtu_of_too_long },
                    );
                }
            }
        }
        objects
    }
}

/// The neighbour's address for packets of one kind.
fn gateway_of(last: Element) -> IpAddr {
    match last {
        Element::DeliverV4 => segments::NEIGHBOUR_V4.into(),
        _ => segments::NEIGHBOUR.into(),
    }
}

/// The nexthop of packets of one kind along a way.
fn nexthop(way: &Way, last: Element) -> Option<Nexthop> {
    let interface = way.interface;
    Some(match way.segments(last)? {
        segments if segments.is_empty() => Nexthop::Gateway { interface, gateway: gateway_of(last) },
        segments => Nexthop::Segments { interface, segments },
    })
}
