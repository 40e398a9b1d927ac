//! How long frames may be at this host, while it runs.

use super::cause::Cause;
use super::machine::Agent;
use super::settings::Settings;
use crate::Instant;
use crate::map::{FrameSizes, LinkMtu};

impl Agent {
    /// Says how long frames may be at this host. What a map says of it then holds no longer, so this calls
    /// for a new one. To be called whenever it may have changed.
    pub fn set_mtu(&mut self, now: Instant, mtu: LinkMtu) {
        self.note_time(now);
        if std::mem::replace(&mut self.settings.mtu, mtu) == mtu {
            return;
        }
        // While another host makes a map, it cannot be told here whether that host asked before the change or
        // after it. The next map that comes shows it.
        self.mtu_untold = true;
        self.tell_mtu(now);
        self.pump(now);
    }

    /// A map is in force: has another one made if this host's MTU has changed, or the agent has started,
    /// since the last one came, and this one does not show it.
    pub(super) fn check_mtu_told(&mut self, now: Instant, sizes: &FrameSizes) {
        let Settings { mac, mtu, .. } = self.settings;
        if std::mem::take(&mut self.mtu_untold) && !sizes.shows(mac, mtu) {
            self.tell_mtu(now);
        }
    }

    fn tell_mtu(&mut self, now: Instant) {
        let Some(held) = self.held.as_ref().filter(|held| held.valid) else { return };
        // The own port is reported as suspect, so that a mapper that asks only where something has changed
        // asks here.
        let home: Vec<_> = held.at.into_iter().collect();
        self.invalidate(now, Cause::MtuChanged, &home);
    }
}
