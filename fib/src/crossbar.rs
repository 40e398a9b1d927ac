//! What a machine holds so that its ports forward packets: a crossbar of the kernel's own.
//!
//! A crossbar is a table of segments, one a port, and knows nothing else. A segment is looked up only where the
//! packet is, so the same number means the same port at every crossbar. Segments are obeyed only in packets that
//! came in by one of these ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mapper_proto::Mac;

use crate::object::{IpPrefix, Objects, Route, RouteKey, Rule, Strips, Table};
use crate::segments::{self, BLOCK_BITS, ELEMENT_BITS, Element, Packing};

/// A port of the fabric whose neighbour is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CabledPort {
    /// The port's number. The interface of an agent alone is port 0.
    pub port: u8,
    /// The number of its interface.
    pub interface: u32,
    /// The name of its interface.
    pub name: String,
    /// The link address of the interface at the other end of the cable.
    pub neighbour: Mac,
    /// The number of the port there; 0 at an agent alone.
    pub neighbour_port: u8,
    /// Whether the neighbour sends packets by segments. Of a port where it sends some by their destination alone this must be
    /// false while this machine sends by segments: the kernel wraps such a packet, and looks up the new header as if it, too, had
    /// come in by that port. It would take the first element for one that the neighbour has obeyed.
    pub sends_segments: bool,
}

/// The most routes for pairs of elements that a crossbar has. One with more ports looks packets up twice that come from
/// the sender itself, as it has routes for single elements in any case.
const MOST_PAIRS: usize = 1024;

/// What the machine itself takes from its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivery {
    /// An IPv4 address of the machine on the fabric, if it has one.
    pub v4: Option<Ipv4Addr>,
    /// Whether IPv6 packets are delivered.
    pub v6: bool,
    /// The number of the crossbar's port to the agent in the same machine, if it has a crossbar.
    pub agent_port: Option<u8>,
}

/// What a machine does with packets that come in by segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// They go on to other machines, or are delivered.
    Crossbar,
    /// It is an agent without a crossbar, which only takes what is for itself.
    AgentAlone,
}

/// What packets by segments need: the neighbour for each port, rules where segments come in, and how each element is obeyed.
///
/// `packing` is the closest one that the kernel knows. With several elements in one address it also gets routes for elements that
/// it would obey one after the other, as looking a packet up once more is much of what a hop costs.
pub fn by_segments(ports: &[CabledPort], role: Role, delivery: Delivery, packing: Packing) -> Objects {
    let mut objects = neighbours(ports);
    let Some(first) = ports.first() else { return objects };
    let interface = first.interface;
    for port in ports {
        objects.routes.insert(key(Table::Main, Element::FirstPort(port.port).prefix()), gateway(port));
        if port.sends_segments {
            objects.rules.insert(Rule::Segments { interface: port.name.clone(), to: segments::all() });
            objects.rules.insert(Rule::Unknown { interface: port.name.clone(), to: segments::all() });
        }
        if role == Role::Crossbar {
            let towards = of_address(segments::towards_port(port.port));
            objects.routes.insert(key(Table::Segments, towards), gateway(port));
        }
    }
    let mut here = |elements: &[Element], route| {
        objects.routes.insert(key(Table::Segments, segments::beginning_with(elements)), route);
    };
    let (senders, strips) = match packing {
        Packing::Compressed => (first_elements(ports), Strips::Element),
        Packing::Full => (BTreeSet::new(), Strips::Segment),
    };
    for port in ports.iter().filter(|_| role == Role::Crossbar) {
        let leave = |strips| {
            let towards = segments::towards_port(port.port);
            Route::StripAndLeave { interface: port.interface, towards, strips }
        };
        let last = Element::Port(port.port);
        here(&[last], leave(strips));
        senders.iter().for_each(|&sender| here(&[sender, last], leave(Strips::TwoElements)));
    }
    let own = delivery.agent_port.map(Element::Port);
    if let Some(own) = own {
        here(&[own], Route::Strip { interface, packing });
    }
    let v4 = delivery.v4.map(|to| (Element::DeliverV4, Route::DeliverV4 { interface, to }));
    let v6 = delivery.v6.then_some((Element::DeliverV6, Route::DeliverV6 { interface }));
    for (last, route) in [v4, v6].into_iter().flatten() {
        here(&[last], route.clone());
        if packing == Packing::Compressed {
            let own: Vec<Element> = own.into_iter().chain([last]).collect();
            here(&own, route.clone());
            senders.iter().for_each(|&sender| here(&[&[sender], &own[..]].concat(), route.clone()));
        }
    }
    objects
        .routes
        .insert(key(Table::Segments, segments::all_first_ports()), Route::Strip { interface, packing });
    objects
}

/// The elements by which packets leave the neighbours that send some at these ports; none if they are too many.
fn first_elements(ports: &[CabledPort]) -> BTreeSet<Element> {
    let senders = ports.iter().filter(|port| port.sends_segments);
    let all: BTreeSet<_> = senders.map(|port| Element::FirstPort(port.neighbour_port)).collect();
    if all.len() * ports.len() <= MOST_PAIRS { all } else { BTreeSet::new() }
}

/// The rules that lead packets which pass by their destination to a table of their own, whatever port they come in by.
pub fn rules_of_passing(ports: &[CabledPort]) -> BTreeSet<Rule> {
    ports.iter().map(|port| Rule::Passing { interface: port.name.clone() }).collect()
}

/// The neighbours of all ports, and for each an address of the machine's own that leads there. Elements lead nowhere: a
/// kernel that obeys none would forward what a neighbour's packet begins with, and so would the next one, in a circle.
pub fn neighbours(ports: &[CabledPort]) -> Objects {
    let addresses = [IpAddr::from(segments::NEIGHBOUR), segments::NEIGHBOUR_V4.into()];
    let neighbour = |port: &CabledPort| addresses.map(|address| ((port.interface, address), port.neighbour));
    let neighbours = ports.iter().flat_map(neighbour).collect();
    let towards =
        |port: &CabledPort| (key(Table::Main, of_address(segments::towards_port(port.port))), gateway(port));
    Objects { neighbours, routes: ports.iter().map(towards).collect(), ..Objects::default() }
}

/// For each port an address of the machine's own that leads packets of IPv4 there.
pub fn towards_ports_v4(ports: &[CabledPort]) -> BTreeMap<RouteKey, Route> {
    let to = |port: &CabledPort| IpPrefix::host(segments::towards_port_v4(port.port).into());
    ports.iter().map(|port| (key(Table::Main, to(port)), gateway(port))).collect()
}

fn gateway(port: &CabledPort) -> Route {
    Route::Gateway { interface: port.interface, gateway: segments::NEIGHBOUR }
}

fn of_address(address: Ipv6Addr) -> IpPrefix {
    IpPrefix::v6(address, BLOCK_BITS + ELEMENT_BITS)
}

const fn key(table: Table, to: IpPrefix) -> RouteKey {
    RouteKey { table, to }
}
