//! The settings that tables were computed by, so that they are not reused for other settings.

use std::collections::{BTreeMap, BTreeSet};

use mapper_proto::map::PortRef;
use serde::{Deserialize, Serialize};

use super::compare::Correspondence;
use crate::engines::torus::TorusStatement;
use crate::engines::{Engine, Settings, SubnetNode};

/// The engines and settings that tables were computed by, as far as they decide which come out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct HeldSettings {
    /// The engines, and what is set for all nodes together, in words.
    of_all: String,
    /// Whether tables or hops come from a file.
    from_file: bool,
    /// The nodes whose routes are computed first, in their order.
    order_first: Vec<NodeIndex>,
    /// What is set for single nodes, in words. It does not count while a node is gone.
    of_nodes: BTreeSet<(NodeIndex, String)>,
}

/// A node of the fabric that the settings are of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
enum NodeIndex {
    Xbar(u32),
    Host(u32),
}

impl NodeIndex {
    fn is_there(self, same: &Correspondence) -> bool {
        match self {
            Self::Xbar(xbar) => same.has_xbar(xbar),
            Self::Host(host) => same.has_host(host),
        }
    }

    /// The node of the fabric that was held that this node of the fabric now is.
    fn as_held(self, same: &Correspondence) -> Self {
        match self {
            Self::Xbar(xbar) => Self::Xbar(same.xbars[xbar as usize]),
            Self::Host(host) => Self::Host(same.hosts[host as usize]),
        }
    }
}

/// What of the engines and settings decides which tables come out. The tables in force are left out: cached tables are right
/// whatever these are.
pub(super) fn held(engines: &[Engine], settings: &Settings) -> HeldSettings {
    // All fields are named, so that none is forgotten when one is added.
    let Settings {
        seed,
        balance,
        max_hops,
        previous: _,
        reassign,
        order_first,
        uncounted_ports,
        port_order,
        hop_weights,
        hops,
        scatter,
        port_shifting,
        roots,
        ids,
        connect_roots,
        compute_nodes,
        io_nodes,
        max_reverse_hops,
        first_layer,
        max_layers,
        xbar_destinations,
        file,
        passes,
        torus,
    } = settings;
    let of_all = [
        format!("engines {engines:?}"),
        format!("seed {seed}, balance {balance:?}, scatter {scatter:?}, shifting {port_shifting}"),
        format!("hops {max_hops}, reverse {max_reverse_hops}, layers {first_layer} to {max_layers:?}"),
        format!("xbars {xbar_destinations}, connect roots {connect_roots}, passes {passes}"),
        format!("reassign {reassign}, roots {}, compute nodes {}", roots.is_some(), compute_nodes.is_some()),
        format!("torus {:?}", TorusStatement { origin: None, written_at: BTreeMap::new(), ..torus.clone() }),
    ]
    .join("; ");
    let order_first = order_first.iter().map(|&node| match node {
        SubnetNode::Xbar(xbar) => NodeIndex::Xbar(xbar),
        SubnetNode::Host(host) => NodeIndex::Host(host),
    });
    let xbar = |xbar: u32, text: String| (NodeIndex::Xbar(xbar), text);
    let host = |host: u32, text: &str| (NodeIndex::Host(host), text.to_owned());
    let mut of_nodes = BTreeSet::new();
    of_nodes.extend(uncounted_ports.iter().map(|at| xbar(at.xbar, format!("uncounted {}", at.port))));
    of_nodes.extend(port_order.iter().map(|(&at, ports)| xbar(at, format!("ports {ports:?}"))));
    let weighted = |(at, weight): (&PortRef, &_)| xbar(at.xbar, format!("weight {} {weight}", at.port));
    of_nodes.extend(hop_weights.iter().map(weighted));
    of_nodes.extend(roots.iter().flatten().map(|&at| xbar(at, "root".to_owned())));
    of_nodes.extend(torus.origin.map(|at| xbar(at, "torus origin".to_owned())));
    of_nodes.extend(ids.iter().map(|(&at, id)| xbar(at, format!("id {id}"))));
    of_nodes.extend(compute_nodes.iter().flatten().map(|&at| host(at, "compute node")));
    of_nodes.extend(io_nodes.iter().map(|&at| host(at, "I/O node")));
    HeldSettings {
        of_all,
        from_file: file.is_some() || hops.is_some(),
        order_first: order_first.collect(),
        of_nodes,
    }
}

/// Whether settings agree with those held, for all nodes that are there.
pub(super) fn agree(held: &HeldSettings, now: &HeldSettings, same: &Correspondence) -> bool {
    let first_held = held.order_first.iter().copied().filter(|node| node.is_there(same));
    let first_now = now.order_first.iter().map(|node| node.as_held(same));
    let of_held: BTreeSet<_> =
        held.of_nodes.iter().filter(|(node, _)| node.is_there(same)).cloned().collect();
    let of_now: BTreeSet<_> =
        now.of_nodes.iter().map(|(node, text)| (node.as_held(same), text.clone())).collect();
    // Tables or hops from a file are not reused but read anew, as the file may have changed.
    !now.from_file
        && !held.from_file
        && held.of_all == now.of_all
        && first_held.eq(first_now)
        && of_held == of_now
}
