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
        self.tell_mtu(now);
        self.pump(now);
    }

    /// Has another map made if the one that has come into force does not show this host's MTU. Its mapper may have
    /// asked this host before it changed, or a host that was cut off meanwhile may offer a map of long ago.
    pub(super) fn check_mtu_told(&mut self, now: Instant, sizes: &FrameSizes) {
        let Settings { mac, mtu, .. } = self.settings;
        if !sizes.shows(mac, mtu) {
            self.tell_mtu(now);
        }
    }

    fn tell_mtu(&mut self, now: Instant) {
        let Some(held) = self.held.as_ref().filter(|held| held.valid) else { return };
        // This host's port is reported as suspect, so that a mapper that asks only where something has changed
        // asks here.
        let home: Vec<_> = held.at.into_iter().collect();
        self.invalidate(now, Cause::MtuChanged, &home);
    }
}
