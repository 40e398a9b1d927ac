//! Requests: what a program may ask an agent for beyond its board. A request is a line of JSON on a socket of
//! its own, since its answer is larger than a board, and is asked for less often.

use std::path::{Path, PathBuf};

use mapper_host::Host;
use mapper_host::routes::RouteTable;
use mapper_proto::Mac;
use mapper_proto::map::PortRef;
use serde::{Deserialize, Serialize};

/// The socket on which a board takes requests. It is not named like a status socket, so that nobody who looks
/// for boards connects to it.
pub fn requests_socket_path(run_dir: &Path, unit: u8) -> PathBuf {
    run_dir.join(format!("{unit}.requests"))
}

/// What a program asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// The routes in force, answered with [`RoutesInForce`](super::RoutesInForce).
    Routes,
    /// The hosts that have this name or address, answered with [`Resolved`].
    Resolve(String),
}

/// The most bytes of an answer to [`Request::Resolve`].
pub const MAX_RESOLVED_BYTES: usize = 1 << 20;
/// The most hosts in an answer, as many may have the same name.
const MOST_HOSTS: usize = 256;

/// The hosts that a name or an address stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Resolved {
    /// The hosts in the order of their addresses. It is empty if no host has this name or address.
    pub hosts: Vec<ResolvedHost>,
}

/// A host that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedHost {
    /// Its address.
    pub mac: String,
    /// What it is called, if it has said so.
    pub name: Option<String>,
    /// Whether the map that is in force lists it.
    pub in_map: bool,
    /// The port that it is cabled to: `0x..:port`, or the number of an xbar without a tag in the map.
    pub place: Option<String>,
    /// The ports that frames from here to that host pass on one of its routes. There are none if it is this
    /// host itself, or no route leads there.
    pub via: Option<Vec<String>>,
}

impl Resolved {
    /// What this host knows of the name or address `wanted`.
    pub fn of(host: &Host, wanted: &str) -> Self {
        let mut macs: Vec<Mac> = match wanted.parse() {
            Ok(mac) => vec![mac],
            Err(_) => host.names().hosts_called(wanted).collect(),
        };
        macs.truncate(MOST_HOSTS);
        let hosts = macs.into_iter().filter_map(|mac| ResolvedHost::of(host, mac)).collect();
        Self { hosts }
    }
}

impl ResolvedHost {
    /// What is known of the host with this address; `None` if nothing is.
    fn of(host: &Host, mac: Mac) -> Option<Self> {
        let table = host.table();
        let in_map = mac == host.own() || table.is_some_and(|table| table.basis().lists(mac));
        let name = host.names().name_of(mac).map(ToString::to_string);
        if !in_map && name.is_none() {
            return None;
        }
        let listed = |table: &RouteTable| {
            table.basis().map().hosts.iter().find(|host| host.mac == mac).and_then(|host| host.at)
        };
        let place = table.and_then(|table| Some(port_name(table, listed(table)?)));
        let via = table.and_then(|table| {
            let path = table.paths_to(table.host(mac)?).next()?;
            Some(path.hops.iter().map(|&hop| port_name(table, hop)).collect())
        });
        Some(Self { mac: mac.to_string(), name, in_map, place, via })
    }
}

/// A port's name, as boards show it.
fn port_name(table: &RouteTable, PortRef { xbar, port }: PortRef) -> String {
    match table.tag(xbar) {
        Some(tag) => format!("{tag:#018x}:{port}"),
        None => format!("xbar{xbar}:{port}"),
    }
}
