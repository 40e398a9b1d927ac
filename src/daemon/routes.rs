//! This host's routes for one map: computed, proved, and kept whole.

use mapper_proto::Mac;
use mapper_proto::map::{Map, MapVersion, PortRef};
use mapper_proto::wire::Route;
use thiserror::Error;

use crate::routing::{
    self, Far, HostRoutes, Orientation, RoutingError, Topology, TopologyError, Violation, prove_host,
    wire_route, wire_way_back,
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
    topology: Topology,
    routes: HostRoutes,
    count: usize,
    unreachable: Vec<Mac>,
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
        let orientation = Orientation::new(&topology, options.non_clos);
        let from = host_index(&topology, mac).ok_or(RouteTableError::NotListed(mac))?;
        let routes = HostRoutes::compute(&topology, &orientation, from, &options.routes)?;
        prove_host(&topology, &orientation, &routes)?;
        let hosts = 0..topology.host_count() as u32;
        let count = hosts.map(|to| routes.count_to(&topology, to)).sum();
        let unreachable = routes.unreachable(&topology).map(|to| topology.mac(to)).collect();
        let by_mac = hosts_by_mac(&topology, from);
        Ok(Self { topology, routes, count, unreachable, by_mac, by_tag: xbars_by_tag(map) })
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
        let to = self.host(mac)?;
        self.routes.wire_routes_to(&self.topology, to).next()?.ok()
    }

    /// The number of another host in the map.
    pub fn host(&self, mac: Mac) -> Option<u32> {
        let at = self.by_mac.binary_search_by_key(&mac, |&(mac, _)| mac).ok()?;
        Some(self.by_mac[at].1)
    }

    /// All other hosts of the map, by address, with their numbers.
    pub fn hosts(&self) -> &[(Mac, u32)] {
        &self.by_mac
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
        let at = self.by_tag.binary_search_by_key(&tag, |&(tag, _)| tag).ok()?;
        Some(self.by_tag[at].1)
    }

    /// The port at the other end of a cable between xbars.
    pub fn far_port(&self, port: PortRef) -> Option<PortRef> {
        match self.topology.far(port) {
            Far::Channel(channel) => Some(self.topology.head(channel)),
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
