//! What a sweep finds.

use std::collections::BTreeMap;

use mapper_proto::quote;

use crate::mad::{Attribute, NodeInfo, NodeInfoError, NodeKind, PortInfo, PortSettings, Route};

/// A node's place in [`Found::nodes`].
pub type NodeIndex = usize;

/// A port of a node.
pub type PortOf = (NodeIndex, u8);

/// A fabric as it answered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// The nodes, the one that asked first; nearer ones are mostly before farther ones.
    pub nodes: Vec<Node>,
    /// The cables, each once, its lower end first, in rising order.
    pub cables: Vec<[PortOf; 2]>,
    /// What did not answer, answered wrongly, or does not fit together.
    pub problems: Vec<Problem>,
}

/// A node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// What it says of itself. The local port is the one by which it answered first.
    pub info: NodeInfo,
    /// What people call it; empty if it did not say.
    pub description: String,
    /// The way by which it was found.
    pub route: Route,
    /// Its ports that were asked: all of a switch (0 is its own), of others those that cables of the fabric lead to.
    pub ports: BTreeMap<u8, Port>,
}

/// A port of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Port {
    /// The GUID of an adapter's port.
    pub guid: Option<u64>,
    /// Its state; `None` if it was not told.
    pub info: Option<PortInfo>,
    /// All that it told of itself, for a manager that is to change its settings.
    pub settings: Option<PortSettings>,
}

impl Node {
    pub(super) fn new(info: NodeInfo, route: Route) -> Self {
        Self { info, description: String::new(), route, ports: BTreeMap::new() }
    }

    /// Whether an answer can come from this node, whichever port it came by.
    pub(super) fn is_as(&self, info: &NodeInfo) -> bool {
        let of_node = |info: &NodeInfo| {
            let port_guid = Some(info.port_guid).filter(|_| info.kind == NodeKind::Switch);
            (info.guid, info.kind, info.ports, info.system_guid, port_guid)
        };
        let known = self.ports.get(&info.local_port).and_then(|port| port.guid);
        of_node(&self.info) == of_node(info) && known.is_none_or(|guid| guid == info.port_guid)
    }
}

/// Something in the fabric that is not as it should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The port that was asked, or that leads to the node that was asked; `None` for the node that asks.
    pub at: Option<PortOf>,
    /// What was asked for.
    pub attribute: Attribute,
    /// The way to the node that was asked.
    pub route: Route,
    /// What is wrong.
    pub kind: ProblemKind,
}

/// What can be wrong with an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProblemKind {
    /// There was no answer.
    Silent,
    /// It was refused with a status.
    Refused {
        /// The status, as the specification numbers it.
        status: u16,
    },
    /// No node can be as it says.
    Wrong(NodeInfoError),
    /// Another node with its GUID, and other properties, is there.
    SameGuid {
        /// The GUID.
        guid: u64,
        /// The way to the node that was found first.
        other: Route,
    },
    /// The port leads to a port that says that it is cabled to another one. Two nodes have one GUID, or a
    /// cable was moved.
    CabledElsewhere {
        /// The port that answered.
        end: PortOf,
        /// The port that it is cabled to.
        other: PortOf,
    },
    /// The port leads to a port that says that it has no cable. Two nodes have one GUID, or a cable was
    /// moved.
    NotCabled {
        /// The port that answered.
        end: PortOf,
    },
    /// There are more nodes than are taken note of.
    TooMany {
        /// How many are taken note of at most.
        most: usize,
    },
    /// It is farther away than directed routes can lead.
    TooFar,
}

impl Found {
    /// A problem in words, which name the node that it is about by its description and the way to it.
    pub fn tell(&self, problem: &Problem) -> String {
        let Problem { at, attribute, route, kind } = problem;
        let who = match (*at, attribute) {
            (None, _) => "the port that asks".to_owned(),
            (Some(end), Attribute::NodeInfo) => format!("what is behind {}", self.port(end)),
            (Some((node, _)), Attribute::NodeDescription) => self.node(node),
            (Some(end), _) => self.port(end),
        };
        let asked = attribute.name();
        let what = match kind {
            ProblemKind::Silent => format!("does not answer ({asked})"),
            ProblemKind::Refused { status } => format!("refused {asked} with status {status:#x}"),
            ProblemKind::Wrong(wrong) => format!("is no node: {wrong}"),
            ProblemKind::SameGuid { guid, other } => {
                format!("has GUID {guid:#x}, which another node has as well (directed route {other})")
            }
            ProblemKind::CabledElsewhere { end, other } => format!(
                "says that it is {}, but that is cabled to {}: two nodes have one GUID, or a cable was moved",
                self.port(*end),
                self.port(*other)
            ),
            ProblemKind::NotCabled { end } => format!(
                "says that it is {}, but that has no cable: two nodes have one GUID, or a cable was moved",
                self.port(*end)
            ),
            ProblemKind::TooMany { most } => format!("is left out, as there are more than {most} nodes"),
            ProblemKind::TooFar => "is farther away than directed routes can lead".to_owned(),
        };
        format!("{who} {what} (directed route {route})")
    }

    fn node(&self, node: NodeIndex) -> String {
        let Node { info, description, .. } = &self.nodes[node];
        if description.is_empty() { format!("node {:#x}", info.guid) } else { quote::quoted(description) }
    }

    fn port(&self, (node, port): PortOf) -> String {
        format!("{} port {port}", self.node(node))
    }
}
