//! What a service of names and paths is told: the hosts of the map, their names and addresses, and the paths to them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use mapper_host::data::tap_mtu;
use mapper_host::directory::PortRates;
use mapper_host::routes::{RoutePath, RouteTable};
use mapper_proto::Mac;
use mapper_proto::map::{Attached, Host, Map, PortRef};
use serde::{Deserialize, Serialize};

use super::KnownPort;

/// The rate that is assumed for an interface that does not say how fast it is, in Mb/s. `ibacm` assumes the
/// same.
const UNKNOWN_RATE_MBPS: u32 = 10_000;

/// What an agent knows of the hosts of its map, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPaths {
    /// The agent's number on this machine.
    pub unit: u8,
    /// The interface that the agent is at, or for a node the name that is made of all its ports.
    pub interface: String,
    /// The agent's own address.
    pub host: String,
    /// Whether the paths belong to the newest map. While they do not, as routes are being computed or there
    /// is no map, only this host itself is listed.
    pub is_settled: bool,
    /// The number in the file of [`paths_number_path`](super::paths_number_path) to which this belongs; `None` if the
    /// agent has no such file.
    pub paths_number: Option<u64>,
    /// All hosts of the map, including this one.
    pub hosts: Vec<KnownHost>,
    /// What was learned of names and addresses that hosts do not announce.
    pub learned: Vec<KnownLearned>,
    /// The port of InfiniBand that the agent is at. Then there are no hosts here: paths are asked for one by one, by
    /// [`AgentRequest::PathTo`](super::AgentRequest::PathTo).
    pub port: Option<KnownPort>,
}

/// A name or an address that is not announced, and who has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownLearned {
    /// The name or address.
    pub wanted: String,
    /// The hosts that have it. If there are several, each of them says so.
    pub owners: Vec<KnownOwner>,
}

/// A host that has said that it has something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownOwner {
    /// Its address.
    pub mac: String,
    /// How fast both ends can be, in Mb/s; 0 if that is not known.
    pub rate_mbps: u32,
    /// The longest packet that both ends take, in bytes; 0 if that is not known.
    pub mtu_bytes: u32,
}

/// The answer to [`AgentRequest::WhoHas`](super::AgentRequest::WhoHas).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhoHas {
    /// The hosts that have it; none if none has said so in time.
    Owners(Vec<KnownOwner>),
    /// Why nobody was asked, in words.
    Refused(String),
}

/// A host of the map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownHost {
    /// Its address.
    pub mac: String,
    /// What it is called, if it has said so.
    pub name: Option<String>,
    /// Its addresses of IP.
    pub addresses: Vec<IpAddr>,
    /// The first of the routes in force; `None` if no route leads there.
    pub path: Option<KnownPath>,
}

/// A route in force, as far as its users need to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPath {
    /// How many xbars it passes.
    pub hops: u8,
    /// The layer that its frames travel in.
    pub layer: u8,
    /// The longest packet that fits, in bytes.
    pub mtu_bytes: u32,
    /// The rate of its slowest cable, in Mb/s. Only cables count whose ends say how fast they are.
    pub rate_mbps: u32,
    /// Whether its reverse is safe beside all routes in force.
    pub reversible: bool,
}

/// How often what is known has changed since the agent's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The number of the last change.
    pub number: u64,
}

/// All that is needed to tell [`KnownPaths`], gathered at one moment.
#[derive(Debug)]
pub struct PathsAsked {
    /// The agent's number on this machine.
    pub unit: u8,
    /// The interface that the agent is at.
    pub interface: String,
    /// The address of this host.
    pub host: Mac,
    /// How often the paths have changed, if others can see that.
    pub paths_number: Option<u64>,
    /// The routes.
    pub table: Option<Arc<RouteTable>>,
    /// The newest map.
    pub map: Option<Arc<Map>>,
    /// Whether the newest map could not be routed.
    pub has_failed: bool,
    /// The names and addresses of all hosts that have told them.
    pub told: BTreeMap<Mac, (Option<String>, Vec<IpAddr>)>,
    /// How fast the interfaces of hosts are, as far as these say so.
    pub rates: BTreeMap<Mac, PortRates>,
    /// What was learned of names and addresses that hosts do not announce.
    pub learned: Vec<KnownLearned>,
    /// The longest frame that all cables of the fabric carry, in bytes. The tap interface sends none that are longer.
    pub link_mtu: u32,
    /// How many xbars a route passes at most.
    pub max_hops: u8,
}

impl PathsAsked {
    /// Encodes [`KnownPaths`] as JSON.
    ///
    /// # Errors
    /// If something cannot be encoded.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&self.answer())
    }

    fn answer(&self) -> KnownPaths {
        let newest = self.map.as_ref().map(|map| map.version);
        let in_force =
            self.table.as_ref().filter(|table| newest.is_none_or(|newest| newest == table.version()));
        let mut hosts = Vec::new();
        if let Some(table) = in_force {
            let sizes = PathSizes::new(table, self);
            hosts.extend(table.hosts().map(|(mac, host)| {
                // A route around dead cables is told, and a route across them is not.
                let is_cut_off = table.routes().count_to(table.topology(), host) == 0;
                let path = table.paths_to(host).next().filter(|_| !is_cut_off);
                self.known(mac, path.map(|path| sizes.path(mac, &path)))
            }));
        } else if self.has_failed {
            let listed = self.map.iter().flat_map(|map| map.hosts.iter()).map(|host| host.mac);
            hosts.extend(listed.filter(|&mac| mac != self.host).map(|mac| self.known(mac, None)));
        }
        let own = KnownPath {
            hops: 0,
            layer: 0,
            mtu_bytes: tap_mtu(self.link_mtu, self.max_hops).unwrap_or_default(),
            rate_mbps: self.rates.get(&self.host).and_then(PortRates::fastest).unwrap_or(UNKNOWN_RATE_MBPS),
            reversible: true,
        };
        hosts.push(self.known(self.host, Some(own)));
        KnownPaths {
            unit: self.unit,
            interface: self.interface.clone(),
            host: self.host.to_string(),
            is_settled: in_force.is_some() || self.has_failed,
            paths_number: self.paths_number,
            hosts,
            learned: self.learned.clone(),
            port: None,
        }
    }

    fn known(&self, mac: Mac, path: Option<KnownPath>) -> KnownHost {
        let (name, addresses) = self.told.get(&mac).cloned().unwrap_or_default();
        KnownHost { mac: mac.to_string(), name, addresses, path }
    }
}

/// Finds how long the frames of a path may be, and how fast the path is.
struct PathSizes<'a> {
    table: &'a RouteTable,
    asked: &'a PathsAsked,
    /// How fast their ports are, for the nodes that say so, by the number of the node's xbar.
    nodes: BTreeMap<u32, &'a PortRates>,
}

impl<'a> PathSizes<'a> {
    fn new(table: &'a RouteTable, asked: &'a PathsAsked) -> Self {
        let node = |host: &Host| {
            let rates = asked.rates.get(&host.mac).filter(|rates| rates.of_interface().is_none())?;
            Some((host.at?.xbar, rates))
        };
        Self { table, asked, nodes: table.basis().map().hosts.iter().filter_map(node).collect() }
    }

    fn path(&self, to: Mac, RoutePath { hops, .. }: &RoutePath) -> KnownPath {
        KnownPath {
            hops: u8::try_from(hops.len()).unwrap_or(u8::MAX),
            layer: 0,
            mtu_bytes: tap_mtu(self.link_mtu(to), self.asked.max_hops).unwrap_or_default(),
            rate_mbps: self.rate(to, hops).unwrap_or(UNKNOWN_RATE_MBPS),
            reversible: self.table.is_reversible(hops),
        }
    }

    /// The least rate that an end of a cable on the way says it has, in Mb/s; `None` if none says so.
    fn rate(&self, to: Mac, hops: &[PortRef]) -> Option<u32> {
        let alone = [self.asked.host, to].into_iter();
        let of_ends = alone.filter_map(|mac| self.asked.rates.get(&mac)?.of_interface());
        let ports = self.table.basis().ports();
        let of_hops = hops.iter().flat_map(|&out| {
            let far = match ports.at(out) {
                Some(Attached::Xbar(far)) => Some(far),
                // The link between a node's crossbar and its own agent is inside the machine, so it is no cable.
                Some(Attached::Host(_)) => return [None, None],
                None => None,
            };
            [self.port_rate(out), far.and_then(|far| self.port_rate(far))]
        });
        of_ends.chain(of_hops.flatten()).min()
    }

    fn port_rate(&self, PortRef { xbar, port }: PortRef) -> Option<u32> {
        self.nodes.get(&xbar)?.of_port(port)
    }

    /// The lesser of both ends' MTUs, as the map has them.
    fn link_mtu(&self, to: Mac) -> u32 {
        let sizes = &self.table.basis().map().frame_sizes;
        let less = sizes.less.binary_search_by_key(&to, |&(mac, _)| mac);
        let theirs = less.map_or(sizes.longest, |at| sizes.less[at].1.bytes);
        match theirs {
            0 => self.asked.link_mtu,
            theirs => self.asked.link_mtu.min(theirs.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;
    use mapper_host::routes::Basis;
    use mapper_proto::PortSet;
    use mapper_proto::map::LinkMtu;

    use super::*;

    fn asked(spec: &str) -> PathsAsked {
        let mut map = generate(spec).unwrap().map;
        map.version.counter = 1;
        let (host, other) = (map.hosts[0].mac, map.hosts[1].mac);
        map.frame_sizes.longest = 9000;
        map.frame_sizes.less = vec![(other, LinkMtu { bytes: 1500, ports: PortSet::NONE })];
        let map = Arc::new(map);
        let basis = Arc::new(Basis::new(Arc::clone(&map)).unwrap());
        let table = RouteTable::compute(&basis, host, &mapper_routing::RouteOptions::default()).unwrap();
        PathsAsked {
            unit: 2,
            interface: "eth1".to_owned(),
            host,
            paths_number: None,
            table: Some(Arc::new(table)),
            map: Some(map),
            has_failed: false,
            told: BTreeMap::from([(other, (Some("n2".to_owned()), vec![[10, 0, 0, 2].into()]))]),
            rates: BTreeMap::new(),
            learned: Vec::new(),
            link_mtu: 9000,
            max_hops: 11,
        }
    }

    #[test]
    fn all_hosts_are_told_with_the_first_route_to_each() {
        let mut asked = asked("ring:n=3,hosts=1");
        asked.rates.insert(asked.host, PortRates::new([(0, 25_000)]));
        let answer = asked.answer();
        assert!(answer.is_settled && answer.hosts.len() == 3);
        let named = answer.hosts.iter().find(|host| host.name.is_some()).unwrap();
        let path = named.path.unwrap();
        assert_eq!((path.hops, path.rate_mbps, path.reversible), (2, 25_000, true));
        assert!(path.mtu_bytes < 1500, "the other end takes no longer frames");
        let longest = answer.hosts.iter().filter_map(|host| host.path).map(|path| path.mtu_bytes).max();
        assert!(longest.is_some_and(|longest| longest > 8000));
        let own = answer.hosts.last().unwrap();
        assert_eq!((own.mac.as_str(), own.path.unwrap().hops), (answer.host.as_str(), 0));
        let back: KnownPaths = serde_json::from_slice(&asked.to_json().unwrap()).unwrap();
        assert_eq!(back.hosts.len(), 3);
    }

    #[test]
    fn of_a_newer_map_no_older_route_is_told() {
        let mut asked = asked("ring:n=3,hosts=1");
        let mut newer = (**asked.map.as_ref().unwrap()).clone();
        newer.version.counter = 2;
        asked.map = Some(Arc::new(newer));
        let answer = asked.answer();
        assert!(!answer.is_settled && answer.hosts.len() == 1);
        asked.has_failed = true;
        let answer = asked.answer();
        assert!(answer.is_settled && answer.hosts.iter().filter(|host| host.path.is_none()).count() == 2);
    }

    #[test]
    fn a_path_is_reversible_only_if_its_reverse_is_safe() {
        let asked = asked("torus:x=5,y=5,hosts=1");
        let table = asked.table.as_ref().unwrap();
        let turns = |hops: &[PortRef]| hops.len() > 3;
        let reversible = |host| {
            let path = table.paths_to(host).next().unwrap();
            (turns(&path.hops), table.is_reversible(&path.hops))
        };
        let all: Vec<_> = table.hosts().map(|(_, host)| reversible(host)).collect();
        // On a torus, direction order forbids to come back by the same turns.
        assert!(all.iter().any(|&(_, is)| is) && all.iter().any(|&(_, is)| !is), "{all:?}");
    }

    #[test]
    fn a_path_is_as_fast_as_the_slowest_end_of_a_cable_on_it() {
        let mut asked = asked("ring:n=5,hosts=1");
        let table = Arc::clone(asked.table.as_ref().unwrap());
        let (far, path) = table
            .hosts()
            .filter_map(|(mac, host)| Some((mac, table.paths_to(host).next()?)))
            .max_by_key(|(_, path)| path.hops.len())
            .unwrap();
        assert!(path.hops.len() >= 3);
        let rate = |asked: &PathsAsked| PathSizes::new(&table, asked).path(far, &path).rate_mbps;
        assert_eq!(rate(&asked), UNKNOWN_RATE_MBPS);
        asked.rates.insert(asked.host, PortRates::new([(0, 100_000)]));
        assert_eq!(rate(&asked), 100_000);
        asked.rates.insert(far, PortRates::new([(0, 25_000)]));
        assert_eq!(rate(&asked), 25_000);
        // Each node says how fast its ports are, and those of the nodes between count, too.
        asked.rates = BTreeMap::from([(asked.host, PortRates::new([(1, 100_000), (200, 100_000)]))]);
        assert_eq!(rate(&asked), 100_000);
        let is_between = |host: &&Host| host.at.is_some_and(|at| at.xbar == path.hops[1].xbar);
        let between = table.basis().map().hosts.iter().find(is_between).unwrap().mac;
        asked.rates.insert(between, PortRates::new([(1, 1_000), (200, 1_000)]));
        assert_eq!(rate(&asked), 1_000);
    }
}
