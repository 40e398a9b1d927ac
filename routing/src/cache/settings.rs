//! The settings that tables were computed by, so that they are not reused for other settings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::compare::Correspondence;
use crate::engines::torus::TorusStatement;
use crate::engines::{Engine, Settings, SubnetNode};

/// A setting in words, perhaps of one node. The settings of a node do not count while it is gone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Line {
    node: Option<NodeIndex>,
    text: String,
}

/// A node of the fabric that the lines are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum NodeIndex {
    Xbar(u32),
    Host(u32),
}

/// All engines and settings that decide which tables come out, except the tables in force: cached tables are
/// right whatever these are.
pub(super) fn lines(engines: &[Engine], settings: &Settings) -> Vec<Line> {
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
    let xbar = |xbar: u32, text: String| Line { node: Some(NodeIndex::Xbar(xbar)), text };
    let host = |host: u32, text: &str| Line { node: Some(NodeIndex::Host(host)), text: text.to_owned() };
    let mut lines: Vec<Line> = [
        format!("engines {engines:?}"),
        format!("seed {seed}, balance {balance:?}, scatter {scatter:?}, shifting {port_shifting}"),
        format!("hops {max_hops}, reverse {max_reverse_hops}, layers {first_layer} to {max_layers:?}"),
        format!("xbars {xbar_destinations}, connect roots {connect_roots}, passes {passes}"),
        format!("reassign {reassign}, roots {}, compute nodes {}", roots.is_some(), compute_nodes.is_some()),
        format!("file {}", file.is_some() || hops.is_some()),
        format!("torus {:?}", TorusStatement { origin: None, written_at: BTreeMap::new(), ..torus.clone() }),
    ]
    .into_iter()
    .map(|text| Line { node: None, text })
    .collect();
    lines.extend(order_first.iter().map(|&node| match node {
        SubnetNode::Xbar(at) => xbar(at, "first".to_owned()),
        SubnetNode::Host(at) => host(at, "first"),
    }));
    lines.extend(uncounted_ports.iter().map(|at| xbar(at.xbar, format!("uncounted {}", at.port))));
    lines.extend(port_order.iter().map(|(&at, ports)| xbar(at, format!("ports {ports:?}"))));
    lines
        .extend(hop_weights.iter().map(|(at, weight)| xbar(at.xbar, format!("weight {} {weight}", at.port))));
    lines.extend(roots.iter().flatten().map(|&at| xbar(at, "root".to_owned())));
    lines.extend(torus.origin.map(|at| xbar(at, "torus origin".to_owned())));
    lines.extend(ids.iter().map(|(&at, id)| xbar(at, format!("id {id}"))));
    lines.extend(compute_nodes.iter().flatten().map(|&at| host(at, "compute node")));
    lines.extend(io_nodes.iter().map(|&at| host(at, "I/O node")));
    lines
}

/// Whether settings agree with those held, for all nodes that are there.
pub(super) fn agree(held: &[Line], now: &[Line], same: &Correspondence) -> bool {
    let is_there = |line: &&Line| match line.node {
        None => true,
        Some(NodeIndex::Xbar(xbar)) => same.has_xbar(xbar),
        Some(NodeIndex::Host(host)) => same.has_host(host),
    };
    let as_held = |line: &Line| Line {
        node: line.node.map(|node| match node {
            NodeIndex::Xbar(xbar) => NodeIndex::Xbar(same.xbars[xbar as usize]),
            NodeIndex::Host(host) => NodeIndex::Host(same.hosts[host as usize]),
        }),
        text: line.text.clone(),
    };
    let key = |line: &Line| match line.node {
        None => (0, 0),
        Some(NodeIndex::Xbar(xbar)) => (1, xbar),
        Some(NodeIndex::Host(host)) => (2, host),
    };
    let mut held: Vec<Line> = held.iter().filter(is_there).cloned().collect();
    let mut now: Vec<Line> = now.iter().map(as_held).collect();
    let order =
        |lines: &[Line]| -> Vec<Line> { lines.iter().filter(|line| line.text == "first").cloned().collect() };
    if order(&held) != order(&now) {
        return false;
    }
    // Sets are listed by rising index, which differs between the two fabrics.
    held.sort_by(|a, b| (key(a), &a.text).cmp(&(key(b), &b.text)));
    now.sort_by(|a, b| (key(a), &a.text).cmp(&(key(b), &b.text)));
    // Tables or hops from a file are not reused but read anew, as the file may have changed.
    held == now && !now.iter().any(|line| line.text == "file true")
}
