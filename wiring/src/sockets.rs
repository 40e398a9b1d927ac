//! Two fabrics as plugs in the sockets of the same nodes.

use std::collections::BTreeMap;

use mapper_proto::map::{Fabric, PortRef};

use super::matching::Matching;
use super::{NodeName, NodePort};
use mapper_fabric::machine;

/// Where a plug fits: a port of an xbar, or a host, whose one port has the number 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Socket {
    pub(super) node: u32,
    /// As the plan numbers it.
    pub(super) port: i16,
}

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NodeKind {
    /// An interface: its machine, by the number of the machine's first interface, and its place among the machine's
    /// interfaces, from 0.
    Host { machine: u32, rail: usize },
    /// A crossbar with the numbers of ports that it may have, as plan and found fabric say.
    Xbar { ports: [u8; 2] },
}

/// A node of the plan, of what was found, or of both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Node {
    /// As in the plan, if it has the node.
    pub(super) name: NodeName,
    pub(super) kind: NodeKind,
    pub(super) is_planned: bool,
    pub(super) is_found: bool,
    /// What it is called where it was found, if it was recognised by its cables and has another name there.
    pub(super) found_as: Option<String>,
}

/// Cables, each by its sockets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Wiring(BTreeMap<Socket, Socket>);

impl Wiring {
    /// What is at the other end of the cable in a socket.
    pub(super) fn far(&self, socket: Socket) -> Option<Socket> {
        self.0.get(&socket).copied()
    }

    pub(super) fn connect(&mut self, a: Socket, b: Socket) {
        self.disconnect(a);
        self.disconnect(b);
        self.0.insert(a, b);
        self.0.insert(b, a);
    }

    /// Takes the cable out that is in a socket.
    pub(super) fn disconnect(&mut self, socket: Socket) {
        if let Some(far) = self.0.remove(&socket) {
            self.0.remove(&far);
        }
    }

    /// All cables, the lower end first, in rising order.
    pub(super) fn cables(&self) -> impl Iterator<Item = (Socket, Socket)> + '_ {
        self.0.iter().filter(|(a, b)| a < b).map(|(&a, &b)| (a, b))
    }

    /// The sockets of a node that hold plugs, with the far ends.
    pub(super) fn of_node(&self, node: u32) -> impl Iterator<Item = (Socket, Socket)> + '_ {
        let first = Socket { node, port: i16::MIN };
        let last = Socket { node, port: i16::MAX };
        self.0.range(first..=last).map(|(&a, &b)| (a, b))
    }

    /// Moves plugs: each of `sockets` gives its plug to another, all at once. `to` must be one to one on them.
    pub(super) fn rearrange(&mut self, sockets: &[Socket], to: impl Fn(Socket) -> Socket) {
        let moves: BTreeMap<Socket, Socket> = sockets.iter().map(|&socket| (socket, to(socket))).collect();
        let new = |socket: Socket| moves.get(&socket).copied().unwrap_or(socket);
        let mut cables: Vec<(Socket, Socket)> = Vec::new();
        for &socket in sockets {
            if let Some(far) = self.0.get(&socket).copied() {
                cables.push((new(socket), new(far)));
                self.disconnect(socket);
            }
        }
        for (a, b) in cables {
            self.0.insert(a, b);
            self.0.insert(b, a);
        }
    }

    pub(super) fn cable_count(&self) -> usize {
        self.0.len() / 2
    }
}

/// The plan and what was found, by the same nodes and sockets.
#[derive(Clone, Debug)]
pub(super) struct Wirings {
    pub(super) nodes: Vec<Node>,
    pub(super) planned: Wiring,
    pub(super) found: Wiring,
}

impl Wirings {
    pub(super) fn of(matching: &Matching<'_>) -> Self {
        let (a, b) = (matching.a, matching.b);
        let rails = [machine::rails(a), machine::rails(b)];
        let mut list = NodeList::default();
        list.add_planned(matching, &rails[0]);
        let xbar_base = a.hosts.len() as u32;
        let host_of_b = list.add_found_hosts(matching, &rails[1]);
        let xbar_of_b = list.add_found_xbars(matching);
        let planned = wiring(
            a,
            |host| host as u32,
            |at| Socket { node: xbar_base + at.xbar, port: i16::from(at.port) },
        );
        let found = wiring(
            b,
            |host| host_of_b[host],
            |at| Socket {
                node: xbar_of_b[at.xbar as usize],
                port: i16::from(at.port) + matching.offset[at.xbar as usize],
            },
        );
        Self { nodes: list.nodes, planned, found }
    }

    /// A socket by names.
    pub(super) fn port(&self, socket: Socket) -> NodePort {
        let node = &self.nodes[socket.node as usize];
        let port = matches!(node.kind, NodeKind::Xbar { .. }).then_some(socket.port);
        NodePort { node: node.name.clone(), port }
    }

    /// What a node is called.
    pub(super) fn called(&self, node: u32) -> &str {
        &self.nodes[node as usize].name.name
    }

    pub(super) fn is_host(&self, node: u32) -> bool {
        matches!(self.nodes[node as usize].kind, NodeKind::Host { .. })
    }
}

/// An interface, its place among those of its machine, and how many these are, as [`machine::rails`] has them.
type Rail = (machine::MachineInterface, usize, usize);

/// The nodes of both fabrics, as they are numbered one after the other.
#[derive(Debug, Default)]
struct NodeList<'a> {
    nodes: Vec<Node>,
    /// The number of each machine's first interface.
    machines: BTreeMap<&'a str, u32>,
}

impl<'a> NodeList<'a> {
    fn next(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The kind of the next node, which is an interface.
    fn host_kind(&mut self, (interface, rail, _): &'a Rail) -> NodeKind {
        let next = self.next();
        let machine = *self.machines.entry(&interface.machine).or_insert(next);
        NodeKind::Host { machine, rail: *rail }
    }

    /// Adds all nodes of the plan: its hosts, then its xbars.
    fn add_planned(&mut self, matching: &Matching<'_>, rails: &'a [Rail]) {
        for (host, rail) in rails.iter().enumerate() {
            let kind = self.host_kind(rail);
            self.nodes.push(Node {
                name: matching.host_of_a(host),
                kind,
                is_planned: true,
                is_found: matching.host_in_b[host].is_some(),
                found_as: None,
            });
        }
        for xbar in 0..matching.a.xbars.len() {
            let in_b = matching.xbar_in_b[xbar];
            let planned_ports = matching.a.map.xbars[xbar].ports;
            let found_ports = in_b.map(|in_b| matching.b.map.xbars[in_b].ports).unwrap_or(planned_ports);
            self.nodes.push(Node {
                name: matching.xbar_of_a(xbar),
                kind: NodeKind::Xbar { ports: [planned_ports, found_ports] },
                is_planned: true,
                is_found: in_b.is_some(),
                found_as: in_b.and_then(|in_b| matching.other_name(xbar, in_b)),
            });
        }
    }

    /// Adds a node that was found, but is not in the plan.
    fn add_unplanned(&mut self, name: NodeName, kind: NodeKind) {
        self.nodes.push(Node { name, kind, is_planned: false, is_found: true, found_as: None });
    }

    /// Adds the hosts that are not in the plan. Returns the node of each host that was found.
    fn add_found_hosts(&mut self, matching: &Matching<'_>, rails: &'a [Rail]) -> Vec<u32> {
        let mut host_of_b = Vec::with_capacity(rails.len());
        for (host, rail) in rails.iter().enumerate() {
            let in_a = matching.host_in_a[host];
            host_of_b.push(in_a.map_or(self.next(), |in_a| in_a as u32));
            if in_a.is_none() {
                let kind = self.host_kind(rail);
                self.add_unplanned(matching.host_of_b(host), kind);
            }
        }
        host_of_b
    }

    /// Adds the xbars that are not in the plan. Returns the node of each xbar that was found.
    fn add_found_xbars(&mut self, matching: &Matching<'_>) -> Vec<u32> {
        let xbar_base = matching.a.hosts.len() as u32;
        let mut xbar_of_b = Vec::with_capacity(matching.b.xbars.len());
        for xbar in 0..matching.b.xbars.len() {
            let in_a = matching.xbar_in_a[xbar];
            xbar_of_b.push(in_a.map_or(self.next(), |in_a| xbar_base + in_a as u32));
            if in_a.is_none() {
                let ports = matching.b.map.xbars[xbar].ports;
                self.add_unplanned(matching.xbar_of_b(xbar), NodeKind::Xbar { ports: [ports; 2] });
            }
        }
        xbar_of_b
    }
}

/// The cables of a fabric. A plug that joins a port to itself is none.
fn wiring(fabric: &Fabric, host: impl Fn(usize) -> u32, port: impl Fn(PortRef) -> Socket) -> Wiring {
    let mut wiring = Wiring::default();
    for cable in fabric.map.cables.iter().filter(|cable| cable.a != cable.b) {
        wiring.connect(port(cable.a), port(cable.b));
    }
    for (index, at) in fabric.map.hosts.iter().enumerate().filter_map(|(index, host)| Some((index, host.at?)))
    {
        wiring.connect(Socket { node: host(index), port: 0 }, port(at));
    }
    if let Some([a, b]) = fabric.face_to_face() {
        wiring.connect(Socket { node: host(a), port: 0 }, Socket { node: host(b), port: 0 });
    }
    wiring
}
