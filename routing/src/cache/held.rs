//! The fabric that a cache holds. Nodes are known by names and GUIDs, as their indices move when nodes go and
//! come.

use mapper_proto::map::Fabric;
use serde::{Deserialize, Serialize};

use super::place;
use super::settings::{self, HeldSettings};
use crate::Subnet;
use crate::engines::{Engine, Routing, Settings};

/// The fabric, and what its tables were computed by.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Held {
    /// The engine that served.
    pub(super) engine: String,
    pub(super) settings: HeldSettings,
    pub(super) lmc: u8,
    pub(super) layer_count: u8,
    pub(super) first_layer: u8,
    pub(super) slot_count: u32,
    pub(super) xbars: Vec<HeldXbar>,
    pub(super) hosts: Vec<HeldHost>,
    /// The cables between xbars, each once: xbar, port, xbar, port; sorted.
    pub(super) cables: Vec<Cable>,
    pub(super) notes: Vec<String>,
}

/// A cable between xbars: xbar and port of both ends, the smaller end first.
pub(super) type Cable = (u32, u8, u32, u8);

/// What a node is known by.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Identity {
    /// Its name, unique in a fabric.
    pub(super) name: String,
    /// Its GUID, if it has one; of a host, that of its port.
    pub(super) guid: Option<u64>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct HeldXbar {
    pub(super) identity: Identity,
    /// What people call it, if that is not its id. It is kept here, as a fabric that the node is gone from
    /// does not tell it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    shown: String,
    /// The LID that its file gives it, if any. LIDs that are only counted are not kept, as they move when a
    /// node goes.
    pub(super) lid: Option<u16>,
    pub(super) ports: u8,
    /// Its own slot.
    pub(super) slot: u32,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct HeldHost {
    pub(super) identity: Identity,
    /// The xbar and the port that it is cabled to, with the slot of its first address.
    pub(super) at: Option<HeldPlace>,
    /// The LID that its file gives it, if any.
    pub(super) lid: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct HeldPlace {
    pub(super) xbar: u32,
    pub(super) port: u8,
    pub(super) slot: u32,
}

impl Held {
    pub(super) fn new(
        fabric: &Fabric,
        subnet: &Subnet,
        engines: &[Engine],
        settings: &Settings,
        engine: Engine,
        routing: &Routing,
    ) -> Self {
        let (topology, destinations) = (&subnet.topology, &subnet.destinations);
        let shown = |xbar: u32| {
            Some(subnet.names.xbar(xbar)).filter(|name| *name != fabric.xbars[xbar as usize].name)
        };
        let xbar = |xbar: u32| HeldXbar {
            identity: Identity::of_xbar(fabric, xbar),
            shown: shown(xbar).unwrap_or_default(),
            lid: lid_of_xbar(fabric, xbar),
            ports: subnet.xbar_ports[xbar as usize],
            slot: destinations.slot_of_xbar(xbar),
        };
        let host = |host: u32| HeldHost {
            identity: Identity::of_host(fabric, host),
            at: place(subnet, host).map(|(xbar, port)| HeldPlace {
                xbar,
                port,
                slot: destinations.slots_of_host(host).start,
            }),
            lid: lid_of_host(fabric, host),
        };
        Self {
            engine: engine.name().to_owned(),
            settings: settings::held(engines, settings),
            lmc: destinations.lmc(),
            layer_count: routing.layers.count,
            first_layer: routing.layers.first,
            slot_count: destinations.slot_count() as u32,
            xbars: (0..topology.xbar_count() as u32).map(xbar).collect(),
            hosts: (0..topology.host_count() as u32).map(host).collect(),
            cables: cables(subnet),
            notes: routing.notes.clone(),
        }
    }

    /// Whether each xbar has hosts.
    pub(super) fn leaves(&self) -> Vec<bool> {
        let mut leaves = vec![false; self.xbars.len()];
        self.hosts.iter().filter_map(|host| host.at).for_each(|at| leaves[at.xbar as usize] = true);
        leaves
    }

    /// Whether any pair is in another layer than layer 0.
    pub(super) fn has_layers(&self) -> bool {
        self.layer_count > 1 || self.first_layer > 0
    }

    /// Whether all numbers are in range, as a file may say anything.
    pub(super) fn is_sound(&self) -> bool {
        let xbars = self.xbars.len() as u32;
        let addresses = 1_u32.checked_shl(self.lmc.into()).unwrap_or(u32::MAX);
        let slots =
            |first: u32, count: u32| first.checked_add(count).is_some_and(|end| end <= self.slot_count);
        let host_is_sound = |at: HeldPlace| at.xbar < xbars && slots(at.slot, addresses);
        self.xbars.iter().all(|xbar| slots(xbar.slot, 1))
            && self.hosts.iter().filter_map(|host| host.at).all(host_is_sound)
            && self.cables.iter().all(|&(a, _, b, _)| a < xbars && b < xbars)
            && self.cables.is_sorted()
    }
}

impl HeldXbar {
    /// What people called the node when it was routed.
    pub(super) fn name(&self) -> &str {
        if self.shown.is_empty() { &self.identity.name } else { &self.shown }
    }
}

impl Identity {
    pub(super) fn of_xbar(fabric: &Fabric, xbar: u32) -> Self {
        let label = fabric.xbars.get(xbar as usize);
        Self {
            name: label.map_or_else(|| format!("xbar {xbar}"), |label| label.name.clone()),
            guid: label.and_then(|label| label.guid).or(fabric.map.xbars[xbar as usize].tag),
        }
    }

    pub(super) fn of_host(fabric: &Fabric, host: u32) -> Self {
        let label = fabric.hosts.get(host as usize);
        let mac = fabric.map.hosts[host as usize].mac;
        Self {
            name: label.map_or_else(|| mac.to_string(), |label| label.name.clone()),
            guid: label.and_then(|label| label.port_guid.or(label.guid)),
        }
    }
}

/// The LID that a file gives an xbar.
pub(super) fn lid_of_xbar(fabric: &Fabric, xbar: u32) -> Option<u16> {
    fabric.xbars.get(xbar as usize).and_then(|label| label.lid)
}

/// The LID that a file gives a host.
pub(super) fn lid_of_host(fabric: &Fabric, host: u32) -> Option<u16> {
    fabric.hosts.get(host as usize).and_then(|label| label.lid)
}

/// The cables between xbars, each once, sorted.
pub(super) fn cables(subnet: &Subnet) -> Vec<Cable> {
    let topology = &subnet.topology;
    let live = (0..topology.channel_count() as u32).filter(|&channel| !topology.is_dead(channel));
    let mut cables: Vec<Cable> = live
        .map(|channel| (topology.tail(channel), topology.head(channel)))
        .filter(|(tail, head)| tail <= head)
        .map(|(tail, head)| (tail.xbar, tail.port, head.xbar, head.port))
        .collect();
    cables.sort_unstable();
    cables
}
