//! The names of this host and of others, on boards, in logs and in the map file.

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_fabric::wording::with_causes;
use mapper_formats::json::NamesByAddress;
use mapper_host::directory::HostName;
use mapper_host::routes::RouteTableError;
use mapper_proto::Mac;
use mapper_proto::agent::Cause;
use mapper_proto::map::{Map, MapVersion, PortRef};
use mapper_routing::Topology;
use tracing::warn;

use super::state::Driver;
use crate::agent::status::{BoardPort, naming_hosts, xbar_in_words};
use crate::xbar::cable::CableStatus;

/// How long after a name came the map file is written again. Names come many at a time, so this writes it
/// once for many.
const STORE_AFTER: Duration = Duration::from_secs(1);

impl Driver {
    /// Tells the host its name, which is the one in the configuration or else that of the machine.
    pub(super) fn say_name(&mut self) {
        let name = self.config.host_name.clone().or_else(machine_name);
        let revision = seconds_since_1970();
        match name {
            Some(name) => self.host.set_name(self.now(), name, revision),
            None => warn!("the machine has no name to tell others; give this host one with --host-name"),
        }
    }

    /// A host by its name and its address, as two hosts may have one name.
    pub(super) fn called(&self, mac: Mac) -> String {
        match self.host.directory().name_of(mac) {
            // The name came from another machine, so it is escaped and cannot look like a line of this
            // program.
            Some(name) => format!("{} ({mac})", name.as_str().escape_debug()),
            None => mac.to_string(),
        }
    }

    /// The host that the crossbar with this tag is called by, if there is one.
    pub(super) fn host_naming(&self, tag: u64) -> Option<String> {
        self.known.naming_host_at(tag).map(|mac| self.called(mac))
    }

    /// What is known of the cable of an agent alone, with the neighbour's name; `None` for a node, whose ports have one each.
    pub(super) fn named_cable(&self) -> Option<CableStatus> {
        let mut cable = self.attachment.cable()?;
        self.name_neighbour(&mut cable);
        Some(cable)
    }

    /// The ports of a node, with the names of the neighbours there.
    pub(super) fn named_ports(&self) -> Vec<BoardPort> {
        let mut ports = self.attachment.outer_ports();
        ports.iter_mut().for_each(|port| self.name_neighbour(&mut port.cable));
        ports
    }

    fn name_neighbour(&self, cable: &mut CableStatus) {
        if let Some(neighbour) = &mut cable.neighbour {
            let name_of = |mac| self.host.directory().name_of(mac).map(ToString::to_string);
            // A crossbar to which this host alone is cabled would be called by this host.
            let naming = |tag| self.known.naming_host_at(tag).filter(|&mac| mac != self.host.own());
            neighbour.name_by(naming, name_of);
        }
    }

    /// A map by its number and its mapper.
    pub(super) fn version_in_words(&self, version: MapVersion) -> String {
        format!("{} of {}", version.counter, self.called(version.mac))
    }

    /// A cause, with hosts called by their names, and crossbars by the hosts whose nodes they are, or that are alone there. The map may be gone that it is of.
    pub(super) fn cause_in_words(&self, cause: &Cause) -> String {
        let xbar_called = |tag| {
            let host = self.known.naming_host_at(tag);
            match host.and_then(|mac| self.host.directory().name_of(mac)) {
                Some(name) => format!("{} ({})", name.as_str().escape_debug(), tag_in_words(tag)),
                None => tag_in_words(tag),
            }
        };
        cause.describe(|mac| self.called(mac), xbar_called)
    }

    /// Ends of cables of a map in words, as boards have them.
    pub(super) fn ends_in_words<'a>(
        &self,
        map: &Map,
        ends: impl IntoIterator<Item = &'a PortRef>,
    ) -> Vec<String> {
        let naming = naming_hosts(map);
        let words =
            |at: &PortRef| format!("port {} of {}", at.port, self.xbar_in_words(map, &naming, at.xbar));
        ends.into_iter().map(words).collect()
    }

    fn xbar_in_words(&self, map: &Map, naming: &[Option<Mac>], xbar: u32) -> String {
        let tag = map.xbars.get(xbar as usize).and_then(|xbar| xbar.tag).map(tag_in_words);
        let host = naming.get(xbar as usize).copied().flatten();
        let host_name = host.and_then(|mac| self.host.directory().name_of(mac)).map(HostName::as_str);
        xbar_in_words(xbar, tag.as_deref(), host_name)
    }

    /// Why there are no routes, with hosts called by their names.
    pub(super) fn routing_failure_in_words(&self, error: &RouteTableError, map: &Map) -> String {
        match (error, Topology::from_map(map)) {
            (RouteTableError::Routing(why), Ok(topology)) => {
                let naming = naming_hosts(map);
                let mut names = mapper_fabric::names::Names::default();
                let hosts = 0..topology.host_count() as u32;
                names.hosts = hosts.map(|host| self.called(topology.mac(host))).collect();
                let xbars = 0..map.xbars.len() as u32;
                names.xbars = xbars.map(|xbar| self.xbar_in_words(map, &naming, xbar)).collect();
                format!("{error}: {}", why.describe(&names, &topology))
            }
            _ => with_causes(error),
        }
    }

    /// The names of all hosts, for the map file.
    pub(super) fn names_of_map(&self) -> NamesByAddress {
        let named = self.host.directory().iter();
        NamesByAddress::of_hosts(named.map(|(mac, name)| (mac, name.to_string())).collect::<BTreeMap<_, _>>())
    }

    /// Takes in that names or addresses have come or changed, and has the map file written again with the names.
    pub(super) fn directory_changed(&mut self) {
        if self.config.map_file.is_some() && self.store_names_at.is_none() {
            self.store_names_at = Some(self.now() + STORE_AFTER);
        }
        self.write_hosts_soon();
        self.check_plan_soon();
        self.tell_of_clashes();
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
            self.directory_changed();
        }
    }
}

/// A tag as boards have it.
pub(super) fn tag_in_words(tag: u64) -> String {
    format!("{tag:#018x}")
}

/// The time of day, as the revision of this host's name, so that it is higher after each start. If the clock
/// is wrong, the host hears from others a name of a higher revision, and takes one above that.
#[expect(
    clippy::disallowed_types,
    reason = "only the time of day outlasts a restart; nothing is timed by it"
)]
fn seconds_since_1970() -> u32 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// The machine's name, if it is a valid host name.
fn machine_name() -> Option<HostName> {
    rustix::system::uname().nodename().to_str().ok()?.parse().ok()
}
