//! Makes a fabric of nodes that list their cables, each end on its own.
//!
//! - `links`: which port is cabled to which.
//! - `guids`: GUIDs that may be one node's or port's alone.
//! - `hosts`: the hosts that a machine's interfaces are.
//! - `tags`: what identifies xbars.

mod guids;
mod hosts;
mod links;
mod tags;

use std::collections::{BTreeMap, HashMap};

use mapper_fabric::{MAX_HOSTS, MAX_XBARS};
use mapper_proto::map::{Cable, Fabric, HostLabel, LinkSpeed, PortRef, Xbar, XbarLabel};
use mapper_proto::{Mac, quote};

use super::{Malformed, is_name};

pub(super) use hosts::further_name;
pub(super) use tags::tag_xbars;

use hosts::{add_hosts, settle_macs};

/// Nodes and their cables as a file lists them.
#[derive(Default)]
pub(super) struct Draft {
    nodes: Vec<ListedNode>,
    /// The node that was added last, or added to.
    current: Option<usize>,
    /// The places of nodes by name. They are only looked up, never listed, and a large file names each node many
    /// times: so this is a hash map.
    by_name: HashMap<String, usize>,
    ends: Vec<ListedEnd>,
    left_out: Vec<String>,
    /// How much was left out beyond what `left_out` may hold.
    more_left_out: usize,
}

/// How much of what was left out is told one by one.
const MAX_LEFT_OUT: usize = 1000;

/// A node as a file lists it.
pub(super) struct ListedNode {
    /// Where it begins in the file.
    pub line: usize,
    pub name: String,
    /// The first and last port that it can have, as the file counts them. Those of a machine count from 0 or from 1.
    pub ports: (u8, u8),
    pub kind: ListedKind,
}

impl ListedNode {
    /// Whether both are one machine, as their GUID says.
    fn is_same_machine(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (ListedKind::Host(one), ListedKind::Host(two)) => {
                one.label.guid.is_some() && one.label.guid == two.label.guid && self.ports == other.ports
            }
            _ => false,
        }
    }
}

/// What a node is.
pub(super) enum ListedKind {
    Xbar(XbarLabel, Xbar),
    Host(HostNode),
}

/// A machine with one or several interfaces in the fabric, each of which is a host.
pub(super) struct HostNode {
    pub label: HostLabel,
    pub host_type: u8,
    /// The address of its first interface.
    pub mac: Option<Mac>,
    /// What the file says of single ports.
    pub interfaces: BTreeMap<u8, ListedInterface>,
}

/// What a file says of a port of a machine.
#[derive(Clone, Copy, Default)]
pub(super) struct ListedInterface {
    /// Where the file says it.
    pub line: usize,
    pub guid: Option<u64>,
    pub lid: Option<u16>,
    pub lmc: u8,
}

/// One end of a cable, as the node at that end lists it.
struct ListedEnd {
    line: usize,
    node: usize,
    port: u8,
    peer: String,
    peer_port: u64,
    speed: Option<LinkSpeed>,
}

/// A node and one of its ports.
type Port = (usize, u8);

impl Draft {
    /// Adds a node. A machine may be in a file of several fabrics once for each, and is one node.
    pub(super) fn node(&mut self, node: ListedNode) -> Result<(), Malformed> {
        let ListedNode { line, name, .. } = &node;
        if !is_name(name) {
            let expected = "expected 1 to 64 printable characters";
            return Err(Malformed::at(*line, format!("`{name}` is no name of a node; {expected}")));
        }
        if let Some(&first) = self.by_name.get(name) {
            if node.is_same_machine(&self.nodes[first]) {
                self.current = Some(first);
                return Ok(());
            }
            let first = self.nodes[first].line;
            return Err(Malformed::at(*line, format!("node `{name}` is already there, at line {first}")));
        }
        self.by_name.insert(name.clone(), self.nodes.len());
        self.current = Some(self.nodes.len());
        self.nodes.push(node);
        Ok(())
    }

    /// The node that was added last, or added to.
    pub(super) fn last(&mut self) -> Option<&mut ListedNode> {
        self.nodes.get_mut(self.current?)
    }

    /// Adds an end of a cable at the node that was added last, or added to.
    pub(super) fn end(
        &mut self,
        line: usize,
        port: u64,
        peer: &str,
        peer_port: u64,
    ) -> Result<u8, Malformed> {
        let Some(node) = self.current else {
            return Err(Malformed::at(line, "a port before any node; expected a node's header"));
        };
        let port = self.port(line, node, port)?;
        self.ends.push(ListedEnd { line, node, port, peer: peer.to_owned(), peer_port, speed: None });
        Ok(port)
    }

    /// Says how fast the cable of the end added last is.
    pub(super) fn link_speed(&mut self, speed: LinkSpeed) {
        if let Some(end) = self.ends.last_mut() {
            end.speed = Some(speed);
        }
    }

    /// Notes that something at a line is not in the fabric, and why.
    pub(super) fn leave_out(&mut self, line: usize, what: impl AsRef<str>) {
        if self.left_out.len() == MAX_LEFT_OUT {
            self.more_left_out += 1;
            return;
        }
        let what = quote::harmless(what.as_ref(), quote::MAX_MESSAGE_BYTES);
        self.left_out.push(format!("line {line}: {what}"));
    }

    /// The port of a node, if it can have it.
    fn port(&self, line: usize, node: usize, port: u64) -> Result<u8, Malformed> {
        let ListedNode { name, ports: (first, last), .. } = &self.nodes[node];
        let known = u8::try_from(port).ok().filter(|port| (first..=last).contains(&port));
        known.ok_or_else(|| {
            let expected = format!("expected a port from {first} to {last}");
            Malformed::at(line, format!("node `{name}` has no port {port}; {expected}"))
        })
    }

    /// The fabric.
    pub(super) fn finish(mut self) -> Result<Fabric, Malformed> {
        let mut links = self.links()?;
        self.check_first_ports(&links)?;
        self.leave_out_host_to_host(&mut links);
        let mut fabric = Fabric::default();
        let mut xbars = vec![None; self.nodes.len()];
        for (node, xbar) in self.nodes.iter().zip(&mut xbars) {
            if let ListedKind::Xbar(label, body) = &node.kind {
                *xbar = Some(fabric.map.xbars.len() as u32);
                fabric.xbars.push(XbarLabel { name: node.name.clone(), ..label.clone() });
                fabric.map.xbars.push(*body);
            }
        }
        let port_ref = |(node, port): Port| xbars[node].map(|xbar| PortRef { xbar, port });
        for (&from, &(to, _)) in &links {
            if let (Some(a), Some(b)) = (port_ref(from), port_ref(to))
                && a < b
            {
                fabric.map.cables.push(Cable::new(a, b));
            }
        }
        fabric.link_speeds = self.link_speeds(&links, port_ref);
        let mut macs = Vec::new();
        for (index, node) in std::mem::take(&mut self.nodes).into_iter().enumerate() {
            if let ListedKind::Host(host) = node.kind {
                let cabled = links.range((index, 0)..=(index, u8::MAX));
                // Labels count a machine's ports from 1, whatever the file does.
                let shift = 1_u8.saturating_sub(node.ports.0);
                let cabled =
                    cabled.map(|(&(_, port), &(to, _))| (port.saturating_add(shift), port_ref(to))).collect();
                add_hosts(&mut fabric, &mut macs, &node.name, &host, cabled);
            }
        }
        check_size(&fabric)?;
        fabric.map.cables.sort_unstable();
        for (host, mac) in fabric.map.hosts.iter_mut().zip(settle_macs(&macs)) {
            host.mac = mac;
        }
        fabric.left_out = self.left_out;
        if self.more_left_out > 0 {
            fabric.left_out.push(format!("{} more", self.more_left_out));
        }
        Ok(fabric)
    }
}

/// Refuses fabrics that are too large.
fn check_size(fabric: &Fabric) -> Result<(), Malformed> {
    let counts = [
        ("xbars", fabric.map.xbars.len() as u64, MAX_XBARS),
        ("hosts", fabric.map.hosts.len() as u64, MAX_HOSTS),
    ];
    match counts.iter().find(|(_, count, limit)| count > limit) {
        None => Ok(()),
        Some((what, count, limit)) => {
            Err(Malformed::at(1, format!("there are {count} {what}; expected at most {limit}")))
        }
    }
}
