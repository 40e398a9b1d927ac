//! What this host is called, and what others are, on boards, in logs and in the file of the map.

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_host::names::HostName;
use mapper_proto::Mac;
use tracing::warn;

use super::event_loop::Driver;
use crate::formats::json::Names;

/// Names come many at a time: so long after the first of them the file of the map is written again.
const STORE_AFTER: Duration = Duration::from_secs(1);

impl Driver {
    /// Says what this host is called: as it is set, else as the machine is.
    pub(super) fn say_name(&mut self) {
        let name = self.config.host_name.clone().or_else(machine_name);
        let revision = seconds_since_1970();
        match name {
            Some(name) => self.host.set_name(self.now(), name, revision),
            None => warn!("the machine has no name to tell others; give this host one with --host-name"),
        }
    }

    /// A host as people call it, with its address, as two may be called the same.
    pub(super) fn called(&self, mac: Mac) -> String {
        match self.host.names().name_of(mac) {
            // It came from another machine: nothing in it may look like a line of ours.
            Some(name) => format!("{} ({mac})", name.as_str().escape_debug()),
            None => mac.to_string(),
        }
    }

    /// The names of all hosts, as the file of the map has them.
    pub(super) fn names_of_map(&self) -> Names {
        let named = self.host.names().iter();
        Names::of_hosts(named.map(|(mac, name)| (mac, name.to_string())).collect::<BTreeMap<_, _>>())
    }

    /// Names have come or changed: the file of the map is to show them.
    pub(super) fn names_changed(&mut self) {
        if self.config.map_file.is_some() && self.store_names_at.is_none() {
            self.store_names_at = Some(self.now() + STORE_AFTER);
        }
    }

    /// Writes the map with the names that are known now, if that is due and no newer map is being stored.
    pub(super) fn store_names_if_due(&mut self) {
        let is_due = self.store_names_at.is_some_and(|at| at <= self.now());
        let (Some(path), Some(map)) = (self.config.map_file.clone(), self.host.newest_map().cloned()) else {
            return;
        };
        if !is_due {
            return;
        }
        self.store_names_at = None;
        let names = self.names_of_map();
        if !self.computation.begin_storing(path, map, names) {
            self.names_changed();
        }
    }
}

/// The time of day, for who starts again to be told from its former self. If the clock stands wrong, a host
/// hears what the others remember of it and goes on from there.
#[expect(
    clippy::disallowed_types,
    reason = "only the time of day outlasts a restart; nothing is timed by it"
)]
fn seconds_since_1970() -> u32 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// The machine's name, if it is one that can be told.
fn machine_name() -> Option<HostName> {
    rustix::system::uname().nodename().to_str().ok()?.parse().ok()
}
