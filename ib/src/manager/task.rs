//! What a manager asks to have computed: the subnet, and the tables for it.

use std::collections::{BTreeMap, BTreeSet};

use crate::program::NO_PORT;

/// A subnet whose tables are to be computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// The number of the task, which comes back with the answer.
    pub number: u64,
    /// All switches.
    pub switches: Vec<TaskSwitch>,
    /// All ports of adapters and routers.
    pub adapters: Vec<TaskAdapter>,
    /// The service levels that hosts were told with the tables in force, and with those from before; `None` if another manager
    /// may have told them others.
    pub told: Option<Vec<Levels>>,
    /// How many data lanes all cables between switches have.
    pub lanes: u8,
    /// The engine whose tables are in force, if this manager had them made.
    pub serving: Option<String>,
    /// Whether a cable failed, so that hosts wait: the engine that serves is to be kept if its tables are proved.
    pub is_urgent: bool,
}

/// A switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskSwitch {
    /// Its node's GUID.
    pub guid: u64,
    /// The GUID of the system that it is part of; 0 for none.
    pub system_guid: u64,
    /// What people call it.
    pub description: String,
    /// The LID of its own port.
    pub lid: u16,
    /// How many ports it has, its own port 0 not counted.
    pub ports: u8,
    /// The switch's ports that have a cable.
    pub links: Vec<Link>,
    /// The table that it holds, a port for each LID; 0xFF where it leads nowhere.
    pub in_force: Vec<u8>,
    /// Tables that it held so recently that packets may be under way by them, as many as any other switch has.
    pub before: Vec<Vec<u8>>,
}

/// An end of a cable at a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The switch's port.
    pub port: u8,
    /// The GUID of the node at the other end.
    pub peer: u64,
    /// That node's port.
    pub peer_port: u8,
}

/// A port of an adapter or a router.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskAdapter {
    /// Its node's GUID.
    pub node_guid: u64,
    /// Its own GUID.
    pub port_guid: u64,
    /// The GUID of the system that it is part of; 0 for none.
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

/// Tables that were proved.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Routes {
    /// The engine that serves.
    pub engine: String,
    /// The table of each switch, by its GUID: a port for each LID, 0xFF where it leads nowhere.
    pub tables: BTreeMap<u64, Vec<u8>>,
    /// LIDs whose entries are to be emptied wherever they change, before any other entry changes, as old and
    /// new entries together could close a circle.
    pub emptied_first: Vec<u16>,
    /// Entries, by the switch's GUID and LID, that are to change after all others, when no packet is under way by an old entry
    /// any more. No host's packets pass them by these tables, so nobody waits for them.
    pub last: BTreeSet<(u64, u16)>,
    /// Whether nothing may change before all packets are gone that are under way by tables from before those in force.
    pub must_wait: bool,
    /// How many layers there are, each a service level with a lane of its own.
    pub layers: u8,
    /// For each LID the place, among those of the task, of the switch that it is at; [`Self::NOWHERE`] for
    /// LIDs that no port has.
    pub places: Vec<u32>,
    /// The service levels from switch to switch.
    pub levels: Levels,
}

/// Service levels from switch to switch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Levels {
    /// The GUIDs of the switches, in the order of their places.
    pub switches: Vec<u64>,
    /// The level by destination and then by source; empty if all are 0.
    pub of: Vec<u8>,
}

impl Routes {
    /// The place of a LID that no port has.
    pub const NOWHERE: u32 = u32::MAX;

    /// These routes without entries for some LIDs, which no port has.
    pub(crate) fn without(mut self, lids: &[u16]) -> Self {
        if lids.is_empty() {
            return self;
        }
        for table in self.tables.values_mut() {
            for &lid in lids {
                if let Some(port) = table.get_mut(usize::from(lid)) {
                    *port = NO_PORT;
                }
            }
        }
        let end_of = |table: &Vec<u8>| table.iter().rposition(|&port| port != NO_PORT).map_or(0, |at| at + 1);
        let end = self.tables.values().map(end_of).max().unwrap_or_default();
        self.tables.values_mut().for_each(|table| table.truncate(end));
        self
    }

    /// The service level from one LID to another.
    pub fn level(&self, from: u16, to: u16) -> u8 {
        let place = |lid: u16| self.places.get(usize::from(lid)).copied().filter(|&at| at != Self::NOWHERE);
        let Levels { switches, of } = &self.levels;
        let level = || of.get(place(to)? as usize * switches.len() + place(from)? as usize).copied();
        level().unwrap_or_default()
    }
}
