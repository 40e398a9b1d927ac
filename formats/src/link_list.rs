//! Makes a fabric of lines that each say what one cable joins.

use std::collections::BTreeMap;

use mapper_proto::Mac;
use mapper_proto::map::{Fabric, HostLabel, LinkSpeed, Xbar, XbarLabel, host_type};

use super::Malformed;
use super::draft::{Draft, HostNode, ListedInterface, ListedKind, ListedNode, tag_xbars};

/// What a line says of one end of a cable.
pub(super) struct ListedPort<'a> {
    pub role: Role,
    /// The GUID that its node goes by: its own, or that of a port where the file tells only that.
    pub key: u64,
    pub node_guid: Option<u64>,
    pub port_guid: Option<u64>,
    pub system_guid: Option<u64>,
    /// How many ports its node has, if the file says so; otherwise as many as are seen.
    pub ports: Option<u8>,
    pub port: u8,
    /// Its LID; 0 for none.
    pub lid: u16,
    pub description: &'a str,
}

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Switch,
    Adapter,
    Router,
}

impl Role {
    /// By the name that tools print: `SW`, `CA`, `RT`, with or without more behind a hyphen.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        match name.split('-').next()? {
            "SW" => Some(Self::Switch),
            "CA" => Some(Self::Adapter),
            "RT" => Some(Self::Router),
            _ => None,
        }
    }

    /// What ibnetdiscover begins a node's id with.
    const fn letter(self) -> char {
        match self {
            Self::Switch => 'S',
            Self::Adapter => 'H',
            Self::Router => 'R',
        }
    }
}

/// Nodes by what they go by, and what each of their ports is cabled to.
#[derive(Default)]
pub(super) struct LinkList {
    nodes: Vec<SeenNode>,
    by_key: BTreeMap<u64, usize>,
}

struct SeenNode {
    line: usize,
    role: Role,
    key: u64,
    guid: Option<u64>,
    system_guid: Option<u64>,
    /// The number that the file says, or the highest that was seen.
    ports: u8,
    description: String,
    /// A switch's LID.
    lid: Option<u16>,
    interfaces: BTreeMap<u8, ListedInterface>,
    ends: Vec<SeenEnd>,
}

struct SeenEnd {
    line: usize,
    port: u8,
    peer: usize,
    peer_port: u8,
    speed: Option<LinkSpeed>,
}

impl LinkList {
    /// Takes note of a node and one of its ports, and gives the node's place in the list.
    pub(super) fn port(&mut self, line: usize, seen: &ListedPort<'_>) -> Result<usize, Malformed> {
        let index = *self.by_key.entry(seen.key).or_insert_with(|| {
            self.nodes.push(SeenNode {
                line,
                role: seen.role,
                key: seen.key,
                guid: seen.node_guid,
                system_guid: seen.system_guid,
                ports: seen.ports.unwrap_or(0),
                description: seen.description.to_owned(),
                lid: None,
                interfaces: BTreeMap::new(),
                ends: Vec::new(),
            });
            self.nodes.len() - 1
        });
        let node = &mut self.nodes[index];
        if node.role != seen.role {
            let problem = format!(
                "GUID {:#x} is that of another kind of node at line {}; each GUID must be one node's",
                seen.key, node.line
            );
            return Err(Malformed::at(line, problem));
        }
        if seen.ports.is_none() {
            node.ports = node.ports.max(seen.port);
        }
        let lid = Some(seen.lid).filter(|&lid| lid != 0);
        if seen.role == Role::Switch {
            node.lid = node.lid.or(lid);
        } else {
            let interface = ListedInterface { line, guid: seen.port_guid, lid, lmc: 0 };
            node.interfaces.entry(seen.port).or_insert(interface);
        }
        Ok(index)
    }

    /// Takes note of a cable.
    pub(super) fn link(
        &mut self,
        line: usize,
        ends: [&ListedPort<'_>; 2],
        speed: Option<LinkSpeed>,
    ) -> Result<(), Malformed> {
        let [from, to] = ends;
        let (index, peer) = (self.port(line, from)?, self.port(line, to)?);
        let end = SeenEnd { line, port: from.port, peer, peer_port: to.port, speed };
        self.nodes[index].ends.push(end);
        Ok(())
    }

    /// The fabric, in which nodes are called as ibnetdiscover calls them.
    pub(super) fn finish(self, mut draft: Draft) -> Result<Fabric, Malformed> {
        let name = |node: &SeenNode| format!("{}-{:016x}", node.role.letter(), node.key);
        let names: Vec<String> = self.nodes.iter().map(name).collect();
        for (node, name) in self.nodes.into_iter().zip(&names) {
            let SeenNode { line, ports, .. } = node;
            if ports == 0 {
                return Err(Malformed::at(line, "a node without ports; expected one of 1 to 255 ports"));
            }
            let ends = node.list(name, &mut draft)?;
            for SeenEnd { line, port, peer, peer_port, speed } in ends {
                draft.end(line, u64::from(port), &names[peer], u64::from(peer_port))?;
                speed.into_iter().for_each(|speed| draft.link_speed(speed));
            }
        }
        draft.check_guids()?;
        let mut fabric = draft.finish()?;
        tag_xbars(&mut fabric);
        Ok(fabric)
    }
}

impl SeenNode {
    /// Adds the node to a draft, and gives the ends of its cables.
    fn list(self, name: &str, draft: &mut Draft) -> Result<Vec<SeenEnd>, Malformed> {
        let kind = if self.role == Role::Switch {
            let label = XbarLabel {
                description: self.description,
                guid: self.guid,
                system_guid: self.system_guid,
                lid: self.lid,
                ..Default::default()
            };
            ListedKind::Xbar(label, Xbar { ports: self.ports, tag: None, ports_known: true })
        } else {
            let label = HostLabel {
                description: self.description,
                guid: self.guid,
                system_guid: self.system_guid,
                node_port: self.interfaces.keys().next().copied().unwrap_or(1),
                node_ports: self.ports,
                ..Default::default()
            };
            ListedKind::Host(HostNode {
                label,
                host_type: host_type::INFINIBAND,
                mac: self.guid.map(Mac::from_u64),
                interfaces: self.interfaces,
            })
        };
        let (line, name) = (self.line, name.to_owned());
        draft.node(ListedNode { line, name, ports: (1, self.ports), kind })?;
        Ok(self.ends)
    }
}
