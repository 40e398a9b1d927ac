//! The agent's address, which is that of its interface and may change.

use mapper_proto::agent::Settings;
use tracing::{error, info, warn};

use super::random_seed;
use super::state::Driver;

impl Driver {
    /// Takes the address that the interface has now. If it has changed, the agent is replaced by a new one.
    pub(super) fn follow_address(&mut self) {
        let Some(mac) = self.attachment.link.mac().filter(|&mac| mac != self.host.own()) else { return };
        if self.users.is_some() {
            // The tap interface keeps its address as long as it exists, and other hosts know this host by
            // that address.
            return;
        }
        warn!(old = %self.host.own(), new = %mac, "the interface has another address");
        if self.begin_anew(Settings { mac, ..self.config.settings.clone() }) {
            self.host.forget_routes(self.now());
        }
    }

    /// Replaces the agent by a new one; the routes in use stay. Returns whether that was possible.
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
        self.host.begin_anew(self.now(), Settings { mtu, ..settings }, seed);
        true
    }
}
