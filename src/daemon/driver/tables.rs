//! From a map to routes in use.

use std::path::Path;
use std::sync::Arc;

use mapper_proto::Mac;
use mapper_proto::map::Map;
use tracing::{debug, error, info, warn};

use super::computation::{Computed, Task};
use super::event_loop::Driver;
use super::with_causes;
use mapper_host::routes::RouteOptions;
use crate::daemon::status::RoutesAsked;

impl Driver {
    /// Computes the routes for a map, beside the loop.
    pub(super) fn route(&mut self, map: Arc<Map>, neighbours: Vec<Mac>) {
        info!(version = %map.version, hosts = map.hosts.len(), xbars = map.xbars.len(), "map installed");
        self.known.see(&map);
        let now = self.now();
        if let Some(user_data) = &mut self.user_data {
            user_data.take_map(now, &map);
        }
        for conflict in map.address_conflicts() {
            warn!(mac = %conflict.mac, "{conflict}");
        }
        self.newest = Some((map, neighbours));
        self.warn_of_changes();
        self.route_again();
    }

    /// Computes the routes for the newest map, as that or the options are new.
    pub(super) fn route_again(&mut self) {
        let Some((map, neighbours)) = self.newest.clone() else { return };
        let options = RouteOptions {
            routes: mapper_routing::Options {
                passes: self.config.num_passes,
                max_hops: self.config.settings.max_hops as u8,
            },
        };
        let (mac, map_file) = (self.mac, self.config.map_file.clone());
        self.computation.begin(Task { map, neighbours, mac, options, map_file });
    }

    /// What there is to tell of the routes in use.
    pub(super) fn routes_asked(&self) -> RoutesAsked {
        let (map, neighbours) = self.newest.clone().unzip();
        RoutesAsked {
            host: self.mac,
            table: self.table.clone(),
            map,
            neighbours: neighbours.unwrap_or_default(),
            uses: self.user_data.as_ref().map_or_else(Vec::new, |user_data| user_data.uses(self.now())),
        }
    }

    /// Puts routes to use, all at once.
    pub(super) fn take_routes(&mut self, mut computed: Option<Computed>) {
        if let Some(computed) = &mut computed {
            self.store_failure = std::mem::replace(&mut computed.stored, Ok(())).err();
            if let Some(error) = &self.store_failure {
                let path = self.config.map_file.as_deref().unwrap_or(Path::new(""));
                error!(path = %path.display(), %error, "cannot store the map");
            }
        }
        let now = self.now();
        if computed.as_ref().is_some_and(|computed| !self.is_newest(&computed.map)) {
            debug!("routes of a map that counts no more");
            return;
        }
        match computed {
            None => error!("the computation of routes broke off"),
            Some(Computed { map, neighbours, table: Ok(table), .. }) => {
                debug!(version = %map.version, routes = table.count(), order = %table.shape(), "routes proved");
                let routes =
                    neighbours.into_iter().filter_map(|mac| Some((mac, table.first_to(mac)?))).collect();
                if !table.unreachable().is_empty() {
                    warn!(hosts = ?table.unreachable(), "no route leads to these hosts of the map");
                }
                self.use_table(Arc::new(table));
                self.healing.map_installed(now, Arc::clone(&map), self.mac);
                self.routing_failure = None;
                self.agent.handle_routes(now, map.version, routes);
            }
            Some(Computed { map, table: Err(error), .. }) => {
                let why = with_causes(&error);
                error!(version = %map.version, "{why}");
                self.routing_failure = Some(why.clone());
                self.agent.handle_routing_failure(now, map.version, why);
            }
        }
    }
}
