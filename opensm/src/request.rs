//! A subnet as OpenSM holds it.

use std::collections::BTreeMap;

use mapper_routing::tables::Layers;
use serde::{Deserialize, Serialize};

use crate::Options;

/// A subnet as OpenSM holds it, not yet looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Request {
    /// Who asks, and so what an administrator can do.
    pub asker: Asker,
    /// What is to be computed.
    pub options: Options,
    /// The engine that served at the last sweep, if one did.
    pub serving: Option<String>,
    /// Whether hosts wait, as a cable failed: where the best engine is wanted, the one that served is kept if its tables are
    /// proved.
    pub is_urgent: bool,
    /// The service levels that hosts were told with the tables in force, and with those from before; `None` if nobody knows
    /// which.
    pub told: Option<Vec<Levels>>,
    /// How many layers the switches' lanes and OpenSM's settings allow.
    pub lanes: u8,
    /// All switches.
    pub switches: Vec<Switch>,
    /// All ports of adapters and routers.
    pub adapters: Vec<Adapter>,
}

/// Who has tables computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Asker {
    /// An OpenSM, which has engines of its own.
    #[default]
    Opensm,
    /// An agent of the mapper that manages the subnet itself.
    Agent,
}

impl Asker {
    /// What becomes of the subnet if no tables are proved, in words for a person.
    pub(crate) const fn left(self) -> &'static str {
        match self {
            Self::Opensm => "no tables are proved: left to OpenSM's next engine",
            Self::Agent => "no tables are proved: those in force stay",
        }
    }
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Switch {
    /// Its node's GUID.
    pub guid: u64,
    /// The GUID of the system that it is part of.
    pub system_guid: u64,
    /// What people call it.
    pub description: String,
    /// The first LID of its own port, which is port 0.
    pub lid: u16,
    /// 2^lmc LIDs belong to its own port.
    pub lmc: u8,
    /// How many ports it has, not counting its own port 0.
    pub ports: u8,
    /// Its ports that have a cable.
    pub links: Vec<Link>,
    /// The table in force, by LID.
    pub in_force: Vec<u8>,
    /// Tables that it held so recently that packets may be under way by them, as many as any other switch has.
    pub before: Vec<Vec<u8>>,
}

/// Service levels from switch to switch, which hosts were told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Levels {
    /// The GUIDs of the switches.
    pub switches: Vec<u64>,
    /// The level by destination and then by source, in the order of these switches; empty if all are 0.
    pub of: Vec<u8>,
}

impl Levels {
    /// The level from one switch to another, by their places; 0 if it is not known.
    fn level(&self, from: usize, to: usize) -> u8 {
        self.of.get(to * self.switches.len() + from).copied().unwrap_or_default()
    }

    /// These levels between other switches, by their GUIDs. From and to one that was not there before it is level 0.
    pub(crate) fn among(&self, switches: &[Switch]) -> Layers {
        let places: BTreeMap<u64, usize> = (0..).zip(&self.switches).map(|(at, &guid)| (guid, at)).collect();
        let places: Vec<Option<usize>> =
            switches.iter().map(|switch| places.get(&switch.guid).copied()).collect();
        let level =
            |(from, to): (Option<usize>, Option<usize>)| Some(self.level(from?, to?).min(Layers::MAX - 1));
        let pairs = places.iter().flat_map(|&to| places.iter().map(move |&from| (from, to)));
        let of: Vec<u8> = pairs.map(|pair| level(pair).unwrap_or_default()).collect();
        Layers::by_destination(Layers::MAX, 0, of, places.len())
    }
}

/// An end of a cable at a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The switch's port.
    pub port: u8,
    /// The GUID of the node at the other end.
    pub peer: u64,
    /// That node's port.
    pub peer_port: u8,
}

/// A port of an adapter or a router.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Adapter {
    /// Its node's GUID.
    pub node_guid: u64,
    /// Its own GUID.
    pub port_guid: u64,
    /// The GUID of the system that it is part of.
    pub system_guid: u64,
    /// What people call its node.
    pub description: String,
    /// The number of this port at its node.
    pub port: u8,
    /// Its first LID.
    pub lid: u16,
    /// 2^lmc LIDs belong to it.
    pub lmc: u8,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A ring of switches with a host each: the host in port 1, the switch before in 2, the next in 3.
    pub(crate) fn ring(count: u16) -> Request {
        let guid = |switch: u16| 0x100 + u64::from(switch % count);
        let switch = |index: u16| Switch {
            guid: guid(index),
            description: format!("s{index}"),
            lid: 100 + index,
            ports: 3,
            links: vec![
                Link { port: 1, peer: 0x200 + u64::from(index), peer_port: 1 },
                Link { port: 2, peer: guid(index + count - 1), peer_port: 3 },
                Link { port: 3, peer: guid(index + 1), peer_port: 2 },
            ],
            ..Switch::default()
        };
        let adapter = |index: u16| Adapter {
            node_guid: 0x200 + u64::from(index),
            port_guid: 0x300 + u64::from(index),
            description: format!("h{index}"),
            port: 1,
            lid: 1 + index,
            ..Adapter::default()
        };
        Request {
            lanes: 8,
            switches: (0..count).map(switch).collect(),
            adapters: (0..count).map(adapter).collect(),
            ..Request::default()
        }
    }
}
