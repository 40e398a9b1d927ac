//! What a host hands to its driver.

use std::collections::BTreeSet;

use mapper_proto::agent::Event;
use mapper_proto::map::{MapVersion, PortRef};

/// What happened, for the driver to log, to show, or to act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostEvent {
    /// What the agent reports. What is to be done about its maps, paths and cables is done.
    Agent(Event),
    /// Other hosts are called otherwise than before, or their names have come: see
    /// [`Host::names`](crate::Host::names).
    NamesChanged,
    /// Proved routes of this map are in use.
    RoutesInstalled {
        /// The map.
        version: MapVersion,
    },
    /// This map gave no routes; those of the one before stay in use.
    RoutingFailed {
        /// The map.
        version: MapVersion,
        /// Why, in words for a person.
        why: String,
    },
    /// Routes around dead cables are in use; without any, those of the whole map again.
    Repaired {
        /// A port of each dead cable.
        dead: BTreeSet<PortRef>,
    },
    /// There are no routes around dead cables that could be proved: the routes stay as they were.
    RepairRefused {
        /// Why, in words for a person.
        why: String,
    },
}
