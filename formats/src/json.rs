//! `mapper.map/1`: maps as JSON.

mod names;
mod read;
mod write;

use mapper_proto::map::host_type;
use serde::{Deserialize, Serialize};

pub use names::NamesByAddress;
pub(super) use read::parse;
pub(super) use write::write;
pub use write::{fabric_to_json, map_to_json};

/// The name of the schema.
pub const SCHEMA: &str = "mapper.map/1";

/// A map as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapJson {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Which map.
    #[serde(default)]
    pub version: VersionJson,
    /// The hosts.
    #[serde(default)]
    pub hosts: Vec<HostJson>,
    /// The xbars.
    #[serde(default)]
    pub xbars: Vec<XbarJson>,
    /// The cables between xbars.
    #[serde(default)]
    pub cables: Vec<CableJson>,
}

/// A map's version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionJson {
    /// The global mapper's address.
    pub mac: String,
    /// Its counter; 0 for no valid map.
    pub counter: u32,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostJson {
    /// Its address.
    pub mac: String,
    /// Its name; its address if nobody named it.
    #[serde(default)]
    pub name: Option<String>,
    /// Its level in the election.
    #[serde(default = "default_level")]
    pub level: u8,
    /// What it runs, by GM's numbers.
    #[serde(default = "default_host_type")]
    pub host_type: u8,
    /// The id of its xbar; null if it is cabled to the only other host, or to nothing.
    #[serde(default)]
    pub xbar: Option<String>,
    /// Its port there.
    #[serde(default)]
    pub port: Option<u8>,
    /// How fast its cable at the xbar is, such as `4xHDR`. Absent if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
    /// What a file said of it.
    #[serde(flatten)]
    pub label: HostLabelJson,
}

/// What a file said of a host. Absent if it said nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostLabelJson {
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    guid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port_guid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_guid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_port: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_ports: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lid: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lmc: Option<u8>,
    /// False for a host that has no cable, not even to the only other host.
    #[serde(skip_serializing_if = "Option::is_none")]
    cabled: Option<bool>,
}

/// An xbar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XbarJson {
    /// Its name, or `x1`, `x2`, and so on if nobody named it.
    pub id: String,
    /// How many ports it has.
    pub ports: u8,
    /// Its 64-bit identity as a hexadecimal number, null if it has none.
    #[serde(default)]
    pub tag: Option<String>,
    /// False while port numbers are known only up to an offset.
    #[serde(default = "default_ports_known")]
    pub ports_known: bool,
    /// What a file said of it. Absent if it said nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    guid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system_guid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lid: Option<u16>,
}

/// A cable between xbars: the id and the port at each end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CableJson {
    /// The end that the map names first.
    pub a: (String, u8),
    /// The end that is not `a`.
    pub b: (String, u8),
    /// How fast it is, such as `4xHDR`. Absent if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
}

const fn default_level() -> u8 {
    1
}

const fn default_host_type() -> u8 {
    host_type::ETHERNET
}

const fn default_ports_known() -> bool {
    true
}
