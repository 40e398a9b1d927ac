//! The nodes of a subnet, by what such a file may call them.

use std::collections::BTreeMap;

use mapper_fabric::names::Named;
use mapper_routing::Subnet;
use mapper_routing::engines::SubnetNode;

/// The nodes of a subnet.
pub(super) struct Nodes<'a> {
    /// Xbars, then hosts' ports, then hosts' nodes, if two have the same GUID.
    pub(super) by_guid: BTreeMap<u64, SubnetNode>,
    pub(super) by_name: BTreeMap<&'a str, SubnetNode>,
}

impl<'a> Nodes<'a> {
    /// The nodes of this subnet.
    pub(super) fn of(subnet: &'a Subnet) -> Self {
        let mut by_guid = BTreeMap::new();
        let xbars = (0..).zip(&subnet.xbar_guids).map(|(xbar, &guid)| (guid, SubnetNode::Xbar(xbar)));
        let hosts = |guids| (0..).zip(guids).map(|(host, &guid): (u32, &u64)| (guid, SubnetNode::Host(host)));
        for (guid, node) in xbars.chain(hosts(&subnet.host_port_guids)).chain(hosts(&subnet.host_guids)) {
            by_guid.entry(guid).or_insert(node);
        }
        let named = |named: Named| match named {
            Named::Host(host) => SubnetNode::Host(host),
            Named::Xbar(xbar) => SubnetNode::Xbar(xbar),
        };
        let by_name = subnet.names.nodes().into_iter().map(|(name, node)| (name, named(node))).collect();
        Self { by_guid, by_name }
    }
}
