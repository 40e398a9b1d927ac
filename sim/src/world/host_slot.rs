//! What the world knows of one host.

use std::collections::{BTreeSet, VecDeque};

use mapper_host::resolution::Wanted;
use mapper_proto::agent::Settings;
use mapper_proto::map::MapVersion;
use mapper_proto::{Instant, Mac};

use super::keys::KeyStep;
use super::routes::Pending;
use crate::node::SimulatedHost;

/// Most bytes of a frame on a link, unless a fault says otherwise: Ethernet's.
const ETHERNET_MTU: u16 = 1500;

/// A host: its agent and what surrounds it.
pub(super) struct HostSlot {
    pub(super) settings: Settings,
    /// How its routes are computed.
    pub(super) routes: mapper_routing::RouteOptions,
    /// Its own address. The settings may have the address of another host.
    pub(super) own_mac: Mac,
    /// The software that runs here; `None` before power-on and while the agent is dead.
    pub(super) node: Option<Box<dyn SimulatedHost>>,
    /// How often an agent was started here.
    pub(super) starts: u64,
    /// Whether an agent was started, or a fault decided on what runs here instead.
    pub(super) powered_on: bool,
    /// The earliest timeout of this host in the queue; `FAR` if there is none.
    pub(super) timeout_at: Instant,
    /// How many timeouts there were in a row at this moment.
    pub(super) timeouts_now: u32,
    /// Until when the host is busy with a frame.
    pub(super) busy_until: Instant,
    /// The frames that wait, as indices into [`Flights`](super::queue::Flights).
    pub(super) waiting: VecDeque<u32>,
    /// The crossbar that is in one process with its agent, if it is a node.
    pub(super) own_crossbar: Option<u32>,
    /// The computation of its routes that is under way.
    pub(super) pending: Option<Pending>,
    /// The longest frame that its interface carries, in bytes behind the Ethernet header.
    pub(super) mtu_bytes: u16,
    /// What `mtu_bytes` was when the host's machine started. Users' frames are never longer than that, as
    /// their interface keeps its MTU.
    pub(super) mtu_at_start_bytes: u16,
    /// The number of the name that it announces, if it has another than in the fabric.
    pub(super) renamed: Option<u16>,
    /// The revision of its name when that last changed.
    pub(super) name_revision: u32,
    /// The names that it has and does not announce.
    pub(super) more_names: BTreeSet<Wanted>,
    /// How far it is in a change of keys.
    pub(super) key_step: KeyStep,
    /// The map that its agent is configured with, as its events say.
    pub(super) configured: Option<MapVersion>,
    /// The last map that its agent finished as global mapper, and when.
    pub(super) mapped: Option<(MapVersion, Instant)>,
}

impl HostSlot {
    pub(super) fn new(
        settings: Settings,
        routes: mapper_routing::RouteOptions,
        own_crossbar: Option<u32>,
    ) -> Self {
        Self {
            own_mac: settings.mac,
            settings,
            routes,
            node: None,
            starts: 0,
            powered_on: false,
            timeout_at: Instant::FAR,
            timeouts_now: 0,
            busy_until: Instant::ZERO,
            waiting: VecDeque::new(),
            own_crossbar,
            pending: None,
            mtu_bytes: ETHERNET_MTU,
            mtu_at_start_bytes: ETHERNET_MTU,
            renamed: None,
            name_revision: 0,
            more_names: BTreeSet::new(),
            key_step: KeyStep::default(),
            configured: None,
            mapped: None,
        }
    }
}
