//! Finds which ways kernels could take to a host, by the routes of a table.

use std::collections::BTreeMap;

use mapper_fib::Nexthop;
use mapper_fib::segments::{self, Element};
use mapper_proto::map::PortRef;
use mapper_proto::wire::RoundTrip;

use super::super::surroundings::{CABLE, Surroundings, TablesByDestination};
use super::super::way::{Course, Leaving, Way};
use super::super::{KernelPort, Numbers};
use super::KernelDestination;
use crate::routes::{RoutePath, RouteTable};

/// A route of the table as the kernels would take it.
pub(in super::super) struct FoundRoute {
    pub(super) path: RoutePath,
    pub(super) course: Course,
    pub(super) leaving: Leaving,
}

impl FoundRoute {
    /// Whether this is the same way as `way`. Crossbars have other numbers in each map, so hops are not
    /// compared.
    pub(super) fn is(&self, way: &Way) -> bool {
        way.round_trip == self.path.way && way.course.is_same(&self.course) && way.leaving() == self.leaving
    }
}

impl KernelDestination {
    /// The routes that kernels could take to the host.
    pub(in super::super) fn routes(
        &mut self,
        table: &RouteTable,
        around: &Surroundings<'_>,
    ) -> Vec<FoundRoute> {
        self.is_altered = !table.is_whole();
        // As with source routes, a dead cable is used only if nothing else leads to the host.
        let is_left = |hop: &PortRef| table.is_dead(*hop) && !table.is_cut_off(self.host);
        // The ports are those of the own crossbar.
        let next_hops = table.next_hops_to(self.host).map(|(hop, _)| hop);
        let next_hops = next_hops.filter(|_| around.agent_port.is_some());
        self.left_ports = next_hops.filter(is_left).map(|hop| hop.port).collect();
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

    /// The ways by the crossbars' own tables, one out of each port that these tables have for the
    /// destination. A probe takes only one of the ways that fork farther on. So the map says how long packets
    /// may be, by the narrowest cable on any of these ways.
    fn by_destination(&self, table: &RouteTable, around: &Surroundings<'_>) -> Vec<FoundRoute> {
        if around.agent_port.is_none() {
            return self.by_cable(table, around).into_iter().collect();
        }
        let mut found = Vec::new();
        for (hop, most_bytes) in table.next_hops_to(self.host) {
            let port = around.ports.get(&hop.port).filter(|port| port.by_destination);
            let Some(port) = port.filter(|port| leads_as_mapped(table, hop, port)) else { continue };
            let least = most_bytes.into_iter().chain(self.most_bytes_of_last_cable(table, around)).min();
            found.push(found_by_destination(vec![hop], port, least));
        }
        found
    }

    /// The way of a host without a crossbar: out of its one interface, to whose other end's tables it leaves all else. There may be several
    /// ways from there, and packets are as short as the narrowest cable on any of them demands.
    fn by_cable(&self, table: &RouteTable, around: &Surroundings<'_>) -> Option<FoundRoute> {
        let port = around.ports.get(&CABLE).filter(|port| port.by_destination)?;
        if !table.has_way_by_destination(self.host) || !is_cabled_as_mapped(table, port) {
            return None;
        }
        let own = table.home().and_then(|home| around.narrow.get(&home).copied());
        let behind = table.next_hops_to(self.host).filter_map(|(_, most_bytes)| most_bytes);
        let least = behind.chain(own).chain(self.most_bytes_of_last_cable(table, around)).min();
        Some(found_by_destination(Vec::new(), port, least))
    }

    /// The most bytes of a frame on the cable of the host at the end, if it has less than others have. That of a node is
    /// within its machine, and has what others have.
    fn most_bytes_of_last_cable(&self, table: &RouteTable, around: &Surroundings<'_>) -> Option<u16> {
        table.home_of(self.host).and_then(|home| around.narrow.get(&home).copied())
    }

    /// Forgets the ways out of own ports that lead elsewhere than in the table's map, or nowhere, as a cable without carrier does.
    /// Such a way was set aside when the cable was moved or pulled, and came back with the others.
    pub(in super::super) fn lose_recabled(
        &mut self,
        table: &RouteTable,
        (agent_port, ports): (Option<u8>, &BTreeMap<u8, KernelPort>),
        numbers: &mut Numbers,
    ) {
        let leads_elsewhere = |way: &Way| {
            let port = ports.get(&way.port).filter(|port| port.cabled.interface == way.interface);
            let Some(port) = port else { return true };
            match (agent_port, way.hops.first()) {
                (Some(_), Some(&hop)) => !leads_as_mapped(table, hop, port),
                (None, _) => !is_cabled_as_mapped(table, port),
                (Some(_), None) => false,
            }
        };
        let _any = self.lose_ways(leads_elsewhere, numbers);
    }

    /// Whether a nexthop that an earlier run has left leads along a route of the table. Where there is a way along it, `may_take`
    /// says whether packets may take that one. As long as not all hosts have the map, there may be none by destination.
    pub(in super::super) fn has_route_along(
        &self,
        nexthop: &Nexthop,
        table: &RouteTable,
        around: &Surroundings<'_>,
        may_take: impl Fn(&Way) -> bool,
    ) -> bool {
        match nexthop {
            Nexthop::Gateway { interface, .. } => {
                let is_there = |found: &FoundRoute| {
                    found.leaving.interface == *interface && !self.left_ports.contains(found.leaving.port)
                };
                let is_closed = |way: &Way| {
                    way.course == Course::Destination && way.interface == *interface && !may_take(way)
                };
                around.tables != TablesByDestination::Unused
                    && self.by_destination(table, around).iter().any(is_there)
                    && !self.ways.iter().any(is_closed)
            }
            Nexthop::Segments { interface, segments } => {
                let left = segments::elements(segments);
                let Some((_, left)) = left.as_deref().and_then(<[Element]>::split_last) else { return false };
                let mut ways = self.ways.iter().filter(|way| way.interface == *interface && may_take(way));
                ways.any(|way| match &way.course {
                    Course::Segments { elements, .. } => elements == left,
                    Course::Destination => false,
                })
            }
        }
    }
}

/// Whether a port leads to the same port of a crossbar, or to the same host, as in the table's map. The map
/// tells how cables were when the fabric was mapped.
fn leads_as_mapped(table: &RouteTable, hop: PortRef, port: &KernelPort) -> bool {
    match port.host {
        Some(mac) => table.host_at(hop) == Some(mac),
        None => far_port_of(table, port).is_some_and(|far| table.far_port(hop) == Some(far)),
    }
}

/// Whether the interface of a host without a crossbar leads to the same port of a crossbar, or to the same host, as in the
/// table's map.
fn is_cabled_as_mapped(table: &RouteTable, port: &KernelPort) -> bool {
    match port.host {
        Some(mac) => table.only_other() == Some(mac),
        None => far_port_of(table, port).is_some_and(|far| table.home() == Some(far)),
    }
}

/// The port of a crossbar of the map that a port of this host leads to, if it leads to one.
fn far_port_of(table: &RouteTable, port: &KernelPort) -> Option<PortRef> {
    let xbar = table.xbar(port.tag?)?;
    Some(PortRef { xbar, port: port.cabled.neighbour_port })
}

/// A way by tables out of this port, on which frames have no more than `least` bytes if that is less than the port's.
fn found_by_destination(hops: Vec<PortRef>, port: &KernelPort, least: Option<u16>) -> FoundRoute {
    let link_mtu = least.map_or(port.mtu, |least| port.mtu.min(least.into()));
    let leaving = Leaving { port: port.cabled.port, interface: port.cabled.interface, link_mtu };
    let path = RoutePath { hops, way: RoundTrip::default() };
    FoundRoute { path, course: Course::Destination, leaving }
}

/// A route through crossbars whose ports are known by number, and out of a port whose neighbour is known.
fn by_segments(table: &RouteTable, around: &Surroundings<'_>, path: RoutePath) -> Option<FoundRoute> {
    let is_tagged = |hop: &PortRef| table.topology().is_tagged(hop.xbar);
    // The table has a route across a cable that is held for dead only if no other route is left. It may be
    // only the agents at the cable's ends that are silent while the kernels go on, which a probe tells.
    if !path.hops.iter().all(is_tagged) {
        return None;
    }
    let (first, rest) = match around.agent_port {
        // The own crossbar's port is the sender's own, and no crossbar has to be told of it.
        Some(_) => path.hops.split_first().map(|(first, rest)| (first.port, rest))?,
        None => (CABLE, path.hops.as_slice()),
    };
    let port = around.ports.get(&first).filter(|port| port.by_segments)?;
    // Behind a cable that was moved the same elements may lead to another host.
    let own_hop = around.agent_port.and(path.hops.first());
    let is_as_mapped = match own_hop {
        Some(&hop) => leads_as_mapped(table, hop, port),
        None => is_cabled_as_mapped(table, port),
    };
    if !is_as_mapped {
        return None;
    }
    let elements = [Element::FirstPort(first)].into_iter();
    let elements = elements.chain(rest.iter().map(|hop| Element::Port(hop.port))).collect();
    let least = path.hops.iter().filter_map(|hop| around.narrow.get(hop)).min();
    let link_mtu = least.map_or(port.mtu, |&least| port.mtu.min(least.into()));
    let leaving = Leaving { port: first, interface: port.cabled.interface, link_mtu };
    let course = Course::Segments { elements, packing: around.packing() };
    Some(FoundRoute { path, course, leaving })
}
