//! Brings a host from a new map to the map's routes in use.

use std::sync::Arc;

use mapper_fabric::wording::with_causes;
use mapper_proto::agent::Event;
use mapper_proto::map::{Map, MapVersion};
use mapper_proto::{Instant, Mac};
use mapper_routing::RouteOptions;

use super::Host;
use crate::computation::Computed;
use crate::event::HostEvent;
use crate::kernel_path::KernelPath;
use crate::routes::RouteTable;

/// Whether the agent has a map, and none to make, to wait for or to hand on, from this event on; `None` if it changes nothing
/// of that.
const fn settles(event: &Event) -> Option<bool> {
    match event {
        Event::Configured { .. } => Some(true),
        Event::MappingStarted { .. }
        | Event::BecamePassive { .. }
        | Event::MapInstalled { .. }
        | Event::MapInvalid { .. }
        | Event::AddressContested { .. } => Some(false),
        _ => None,
    }
}

impl Host {
    /// Acts on what the agent reports, and passes it on.
    pub(super) fn take_event(&mut self, now: Instant, event: Event) {
        if let (Some(kernel), Some(is_settled)) = (&mut self.kernel, settles(&event)) {
            kernel.set_settled(is_settled);
        }
        match &event {
            Event::MapInstalled { map, neighbours } => {
                self.take_map(now, Arc::clone(map), neighbours.clone());
            }
            Event::AddressContested { .. } => self.drop_routes(),
            &Event::NetworkComplete { version } => {
                if let Some(kernel) = &mut self.kernel {
                    kernel.network_complete(now, version);
                }
                self.follow_cables();
                self.note_complete(now, version);
            }
            &Event::PathDown { path, reached, frame_bytes } => {
                self.path_is_down(now, path, reached, frame_bytes);
            }
            &Event::PathUp { path } => self.healing.path_up(path),
            &Event::PathLosesFrames { path, frame_bytes } => self.examine(now, path, frame_bytes),
            &Event::CableUp { version, at } => self.healing.cable_up(version, at),
            &Event::CableCleared { version, at } => self.healing.cable_cleared(version, at),
            &Event::CableAsked { version, at, answered } => self.healing.cable_asked(version, at, answered),
            Event::MappingStarted { .. }
            | Event::Mapped { .. }
            | Event::TagContested { .. }
            | Event::PartLeftOut { .. }
            | Event::BecamePassive { .. }
            | Event::MapInvalid { .. }
            | Event::Configured { .. }
            | Event::Printed { .. }
            | Event::Dropped { .. } => {}
            &Event::Echoed { ticket } => return self.soundings.echoed(now, ticket),
            // The driver does not hear of what services ask each other.
            Event::ServiceAsked { asked } => {
                return self.services.asked(now, &mut self.agent, asked.clone());
            }
            Event::ServiceAnswered { ticket, answer } => {
                return self.services.answered(now, *ticket, answer.as_deref());
            }
        }
        self.events.push_back(HostEvent::Agent(event));
    }

    fn take_map(&mut self, now: Instant, map: Arc<Map>, neighbours: Vec<Mac>) {
        if let Some(data) = &mut self.data {
            data.take_map(now, &map);
        }
        self.newest = Some((map, neighbours));
        self.follow_cables();
        self.route_newest();
    }

    /// Has the routes of the newest map computed, by the route options as they are now.
    pub(super) fn route_newest(&mut self) {
        if let Some((map, _)) = &self.newest {
            let by_destination = self.kernel.as_ref().is_some_and(KernelPath::goes_by_destination);
            self.computation.ask(Arc::clone(map), self.own, self.route_options, by_destination);
        }
    }

    /// Sets how many routes there are and how long they may be. If that has changed, routes are computed
    /// anew.
    pub fn set_route_options(&mut self, options: RouteOptions) {
        if self.route_options != options {
            self.route_options = options;
            self.follow_cables();
            self.route_newest();
        }
    }

    /// Puts computed routes to use, all at once, if their map is still the newest.
    pub fn handle_computed(&mut self, now: Instant, computed: Computed) {
        let Computed { number, map, table } = computed;
        if !self.computation.end(number) {
            return;
        }
        match table {
            Ok(table) => self.install(now, map, table),
            Err(error) => self.fail_routing(now, map.version, with_causes(&error)),
        }
        self.settle(now);
    }

    /// Takes in that the computation under way ended without a result, which is a fault of this program.
    pub fn handle_lost_computation(&mut self, now: Instant) {
        let was_newest = self.computation.lose();
        let newest = self.newest.as_ref().map(|(map, _)| map.version);
        if let Some(version) = newest.filter(|_| was_newest) {
            self.fail_routing(now, version, "the computation of routes ended without a result".to_owned());
        }
        self.settle(now);
    }

    fn install(&mut self, now: Instant, map: Arc<Map>, table: RouteTable) {
        let version = map.version;
        let Some((newest, neighbours)) = &mut self.newest else { return };
        *newest = map;
        let routes = neighbours.iter().filter_map(|&mac| Some((mac, table.first_to(mac)?))).collect();
        self.healing.map_installed(now, Arc::clone(table.basis()), self.own);
        self.services.map_changed(now, table.basis(), self.own);
        self.use_table(now, Arc::new(table));
        self.routing_failure = None;
        self.agent.handle_routes(now, version, routes);
        self.events.push_back(HostEvent::RoutesInstalled { version });
    }

    fn fail_routing(&mut self, now: Instant, version: MapVersion, why: String) {
        self.routing_failure = Some(why.clone());
        self.agent.handle_routing_failure(now, version, why.clone());
        self.events.push_back(HostEvent::RoutingFailed { version, why });
    }

    /// Puts routes to use, all at once, and sends the frames that have waited for them.
    pub(super) fn use_table(&mut self, now: Instant, table: Arc<RouteTable>) {
        if let Some(data) = &mut self.data {
            let outgoing = &mut self.outgoing;
            data.install(Arc::clone(&table));
            data.send_waiting(now, &mut |route, frame| outgoing.push(route, frame));
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.set_silent(self.healing.silent(), self.healing.goes_around_lossy_only());
            kernel.install(now, &table, table.basis().map().narrow_ports());
        }
        self.table = Some(table);
        self.tell_kernel_addresses(now);
    }

    /// Stops using routes until there is another map. Routes that are still being computed are not put to use
    /// either.
    pub fn forget_routes(&mut self, now: Instant) {
        self.drop_routes();
        self.settle(now);
    }

    fn drop_routes(&mut self) {
        (self.table, self.routing_failure, self.newest) = (None, None, None);
        self.computation.forget();
        if let Some(data) = &mut self.data {
            data.forget_routes();
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.forget_routes();
        }
    }

    /// The routes in use.
    pub fn table(&self) -> Option<&Arc<RouteTable>> {
        self.table.as_ref()
    }

    /// The newest map. Its routes may still be being computed.
    pub fn newest_map(&self) -> Option<&Arc<Map>> {
        self.newest.as_ref().map(|(map, _)| map)
    }

    /// The hosts that the agent itself needs a route to: its parent and its children in the tree over the
    /// map's hosts.
    pub fn neighbours(&self) -> &[Mac] {
        self.newest.as_ref().map_or(&[], |(_, neighbours)| neighbours)
    }

    /// Why no routes could be computed for the newest map; `None` if they were or may yet be.
    pub fn routing_failure(&self) -> Option<&str> {
        self.routing_failure.as_deref()
    }

    /// Replaces the newest map by an equal one, so that hosts in one process share one copy.
    pub fn share_map(&mut self, map: &Arc<Map>) {
        if let Some((newest, _)) = self.newest.as_mut().filter(|(newest, _)| newest.version == map.version) {
            *newest = Arc::clone(map);
            self.computation.share_map(map);
        }
    }
}
