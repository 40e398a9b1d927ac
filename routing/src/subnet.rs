//! A fabric as the engines see it: its topology, the addresses of its nodes, and their identities.

use mapper_proto::map::{Fabric, PortRef};
use rayon::prelude::*;
use thiserror::Error;

use super::tables::{Destinations, LidError, SlotEnd};
use super::{Attachment, Tables, Topology, TopologyError};
use mapper_fabric::machine;
use mapper_fabric::names::Names;

/// Why a fabric cannot be routed at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SubnetError {
    /// Its map is malformed.
    #[error("{}", .0.describe(.1))]
    Topology(TopologyError, Box<Names>),
    /// Its LIDs are malformed.
    #[error(transparent)]
    Lids(#[from] LidError),
    /// A port is in use that tables cannot name.
    #[error("{} is in use, but forwarding tables know ports to 254 only", .1.port(*.0))]
    Port(PortRef, Box<Names>),
}

/// A fabric as the engines see it. It is built once and read by all.
///
/// Nodes without a GUID get one that sorts by position: xbars from [`Self::INVENTED_XBAR_GUIDS`], hosts
/// their address.
#[derive(Clone, Debug)]
pub struct Subnet {
    /// Its xbars, hosts and channels.
    pub topology: Topology,
    /// The names that people have for its nodes.
    pub names: Names,
    /// What tables lead to.
    pub destinations: Destinations,
    /// Each xbar's GUID.
    pub xbar_guids: Vec<u64>,
    /// The GUID of the system that each xbar is part of; its own if it says none.
    pub xbar_systems: Vec<u64>,
    /// How many ports each xbar has, not counting its own port 0.
    pub xbar_ports: Vec<u8>,
    /// The GUID of each host's node.
    pub host_guids: Vec<u64>,
    /// The GUID of each host's port.
    pub host_port_guids: Vec<u64>,
    /// For each host, whether its description says that it is a service adapter.
    pub is_service_adapter: Vec<bool>,
}

impl Subnet {
    /// The first of the GUIDs that xbars without one get by position.
    pub const INVENTED_XBAR_GUIDS: u64 = 0x0600_0000_0000_0000;

    /// The subnet of a fabric. `lmc`: see [`Destinations::new`].
    ///
    /// # Errors
    /// If no table can be made for the fabric.
    pub fn new(fabric: &Fabric, lmc: Option<u8>) -> Result<Self, SubnetError> {
        let topology = Topology::from_fabric(fabric)
            .map_err(|error| SubnetError::Topology(error, Box::new(Names::of(fabric))))?;
        let cabled = fabric.map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
        if let Some(port) = cabled
            .chain(fabric.map.hosts.iter().filter_map(|host| host.at))
            .find(|at| at.port == Tables::NONE)
        {
            return Err(SubnetError::Port(port, Box::new(Names::of(fabric))));
        }
        let destinations = Destinations::new(&topology, fabric, lmc)?;
        let guid_of_xbar = |xbar: usize| {
            let known = fabric.xbars.get(xbar).and_then(|label| label.guid);
            known.or(fabric.map.xbars[xbar].tag).unwrap_or(Self::INVENTED_XBAR_GUIDS + xbar as u64 + 1)
        };
        let xbar_guids: Vec<u64> = (0..topology.xbar_count()).map(guid_of_xbar).collect();
        let guid_of_host = |host: usize| {
            let known = fabric.hosts.get(host).and_then(|label| label.guid);
            known.unwrap_or(fabric.map.hosts[host].mac.to_u64())
        };
        let host_guids: Vec<u64> = (0..topology.host_count()).map(guid_of_host).collect();
        let label = |host: usize| fabric.hosts.get(host);
        Ok(Self {
            xbar_systems: (0..topology.xbar_count())
                .map(|xbar| {
                    fabric.xbars.get(xbar).and_then(|label| label.system_guid).unwrap_or(xbar_guids[xbar])
                })
                .collect(),
            xbar_ports: fabric.map.xbars.iter().map(|xbar| xbar.ports).collect(),
            host_port_guids: (0..topology.host_count())
                .map(|host| {
                    label(host)
                        .and_then(|label| label.port_guid)
                        .unwrap_or(fabric.map.hosts[host].mac.to_u64())
                })
                .collect(),
            is_service_adapter: (0..topology.host_count())
                .map(|host| label(host).is_some_and(machine::is_service_adapter))
                .collect(),
            names: Names::of(fabric),
            xbar_guids,
            host_guids,
            topology,
            destinations,
        })
    }

    /// The xbar that a host is cabled to.
    pub fn xbar_of_host(&self, host: u32) -> Option<u32> {
        match self.topology.attachment(host) {
            Attachment::Port(at) => Some(at.xbar),
            Attachment::Host(_) | Attachment::Nothing => None,
        }
    }

    /// The xbar that has this GUID. If it is a host's (its node's or its port's), the xbar that the host is
    /// cabled to.
    pub fn xbar_by_guid(&self, guid: u64) -> Option<u32> {
        let place = |guids: &[u64]| guids.iter().position(|&known| known == guid).map(|place| place as u32);
        place(&self.xbar_guids).or_else(|| self.host_by_guid(guid).and_then(|host| self.xbar_of_host(host)))
    }

    /// The host whose node or port has this GUID.
    pub fn host_by_guid(&self, guid: u64) -> Option<u32> {
        let place = |guids: &[u64]| guids.iter().position(|&known| known == guid).map(|place| place as u32);
        place(&self.host_port_guids).or_else(|| place(&self.host_guids))
    }

    /// The port in the entry of a slot's own xbar, which is that of the host. It is [`Tables::NONE`] for an
    /// xbar's own slot, as frames for it have arrived there.
    pub fn port_of_slot(&self, slot: u32) -> u8 {
        let SlotEnd::Host { host, .. } = self.destinations.end(slot) else { return Tables::NONE };
        match self.topology.attachment(host) {
            Attachment::Port(at) => at.port,
            Attachment::Host(_) | Attachment::Nothing => Tables::NONE,
        }
    }

    /// Whether a slot leads to a service adapter.
    pub fn leads_to_service_adapter(&self, slot: u32) -> bool {
        match self.destinations.end(slot) {
            SlotEnd::Host { host, .. } => self.is_service_adapter[host as usize],
            SlotEnd::Xbar(_) => false,
        }
    }

    /// How many entries differ between two tables of this subnet. An entry that only one of them has counts too. An
    /// xbar's entry for itself does not count, as frames for it have arrived there.
    pub fn changed_entries(&self, tables: &Tables, previous: &Tables) -> u64 {
        let differ = |slot: u32| {
            let own = self.destinations.end(slot);
            let pairs = (0..).zip(tables.of_slot(slot).iter().zip(previous.of_slot(slot)));
            pairs.filter(|&(xbar, (one, other))| one != other && own != SlotEnd::Xbar(xbar)).count() as u64
        };
        (0..tables.slot_count() as u32).into_par_iter().map(differ).sum()
    }

    /// Whether an xbar has hosts.
    pub fn is_leaf(&self, xbar: u32) -> bool {
        !self.topology.hosts_of(xbar).is_empty()
    }
}
