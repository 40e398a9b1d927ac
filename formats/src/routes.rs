//! Hosts' routes as files: `mapper.routes/1` JSON, one a host, and GM's `.routes`, one a fabric.
//!
//! Names are those of a [`Fabric`], which must hold the map that the routes were computed from.

mod read;

pub use read::{
    FaultKind, ListedDifference, ListedRoute, ListedRoutes, ListedSegments, RouteFault, RouteReader,
};

use std::fmt::Write as _;

use mapper_proto::Mac;
use mapper_proto::map::{Fabric, PortRef};
use mapper_proto::wire::Route;
use serde::{Deserialize, Serialize};

use super::json::VersionJson;
use mapper_routing::{HostRoutes, RoutingError, Topology, wire_route};

/// The name of the schema.
pub const SCHEMA: &str = "mapper.routes/1";

/// A host's routes as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutesJson {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The address of the host whose routes these are.
    pub host: String,
    /// The map that they were computed from.
    pub map_version: VersionJson,
    /// All routes; several entries a destination.
    pub routes: Vec<RouteJson>,
    /// What the kernel of the host's machine, a node, forwards by the destination alone; left out where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_destination: Vec<ByDestinationJson>,
    /// By which segments that kernel sends; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_segments: Vec<BySegmentsJson>,
    /// Where these are others than that kernel was told; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments_differ: Vec<SegmentsDifferJson>,
    /// What else that kernel holds otherwise than it was told; left out where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects_differ: Vec<ObjectDiffersJson>,
    /// Why all this was not held against what that kernel was told, in words; left out where they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_not_compared: Option<String>,
}

/// By which ports a kernel has packets to a host leave, and packets that pass it on their way there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByDestinationJson {
    /// The destination's address.
    pub to: String,
    /// The ports of the node's crossbar, by which ways are equally good.
    pub ports: Vec<u8>,
}

/// A list of segments (SRv6) by which a kernel sends its machine's packets to a host. A host may have several.
///
/// It is what was read back from the kernel when the agent was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BySegmentsJson {
    /// The destination's address.
    pub to: String,
    /// The port of the machine that packets leave by, which is 0 where an agent is alone.
    pub port: u8,
    /// The segments of packets of IPv4, the first one first. Those of IPv6 end with another element, and are listed where no
    /// packets of IPv4 are sent the same way.
    pub segments: Vec<String>,
}

/// Segments by which a kernel sends packets to a host though it was not told to, or does not though it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentsDifferJson {
    /// The destination's address.
    pub to: String,
    /// The port of the machine that packets leave by, or were to leave by.
    pub port: u8,
    /// The segments, the first one first.
    pub segments: Vec<String>,
    /// Whether the kernel holds them and was not told; if not, it was told and does not hold them.
    pub held: bool,
}

/// An object that a kernel holds otherwise than it was told, by which a crossbar obeys segments, or packets go by their
/// destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectDiffersJson {
    /// What people call it.
    pub object: String,
    /// How it differs.
    pub how: DifferenceJson,
}

/// How an object differs from what a kernel was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceJson {
    /// The kernel was told it and does not hold it.
    Missing,
    /// The kernel holds another one in its place.
    Other,
    /// The kernel was not told it and holds it.
    Extra,
}

/// One route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteJson {
    /// The destination's address.
    pub to: String,
    /// The layer that it travels in.
    pub layer: u8,
    /// The id of each xbar on the way (as in `mapper.map/1`), and the port to leave it by.
    pub hops: Vec<(String, u8)>,
    /// The route elements as they travel, in hexadecimal digits.
    pub bytes: String,
}

/// The name of a host's file in a directory of `mapper.routes/1`: `aa-bb-cc-dd-ee-ff.json`.
pub fn file_name(host: Mac) -> String {
    format!("{}.json", host.to_string().replace(':', "-"))
}

/// Whether a file in such a directory is a host's, by its name.
pub fn is_file_name(name: &str) -> bool {
    let mac = name.strip_suffix(".json").and_then(|mac| mac.replace('-', ":").parse().ok());
    mac.is_some_and(|mac| file_name(mac) == name)
}

/// A host's table as JSON.
///
/// # Errors
/// If a plain xbar would have to turn by more ports than a route element can say.
pub fn table_to_json(
    fabric: &Fabric,
    topology: &Topology,
    table: &HostRoutes,
) -> Result<RoutesJson, RoutingError> {
    let mut routes = Vec::new();
    for to in 0..topology.host_count() as u32 {
        for hops in table.routes_to(topology, to) {
            routes.push(RouteJson::new(fabric, topology, (table.from(), to), 0, &hops)?);
        }
    }
    Ok(RoutesJson::new(topology, table.from(), routes))
}

impl RoutesJson {
    /// The routes of a host.
    pub fn new(topology: &Topology, host: u32, routes: Vec<RouteJson>) -> Self {
        let version = topology.version();
        Self {
            schema: SCHEMA.to_owned(),
            host: topology.mac(host).to_string(),
            map_version: VersionJson { mac: version.mac.to_string(), counter: version.counter },
            routes,
            by_destination: Vec::new(),
            by_segments: Vec::new(),
            segments_differ: Vec::new(),
            objects_differ: Vec::new(),
            segments_not_compared: None,
        }
    }
}

impl RouteJson {
    /// A route between two hosts, given as the ports to leave by.
    ///
    /// # Errors
    /// As [`wire_route`].
    pub fn new(
        fabric: &Fabric,
        topology: &Topology,
        (from, to): (u32, u32),
        layer: u8,
        hops: &[PortRef],
    ) -> Result<Self, RoutingError> {
        let name = |hop: &PortRef| (fabric.xbars[hop.xbar as usize].name.clone(), hop.port);
        Ok(Self {
            to: topology.mac(to).to_string(),
            layer,
            hops: hops.iter().map(name).collect(),
            bytes: hex(&wire_route(topology, from, hops)?),
        })
    }
}

fn hex(route: &Route) -> String {
    route.as_bytes().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_fabric::generate;
    use mapper_routing::{Orientation, RouteOptions};

    fn tables(spec: &str) -> (Fabric, Topology, Vec<HostRoutes>) {
        let fabric = generate(spec).unwrap();
        let topology = Topology::from_map(&fabric.map).unwrap();
        let orientation = Orientation::new(&topology, false);
        let options = RouteOptions { passes: 2, ..RouteOptions::default() };
        let hosts = 0..topology.host_count() as u32;
        let tables =
            hosts.map(|host| HostRoutes::compute(&topology, &orientation, host, &options).unwrap()).collect();
        (fabric, topology, tables)
    }

    #[test]
    fn json_names_every_hop_and_reads_back() {
        let (fabric, topology, tables) = tables("ring:n=3,hosts=1");
        let json = table_to_json(&fabric, &topology, &tables[0]).unwrap();
        assert_eq!(json.schema, "mapper.routes/1");
        assert_eq!(json.host, topology.mac(0).to_string());
        assert_eq!(json.routes.len(), 2);
        for route in &json.routes {
            assert_eq!(route.hops.len(), 2);
            assert_eq!(route.hops[0].0, fabric.xbars[0].name);
            assert_eq!(route.bytes.len(), 4, "two elements of a byte each");
        }
        let text = serde_json::to_string(&json).unwrap();
        assert_eq!(serde_json::from_str::<RoutesJson>(&text).unwrap(), json);
        assert!(text.contains(r#""map_version":{"mac":"#), "{text}");
    }

    #[test]
    fn files_are_named_by_address() {
        let name = file_name(Mac::from_position(1));
        assert_eq!(name, "02-00-00-00-00-01.json");
        assert!(is_file_name(&name) && !is_file_name("twin.json") && !is_file_name("02-00-00-00-00-01"));
    }
}
