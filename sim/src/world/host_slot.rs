//! What the world knows of one host.

use std::collections::{BTreeSet, VecDeque};

use mapper_host::resolution::Wanted;
use mapper_proto::agent::Settings;
use mapper_proto::map::MapVersion;
use mapper_proto::{Instant, Mac};

use super::carriers;
use super::keys::KeyStep;
use super::routes::Pending;
use crate::node::SimulatedHost;

/// Most bytes of a frame on a link, unless a fault says otherwise: Ethernet's.
const ETHERNET_MTU: u16 = 1500;

/// A host: its agent and what surrounds it.
pub(super) struct HostSlot {
    pub(super) settings: Settings,
    /// How its routes are computed.
    pub(super) routes: mapper_routing::Options,
    /// Its own address; the settings may have that of another.
    pub(super) own_mac: Mac,
    /// `None` before power-on and while dead.
    pub(super) node: Option<Box<dyn SimulatedHost>>,
    /// How often an agent was started here.
    pub(super) starts: u64,
    /// Whether an agent was started, or a fault decided on what runs here instead.
    pub(super) powered_on: bool,
    /// The earliest timeout in the queue for it; `FAR` for none.
    pub(super) timeout_at: Instant,
    /// Timeouts in a row without time passing.
    pub(super) timeouts_now: u32,
    /// Busy with a frame until then.
    pub(super) busy_until: Instant,
    /// Frames that wait: flights.
    pub(super) waiting: VecDeque<u32>,
    /// What it has seen of carriers.
    pub(super) seen: carriers::Seen,
    /// The computation of its routes that is under way.
    pub(super) pending: Option<Pending>,
    /// The longest frame that its interface carries, the Ethernet header left out.
    pub(super) mtu_bytes: u16,
    /// What it was when the host's machine started: users' frames are never longer, as their interface keeps
    /// its own MTU.
    pub(super) mtu_at_start_bytes: u16,
    /// The names that it goes by and nobody is told of.
    pub(super) more_names: BTreeSet<Wanted>,
    /// How far it is in a change of keys.
    pub(super) key_step: KeyStep,
    /// The map that its agent is configured with, as its events say.
    pub(super) configured: Option<MapVersion>,
    /// The last map that its agent finished as global mapper, and when.
    pub(super) mapped: Option<(MapVersion, Instant)>,
}

impl HostSlot {
    pub(super) fn new(settings: Settings, routes: mapper_routing::Options) -> Self {
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
            seen: carriers::Seen::default(),
            pending: None,
            mtu_bytes: ETHERNET_MTU,
            mtu_at_start_bytes: ETHERNET_MTU,
            more_names: BTreeSet::new(),
            key_step: KeyStep::default(),
            configured: None,
            mapped: None,
        }
    }
}
