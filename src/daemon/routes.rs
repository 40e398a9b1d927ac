//! This host's routes for one map: computed, proved, and kept whole.

use mapper_proto::Mac;
use mapper_proto::map::{Map, MapVersion};
use mapper_proto::wire::Route;
use thiserror::Error;

use crate::routing::{
    self, HostRoutes, Orientation, RoutingError, Topology, TopologyError, Violation, prove_host,
};

/// What a user may set of the routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteOptions {
    /// Routes to a destination, and the limit on their length.
    pub routes: routing::Options,
    /// Whether to route by up*/down* whatever the fabric looks like.
    pub non_clos: bool,
}

/// A map that cannot be routed.
#[derive(Debug, Error)]
pub enum RouteTableError {
    /// It makes no sense.
    #[error("the map cannot be routed")]
    Topology(#[from] TopologyError),
    /// This host is not in it.
    #[error("the map does not list this host, {0}")]
    NotListed(Mac),
    /// There are no routes within the limits.
    #[error("no routes")]
    Routing(#[from] RoutingError),
    /// The routes are unsafe, which is a fault of this program. They are not used.
    #[error("the computed routes are refused")]
    Refused(#[from] Violation),
}

/// This host's routes to all others, proved free of loops and deadlock.
#[derive(Debug)]
pub struct RouteTable {
    topology: Topology,
    routes: HostRoutes,
    count: usize,
    unreachable: Vec<Mac>,
}

impl RouteTable {
    /// Computes and proves the routes of the host `mac`. Takes up to a second on a large map.
    ///
    /// # Errors
    /// If the map does not list the host, or there are no safe routes within the limits.
    pub fn compute(map: &Map, mac: Mac, options: RouteOptions) -> Result<Self, RouteTableError> {
        let topology = Topology::from_map(map)?;
        let orientation = Orientation::new(&topology, options.non_clos);
        let from = host_index(&topology, mac).ok_or(RouteTableError::NotListed(mac))?;
        let routes = HostRoutes::compute(&topology, &orientation, from, &options.routes)?;
        prove_host(&topology, &orientation, &routes)?;
        let hosts = 0..topology.host_count() as u32;
        let count = hosts.map(|to| routes.count_to(&topology, to)).sum();
        let unreachable = routes.unreachable(&topology).map(|to| topology.mac(to)).collect();
        Ok(Self { topology, routes, count, unreachable })
    }

    /// The map that these routes are for.
    pub fn version(&self) -> MapVersion {
        self.topology.version()
    }

    /// How many routes there are, several a destination.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Hosts that the map lists but no route leads to.
    pub fn unreachable(&self) -> &[Mac] {
        &self.unreachable
    }

    /// The first route to a host, if one leads there.
    pub fn first_to(&self, mac: Mac) -> Option<Route> {
        let to = host_index(&self.topology, mac)?;
        self.routes.wire_routes_to(&self.topology, to).next()?.ok()
    }
}

fn host_index(topology: &Topology, mac: Mac) -> Option<u32> {
    (0..topology.host_count() as u32).find(|&host| topology.mac(host) == mac)
}
