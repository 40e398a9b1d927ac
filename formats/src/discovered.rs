//! A fabric of InfiniBand as a sweep found it.
//!
//! Nodes have the names that ibnetdiscover gives: `S-`, `H-` or `R-` and the GUID.

use std::collections::BTreeMap;

use mapper_ib::mad::NodeKind;
use mapper_ib::sweep::{Found, Node};
use mapper_proto::Mac;
use mapper_proto::map::{Fabric, HostLabel, Xbar, XbarLabel, host_type};

use super::draft::{Draft, HostNode, ListedInterface, ListedKind, ListedNode, tag_xbars};
use super::{FormatError, Malformed};

/// The fabric that was found by a port of this name. What is wrong with it is among [`Fabric::left_out`].
///
/// # Errors
/// If it is larger than fabrics can be.
pub fn fabric(port: &str, found: &Found) -> Result<Fabric, FormatError> {
    let mut fabric = drafted(found).map_err(|malformed| malformed.in_file(port))?;
    tag_xbars(&mut fabric);
    fabric.left_out.extend(found.problems.iter().map(|problem| found.tell(problem)));
    Ok(fabric)
}

fn drafted(found: &Found) -> Result<Fabric, Malformed> {
    let mut draft = Draft::default();
    let mut ends: BTreeMap<usize, Vec<(u8, usize, u8)>> = BTreeMap::new();
    for &[a, b] in &found.cables {
        ends.entry(a.0).or_default().push((a.1, b.0, b.1));
        ends.entry(b.0).or_default().push((b.1, a.0, a.1));
    }
    for (index, node) in found.nodes.iter().enumerate() {
        // What is malformed is named by the number of its node.
        let number = index + 1;
        let ports = (1, node.info.ports);
        draft.node(ListedNode { line: number, name: name(node), ports, kind: kind(number, node) })?;
        for &(port, peer, peer_port) in ends.get(&index).into_iter().flatten() {
            draft.end(number, port.into(), &name(&found.nodes[peer]), peer_port.into())?;
            let info = node.ports.get(&port).and_then(|port| port.info);
            if let Some(speed) = info.and_then(|info| info.speed) {
                draft.link_speed(speed);
            }
        }
    }
    draft.finish()
}

fn name(node: &Node) -> String {
    let letter = match node.info.kind {
        NodeKind::Switch => 'S',
        NodeKind::Adapter => 'H',
        NodeKind::Router => 'R',
    };
    format!("{letter}-{:016x}", node.info.guid)
}

fn kind(number: usize, node: &Node) -> ListedKind {
    let info = &node.info;
    let (description, guid) = (node.description.clone(), Some(info.guid));
    let system_guid = Some(info.system_guid).filter(|&guid| guid != 0);
    if info.kind == NodeKind::Switch {
        let lid = node.ports.get(&0).and_then(|port| port.info?.lid);
        let label = XbarLabel { description, guid, system_guid, lid, ..XbarLabel::default() };
        return ListedKind::Xbar(label, Xbar { ports: info.ports, tag: None, ports_known: true });
    }
    let interface = |(&port, of): (&u8, &mapper_ib::sweep::Port)| {
        let info = of.info.unwrap_or_default();
        (port, ListedInterface { line: number, guid: of.guid, lid: info.lid, lmc: info.lmc })
    };
    let interfaces: BTreeMap<u8, ListedInterface> = node.ports.iter().map(interface).collect();
    let node_port = interfaces.keys().next().copied().unwrap_or(info.local_port);
    let label = HostLabel {
        description,
        guid,
        system_guid,
        node_port,
        node_ports: info.ports,
        ..HostLabel::default()
    };
    let mac = Some(Mac::from_u64(info.guid));
    ListedKind::Host(HostNode { label, host_type: host_type::INFINIBAND, mac, interfaces })
}
