//! From nodes that list their cables, each end on its own, to a fabric.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mapper_fabric::{MAX_HOSTS, MAX_XBARS};
use mapper_proto::map::{Cable, Fabric, Host, HostLabel, LinkSpeed, PortRef, Xbar, XbarLabel, host_type};
use mapper_proto::{Mac, quote};

use super::{Malformed, is_name};

/// Nodes and their cables as a file lists them.
#[derive(Default)]
pub(super) struct Draft {
    nodes: Vec<ListedNode>,
    /// The node that was added last, or added to.
    current: Option<usize>,
    /// Only looked up: a large file names each node many times.
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
    /// The first and last port that it can have.
    pub ports: (u8, u8),
    pub kind: Kind,
}

impl ListedNode {
    /// Whether both are one machine, as their GUID says.
    fn is_same_machine(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Host(one), Kind::Host(two)) => {
                one.label.guid.is_some() && one.label.guid == two.label.guid && self.ports == other.ports
            }
            _ => false,
        }
    }
}

/// What a node is.
pub(super) enum Kind {
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
    pub interfaces: BTreeMap<u8, Interface>,
}

/// What a file says of a port of a machine.
#[derive(Clone, Copy, Default)]
pub(super) struct Interface {
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

    /// Refuses a GUID that two nodes, or two ports of machines, have. Tables name what they lead to by it.
    ///
    /// All ports of a machine share its GUID, and so may two entries for one machine; it counts for its port
    /// only where that has none of its own, and that may be the same as the machine's.
    pub(super) fn check_guids(&self) -> Result<(), Malformed> {
        let mut owners: BTreeMap<u64, Owner<'_>> = BTreeMap::new();
        for node in &self.nodes {
            let whole = |port| Owner { name: &node.name, line: node.line, port };
            match &node.kind {
                Kind::Xbar(label, _) => claim(&mut owners, label.guid, whole(None))?,
                Kind::Host(host) => {
                    let ports = host.interfaces.iter().filter(|(_, said)| said.guid.is_some());
                    let mut ports = ports.peekable();
                    if ports.peek().is_none() {
                        claim(&mut owners, host.label.guid, whole(None))?;
                    }
                    for (&port, said) in ports {
                        claim(&mut owners, said.guid, Owner { line: said.line, ..whole(Some(port)) })?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Which port each port is cabled to, and the line that says so. It is enough that one end
    /// lists the cable. A port cabled to itself (a loopback plug) is left out, and so is a cable to a node that the file
    /// does not describe.
    fn links(&mut self) -> Result<BTreeMap<Port, (Port, usize)>, Malformed> {
        let mut links = BTreeMap::new();
        let mut left_out: BTreeMap<Port, (usize, &'static str)> = BTreeMap::new();
        for end in &self.ends {
            let here = (end.node, end.port);
            let Some(&peer) = self.by_name.get(&end.peer) else {
                left_out.entry(here).or_insert((end.line, "there is no such node in the file"));
                continue;
            };
            let there = (peer, self.port(end.line, peer, end.peer_port)?);
            if here == there {
                left_out.entry(here).or_insert((end.line, "it leads back to the same port"));
                continue;
            }
            for (from, to) in [(here, there), (there, here)] {
                if let Some(&(known, line)) = links.get(&from)
                    && known != to
                {
                    let name = |(node, port): Port| format!("`{}` port {port}", self.nodes[node].name);
                    return Err(Malformed::at(
                        end.line,
                        format!(
                            "{} is cabled to {} here, but to {} at line {line}; a port has one cable",
                            name(from),
                            name(to),
                            name(known)
                        ),
                    ));
                }
                links.entry(from).or_insert((to, end.line));
            }
        }
        self.leave_out_dead_ends(left_out);
        Ok(links)
    }

    /// Tells of cables that lead to no other node of the file: by the port and the line of each, and why.
    fn leave_out_dead_ends(&mut self, mut dead_ends: BTreeMap<Port, (usize, &'static str)>) {
        let mut told: Vec<(usize, String)> = Vec::new();
        for end in &self.ends {
            if let Some((line, why)) = dead_ends.remove(&(end.node, end.port)) {
                let here = format!("`{}` port {}", self.nodes[end.node].name, end.port);
                told.push((
                    line,
                    format!("the cable from {here} to `{}` port {}: {why}", end.peer, end.peer_port),
                ));
            }
        }
        told.sort_unstable();
        told.into_iter().for_each(|(line, what)| self.leave_out(line, what));
    }

    /// Whether there is one cable, between these two hosts, and nothing else but phantoms: no map tells of
    /// any other cable from host to host.
    fn is_alone(&self, pair: [usize; 2], links: &BTreeMap<Port, (Port, usize)>) -> bool {
        let is_phantom = |node: &ListedNode| matches!(&node.kind, Kind::Host(host) if host.host_type == host_type::PHANTOM);
        let mut nodes = self.nodes.iter().enumerate();
        links.len() == 2 && nodes.all(|(index, node)| pair.contains(&index) || is_phantom(node))
    }

    /// The fabric.
    pub(super) fn finish(mut self) -> Result<Fabric, Malformed> {
        let mut links = self.links()?;
        self.leave_out_host_to_host(&mut links);
        let mut fabric = Fabric::default();
        let mut xbars = vec![None; self.nodes.len()];
        for (node, xbar) in self.nodes.iter().zip(&mut xbars) {
            if let Kind::Xbar(label, body) = &node.kind {
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
            if let Kind::Host(host) = node.kind {
                let cabled = links.range((index, 0)..=(index, u8::MAX));
                let cabled = cabled.map(|(&(_, port), &(to, _))| (port, port_ref(to))).collect();
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

    /// Takes out cables that join two hosts beside a fabric, as no map tells of them.
    fn leave_out_host_to_host(&mut self, links: &mut BTreeMap<Port, (Port, usize)>) {
        let is_host = |(node, _): Port| matches!(self.nodes[node].kind, Kind::Host(_));
        let between = links.iter().filter(|&(&from, &(to, _))| from < to && is_host(from) && is_host(to));
        let between = between.map(|(&from, &(to, line))| (from, to, line));
        let between: Vec<(Port, Port, usize)> =
            between.filter(|(from, to, _)| !self.is_alone([from.0, to.0], links)).collect();
        for (from, to, line) in between {
            links.remove(&from);
            links.remove(&to);
            let name = |(node, port): Port| format!("`{}` port {port}", self.nodes[node].name);
            let what = format!(
                "the cable from {} to {}: it joins hosts without a switch, and there is more in the file",
                name(from),
                name(to)
            );
            self.leave_out(line, what);
        }
    }

    /// How fast the cable in each xbar's port is: as fast as its slower end says.
    fn link_speeds(
        &self,
        links: &BTreeMap<Port, (Port, usize)>,
        port_ref: impl Fn(Port) -> Option<PortRef>,
    ) -> BTreeMap<PortRef, LinkSpeed> {
        let said = |end: &ListedEnd| Some(((end.node, end.port), end.speed?));
        let own: BTreeMap<Port, LinkSpeed> = self.ends.iter().filter_map(said).collect();
        let speed = |(from, (to, _)): (&Port, &(Port, usize))| {
            let slower =
                [own.get(from), own.get(to)].into_iter().flatten().min_by_key(|speed| speed.data_mbps());
            Some((port_ref(*from)?, *slower?))
        };
        links.iter().filter_map(speed).collect()
    }
}

/// Who has a GUID.
#[derive(Clone, Copy)]
struct Owner<'a> {
    name: &'a str,
    line: usize,
    /// The port of a machine, if it is the port's.
    port: Option<u8>,
}

impl Owner<'_> {
    fn describe(&self) -> String {
        let port = self.port.map(|port| format!(" port {port}")).unwrap_or_default();
        format!("`{}`{port}", self.name)
    }
}

/// Gives a GUID to a node or port, unless another has it. 0 is none.
fn claim<'a>(
    owners: &mut BTreeMap<u64, Owner<'a>>,
    guid: Option<u64>,
    owner: Owner<'a>,
) -> Result<(), Malformed> {
    let Some(guid) = guid.filter(|&guid| guid != 0) else { return Ok(()) };
    let Some(first) = owners.insert(guid, owner) else { return Ok(()) };
    let each = if owner.port.is_some() && first.port.is_some() { "port" } else { "node" };
    let (second, first, at) = (owner.describe(), first.describe(), first.line);
    let problem = format!(
        "{second} has GUID {guid:#x}, which is that of {first} at line {at}; each GUID must be one {each}'s"
    );
    Err(Malformed::at(owner.line, problem))
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

/// Adds a host for each cabled interface of a machine, or for the first if none is.
///
/// `cabled` says which ports are cabled, and to which xbar's port (`None`: to another host). The
/// first host has the node's name; others are marked with their port, as in `node-p2`.
fn add_hosts(
    fabric: &mut Fabric,
    macs: &mut Vec<Option<Mac>>,
    name: &str,
    node: &HostNode,
    mut cabled: Vec<(u8, Option<PortRef>)>,
) {
    let uncabled = cabled.is_empty();
    if uncabled {
        cabled.push((node.label.node_port, None));
    }
    for (i, (port, at)) in cabled.into_iter().enumerate() {
        let interface = node.interfaces.get(&port).copied().unwrap_or_default();
        let by_port = interface.guid.map(Mac::from_u64);
        macs.push(if i == 0 { node.mac.or(by_port) } else { by_port });
        fabric.hosts.push(HostLabel {
            name: if i == 0 { name.to_owned() } else { further_name(name, port) },
            port_guid: interface.guid,
            lid: interface.lid,
            lmc: interface.lmc,
            node_port: port,
            uncabled,
            ..node.label.clone()
        });
        fabric.map.hosts.push(Host { mac: Mac::default(), level: 1, host_type: node.host_type, at });
    }
}

/// The name of a host that is a further interface of the machine `name`.
pub(super) fn further_name(name: &str, port: u8) -> String {
    format!("{name}-p{port}")
}

/// The addresses of the hosts: those that the file gives; where it gives none or one that is
/// taken, one by position.
fn settle_macs(given: &[Option<Mac>]) -> Vec<Mac> {
    let mut taken: BTreeSet<Mac> = BTreeSet::from([Mac::default()]);
    // Addresses that are given are taken first, so that none that is made up by position takes one of them.
    let own: Vec<Option<Mac>> = given.iter().map(|mac| mac.filter(|&mac| taken.insert(mac))).collect();
    let mut by_position = (1_u32..).map(Mac::from_position);
    let mut settled = Vec::with_capacity(own.len());
    for (position, own) in (1..).zip(own) {
        let preferred = Mac::from_position(position);
        let mac = match own {
            Some(mac) => mac,
            None if taken.insert(preferred) => preferred,
            None => by_position.find(|&mac| taken.insert(mac)).unwrap_or(preferred),
        };
        settled.push(mac);
    }
    settled
}

/// The first of the tags that xbars without a GUID get by position. No generator uses them.
const INVENTED_TAGS: u64 = 0x0600_0000_0000_0000;

/// What identifies an xbar: its tag, unless a reader invented it for want of a GUID.
pub(crate) fn identity(xbar: &Xbar) -> Option<u64> {
    xbar.tag.filter(|tag| tag >> 32 != INVENTED_TAGS >> 32)
}

/// Tags every xbar: with its GUID; where it has none or one that is taken, by position.
pub(super) fn tag_xbars(fabric: &mut Fabric) {
    let mut taken = BTreeSet::new();
    for (xbar, label) in fabric.map.xbars.iter_mut().zip(&fabric.xbars) {
        xbar.tag = label.guid.filter(|&guid| taken.insert(guid));
    }
    for (position, xbar) in (1..).zip(&mut fabric.map.xbars) {
        let mut by_position = INVENTED_TAGS + position..;
        xbar.tag = xbar.tag.or_else(|| by_position.find(|&tag| taken.insert(tag)));
    }
}
