//! The routes in force, which an agent tells on request, as JSON.

mod by_destination;
mod by_segments;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use mapper_formats::json::{MapJson, NamesByAddress, map_to_json};
use mapper_formats::routes::ObjectDiffersJson;
use mapper_proto::Mac;
use mapper_proto::map::Map;
use serde::{Deserialize, Serialize};

use super::{MapVersionDto, Reason, naming_hosts};
use mapper_host::data::PathTraffic;
use mapper_host::kernel_path::CarriedRoute;
use mapper_host::routes::RouteTable;

pub use by_destination::ByDestination;
pub(crate) use by_segments::KernelAsked;
pub use by_segments::{BySegments, SegmentsDiffer};

/// The most bytes of an answer that a client reads, which is room for 10,000 hosts with eight routes each.
pub const MAX_ROUTES_BYTES: usize = 64 << 20;

/// The routes by which one agent sends, and how they are used, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutesInForce {
    /// The host whose routes these are.
    pub host: String,
    /// The version of the map that the routes belong to; `None` without a valid map.
    pub map_version: Option<MapVersionDto>,
    /// The map that the routes belong to, if the agent still holds it.
    pub map: Option<MapJson>,
    /// The routes, those of a destination together.
    pub routes: Vec<RouteInForce>,
    /// Hosts of the map that no route in force leads to, and why.
    pub without_route: Vec<Reason>,
    /// What these hosts are called, by address, as far as they have said so.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Hosts whose packets this kernel and those of the crossbars forward by the destination alone.
    pub by_destination: Vec<ByDestination>,
    /// By which segments this kernel sends, whether or not a route above has the same: as it was read back when they were
    /// asked for.
    #[serde(default)]
    pub by_segments: Vec<BySegments>,
    /// Where these are others than the kernel was told.
    #[serde(default)]
    pub segments_differ: Vec<SegmentsDiffer>,
    /// What else the kernel holds otherwise than it was told: by which it obeys others' segments, and has packets go by their
    /// destination.
    #[serde(default)]
    pub objects_differ: Vec<ObjectDiffersJson>,
    /// Why all this was not held against what the kernel was told, in words; `None` if they were, or there is no such kernel.
    #[serde(default)]
    pub segments_not_compared: Option<String>,
    /// On InfiniBand, the way to each host by the tables that this agent wrote; none if another manager did.
    #[serde(default)]
    pub by_lid: Vec<ByLid>,
}

/// A host of InfiniBand, and the way to it by the tables of switches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByLid {
    /// The host's address.
    pub to: String,
    /// What the host is called.
    pub name: String,
    /// Its LID.
    pub lid: u16,
    /// The service level of packets to it.
    pub layer: u8,
    /// The id of each xbar on the way (as in `mapper.map/1`), and the port to leave it by.
    pub hops: Vec<(String, u8)>,
    /// The same hops by names for people.
    pub hop_names: Vec<String>,
}

/// One route in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteInForce {
    /// The destination's address.
    pub to: String,
    /// What the destination is called.
    pub name: String,
    /// What the destination runs, by number.
    pub host_type: u8,
    /// The id of each xbar on the way (as in `mapper.map/1`), and the port to leave it by.
    pub hops: Vec<(String, u8)>,
    /// These hops by the names that boards have for ports: `0x..:port`, or the id of an xbar without a
    /// tag.
    pub via: Vec<String>,
    /// The hops by names for people. A crossbar with only one host, as that of a node, is called as its host;
    /// all others are called as in `via`.
    #[serde(default)]
    pub hop_names: Vec<String>,
    /// The layer that the route's frames travel in.
    pub layer: u8,
    /// The route elements as they stand in a frame, in hexadecimal digits.
    pub bytes: String,
    /// The segments of packets that the kernel was told to send by the route; none where it sends none.
    pub segments: Vec<String>,
    /// How many packets the kernel has sent by the route since it began to, as far as it counts: of the packets of a connection those
    /// whose route it looks up, about two a second.
    #[serde(default)]
    pub packets: u64,
    /// What the route is used for.
    #[serde(rename = "use")]
    pub used_for: RouteUse,
    /// How many users' frames went by the route since it came into force.
    pub frames: u64,
}

/// What a route is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouteUse {
    /// Users' frames went by it during the last second.
    Flows,
    /// The agent's own messages to its parent or a child go by it.
    Agent,
    /// Nothing goes by it at the moment.
    Spare,
    /// Nothing goes by it, since a cable on it was just found dead.
    CutOff,
}

/// All that is needed to tell the routes in force, gathered at one moment.
#[derive(Debug)]
pub struct RoutesAsked {
    /// The address of this host.
    pub host: Mac,
    /// The routes.
    pub table: Option<Arc<RouteTable>>,
    /// The map that the routes belong to, if the agent still holds it.
    pub map: Option<Arc<Map>>,
    /// The names that hosts have told.
    pub names: NamesByAddress,
    /// The agent's parent and children, to whom it sends messages of its own.
    pub neighbours: Vec<Mac>,
    /// The routes that the kernel sends packets along.
    pub carried: Vec<CarriedRoute>,
    /// The kernel, if it is used, which is read back when the answer is made.
    pub(crate) kernel: Option<KernelAsked>,
    /// How many users' frames went by each path, and when.
    pub uses: Vec<PathTraffic>,
}

impl RoutesAsked {
    /// Encodes [`RoutesInForce`] as JSON. It takes up to a second for a large map, and waits for the kernel.
    ///
    /// # Errors
    /// If something cannot be encoded.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&self.answer())
    }

    fn answer(&self) -> RoutesInForce {
        let mut answer = RoutesInForce {
            host: self.host.to_string(),
            map_version: None,
            map: None,
            routes: Vec::new(),
            without_route: Vec::new(),
            names: BTreeMap::new(),
            by_destination: Vec::new(),
            by_segments: Vec::new(),
            segments_differ: Vec::new(),
            objects_differ: Vec::new(),
            segments_not_compared: None,
            by_lid: Vec::new(),
        };
        let Some(table) = &self.table else { return answer };
        let Some(map) = self.map.as_ref().filter(|map| map.version == table.version()) else { return answer };
        answer.map_version = MapVersionDto::of(map.version);
        let json = map_to_json(map, &self.names);
        let ids: Vec<&str> = json.xbars.iter().map(|xbar| xbar.id.as_str()).collect();
        let called: Vec<String> = map
            .xbars
            .iter()
            .zip(&ids)
            .map(|(xbar, id)| xbar.tag.map_or_else(|| (*id).to_owned(), |tag| format!("{tag:#018x}")))
            .collect();
        let names = self.names_of_xbars(map, &called);
        let uses: BTreeMap<(Mac, &[u8]), &PathTraffic> =
            self.uses.iter().map(|path| ((path.to, path.route.as_bytes()), path)).collect();
        let types: BTreeMap<Mac, u8> = map.hosts.iter().map(|host| (host.mac, host.host_type)).collect();
        let carried: BTreeMap<(Mac, &[u8]), &CarriedRoute> =
            self.carried.iter().map(|it| ((it.to, it.route.as_bytes()), it)).collect();
        for (to, host) in table.hosts() {
            for (nth, path) in table.paths_to(host).enumerate() {
                let used = uses.get(&(to, path.way.there.as_bytes())).copied();
                let of_agent = nth == 0 && self.neighbours.contains(&to);
                let hop = |hop: &mapper_proto::map::PortRef| (hop.xbar as usize, hop.port);
                let hops: Vec<_> = path.hops.iter().map(hop).collect();
                let carried = carried.get(&(to, path.way.there.as_bytes()));
                answer.routes.push(RouteInForce {
                    to: to.to_string(),
                    name: self.names.of_host(to).map_or_else(|| to.to_string(), str::to_owned),
                    host_type: types.get(&to).copied().unwrap_or_default(),
                    hops: hops.iter().map(|&(xbar, port)| (ids[xbar].to_owned(), port)).collect(),
                    via: hops.iter().map(|&(xbar, port)| format!("{}:{port}", called[xbar])).collect(),
                    hop_names: hops.iter().map(|&(xbar, port)| format!("{}:{port}", names[xbar])).collect(),
                    layer: 0,
                    bytes: hex(path.way.there.as_bytes()),
                    segments: carried
                        .map_or_else(Vec::new, |it| it.segments.iter().map(ToString::to_string).collect()),
                    packets: carried.map_or(0, |it| it.packets),
                    used_for: RouteUse::of(used, of_agent),
                    frames: used.map_or(0, |used| used.frames),
                });
            }
        }
        answer.without_route = table
            .unreachable()
            .map(|(mac, why)| Reason { mac: mac.to_string(), why: why.to_string() })
            .collect();
        let named = table
            .unreachable()
            .filter_map(|(mac, _)| Some((mac.to_string(), self.names.of_host(mac)?.to_owned())));
        answer.names = named.collect();
        answer.by_destination = self.by_destination(table, map, &names);
        let kernel = by_segments::answer(self.kernel.as_ref(), &self.carried, &self.names);
        answer.by_segments = kernel.by_segments;
        answer.segments_differ = kernel.differ;
        answer.objects_differ = kernel.objects_differ;
        answer.segments_not_compared = kernel.not_compared;
        answer.map = Some(json);
        answer
    }

    /// What each crossbar is called: as the host whose node it is, or the only one there, if that has told its name, or else as in `called`.
    fn names_of_xbars(&self, map: &Map, called: &[String]) -> Vec<String> {
        let name = |(node, called): (Option<Mac>, &String)| {
            node.and_then(|mac| self.names.of_host(mac)).map_or_else(|| called.clone(), str::to_owned)
        };
        naming_hosts(map).into_iter().zip(called).map(name).collect()
    }
}

impl RouteUse {
    fn of(used: Option<&PathTraffic>, of_agent: bool) -> Self {
        match used {
            Some(PathTraffic { alive: false, .. }) => Self::CutOff,
            Some(PathTraffic { in_use: true, .. }) => Self::Flows,
            _ if of_agent => Self::Agent,
            _ => Self::Spare,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // To write to a string does not fail.
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mapper_fabric::generate;
    use mapper_proto::map::PortRef;

    use super::*;
    use mapper_host::routes::Basis;

    pub(super) fn asked(dead: &[PortRef]) -> RoutesAsked {
        let mut map = generate("ring:n=3,hosts=1").unwrap().map;
        map.version.counter = 1;
        map.xbars[1].tag = Some(0xfee);
        let (host, map) = (map.hosts[0].mac, Arc::new(map));
        let basis = Arc::new(Basis::new(Arc::clone(&map)).unwrap());
        let table = RouteTable::compute(&basis, host, &mapper_routing::RouteOptions::default()).unwrap();
        let table = table.repair(&BTreeSet::from_iter(dead.iter().copied()).into()).unwrap();
        RoutesAsked {
            host,
            table: Some(Arc::new(table)),
            map: Some(map),
            names: NamesByAddress::default(),
            neighbours: Vec::new(),
            carried: Vec::new(),
            kernel: None,
            uses: Vec::new(),
        }
    }

    #[test]
    fn every_route_is_told_with_its_hops_and_what_it_is_used_for() {
        let mut asked = asked(&[]);
        let answer = asked.answer();
        assert_eq!(answer.routes.len(), 2, "a ring of three has one shortest way to each");
        assert!(answer.routes.iter().all(|route| route.used_for == RouteUse::Spare && route.layer == 0));
        let first = &answer.routes[0];
        assert_eq!((first.hops[1].0.as_str(), first.hops.len()), ("x2", 2));
        assert_eq!(first.via[1], format!("0x0000000000000fee:{}", first.hops[1].1));
        assert_eq!(first.hop_names, first.via, "nobody has told a name");
        asked.neighbours = vec![first.to.parse().unwrap()];
        assert_eq!(asked.answer().routes[0].used_for, RouteUse::Agent);
        let to: Mac = first.to.parse().unwrap();
        let host = asked.table.as_ref().unwrap().host(to).unwrap();
        let route = asked.table.as_ref().unwrap().paths_to(host).next().unwrap().way.there;
        asked.uses = vec![PathTraffic { to, route, alive: true, in_use: true, frames: 5 }];
        let answer = asked.answer();
        assert_eq!((answer.routes[0].used_for, answer.routes[0].frames), (RouteUse::Flows, 5));
        asked.uses[0].alive = false;
        assert_eq!(asked.answer().routes[0].used_for, RouteUse::CutOff);
        let back: RoutesInForce = serde_json::from_slice(&asked.to_json().unwrap()).unwrap();
        assert_eq!(back, asked.answer());
    }

    #[test]
    fn a_host_that_no_route_leads_to_is_told_with_its_name() {
        let whole = asked(&[]);
        let map = whole.map.clone().unwrap();
        let lost = map.hosts[2];
        let at = lost.at.unwrap().xbar;
        let ends = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
        let mut cut_off = asked(&ends.filter(|end| end.xbar == at).collect::<Vec<_>>());
        assert_eq!(cut_off.answer().names, BTreeMap::new());
        cut_off.names = NamesByAddress::of_hosts([(lost.mac, "n3".to_owned())].into());
        let answer = cut_off.answer();
        assert_eq!(answer.without_route[0].mac, lost.mac.to_string());
        assert_eq!(answer.names, [(lost.mac.to_string(), "n3".to_owned())].into());
    }

    #[test]
    fn routes_around_a_dead_cable_are_those_that_are_told() {
        let whole = asked(&[]).answer();
        let (xbar, port) = (0, whole.routes[0].hops[0].1);
        let around = asked(&[PortRef { xbar, port }]).answer();
        assert!(around.routes.iter().all(|route| route.hops[0] != ("x1".to_owned(), port)));
        assert_eq!(around.routes[0].hops.len(), 3, "the other way round");
    }
}
