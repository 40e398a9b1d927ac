//! One host's routes for one map, which are computed, proved and then put to use as a whole.

use std::sync::{Arc, OnceLock};

use mapper_proto::Mac;
use mapper_proto::map::{Attached, Cable, Map, MapVersion, PortRef, PortsInUse, TaggedPort};
use mapper_proto::wire::{RoundTrip, Route};
use thiserror::Error;

use mapper_routing::{
    Attachment, DeadCables, Far, HostRoutes, LiveRoutes, NextHops, OrderByDestination, Orientation,
    OutOfReach, RepairError, RouteOptions, RoutingError, Shape, Topology, TopologyError, Violation,
    prove_host, repair, wire_route, wire_way_back,
};

use crate::directory::LastTold;

mod by_destination;

pub use by_destination::WayByDestination;

/// How many ports of cables that lose frames are tried at most, so that many reports take no time to speak of.
const MOST_TRIED: usize = 4;

/// Why a host has no routes on a map.
#[derive(Debug, Error)]
pub enum RouteTableError {
    /// The map contradicts itself.
    #[error("the map cannot be routed")]
    Topology(#[from] TopologyError),
    /// This host is not in the map.
    #[error("the map does not list this host, {0}")]
    NotListed(Mac),
    /// There are no routes within the limits.
    #[error("no routes")]
    Routing(#[from] RoutingError),
    /// The routes are unsafe, which is a fault of this program. They are not used.
    #[error("the computed routes are refused")]
    Refused(#[from] Violation),
}

/// One route to a host, as frames carry it and as it lies on the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePath {
    /// The port by which it leaves each xbar, in order.
    pub hops: Vec<PortRef>,
    /// The route as it travels, and the way back through the same xbars.
    pub way: RoundTrip,
}

/// What all hosts derive alike from a map. Whoever runs many hosts derives it once.
#[derive(Debug)]
pub struct Basis {
    map: Arc<Map>,
    topology: Arc<Topology>,
    orientation: Orientation,
    /// The order of routes by destination, once somebody asks for it.
    by_destination: OnceLock<OrderByDestination>,
    /// All hosts of the map but phantoms, sorted by address, with their numbers.
    by_mac: Vec<(Mac, u32)>,
    /// The xbars that have a tag, sorted by tag, with their numbers.
    by_tag: Vec<(u64, u32)>,
    /// What each port is cabled to.
    ports: PortsInUse,
    /// What hosts were last told of the names and addresses of the map's hosts.
    last_told: LastTold,
}

impl Basis {
    /// Derives from the map what all its hosts have alike.
    ///
    /// # Errors
    /// If the map contradicts itself.
    pub fn new(map: Arc<Map>) -> Result<Self, TopologyError> {
        let (topology, orientation) = routed(&map)?;
        let topology = Arc::new(topology);
        let (by_mac, by_tag) = (hosts_by_mac(&topology), xbars_by_tag(&map));
        let (ports, last_told) = (PortsInUse::new(&map), LastTold::default());
        let by_destination = OnceLock::new();
        Ok(Self { map, topology, orientation, by_destination, by_mac, by_tag, ports, last_told })
    }

    /// The map.
    pub fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// The map as routes are computed on it: without cables that lose frames, as far as routes can do without them.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Those of these ports, the first ones, whose cables routes of this map can do without all together: none is then too long.
    /// Cables that have to be used in any case do not count.
    pub(crate) fn ports_to_leave_out(&self, mut ports: Vec<TaggedPort>) -> Vec<TaggedPort> {
        let are_left_out = |topology: &Topology, lossy: &[Cable]| {
            lossy.iter().all(|cable| topology.far(cable.a) == Far::Nothing)
        };
        while !ports.is_empty() {
            let lossy = self.map.cables_in(&ports);
            let fits = if lossy == self.map.lossy {
                are_left_out(&self.topology, &lossy)
            } else {
                let map = Map { lossy, ..Map::clone(&self.map) };
                routed(&map).is_ok_and(|(topology, _)| are_left_out(&topology, &map.lossy))
            };
            if fits {
                break;
            }
            ports.truncate((ports.len() - 1).min(MOST_TRIED));
        }
        ports
    }

    /// What each port of the map's xbars is cabled to.
    pub fn ports(&self) -> &PortsInUse {
        &self.ports
    }

    /// The xbar that has this tag.
    pub fn xbar(&self, tag: u64) -> Option<u32> {
        let at = self.by_tag.binary_search_by_key(&tag, |&(tag, _)| tag).ok()?;
        Some(self.by_tag[at].1)
    }

    /// Whether the map lists this host. Phantoms are not listed.
    pub fn lists(&self, mac: Mac) -> bool {
        self.host(mac).is_some()
    }

    /// The place of a host among all hosts that the map lists, by rising address.
    pub(crate) fn rank(&self, mac: Mac) -> Option<usize> {
        self.by_mac.binary_search_by_key(&mac, |&(mac, _)| mac).ok()
    }

    /// The host at this place.
    pub(crate) fn at_rank(&self, rank: usize) -> Option<Mac> {
        self.by_mac.get(rank).map(|&(mac, _)| mac)
    }

    /// How many hosts the map lists.
    pub(crate) fn listed(&self) -> usize {
        self.by_mac.len()
    }

    /// What hosts were last told of the names and addresses of the hosts that the map lists.
    pub(crate) fn last_told(&self) -> &LastTold {
        &self.last_told
    }

    fn order_by_destination(&self) -> &OrderByDestination {
        self.by_destination.get_or_init(|| OrderByDestination::new(&self.topology))
    }

    fn host(&self, mac: Mac) -> Option<u32> {
        Some(self.by_mac[self.rank(mac)?].1)
    }
}

/// What routes of a map are computed on: without cables that lose frames, unless some route would then be too long for agents that nobody
/// told how long routes may be. Mappers make no such maps (`Basis::ports_to_leave_out`), but for those that have just explored the fabric.
fn routed(map: &Map) -> Result<(Topology, Orientation), TopologyError> {
    let of = |map: &Map| -> Result<_, TopologyError> {
        let topology = Topology::from_map(map)?;
        let orientation = Orientation::new(&topology, map.rules.non_clos);
        Ok((topology, orientation))
    };
    let without = of(&map.routable())?;
    if map.lossy.is_empty() {
        return Ok(without);
    }
    let longest = |(topology, orientation): &(Topology, Orientation)| orientation.longest_route(topology);
    if longest(&without) <= RouteOptions::default().max_hops.into() {
        return Ok(without);
    }
    let whole = of(map)?;
    Ok(if longest(&without) <= longest(&whole) { without } else { whole })
}

/// This host's routes to all others, proved free of loops and deadlock.
#[derive(Debug)]
pub struct RouteTable {
    basis: Arc<Basis>,
    /// The routes of the whole map, whichever cables are dead.
    whole: Arc<HostRoutes>,
    /// The topology without the cables that the routes go around.
    topology: Arc<Topology>,
    routes: LiveRoutes,
    /// The routes by destination of the xbar that the host is cabled to, if they were asked for.
    next_hops: Option<Arc<NextHops>>,
    /// How many routes there are. They are counted when somebody asks for the first time.
    count: OnceLock<usize>,
}

impl RouteTable {
    /// Computes and proves the routes of the host `mac`. Takes up to a second on a large map.
    ///
    /// # Errors
    /// If the map does not list the host, or there are no safe routes within the limits.
    pub fn compute(basis: &Arc<Basis>, mac: Mac, options: &RouteOptions) -> Result<Self, RouteTableError> {
        let Basis { topology, orientation, .. } = &**basis;
        let from = basis.host(mac).ok_or(RouteTableError::NotListed(mac))?;
        let routes = HostRoutes::compute(topology, orientation, from, options)?;
        prove_host(topology, orientation, &routes)?;
        let (whole, topology) = (Arc::new(routes), Arc::clone(topology));
        let routes = LiveRoutes::whole(Arc::clone(&whole));
        let basis = Arc::clone(basis);
        Ok(Self { basis, whole, topology, routes, next_hops: None, count: OnceLock::new() })
    }

    /// Derives and proves the routes by destination of the xbar that the host is cabled to, too. On fabrics
    /// that are too large there are none.
    ///
    /// # Errors
    /// If a proof fails, which is a fault of this program.
    pub fn with_next_hops(mut self) -> Result<Self, RouteTableError> {
        let topology = &self.basis.topology;
        if let Attachment::Port(home) = topology.attachment(self.whole.from()) {
            let narrow = self.basis.map.narrow_ports();
            self.next_hops = NextHops::compute(topology, home.xbar, &narrow)?.map(Arc::new);
        }
        Ok(self)
    }

    /// The routes of the same map around these dead cables, and around no others: see [`repair`]. Without any
    /// these are the routes of the whole map. Takes milliseconds.
    ///
    /// # Errors
    /// If a proof fails, which is a fault of this program.
    pub fn repair(&self, dead: &DeadCables) -> Result<Self, RepairError> {
        let Basis { topology: all, orientation, .. } = &*self.basis;
        let (topology, routes) = if dead.avoided.is_empty() {
            (Arc::clone(all), LiveRoutes::whole(Arc::clone(&self.whole)))
        } else {
            let (cut, live) = repair(all, orientation, &self.whole, dead)?;
            (Arc::new(cut), live)
        };
        let (basis, whole) = (Arc::clone(&self.basis), Arc::clone(&self.whole));
        let next_hops = self.next_hops.clone();
        Ok(Self { basis, whole, topology, routes, next_hops, count: OnceLock::new() })
    }

    /// The map and what was derived from it.
    pub fn basis(&self) -> &Arc<Basis> {
        &self.basis
    }

    /// The topology without the cables that these routes go around.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The routes themselves, on [`Self::topology`].
    pub fn routes(&self) -> &LiveRoutes {
        &self.routes
    }

    /// The routes of the whole map, whichever cables are dead.
    pub fn whole(&self) -> &HostRoutes {
        &self.whole
    }

    /// The map that these routes are for.
    pub fn version(&self) -> MapVersion {
        self.topology.version()
    }

    /// The kind of orientation that the routes obey, which is the same at all hosts of the map.
    pub fn shape(&self) -> &Shape {
        self.basis.orientation.shape()
    }

    /// How many routes there are to all destinations together.
    pub fn count(&self) -> usize {
        let hosts = 0..self.topology.host_count() as u32;
        *self.count.get_or_init(|| hosts.map(|to| self.routes.count_to(&self.topology, to)).sum())
    }

    /// The hosts that the map lists but to which no route leads around the dead cables, with the reason.
    pub fn unreachable(&self) -> impl Iterator<Item = (Mac, OutOfReach)> + '_ {
        self.routes.unreachable(&self.topology).map(|(to, why)| (self.topology.mac(to), why))
    }

    /// Whether these are the routes of the whole map, as no cable is held for dead.
    pub fn is_whole(&self) -> bool {
        Arc::ptr_eq(&self.basis.topology, &self.topology)
    }

    /// Whether the cable in this port is one of those that the routes go around.
    pub(crate) fn is_dead(&self, port: PortRef) -> bool {
        !self.is_whole()
            && self.topology.far(port) == Far::Nothing
            && self.basis.topology.far(port) != Far::Nothing
    }

    /// Whether some route is safe only as long as the cables proved dead are dead: see [`repair`].
    ///
    /// A host need not ask this: it goes on testing the cables that it holds for dead, and the first answer
    /// closes the turns. For as long as one test takes, routes of several hosts may close a circle. A
    /// simulator asks, to tell such a circle from one that must never be.
    pub fn depends_on_the_dead(&self) -> bool {
        self.routes.opened()
    }

    /// The first route to a host, if one leads there.
    pub fn first_to(&self, mac: Mac) -> Option<Route> {
        Some(self.paths_to(self.host(mac)?).next()?.way.there)
    }

    /// The number of another host in the map.
    pub fn host(&self, mac: Mac) -> Option<u32> {
        self.basis.host(mac).filter(|&host| host != self.routes.from())
    }

    /// All other hosts of the map, by address, with their numbers.
    pub fn hosts(&self) -> impl Iterator<Item = (Mac, u32)> + '_ {
        self.basis.by_mac.iter().copied().filter(|&(_, host)| host != self.routes.from())
    }

    /// How many hosts the map lists, including this one. All hosts' numbers are lower.
    pub fn host_count(&self) -> usize {
        self.topology.host_count()
    }

    /// Whether no route to a host, by its number, leads around the cables that are held for dead.
    pub(crate) fn is_cut_off(&self, host: u32) -> bool {
        self.routes.count_to(&self.topology, host) == 0
    }

    /// All routes to a host, by its number.
    ///
    /// Where no route leads around the cables that are held for dead, these are the routes of the whole map.
    /// They do no harm: a dead cable drops frames, so nothing waits for it, and a live one carries them.
    pub fn paths_to(&self, host: u32) -> impl Iterator<Item = RoutePath> + '_ {
        let from = self.routes.from();
        let is_cut_off = self.is_cut_off(host);
        let whole = is_cut_off.then(|| self.whole.routes_to(&self.basis.topology, host));
        let live = (!is_cut_off).then(|| self.routes.routes_to(&self.topology, host));
        whole.into_iter().flatten().chain(live.into_iter().flatten()).filter_map(move |hops| {
            let there = wire_route(&self.basis.topology, from, &hops).ok()?;
            let back = wire_way_back(&self.basis.topology, from, &hops).ok()?;
            Some(RoutePath { hops, way: RoundTrip { there, back } })
        })
    }

    /// Whether a port leads to the xbar that a host is cabled to.
    pub(crate) fn leads_home(&self, port: PortRef, host: u32) -> bool {
        let home = self.basis.topology.attachment(host);
        matches!(home, Attachment::Port(home) if self.far_port(port).is_some_and(|far| far.xbar == home.xbar))
    }

    /// Whether a host, by its number, is cabled to this xbar.
    pub(crate) fn is_at(&self, host: u32, xbar: u32) -> bool {
        matches!(self.basis.topology.attachment(host), Attachment::Port(home) if home.xbar == xbar)
    }

    /// The port that this host is cabled to, if it is a port of an xbar.
    pub(crate) fn home(&self) -> Option<PortRef> {
        self.home_of(self.whole.from())
    }

    /// The xbar of the map that has this tag.
    pub fn xbar(&self, tag: u64) -> Option<u32> {
        self.basis.xbar(tag)
    }

    /// The tag of an xbar of the map, if it has one.
    pub fn tag(&self, xbar: u32) -> Option<u64> {
        self.basis.by_tag.iter().find(|&&(_, listed)| listed == xbar).map(|&(tag, _)| tag)
    }

    /// Whether a route by these hops closes no circle with those that are in force. The last hop leads along no channel.
    pub(crate) fn closes_no_circle(&self, hops: &[PortRef]) -> bool {
        let Basis { topology, orientation, .. } = &*self.basis;
        let between = hops.iter().take(hops.len().saturating_sub(1));
        let channels: Option<Vec<u32>> = between
            .map(|&hop| match topology.far(hop) {
                Far::Channel(channel) => Some(channel),
                Far::Host(_) | Far::Nothing => None,
            })
            .collect();
        channels.is_some_and(|channels| channels.windows(2).all(|pair| orientation.allows(pair[0], pair[1])))
    }

    /// Whether a route out of these ports, the first of which is of this host's own xbar, leads along cables of the map to a
    /// port in which the map has nothing, and closes no circle with the routes that are in force.
    pub(crate) fn leads_out_of_the_map(&self, ports: impl IntoIterator<Item = u8>) -> bool {
        let topology = &self.basis.topology;
        let Some(home) = self.home() else { return false };
        let (mut xbar, mut hops) = (home.xbar, Vec::new());
        for port in ports {
            let hop = PortRef { xbar, port };
            hops.push(hop);
            match topology.far(hop) {
                Far::Channel(channel) => xbar = topology.head(channel).xbar,
                // A cable that loses frames is in the map, though no route leads over it.
                Far::Nothing if self.basis.ports.at(hop).is_some() => return false,
                Far::Nothing => return topology.is_tagged(xbar) && self.closes_no_circle(&hops),
                Far::Host(_) => return false,
            }
        }
        false
    }

    /// Whether a route by these hops may be taken the other way round, too, and close no circle with those that are in
    /// force.
    pub fn is_reversible(&self, hops: &[PortRef]) -> bool {
        let Basis { topology, orientation, .. } = &*self.basis;
        // The last hop leads to the host, along no channel.
        let between = hops.iter().take(hops.len().saturating_sub(1));
        let back: Option<Vec<u32>> = between
            .map(|&hop| match topology.far(hop) {
                Far::Channel(channel) => Some(topology.reverse(channel)),
                Far::Host(_) | Far::Nothing => None,
            })
            .collect();
        back.is_some_and(|back| back.windows(2).all(|pair| orientation.allows(pair[1], pair[0])))
    }

    /// Whether the map has a cable between xbars in this port, and routes leave it out as it loses frames.
    pub(crate) fn leaves_out(&self, port: PortRef) -> bool {
        self.basis.topology.far(port) == Far::Nothing && self.far_port(port).is_some()
    }

    /// The port at the other end of a cable between xbars, dead or alive, and whether routes may lead over it or not.
    pub fn far_port(&self, port: PortRef) -> Option<PortRef> {
        match self.basis.ports.at(port)? {
            Attached::Xbar(far) => Some(far),
            Attached::Host(_) => None,
        }
    }
}

fn hosts_by_mac(topology: &Topology) -> Vec<(Mac, u32)> {
    let real = (0..topology.host_count() as u32).filter(|&host| !topology.is_phantom(host));
    let mut hosts: Vec<_> = real.map(|host| (topology.mac(host), host)).collect();
    hosts.sort_unstable();
    hosts
}

fn xbars_by_tag(map: &Map) -> Vec<(u64, u32)> {
    let mut tags: Vec<_> =
        map.xbars.iter().zip(0..).filter_map(|(xbar, number)| Some((xbar.tag?, number))).collect();
    tags.sort_unstable();
    tags
}

#[cfg(test)]
mod tests;
