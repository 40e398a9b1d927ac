//! What an earlier run has left: whose addresses its routes lead to, and by which of them packets may go on.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use mapper_fib::segments::{self, Element};
use mapper_fib::{Nexthop, Objects, Route};
use mapper_proto::Mac;

use super::KernelPath;
use super::surroundings::{Surroundings, TablesByDestination};
use crate::routes::RouteTable;

/// Whose each address was to which a run has left routes in the kernel, as far as that can be told: all addresses of a host
/// lead to groups of one number, and one of them may be the one that the fabric gave the host. `host_with` knows that
/// address.
pub fn addresses_left(there: &Objects, host_with: impl Fn(Ipv6Addr) -> Option<Mac>) -> BTreeMap<IpAddr, Mac> {
    let routed = there.routes.iter().filter_map(|(key, route)| match route {
        Route::Group { group, .. } => Some((group.0 / 2, key.to.ip)),
        _ => None,
    });
    let routed: Vec<(u32, IpAddr)> = routed.collect();
    let known = routed.iter().filter_map(|&(number, ip)| match ip {
        IpAddr::V6(ip) => Some((number, host_with(ip)?)),
        IpAddr::V4(_) => None,
    });
    let hosts: BTreeMap<u32, Mac> = known.collect();
    routed.iter().filter_map(|(number, ip)| Some((*ip, *hosts.get(number)?))).collect()
}

impl KernelPath {
    /// Says whose the addresses were to which an earlier run has left routes: see [`addresses_left`].
    pub fn set_left_addresses(&mut self, left: BTreeMap<IpAddr, Mac>) {
        self.left_addresses = left;
    }

    /// Whether packets to this address may go on by a nexthop that an earlier run has left. As soon as there
    /// are routes of a map, the nexthop must lead along one of them to the host that has told this address.
    /// Routes of an earlier map could send a packet in a circle together with those of other hosts, or to
    /// another host if a cable was moved meanwhile. A host that has told no address yet is taken to have those that the
    /// earlier run knew: it tells them only some time after the map, and as long as not all hosts have that map, frames by
    /// the tap interface are not delivered everywhere. Nor may a host that starts find all others at once: a way by
    /// segments to one that the map does not list may stay if the map ends before it, and it closes no circle with what the
    /// map has. A host that has let go of its routes keeps none of an earlier run either.
    pub fn leads_on(&self, to: IpAddr, nexthop: &Nexthop) -> bool {
        let Self { table, abilities, agent_port, ports, narrow, .. } = self;
        let Some(table) = table else { return !self.has_let_go };
        let (abilities, agent_port) = (*abilities, *agent_port);
        let complete = self.complete == Some(table.version());
        let tables = TablesByDestination::of(abilities, agent_port, complete);
        let around = Surroundings { abilities, agent_port, ports, narrow, tables };
        let mut there = self.destinations.values().filter(|it| it.has_address(to)).peekable();
        if there.peek().is_none() {
            let Some(mac) = self.left_addresses.get(&to) else { return false };
            return match self.destinations.get(mac) {
                Some(it) => it.has_told_nothing() && it.has_route_along(nexthop, table, &around),
                None => self.leads_to_unlisted(nexthop, table),
            };
        }
        there.any(|it| it.has_route_along(nexthop, table, &around))
    }

    /// Whether an earlier run has left ways to a host that the map does not list. It may come yet: what was left goes for good
    /// only when all such hosts are there.
    pub fn misses_left_hosts(&self) -> bool {
        self.left_addresses.values().any(|mac| !self.destinations.contains_key(mac))
    }

    /// Whether a nexthop of an earlier run leads out of the map, and does no harm there. Only source routes do: packets that
    /// go by the destination could come back.
    fn leads_to_unlisted(&self, nexthop: &Nexthop, table: &RouteTable) -> bool {
        let Nexthop::Segments { interface, segments } = nexthop else { return false };
        let Some(elements) = segments::elements(segments) else { return false };
        let Some((Element::FirstPort(first), rest)) = elements.split_first() else { return false };
        let leaves = self.ports.get(first).is_some_and(|port| port.cabled.interface == *interface);
        let ports = rest.iter().map_while(|element| match element {
            Element::Port(port) => Some(*port),
            _ => None,
        });
        self.agent_port.is_some() && leaves && table.leads_out_of_the_map([*first].into_iter().chain(ports))
    }
}
