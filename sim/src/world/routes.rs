//! Route computation, which the caller provides, and when its results are there.

use std::collections::BTreeMap;
use std::sync::Arc;

use mapper_proto::map::{Map, MapVersion};
use mapper_proto::wire::Route;
use mapper_proto::{Instant, Mac};

use super::World;
use super::queue::What;

/// A host whose routes are to be computed.
#[derive(Clone, Debug)]
pub struct RouteJob {
    /// The host's map.
    pub map: Arc<Map>,
    /// The host's address.
    pub own: Mac,
}

/// Computes hosts' routes and proves them. Its results may depend on nothing but the jobs.
pub trait RouteComputer {
    /// One host's proved routes.
    type Table;

    /// Computes the routes of several hosts, in the order of the jobs; an error says in words
    /// why there are none.
    fn compute_batch(&self, jobs: &[RouteJob]) -> Vec<Result<Self::Table, String>>;

    /// A route from the table's host to another; `None` if the table has none.
    fn route_to(&self, table: &Self::Table, map: &Map, to: Mac) -> Option<Route>;

    /// Proves that the routes of all these hosts together, all made from `map`, cannot deadlock.
    ///
    /// # Errors
    /// In words, naming a cycle.
    fn prove_union(&self, map: &Map, tables: &[(Mac, &Self::Table)]) -> Result<(), String>;
}

/// A computation under way.
#[derive(Debug)]
pub(super) struct Pending<T> {
    job: RouteJob,
    neighbours: Vec<Mac>,
    due: Instant,
    /// There before it is due if another host's was due earlier.
    result: Option<Result<T, String>>,
}

/// Routes in use.
#[derive(Debug)]
pub(super) struct Installed<T> {
    pub(super) version: MapVersion,
    pub(super) table: T,
}

/// Agents with equal maps share one copy.
#[derive(Debug, Default)]
pub(super) struct SharedMaps {
    maps: BTreeMap<(MapVersion, u64), Arc<Map>>,
}

impl SharedMaps {
    /// The copy that all share; `digest` is the agent's of this map.
    fn share(&mut self, digest: Option<u64>, map: Arc<Map>) -> Arc<Map> {
        let Some(digest) = digest else { return map };
        // Maps that nobody holds any more go first, so no more are kept than are in use.
        self.maps.retain(|_, map| Arc::strong_count(map) > 1);
        Arc::clone(self.maps.entry((map.version, digest)).or_insert(map))
    }
}

impl<C: RouteComputer> World<C> {
    /// A host has a map: its routes will be there after [`Timing::compute`](crate::fabric::Timing).
    pub(super) fn begin_routes(&mut self, host: u32, map: Arc<Map>, neighbours: Vec<Mac>) {
        let slot = &mut self.hosts[host as usize];
        let digest = slot.node.as_ref().and_then(|node| node.map_digest());
        let map = self.shared_maps.share(digest, map);
        let due = self.now + self.options.timing.compute;
        let job = RouteJob { map, own: slot.settings.mac };
        slot.pending = Some(Pending { job, neighbours, due, result: None });
        self.queue.push(due, What::Routes { host });
    }

    /// Routes are due at a host: hands them to its agent, and computes them with all others
    /// that are under way if they are not there yet.
    pub(super) fn finish_routes(&mut self, host: u32) {
        let due = |pending: &Pending<_>| pending.due == self.now;
        if !self.hosts[host as usize].pending.as_ref().is_some_and(due) {
            return;
        }
        if self.hosts[host as usize].pending.as_ref().is_some_and(|pending| pending.result.is_none()) {
            self.compute_pending();
        }
        let slot = &mut self.hosts[host as usize];
        let Some(Pending { job, neighbours, result: Some(result), .. }) = slot.pending.take() else { return };
        let version = job.map.version;
        let routes = result.and_then(|table| {
            let to_neighbour = |&to: &Mac| {
                let route = self.computer.route_to(&table, &job.map, to);
                route.map(|route| (to, route)).ok_or_else(|| format!("no route to {to}"))
            };
            let routes = neighbours.iter().map(to_neighbour).collect::<Result<Vec<_>, _>>()?;
            Ok((table, routes))
        });
        let Some(node) = &mut slot.node else { return };
        match routes {
            Ok((table, routes)) => {
                slot.routing_failure = None;
                slot.installed = Some(Installed { version, table });
                node.handle_routes(self.now, version, routes);
            }
            Err(why) => {
                self.stats.routing_failures += 1;
                slot.routing_failure = Some(why.clone());
                node.handle_routing_failure(self.now, version, why);
            }
        }
        self.drain(host);
    }

    fn compute_pending(&mut self) {
        let waiting: Vec<usize> = (0..self.hosts.len())
            .filter(|&i| self.hosts[i].pending.as_ref().is_some_and(|pending| pending.result.is_none()))
            .collect();
        let jobs: Vec<RouteJob> = waiting
            .iter()
            .filter_map(|&i| self.hosts[i].pending.as_ref().map(|pending| pending.job.clone()))
            .collect();
        let results = self.computer.compute_batch(&jobs);
        for (i, result) in waiting.into_iter().zip(results) {
            if let Some(pending) = &mut self.hosts[i].pending {
                pending.result = Some(result);
            }
        }
    }
}
