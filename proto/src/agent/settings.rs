//! What the user may set of an agent.

use super::cause::Cause;
use std::time::Duration;

use super::machine::Agent;
use crate::explore::ExploreSettings;
use crate::map::{LinkMtu, Rank, host_type};
use crate::wire::KeyRing;
use crate::{Instant, Mac, PortSet};

/// What the user may set of an agent. All times are the agent's own, not the fabric's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The address of the interface.
    pub mac: Mac,
    /// Level in the election; 0 never maps.
    pub level: u8,
    /// What the host runs: see [`host_type`].
    pub host_type: u8,
    /// How long an agent sleeps at least before its first mapping. Each agent draws by how much it sleeps
    /// longer, at most by half. Asleep it answers scouts, so agents that start together all find each other,
    /// and of many most have heard of a higher mapper before their own time comes.
    pub start_delay: Duration,
    /// Most ports that a plain xbar can have (a plain xbar cannot be asked).
    pub plain_ports: u8,
    /// Longest route, in xbars: for the driver, which computes the routes. Exploration goes as far
    /// as frames can, so that too deep a fabric is reported and not half mapped.
    pub max_hops: usize,
    /// How long to wait for the answer to a probe or scout; where answers come late, up to eight times as long. Of what
    /// verification asks, the third try and all later ones wait four times as long as that.
    pub probe_timeout: Duration,
    /// How often an unanswered probe or scout is sent in all.
    pub probe_tries: u8,
    /// Most probes under way at once: scouting must not flood a fabric.
    pub probe_window: usize,
    /// How often a passive agent asks its parent for its map version.
    pub query_interval: Duration,
    /// How long a parent may stay silent before the agent maps again.
    pub silence_limit: Duration,
    /// Pause at the end of each cycle of verification.
    pub verify_pause: Duration,
    /// Most bytes in a piece of a map.
    pub piece_bytes: usize,
    /// Most requests for pieces under way at once.
    pub piece_window: usize,
    /// Accept network printfs (`--printeur`).
    pub printeur: bool,
    /// Keep remapping (`--thrash`).
    pub thrash: bool,
    /// Phantom hosts to add to a map that this agent makes (`--extra-hosts`).
    pub extra_hosts: u32,
    /// Pause all other mappers while this one maps (`--pause`).
    pub pause: bool,
    /// Have all hosts of a map that this agent makes route by up*/down*, whatever the fabric looks like
    /// (`--non-clos`). In the map of another this agent obeys that one's setting.
    pub non_clos: bool,
    /// Probe only what changed when remapping (`--map-incrementally`).
    pub map_incrementally: bool,
    /// Time between two checks of a path in use; zero for no checks.
    pub liveness_interval: Duration,
    /// How many intervals of silence mean that a path is down.
    pub liveness_misses: u8,
    /// Most paths that are checked; more in use are counted and not checked.
    pub liveness_limit: usize,
    /// Check xbar-to-xbar cables in verification (off with `--no-xbar-check`).
    pub xbar_check: bool,
    /// How long frames may be at this host; see [`Agent::set_mtu`].
    pub mtu: LinkMtu,
    /// Keys to begin with; see [`Agent::set_keys`](super::Agent::set_keys).
    pub keys: Option<KeyRing>,
}

impl Settings {
    /// The time within which each child in the tree asks its parent twice, and so hears what it knows.
    pub(super) fn heard_within(&self) -> Duration {
        2 * (self.query_interval + self.verify_pause)
    }

    /// The agent's rank in the election.
    pub const fn rank(&self) -> Rank {
        Rank { level: self.level, mac: self.mac }
    }

    /// The defaults for the interface with this address.
    pub const fn new(mac: Mac) -> Self {
        Self {
            mac,
            level: 1,
            host_type: host_type::ETHERNET,
            start_delay: Duration::from_millis(10),
            plain_ports: 16,
            max_hops: 11,
            probe_timeout: Duration::from_millis(10),
            probe_tries: 3,
            probe_window: 64,
            query_interval: Duration::from_secs(1),
            silence_limit: Duration::from_secs(3),
            verify_pause: Duration::from_secs(1),
            piece_bytes: 1300,
            piece_window: 8,
            printeur: false,
            thrash: false,
            extra_hosts: 0,
            pause: false,
            non_clos: false,
            map_incrementally: false,
            liveness_interval: Duration::from_millis(20),
            liveness_misses: 3,
            liveness_limit: 64,
            xbar_check: true,
            mtu: LinkMtu { bytes: 0, ports: PortSet::NONE },
            keys: None,
        }
    }
}

impl Agent {
    /// Changes settings while the agent runs. What is under way goes on by the old ones. The rank and host type
    /// stay, as other agents know this one by them: to change them, a new agent must be started. Its keys are
    /// changed by [`set_keys`](Self::set_keys), its MTU by [`set_mtu`](Self::set_mtu).
    pub fn set_settings(&mut self, settings: &Settings) {
        // There is no `..` here, so that a new setting does not compile before it is decided whether it may change.
        let &Settings {
            mac,
            level,
            host_type,
            mtu,
            keys: _,
            start_delay: _,
            plain_ports: _,
            max_hops: _,
            probe_timeout: _,
            probe_tries: _,
            probe_window: _,
            query_interval: _,
            silence_limit: _,
            verify_pause: _,
            piece_bytes: _,
            piece_window: _,
            printeur: _,
            thrash: _,
            extra_hosts: _,
            pause: _,
            non_clos: _,
            map_incrementally: _,
            liveness_interval: _,
            liveness_misses: _,
            liveness_limit: _,
            xbar_check: _,
        } = &self.settings;
        self.settings = Settings { mac, level, host_type, mtu, keys: None, ..settings.clone() };
    }

    /// Makes a new map if the one in force is this agent's own and shows other rules than it is set to
    /// now: all hosts obey the map.
    pub fn follow_settings(&mut self, now: Instant) {
        self.note_time(now);
        let own = self.held.as_ref().filter(|held| held.valid && held.version.mac == self.settings.mac);
        if own.is_some_and(|held| held.non_clos != self.settings.non_clos) {
            self.map_again(now, Cause::NonClosChanged);
            self.pump(now);
        }
    }
}

impl From<&Settings> for ExploreSettings {
    fn from(settings: &Settings) -> Self {
        Self {
            plain_ports: settings.plain_ports,
            max_hops: ExploreSettings::MAX_HOPS,
            probe_timeout: settings.probe_timeout,
            probe_tries: settings.probe_tries,
            probe_window: settings.probe_window,
            prove_tags: false,
            greet_hosts: false,
            tell_silent_parts: false,
        }
    }
}
