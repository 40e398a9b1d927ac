//! What a node is.

use thiserror::Error;

use super::{DATA_BYTES, Data, bytes, put, u16_at, u32_at, u64_at};

const KIND_AT: usize = 2;
const PORTS_AT: usize = 3;
const SYSTEM_GUID_AT: usize = 4;
const GUID_AT: usize = 12;
const PORT_GUID_AT: usize = 20;
const PARTITIONS_AT: usize = 28;
const DEVICE_AT: usize = 30;
const REVISION_AT: usize = 32;
const LOCAL_PORT_AT: usize = 36;
const VENDOR_AT: usize = 37;

/// The kinds of nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NodeKind {
    /// A channel adapter: a host, or a port of one.
    Adapter,
    /// A switch.
    Switch,
    /// A router. Routes within a subnet end there.
    Router,
}

impl NodeKind {
    const ALL: [Self; 3] = [Self::Adapter, Self::Switch, Self::Router];

    const fn code(self) -> u8 {
        match self {
            Self::Adapter => 1,
            Self::Switch => 2,
            Self::Router => 3,
        }
    }
}

/// What a node says of its make. Nothing depends on it; it is passed on to whoever asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Make {
    /// How many partitions a port can be in.
    pub partitions: u16,
    /// The vendor's number of the device.
    pub device: u16,
    /// Its revision.
    pub revision: u32,
    /// The vendor's own number, 24 bits.
    pub vendor: [u8; 3],
}

/// The attribute NodeInfo, as the port answers that the question came in by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeInfo {
    /// What kind of node it is.
    pub kind: NodeKind,
    /// How many ports it has, port 0 of a switch not counted; at least 1, at most 254.
    pub ports: u8,
    /// The GUID of the system that the node is part of; 0 for none.
    pub system_guid: u64,
    /// The node's GUID, never 0.
    pub guid: u64,
    /// The GUID of the port that answers.
    pub port_guid: u64,
    /// The port that answers; 0 if the node is a switch that asks itself.
    pub local_port: u8,
    /// What it says of its make.
    pub make: Make,
}

/// Why an answer cannot be a node's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NodeInfoError {
    /// There is no such kind.
    #[error("its kind is {0}, which is neither adapter (1), switch (2) nor router (3)")]
    Kind(u8),
    /// No node can have so many ports.
    #[error("it says that it has {0} ports")]
    Ports(u8),
    /// It has no GUID.
    #[error("its GUID is 0")]
    NoGuid,
    /// It answers by a port that it does not have.
    #[error("it answers by port {port}, but has {ports}")]
    LocalPort {
        /// The port that it names.
        port: u8,
        /// How many it has.
        ports: u8,
    },
}

impl NodeInfo {
    /// What an answer says.
    ///
    /// # Errors
    /// If no node can be so.
    pub fn parse(data: &Data) -> Result<Self, NodeInfoError> {
        let code = data[KIND_AT];
        let kind = NodeKind::ALL.into_iter().find(|kind| kind.code() == code);
        let kind = kind.ok_or(NodeInfoError::Kind(code))?;
        let (ports, local_port) = (data[PORTS_AT], data[LOCAL_PORT_AT]);
        if ports == 0 || ports == u8::MAX {
            return Err(NodeInfoError::Ports(ports));
        }
        let guid = u64_at(data, GUID_AT);
        if guid == 0 {
            return Err(NodeInfoError::NoGuid);
        }
        if local_port > ports || (local_port == 0 && kind != NodeKind::Switch) {
            return Err(NodeInfoError::LocalPort { port: local_port, ports });
        }
        let (system_guid, port_guid) = (u64_at(data, SYSTEM_GUID_AT), u64_at(data, PORT_GUID_AT));
        let make = Make {
            partitions: u16_at(data, PARTITIONS_AT),
            device: u16_at(data, DEVICE_AT),
            revision: u32_at(data, REVISION_AT),
            vendor: bytes(data, VENDOR_AT),
        };
        Ok(Self { kind, ports, system_guid, guid, port_guid, local_port, make })
    }

    /// The bytes as they travel.
    pub fn emit(&self) -> Data {
        let mut data = [0; DATA_BYTES];
        put(&mut data, 0, &[1, 1, self.kind.code(), self.ports]);
        put(&mut data, SYSTEM_GUID_AT, &self.system_guid.to_be_bytes());
        put(&mut data, GUID_AT, &self.guid.to_be_bytes());
        put(&mut data, PORT_GUID_AT, &self.port_guid.to_be_bytes());
        put(&mut data, PARTITIONS_AT, &self.make.partitions.to_be_bytes());
        put(&mut data, DEVICE_AT, &self.make.device.to_be_bytes());
        put(&mut data, REVISION_AT, &self.make.revision.to_be_bytes());
        data[LOCAL_PORT_AT] = self.local_port;
        put(&mut data, VENDOR_AT, &self.make.vendor);
        data
    }
}
