//! Acts on the host's events, by log lines, counters and what the daemon does besides.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mapper_fabric::wording::with_causes;
use mapper_host::HostEvent;
use mapper_proto::Mac;
use mapper_proto::agent::Event;
use mapper_proto::map::{Map, MapVersion};
use mapper_proto::wire::FrameError;
use tracing::{debug, error, info, warn};

use super::computation::Outcome;
use super::state::{Driver, RoutingFailure};
use mapper_machine::freed;

/// How long after something happened memory is given back that was needed for it. After a map, ways through kernels are tried
/// and names come, on a busy machine for minutes.
const REST_AFTER: Duration = Duration::from_secs(5);

impl Driver {
    /// Acts on an event. `source` is the sender of the frame that caused it, if a frame did.
    pub(super) fn act_on(&mut self, event: HostEvent, source: Option<Mac>) {
        let is_of_paths = matches!(
            event,
            HostEvent::RoutesInstalled { .. }
                | HostEvent::RoutingFailed { .. }
                | HostEvent::Repaired { .. }
                | HostEvent::Agent(Event::MapInstalled { .. })
        );
        if is_of_paths {
            self.followers.paths_changed();
        }
        if is_of_paths || matches!(event, HostEvent::DirectoryChanged) {
            self.followers.changed();
        }
        match event {
            HostEvent::Agent(event) => self.act_on_agent(event, source),
            HostEvent::DirectoryChanged => {
                self.answer_probes();
                self.directory_changed();
            }
            HostEvent::Found(found) => self.take_found(&found),
            HostEvent::AddressPicked(picked) => self.take_picked(picked),
            HostEvent::Sounded { number, sounded } => self.answer_sounding(number, sounded),
            HostEvent::MappedOnce => self.has_mapped_once = true,
            HostEvent::RoutesInstalled { version } => self.tell_of_routes(version),
            HostEvent::RoutingFailed { version, why } => {
                error!(
                    version = self.version_in_words(version),
                    "{}",
                    self.routing_failure().unwrap_or(&why)
                );
            }
            HostEvent::Repaired { dead } => {
                self.put_off_rest();
                let routes = self.host.table().map_or(0, |table| table.count());
                let map = self.host.table().map(|table| table.basis().map());
                let cables = map.map(|map| self.ends_in_words(map, &dead)).unwrap_or_default();
                if self.host.healing().goes_around_lossy_only() {
                    info!(?cables, routes, "routing around cables that lose frames");
                } else {
                    info!(?cables, routes, "routing around dead cables");
                }
            }
            HostEvent::LengthsChanged => self.warn_of_changes(),
            HostEvent::CableLosesFrames { at, .. } => self.warn_of_lossy(at),
            HostEvent::RepairRefused { why } => error!("the routes stay as they were: {why}"),
        }
    }

    fn act_on_agent(&mut self, event: Event, source: Option<Mac>) {
        if let Some(text) = self.status_after(&event) {
            self.notifier.status(&text);
        }
        match event {
            Event::MappingStarted { cause } => {
                self.causes.mapping_began(&cause);
                self.note_cause(&cause);
                self.put_off_rest();
                info!(cause = self.cause_in_words(&cause), "mapping");
            }
            Event::Mapped { version } => {
                info!(version = self.version_in_words(version), "mapped as global mapper");
                freed::give_back_heap();
            }
            Event::BecamePassive { to } => info!(mapper = self.called(to.mac), level = to.level, "passive"),
            Event::MapInstalled { map, .. } => self.tell_of_map(&map),
            Event::MapInvalid { version, cause } => {
                self.causes.map_ended(&cause);
                self.note_cause(&cause);
                warn!(
                    version = self.version_in_words(version),
                    cause = self.cause_in_words(&cause),
                    "the map no longer holds"
                );
            }
            Event::Configured { version } => info!(version = self.version_in_words(version), "configured"),
            Event::NetworkComplete { version } => self.network_complete(version),
            Event::TagContested { conflict } => warn!(host = self.host_naming(conflict.tag), "{conflict}"),
            Event::PartLeftOut { part } => {
                let host = part.place.tag.and_then(|tag| self.host_naming(tag));
                warn!(host, "{part}");
            }
            Event::AddressContested { why } => error!(mac = self.called(self.host.own()), "{why}"),
            Event::PathDown { path, reached, frame_bytes } => {
                debug!(path = path.0, reached, frame_bytes, "a path is down");
            }
            Event::PathUp { path } => debug!(path = path.0, "a path is up again"),
            Event::PathLosesFrames { path, frame_bytes } => {
                debug!(path = path.0, frame_bytes, "a path loses frames");
            }
            Event::CableUp { at, .. } => {
                debug!(xbar = at.xbar, port = at.port, "a cable that was held for dead is up");
            }
            Event::CableCleared { at, .. } => {
                debug!(xbar = at.xbar, port = at.port, "the mapper's frames pass the cable");
            }
            Event::CableAsked { at, answered, .. } => {
                debug!(xbar = at.xbar, port = at.port, answered, "a cable that was held for dead was asked");
            }
            // The text comes from another host. It is quoted, so that it cannot look like a line of this
            // program.
            Event::Printed { from, text } => info!(from = self.called(from), ?text, "printf"),
            // The host acts on these events itself and does not pass them on.
            Event::ServiceAsked { .. } | Event::ServiceAnswered { .. } | Event::Echoed { .. } => {}
            Event::Dropped { error } => self.log_dropped(error, source),
        }
    }

    fn tell_of_map(&mut self, map: &Arc<Map>) {
        let (hosts, xbars) = (map.hosts.len(), map.xbars.len());
        info!(
            version = self.version_in_words(map.version),
            mapper = self.called(map.version.mac),
            hosts,
            xbars,
            "map installed"
        );
        let before = self.known.present();
        self.known.see(map);
        self.note_map(map, &before);
        self.check_plan_soon();
        for conflict in map.address_conflicts() {
            warn!(mac = self.called(conflict.mac), "{conflict}");
        }
        self.warn_of_changes();
    }

    fn tell_of_routes(&self, version: MapVersion) {
        let Some(table) = self.host.table() else { return };
        debug!(version = self.version_in_words(version), routes = table.count(), order = %table.shape(), "routes proved");
        let unreachable: Vec<_> =
            table.unreachable().map(|(mac, why)| format!("{}: {why}", self.called(mac))).collect();
        if !unreachable.is_empty() {
            warn!(hosts = ?unreachable, "no route leads to these hosts of the map");
        }
    }

    /// Takes in the result of a computation, or `None` if it panicked.
    pub(super) fn take_routes(&mut self, outcome: Option<Outcome>) {
        let now = self.now();
        let Some((computed, stored)) = outcome else {
            return self.host.handle_lost_computation(now);
        };
        self.failed = computed.failure().map(|(error, map)| RoutingFailure {
            why: with_causes(error),
            in_words: self.routing_failure_in_words(error, map),
        });
        self.store_failure = stored.err();
        if let Some(error) = &self.store_failure {
            let path = self.config.map_file.as_deref().unwrap_or(Path::new(""));
            error!(path = %path.display(), %error, "cannot store the map");
        }
        self.host.handle_computed(now, computed);
    }

    fn network_complete(&mut self, version: MapVersion) {
        self.warn_of_changes();
        if self.host.table().is_none_or(|table| table.hosts().next().is_none()) {
            // A network that has only this host is complete, too, but nobody waits for that.
            return;
        }
        // Completeness may come and go while a map holds, so it is logged once for each map.
        if self.complete.replace(version) != Some(version) {
            info!(version = self.version_in_words(version), "network is fully configured");
            self.put_off_rest();
        }
    }

    /// Begins to wait for rest anew, as something happens or somebody asks. Nothing rests before a map was complete everywhere.
    pub(super) fn put_off_rest(&mut self) {
        self.rest_at = self.complete.map(|_| self.now() + REST_AFTER);
    }

    /// Gives back the memory that was needed for what happened, if the last of it is some time ago.
    pub(super) fn rest_if_due(&mut self) {
        if self.rest_at.is_some_and(|at| at <= self.now()) {
            self.rest_at = None;
            freed::give_back_heap();
            freed::give_back_code_and_constants();
        }
    }

    fn log_dropped(&mut self, error: FrameError, source: Option<Mac>) {
        let from = source.unwrap_or_default();
        match error {
            FrameError::UnknownVersion(_) if self.version_lines.allows(self.now(), from) => {
                warn!(from = self.called(from), "{error}: dropped; run agents of one version on all hosts");
            }
            FrameError::UnexpectedTag(_)
            | FrameError::NoTag
            | FrameError::UnknownKey(_)
            | FrameError::BadTag(_)
                if self.key_lines.allows(self.now(), from) =>
            {
                warn!(
                    from = self.called(from),
                    "{error}: dropped; give all hosts of one network one key file"
                );
            }
            FrameError::UnknownVersion(_)
            | FrameError::UnexpectedTag(_)
            | FrameError::NoTag
            | FrameError::UnknownKey(_)
            | FrameError::BadTag(_) => {}
            _ if self.drop_lines.allows(self.now(), from) => {
                debug!(from = self.called(from), %error, "dropped");
            }
            _ => {}
        }
    }

    /// The line of `systemctl status` after this event, if the event changes it.
    fn status_after(&self, event: &Event) -> Option<String> {
        match event {
            Event::MappingStarted { cause } => Some(format!("mapping: {}", self.cause_in_words(cause))),
            Event::BecamePassive { to } => {
                Some(format!("passive: waiting for the map of {}", self.called(to.mac)))
            }
            Event::MapInvalid { cause, .. } => {
                Some(format!("the map no longer holds: {}", self.cause_in_words(cause)))
            }
            Event::MapInstalled { map, .. } => {
                Some(format!("routing a map of {} hosts and {} xbars", map.hosts.len(), map.xbars.len()))
            }
            Event::Configured { version } => {
                Some(format!("configured with map {}", self.version_in_words(*version)))
            }
            Event::NetworkComplete { version } => {
                Some(format!("network is fully configured with map {}", self.version_in_words(*version)))
            }
            _ => None,
        }
    }
}
