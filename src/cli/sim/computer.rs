//! The routes of simulated hosts, computed as agents compute them.

use std::sync::{Arc, Mutex, PoisonError};

use mapper_proto::Mac;
use mapper_proto::map::{HostIndex, Map};
use mapper_proto::wire::Route;
use mapper_sim::setup::Setup;
use mapper_sim::world::{RouteComputer, RouteJob};
use rayon::prelude::*;

use mapper_routing::{HostRoutes, Options, Orientation, Shape, Topology, UnionProof, prove_host};

/// Computes and proves routes on all cores.
#[derive(Debug)]
pub struct Computer {
    options: Options,
    /// What was derived from the last maps, newest last.
    derived: Mutex<Vec<Arc<Derived>>>,
}

/// What all hosts derive alike from a map.
#[derive(Debug)]
struct Derived {
    map: Arc<Map>,
    hosts: HostIndex,
    topology: Topology,
    orientation: Orientation,
}

/// A simulated host's proved routes.
#[derive(Debug)]
pub struct Table {
    routes: HostRoutes,
    derived: Arc<Derived>,
}

impl Table {
    /// The routes.
    pub fn routes(&self) -> &HostRoutes {
        &self.routes
    }

    /// The map that they were computed from.
    pub fn map(&self) -> &Arc<Map> {
        &self.derived.map
    }

    /// How routes go that all hosts of the map share.
    pub fn shape(&self) -> &Shape {
        self.derived.orientation.shape()
    }

    /// The topology that they were computed from.
    pub fn topology(&self) -> &Topology {
        &self.derived.topology
    }
}

impl Computer {
    /// Maps of so many parts of a fabric are kept at once.
    const MAX_DERIVED: usize = 8;

    /// For hosts that are set up like this.
    pub fn new(setup: &Setup) -> Self {
        let max_hops = u8::try_from(setup.agents.max_hops).unwrap_or(u8::MAX);
        Self { options: Options { passes: setup.routes.passes, max_hops }, derived: Mutex::default() }
    }

    /// What follows from a map, derived once for all hosts that share it.
    fn derive(&self, map: &Arc<Map>) -> Result<Arc<Derived>, String> {
        let mut known = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.iter().find(|derived| Arc::ptr_eq(&derived.map, map)) {
            return Ok(Arc::clone(found));
        }
        let topology = Topology::from_map(map).map_err(|error| error.to_string())?;
        let orientation = Orientation::new(&topology, map.rules.non_clos);
        let derived = Derived { map: Arc::clone(map), hosts: HostIndex::new(map), topology, orientation };
        let derived = Arc::new(derived);
        if known.len() == Self::MAX_DERIVED {
            known.remove(0);
        }
        known.push(Arc::clone(&derived));
        Ok(derived)
    }

    fn compute(&self, job: &RouteJob) -> Result<Table, String> {
        let derived = self.derive(&job.map)?;
        let own = derived.hosts.find(job.own).ok_or_else(|| format!("{} is not in its own map", job.own))?;
        let Derived { topology, orientation, .. } = derived.as_ref();
        let routes = HostRoutes::compute(topology, orientation, own, &self.options)
            .map_err(|error| error.to_string())?;
        prove_host(topology, orientation, &routes).map_err(|error| error.to_string())?;
        Ok(Table { routes, derived })
    }
}

impl RouteComputer for Computer {
    type Table = Table;

    fn compute_batch(&self, jobs: &[RouteJob]) -> Vec<Result<Table, String>> {
        jobs.par_iter().map(|job| self.compute(job)).collect()
    }

    fn route_to(&self, table: &Table, _map: &Map, to: Mac) -> Option<Route> {
        let to = table.derived.hosts.find(to)?;
        table.routes.wire_routes_to(&table.derived.topology, to).next()?.ok()
    }

    fn prove_union(&self, _map: &Map, tables: &[(Mac, &Table)]) -> Result<(), String> {
        let Some((_, first)) = tables.first() else { return Ok(()) };
        let topology = &first.derived.topology;
        let begin = || Ok(UnionProof::new(topology));
        let union = tables
            .par_iter()
            .fold(begin, |union: Result<UnionProof<'_>, String>, (_, table)| {
                let mut union = union?;
                union.add_table(&table.routes).map_err(|error| error.to_string())?;
                Ok(union)
            })
            .reduce(begin, |one, other| {
                let mut one = one?;
                one.merge(&other?);
                Ok(one)
            })?;
        union.prove_acyclic().map_err(|cycle| cycle.to_string())
    }
}
