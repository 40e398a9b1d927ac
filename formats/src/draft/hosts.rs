//! The hosts that the interfaces of a machine are: their names and their addresses.

use std::collections::BTreeSet;

use mapper_proto::Mac;
use mapper_proto::map::{Fabric, Host, HostLabel, PortRef};

use super::HostNode;

/// Adds a host for each cabled interface of a machine, or for the first if none is.
///
/// `cabled` says which ports are cabled, counted from 1, and to which xbar's port (`None`: to another host). The
/// first host has the node's name; others are marked with their port, as in `node-p2`.
pub(super) fn add_hosts(
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
    let highest = cabled.iter().map(|&(port, _)| port).max().unwrap_or(1);
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
            node_ports: node.label.node_ports.max(highest),
            uncabled,
            ..node.label.clone()
        });
        fabric.map.hosts.push(Host { mac: Mac::default(), level: 1, host_type: node.host_type, at });
    }
}

/// The name of a host that is a further interface of the machine `name`.
pub(crate) fn further_name(name: &str, port: u8) -> String {
    format!("{name}-p{port}")
}

/// The addresses of the hosts: those that the file gives; where it gives none or one that is
/// taken, one by position.
pub(super) fn settle_macs(given: &[Option<Mac>]) -> Vec<Mac> {
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
