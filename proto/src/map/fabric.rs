//! A map with what only people and files know of it.

use std::collections::BTreeMap;

use super::{LinkSpeed, Map, PortRef};

/// A fabric as a file or a generator describes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fabric {
    /// Hosts, xbars, cables.
    pub map: Map,
    /// A label for each of [`Map::hosts`], in the same order.
    pub hosts: Vec<HostLabel>,
    /// A label for each of [`Map::xbars`], in the same order.
    pub xbars: Vec<XbarLabel>,
    /// How fast the cable in an xbar's port is, where that is known; a cable between xbars has both its ends here.
    pub link_speeds: BTreeMap<PortRef, LinkSpeed>,
    /// What a file said that the map does not hold, and why, in words for people.
    pub left_out: Vec<String>,
}

impl Fabric {
    /// The two hosts that one cable joins without an xbar: as [`Map::face_to_face`] says, unless the labels
    /// know that there is no cable.
    pub fn face_to_face(&self) -> Option<[usize; 2]> {
        let is_cabled = |host: usize| self.hosts.get(host).is_none_or(|label| !label.uncabled);
        self.map.face_to_face().filter(|pair| pair.iter().all(|&host| is_cabled(host)))
    }

    /// Forgets all LIDs, so that they are given anew.
    pub fn forget_lids(&mut self) {
        self.hosts.iter_mut().for_each(|label| label.lid = None);
        self.xbars.iter_mut().for_each(|label| label.lid = None);
    }

    /// The hosts that have no cable, by rising index. Phantoms, of which none has one, are left out.
    pub fn isolated(&self) -> Vec<usize> {
        let pair = self.face_to_face().unwrap_or([usize::MAX; 2]);
        let hosts = self.map.hosts.iter().enumerate();
        let alone = hosts.filter(|(index, host)| host.at.is_none() && !pair.contains(index));
        alone.filter(|(_, host)| !host.is_phantom()).map(|(index, _)| index).collect()
    }
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
    /// The file says that there is no cable in this port. Tells two hosts that have nothing between them from
    /// two that are cabled to each other, which look alike in a [`Map`].
    pub uncabled: bool,
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
