//! What a host hands to its driver.

use std::collections::BTreeSet;

use mapper_proto::agent::Event;
use mapper_proto::map::{MapVersion, PortRef};

use crate::picking::Picked;
use crate::resolution::Found;
use crate::sounding::Sounded;

/// What happened, for the driver to log, to show, or to act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostEvent {
    /// An event of the agent. The host has already acted on it.
    Agent(Event),
    /// Names or addresses of hosts came, changed or went: see [`Host::directory`](crate::Host::directory).
    DirectoryChanged,
    /// A question of [`Host::ask_who_has`](crate::Host::ask_who_has) has its answer, or has waited for long enough.
    Found(Found),
    /// The host picked an address, picked another one, or found none: its interface is to have what it says.
    AddressPicked(Picked),
    /// A sounding has come to its end: see [`Host::sound`](crate::Host::sound).
    Sounded {
        /// Its number.
        number: u32,
        /// What came of it.
        sounded: Sounded,
    },
    /// A cable loses a tenth of the frames that cross it there and back, or more.
    CableLosesFrames {
        /// The port of the map in use that holds it, the lower one of two.
        at: PortRef,
        /// How many of a hundred it loses.
        lost_percent: u8,
    },
    /// Other hosts than before get only shorter frames than the ends of all cables on the way say: see
    /// [`KernelPath::shortened`](crate::kernel_path::KernelPath::shortened).
    LengthsChanged,
    /// Mapping is complete everywhere, and the host was to end then: see [`Host::end_once_mapped`](crate::Host::end_once_mapped).
    MappedOnce,
    /// Proved routes of this map are in use.
    RoutesInstalled {
        /// The map.
        version: MapVersion,
    },
    /// No routes could be computed for this map. The routes of the map before stay in use.
    RoutingFailed {
        /// The map.
        version: MapVersion,
        /// Why, in words for a person.
        why: String,
    },
    /// Routes around dead cables are in use, or the routes of the whole map again.
    Repaired {
        /// A port of each dead cable; empty if no cable is dead any more.
        dead: BTreeSet<PortRef>,
    },
    /// The routes around dead cables could not be proved safe. The routes before stay in use.
    RepairRefused {
        /// Why, in words for a person.
        why: String,
    },
}
