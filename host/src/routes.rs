//! This host's routes for one map: computed, proved, and kept whole.

use std::collections::BTreeSet;
use std::sync::Arc;

use mapper_proto::Mac;
use mapper_proto::map::{Map, MapVersion, PortRef};
use mapper_proto::wire::Route;
use thiserror::Error;

use mapper_routing::{
    self, Far, HostRoutes, LiveRoutes, Orientation, OutOfReach, RepairError, RoutingError, Shape, Topology,
    TopologyError, Violation, prove_host, repair, wire_route, wire_way_back,
};

/// What a user may set of the routes of one host. What must be alike at all hosts stands in the map: see
/// [`Rules`](mapper_proto::map::Rules).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteOptions {
    /// Routes to a destination, and the limit on their length.
    pub routes: mapper_routing::Options,
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

/// One route to a host: what travels, and what it means on the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePath {
    /// The ports that it leaves by, an xbar each.
    pub hops: Vec<PortRef>,
    /// The route as it travels.
    pub route: Route,
    /// The way back from the destination, through the same xbars.
    pub way_back: Route,
}

/// This host's routes to all others, proved free of loops and deadlock.
#[derive(Debug)]
pub struct RouteTable {
    /// What is left of the map without the cables known dead.
    topology: Arc<Topology>,
    routes: LiveRoutes,
    count: usize,
    unreachable: Vec<(Mac, OutOfReach)>,
    whole: Arc<Whole>,
}

/// What holds whichever cables are dead, and what it takes to route around them again.
#[derive(Debug)]
struct Whole {
    topology: Arc<Topology>,
    orientation: Orientation,
    routes: HostRoutes,
    /// All hosts of the map but this one, by address.
    by_mac: Vec<(Mac, u32)>,
    /// The xbars that have a tag, by tag.
    by_tag: Vec<(u64, u32)>,
}

impl RouteTable {
    /// Computes and proves the routes of the host `mac`. Takes up to a second on a large map.
    ///
    /// # Errors
    /// If the map does not list the host, or there are no safe routes within the limits.
    pub fn compute(map: &Map, mac: Mac, options: RouteOptions) -> Result<Self, RouteTableError> {
        let topology = Topology::from_map(map)?;
        let orientation = Orientation::new(&topology, map.rules.non_clos);
        let from = host_index(&topology, mac).ok_or(RouteTableError::NotListed(mac))?;
        let routes = HostRoutes::compute(&topology, &orientation, from, &options.routes)?;
        prove_host(&topology, &orientation, &routes)?;
        let (by_mac, by_tag) = (hosts_by_mac(&topology, from), xbars_by_tag(map));
        let topology = Arc::new(topology);
        let live = LiveRoutes::whole(routes.clone());
        let whole = Arc::new(Whole { topology: topology.clone(), orientation, routes, by_mac, by_tag });
        Ok(Self::new(topology, live, whole))
    }

    /// The routes of the same map around dead cables, named by the ports that hold them, from
    /// either end: see [`repair`]. All but these are alive again; without any the routes are those
    /// of the whole map. Takes milliseconds.
    ///
    /// # Errors
    /// If a proof fails, which is a fault of this program.
    pub fn repair(&self, dead: &BTreeSet<PortRef>) -> Result<Self, RepairError> {
        let Whole { topology, orientation, routes, .. } = &*self.whole;
        if dead.is_empty() {
            let live = LiveRoutes::whole(routes.clone());
            return Ok(Self::new(topology.clone(), live, self.whole.clone()));
        }
        let (cut, live) = repair(topology, orientation, routes, dead)?;
        Ok(Self::new(Arc::new(cut), live, self.whole.clone()))
    }

    fn new(topology: Arc<Topology>, routes: LiveRoutes, whole: Arc<Whole>) -> Self {
        let hosts = 0..topology.host_count() as u32;
        let count = hosts.map(|to| routes.count_to(&topology, to)).sum();
        let unreachable = routes.unreachable(&topology).map(|(to, why)| (topology.mac(to), why)).collect();
        Self { topology, routes, count, unreachable, whole }
    }

    /// The map that these routes are for.
    pub fn version(&self) -> MapVersion {
        self.topology.version()
    }

    /// How routes go, alike at all hosts of the map.
    pub fn shape(&self) -> &Shape {
        self.whole.orientation.shape()
    }

    /// How many routes there are, several a destination.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Hosts that the map lists but no route leads to, with why.
    pub fn unreachable(&self) -> &[(Mac, OutOfReach)] {
        &self.unreachable
    }

    /// Whether some route is safe only as long as the cables known dead are dead: see [`repair`].
    pub fn depends_on_the_dead(&self) -> bool {
        self.routes.opened()
    }

    /// The first route to a host, if one leads there.
    pub fn first_to(&self, mac: Mac) -> Option<Route> {
        let to = self.host(mac)?;
        self.routes.wire_routes_to(&self.topology, to).next()?.ok()
    }

    /// The number of another host in the map.
    pub fn host(&self, mac: Mac) -> Option<u32> {
        let at = self.whole.by_mac.binary_search_by_key(&mac, |&(mac, _)| mac).ok()?;
        Some(self.whole.by_mac[at].1)
    }

    /// All other hosts of the map, by address, with their numbers.
    pub fn hosts(&self) -> &[(Mac, u32)] {
        &self.whole.by_mac
    }

    /// How many hosts the map lists, this one too. Their numbers are below it.
    pub fn host_count(&self) -> usize {
        self.topology.host_count()
    }

    /// All routes to a host, by its number. None if it is out of reach for now.
    pub fn paths_to(&self, host: u32) -> impl Iterator<Item = RoutePath> + '_ {
        let from = self.routes.from();
        self.routes.routes_to(&self.topology, host).filter_map(move |hops| {
            let route = wire_route(&self.topology, from, &hops).ok()?;
            let way_back = wire_way_back(&self.topology, from, &hops).ok()?;
            Some(RoutePath { hops, route, way_back })
        })
    }

    /// The xbar of the map that has this tag.
    pub fn xbar(&self, tag: u64) -> Option<u32> {
        let at = self.whole.by_tag.binary_search_by_key(&tag, |&(tag, _)| tag).ok()?;
        Some(self.whole.by_tag[at].1)
    }

    /// The tag of an xbar of the map, if it has one.
    pub fn tag(&self, xbar: u32) -> Option<u64> {
        self.whole.by_tag.iter().find(|&&(_, listed)| listed == xbar).map(|&(tag, _)| tag)
    }

    /// The port at the other end of a cable between xbars, dead or alive.
    pub fn far_port(&self, port: PortRef) -> Option<PortRef> {
        let topology = &self.whole.topology;
        match topology.far(port) {
            Far::Channel(channel) => Some(topology.head(channel)),
            Far::Host(_) | Far::Nothing => None,
        }
    }
}

fn hosts_by_mac(topology: &Topology, own: u32) -> Vec<(Mac, u32)> {
    let others = (0..topology.host_count() as u32).filter(|&host| host != own && !topology.is_phantom(host));
    let mut hosts: Vec<_> = others.map(|host| (topology.mac(host), host)).collect();
    hosts.sort_unstable();
    hosts
}

fn xbars_by_tag(map: &Map) -> Vec<(u64, u32)> {
    let mut tags: Vec<_> =
        map.xbars.iter().zip(0..).filter_map(|(xbar, number)| Some((xbar.tag?, number))).collect();
    tags.sort_unstable();
    tags
}

fn host_index(topology: &Topology, mac: Mac) -> Option<u32> {
    (0..topology.host_count() as u32).find(|&host| topology.mac(host) == mac)
}
