//! A map with what only people and files know of it.

use super::Map;

/// A fabric as a file or a generator describes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fabric {
    /// Hosts, xbars, cables.
    pub map: Map,
    /// A label for each of [`Map::hosts`], in the same order.
    pub hosts: Vec<HostLabel>,
    /// A label for each of [`Map::xbars`], in the same order.
    pub xbars: Vec<XbarLabel>,
}

/// What people call a host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostLabel {
    /// The node id in the file (the quoted string); unique in a fabric.
    pub name: String,
    /// What the file says of the node in words.
    pub description: String,
    /// The node's GUID, if the file has one.
    pub guid: Option<u64>,
    /// The GUID of the port that is this host's interface.
    pub port_guid: Option<u64>,
    /// The GUID of the system that the node is part of.
    pub system_guid: Option<u64>,
    /// The number of the node's port that is this host's interface (1 for most).
    pub node_port: u8,
    /// How many ports the node has.
    pub node_ports: u8,
    /// The local identifier, if the file has one.
    pub lid: Option<u16>,
    /// The LID mask control: 2^lmc LIDs belong to the port.
    pub lmc: u8,
}

/// What people call an xbar.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct XbarLabel {
    /// The node id in the file (the quoted string); unique in a fabric.
    pub name: String,
    /// What the file says of the node in words.
    pub description: String,
    /// The node's GUID, if the file has one.
    pub guid: Option<u64>,
    /// The GUID of the system that the node is part of.
    pub system_guid: Option<u64>,
    /// The local identifier of its management port, if the file has one.
    pub lid: Option<u16>,
}
