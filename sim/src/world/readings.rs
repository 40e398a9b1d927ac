//! What can be read of a world without changing it.

use std::sync::Arc;

use mapper_host::directory::Directory;
use mapper_host::routes::RouteTable;
use mapper_proto::agent::Status;
use mapper_proto::map::Map;
use mapper_proto::{Instant, Mac};

use super::{Stats, Totals, World};
use crate::fabric::Plant;

impl World {
    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The plant as it is.
    pub fn plant(&self) -> &Plant {
        &self.plant
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        Stats { peak_in_flight: self.flights.peak, ..self.stats }
    }

    /// What all agents counted so far.
    pub fn totals(&self) -> Totals {
        let mut totals = self.retired;
        let running = self.hosts.iter().filter_map(|slot| slot.node.as_ref()?.status());
        running.for_each(|status| totals.add(&status));
        totals
    }

    /// How many agents say that they are configured.
    pub fn configured_hosts(&self) -> usize {
        self.hosts.iter().filter(|slot| slot.configured.is_some()).count()
    }

    /// The map that the agent at a host holds. This is costly.
    pub fn map(&self, host: u32) -> Option<Arc<Map>> {
        self.hosts[host as usize].node.as_ref()?.map()
    }

    /// A digest of every frame, event and fault so far: equal for equal runs.
    pub fn digest(&self) -> u64 {
        self.trace.digest()
    }

    /// The status of the honest agent at a host; `None` if none runs there.
    pub fn status(&self, host: u32) -> Option<Status> {
        self.hosts[host as usize].node.as_ref()?.status()
    }

    /// The address that a host has now, which may be the address of another host.
    pub fn mac(&self, host: u32) -> Mac {
        self.hosts[host as usize].settings.mac
    }

    /// The routes in use at a host; `None` if it has none, or is no honest host.
    pub fn table(&self, host: u32) -> Option<&Arc<RouteTable>> {
        self.hosts[host as usize].node.as_ref()?.host()?.table()
    }

    /// What a host knows of the names and addresses of all; `None` if no honest host is there.
    pub fn directory(&self, host: u32) -> Option<&Directory> {
        Some(self.hosts[host as usize].node.as_ref()?.host()?.directory())
    }

    /// Whether some host has been hostile.
    pub fn was_hostile(&self) -> bool {
        self.was_hostile
    }

    /// How many faults have yet to strike.
    pub fn faults_left(&self) -> usize {
        self.faults_left
    }

    /// When the last fault strikes; `None` if none is still to come.
    pub fn last_fault_at(&self) -> Option<Instant> {
        self.faults.last().map(|timed| timed.at).filter(|_| self.faults_left > 0)
    }

    /// When the last fault struck up to this moment that is about more than names; the start if none has.
    pub fn last_change_before(&self, until: Instant) -> Instant {
        let struck = self.faults.iter().take_while(|timed| timed.at <= until);
        let changes = struck.filter(|timed| !timed.fault.is_about_names());
        changes.last().map_or(Instant::ZERO, |timed| timed.at)
    }
}
