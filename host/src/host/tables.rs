//! From a map to routes in use.

use std::sync::Arc;

use mapper_fabric::wording::with_causes;
use mapper_proto::agent::Event;
use mapper_proto::map::{Map, MapVersion};
use mapper_proto::{Instant, Mac};
use mapper_routing::Options;

use super::Host;
use crate::computation::Computed;
use crate::event::HostEvent;
use crate::routes::RouteTable;

impl Host {
    /// Acts on what the agent reports, and passes it on.
    pub(super) fn take_event(&mut self, now: Instant, event: Event) {
        match &event {
            Event::MapInstalled { map, neighbours } => {
                self.take_map(now, Arc::clone(map), neighbours.clone());
            }
            Event::AddressContested { .. } => self.drop_routes(),
            &Event::PathDown { path, reached, frame_bytes } => {
                self.path_is_down(now, path, reached, frame_bytes);
            }
            &Event::PathUp { path } => self.healing.path_up(path),
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
            | Event::NetworkComplete { .. }
            | Event::Printed { .. }
            | Event::Dropped { .. } => {}
            Event::ServiceAsked { .. } | Event::ServiceAnswered { .. } => {
                return self.take_service(now, event);
            }
        }
        self.events.push_back(HostEvent::Agent(event));
    }

    /// Services are this host's own affair: nobody else hears of their questions and answers.
    fn take_service(&mut self, now: Instant, event: Event) {
        match event {
            Event::ServiceAsked { asked } => self.services.asked(now, &mut self.agent, asked),
            Event::ServiceAnswered { ticket, answer } => {
                self.services.answered(now, ticket, answer.as_deref());
            }
            _ => {}
        }
    }

    fn take_map(&mut self, now: Instant, map: Arc<Map>, neighbours: Vec<Mac>) {
        if let Some(data) = &mut self.data {
            data.take_map(now, &map);
        }
        self.newest = Some((map, neighbours));
        self.route_newest();
    }

    /// Has the routes of the newest map computed, as that or the options are new.
    fn route_newest(&mut self) {
        if let Some((map, _)) = &self.newest {
            self.computation.ask(Arc::clone(map), self.own, self.route_options);
        }
    }

    /// Sets how many routes there are and how long they may be. If that is new, routes are computed again.
    pub fn set_route_options(&mut self, options: Options) {
        if self.route_options != options {
            self.route_options = options;
            self.route_newest();
        }
    }

    /// Puts routes that were computed to use, all at once, if their map is the newest still.
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

    /// The computation that was under way broke off and gave nothing, which is a fault of this program.
    pub fn handle_lost_computation(&mut self, now: Instant) {
        let was_newest = self.computation.lose();
        let newest = self.newest.as_ref().map(|(map, _)| map.version);
        if let Some(version) = newest.filter(|_| was_newest) {
            self.fail_routing(now, version, "the computation of routes broke off".to_owned());
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

    /// Puts routes to use, all at once, and sends by them what has waited for them.
    pub(super) fn use_table(&mut self, now: Instant, table: Arc<RouteTable>) {
        if let Some(data) = &mut self.data {
            let outgoing = &mut self.outgoing;
            data.install(Arc::clone(&table));
            data.send_waiting(now, &mut |route, frame| outgoing.push(route, frame));
        }
        self.table = Some(table);
    }

    /// Uses no route any more until there is another map. Routes that are still being computed will not be
    /// put to use either.
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
    }

    /// The routes in use.
    pub fn table(&self) -> Option<&Arc<RouteTable>> {
        self.table.as_ref()
    }

    /// The map in force or to come.
    pub fn newest_map(&self) -> Option<&Arc<Map>> {
        self.newest.as_ref().map(|(map, _)| map)
    }

    /// To whom the agent itself needs a route: parent and children in the tree.
    pub fn neighbours(&self) -> &[Mac] {
        self.newest.as_ref().map_or(&[], |(_, neighbours)| neighbours)
    }

    /// Why the newest map gave no routes, if so.
    pub fn routing_failure(&self) -> Option<&str> {
        self.routing_failure.as_deref()
    }

    /// Has an equal map take the place of the newest, so that hosts in one process share one copy.
    pub fn share_map(&mut self, map: &Arc<Map>) {
        if let Some((newest, _)) = self.newest.as_mut().filter(|(newest, _)| newest.version == map.version) {
            *newest = Arc::clone(map);
            self.computation.share_map(map);
        }
    }
}
