//! What a machine holds so that its ports forward packets: a crossbar of the kernel's own.
//!
//! A crossbar is a table of segments, one a port, and knows nothing else. A segment is looked up only where the
//! packet is, so the same number means the same port at every crossbar. Segments are obeyed only in packets that
//! came in by one of these ports.

use std::net::{Ipv4Addr, Ipv6Addr};

use mapper_proto::Mac;

use crate::object::{IpPrefix, Objects, Route, RouteKey, Rule, Table};
use crate::segments::{self, BLOCK_BITS, ELEMENT_BITS, Element};

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
}

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

/// What packets by segments need: a rule and the neighbour for each port, and how each element is obeyed.
///
/// `forwards` says whether packets go on to other machines, as at a crossbar; an agent alone only takes what is
/// for itself. `compressed` says whether the kernel knows several elements in one address.
pub fn by_segments(ports: &[CabledPort], forwards: bool, delivery: Delivery, compressed: bool) -> Objects {
    let mut objects = neighbours(ports);
    let Some(first) = ports.first() else { return objects };
    let interface = first.interface;
    for port in ports {
        objects.rules.insert(Rule::Segments { interface: port.name.clone(), to: segments::all() });
        if forwards {
            let towards = segments::towards_port(port.port);
            objects.routes.insert(key(Table::Segments, of_address(towards)), gateway(port));
            let route = Route::StripAndLeave { interface: port.interface, towards, compressed };
            objects.routes.insert(key(Table::Segments, Element::Port(port.port).prefix()), route);
        }
    }
    let mut here = |to, route| objects.routes.insert(key(Table::Segments, to), route);
    here(segments::all_first_ports(), Route::Strip { interface, compressed });
    if let Some(port) = delivery.agent_port {
        here(Element::Port(port).prefix(), Route::Strip { interface, compressed });
    }
    if let Some(to) = delivery.v4 {
        here(Element::DeliverV4.prefix(), Route::DeliverV4 { interface, to });
    }
    if delivery.v6 {
        here(Element::DeliverV6.prefix(), Route::DeliverV6 { interface });
    }
    objects
}

/// The neighbours of all ports, and an address that leads to each.
pub fn neighbours(ports: &[CabledPort]) -> Objects {
    let neighbours =
        ports.iter().map(|port| ((port.interface, segments::NEIGHBOUR), port.neighbour)).collect();
    let first_port =
        |port: &CabledPort| (key(Table::Main, Element::FirstPort(port.port).prefix()), gateway(port));
    Objects { neighbours, routes: ports.iter().map(first_port).collect(), ..Objects::default() }
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
