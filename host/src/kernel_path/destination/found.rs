//! Finds which ways kernels could take to a host, by the routes of a table.

use std::collections::BTreeMap;

use mapper_fib::Nexthop;
use mapper_fib::segments::{self, Element};
use mapper_proto::map::PortRef;
use mapper_proto::wire::RoundTrip;

use super::super::surroundings::{Surroundings, TablesByDestination};
use super::super::way::{Course, Leaving, Way};
use super::super::{KernelPort, Numbers};
use super::Destination;
use crate::routes::{RoutePath, RouteTable};

/// A route of the table as the kernels would take it.
pub(in super::super) struct Found {
    pub(super) path: RoutePath,
    pub(super) course: Course,
    pub(super) leaving: Leaving,
}

impl Found {
    /// Whether this is the same way as `way`. Crossbars have other numbers in each map, so hops are not
    /// compared.
    pub(super) fn is(&self, way: &Way) -> bool {
        way.round_trip == self.path.way && way.course.is_same(&self.course) && way.leaving() == self.leaving
    }
}

impl Destination {
    /// The routes that kernels could take to the host.
    pub(in super::super) fn routes(&mut self, table: &RouteTable, around: &Surroundings<'_>) -> Vec<Found> {
        self.is_altered = !table.is_whole();
        // As with source routes, a dead cable is used only if nothing else leads to the host.
        let is_left = |hop: &PortRef| table.is_dead(*hop) && !table.is_cut_off(self.host);
        let next_hops = table.next_hops_to(self.host).map(|(hop, _)| hop);
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
    fn by_destination(&self, table: &RouteTable, around: &Surroundings<'_>) -> Vec<Found> {
        let mut found = Vec::new();
        for (hop, most_bytes) in table.next_hops_to(self.host) {
            let port = around.ports.get(&hop.port).filter(|port| port.by_destination);
            let Some(port) = port.filter(|port| leads_as_mapped(table, hop, port)) else { continue };
            let link_mtu = most_bytes.map_or(port.mtu, |most| port.mtu.min(most.into()));
            let leaving = Leaving { port: hop.port, interface: port.cabled.interface, link_mtu };
            let path = RoutePath { hops: vec![hop], way: RoundTrip::default() };
            found.push(Found { path, course: Course::Destination, leaving });
        }
        found
    }

    /// Forgets the ways out of ports of the own crossbar that lead elsewhere than in the table's map. Such a way was set
    /// aside when the cable was moved, and came back with the others. Returns whether there were any.
    pub(in super::super) fn lose_recabled(
        &mut self,
        table: &RouteTable,
        ports: &BTreeMap<u8, KernelPort>,
        numbers: &mut Numbers,
    ) -> bool {
        let leads_elsewhere = |way: &Way| {
            let (hop, port) = (way.hops.first(), ports.get(&way.port));
            hop.zip(port).is_some_and(|(&hop, port)| !leads_as_mapped(table, hop, port))
        };
        self.lose_ways(leads_elsewhere, numbers)
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
                let is_there = |found: &Found| {
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
    let mapped = table.far_port(hop);
    let Some(tag) = port.tag else { return mapped.is_none() };
    let far = table.xbar(tag).map(|xbar| PortRef { xbar, port: port.cabled.neighbour_port });
    far.is_some() && far == mapped
}

/// A route through crossbars whose ports are known by number, and out of a port whose neighbour is known.
fn by_segments(table: &RouteTable, around: &Surroundings<'_>, path: RoutePath) -> Option<Found> {
    let is_tagged = |hop: &PortRef| table.topology().is_tagged(hop.xbar);
    // The table has a route across a cable that is held for dead only if no other route is left. It may be
    // only the agents at the cable's ends that are silent while the kernels go on, which a probe tells.
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
