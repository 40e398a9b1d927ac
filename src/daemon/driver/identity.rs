//! Who the agent is: the address of its interface, which may change, and which another host may have.

use std::sync::Arc;

use mapper_proto::agent::{Agent, Settings};
use mapper_proto::map::Map;
use tracing::{error, info, warn};

use super::event_loop::Driver;
use super::random_seed;

impl Driver {
    /// Takes the address that the interface has now. An agent with another address is another agent.
    pub(super) fn follow_address(&mut self) {
        let Some(mac) = self.attachment.link.mac().filter(|&mac| mac != self.mac) else { return };
        if self.user_data.is_some() {
            // The tap interface keeps its address, and others know the host by it.
            return;
        }
        warn!(old = %self.mac, new = %mac, "the interface has another address");
        if self.begin_anew(Settings { mac, ..self.config.settings.clone() }) {
            self.mac = mac;
            self.forget_routes();
        }
    }

    /// Replaces the agent by a new one; the routes in use stay. Whether that was possible.
    pub(super) fn begin_anew(&mut self, settings: Settings) -> bool {
        let seed = match random_seed() {
            Ok(seed) => seed,
            Err(error) => {
                error!(%error, "no randomness: the agent stays as it was; restart it");
                return false;
            }
        };
        info!(mac = %settings.mac, level = settings.level, host_type = settings.host_type, "the agent begins anew");
        let mtu = self.mtu_said().unwrap_or_default();
        self.agent = Agent::new(Settings { mtu, ..settings }, seed, self.now());
        true
    }

    /// Another host has this agent's address: no frame may travel by the routes that it had.
    pub(super) fn leave_network(&mut self, why: &str) {
        error!(mac = %self.mac, "{why}");
        self.forget_routes();
    }

    /// Routes that are still being computed will not be put to use either.
    fn forget_routes(&mut self) {
        (self.table, self.routing_failure, self.newest) = (None, None, None);
        if let Some(user_data) = &mut self.user_data {
            user_data.forget_routes();
        }
    }

    /// Whether this is the newest map of this very agent.
    pub(super) fn is_newest(&self, map: &Map) -> bool {
        self.newest.as_ref().is_some_and(|(newest, _)| Arc::as_ptr(newest) == std::ptr::from_ref(map))
    }
}
