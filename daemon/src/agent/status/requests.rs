//! Requests: what a program may ask an agent for beyond its board. A request is a line of JSON on a socket of
//! its own, since its answer is larger than a board, and is asked for less often.

use std::path::{Path, PathBuf};

use mapper_host::Host;
use mapper_host::routes::RouteTable;
use mapper_proto::Mac;
use mapper_proto::map::PortRef;
use serde::{Deserialize, Serialize};

use super::PathEnd;
use crate::hosts_file::block;

/// The socket on which a board takes requests. It is not named like a status socket, so that nobody who looks
/// for boards connects to it.
pub fn requests_socket_path(run_dir: &Path, unit: u8) -> PathBuf {
    run_dir.join(format!("{unit}.requests"))
}

/// What a program asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentRequest {
    /// The routes in force, answered with [`RoutesInForce`](super::RoutesInForce).
    Routes,
    /// The hosts of the map with their names and addresses, and the first route to each, answered with
    /// [`KnownPaths`](super::KnownPaths).
    Paths,
    /// The map that the agent holds, with all names that it knows, answered with
    /// [`MapJson`](mapper_formats::json::MapJson). At a port of InfiniBand, the map is the subnet as it is
    /// known now.
    Map,
    /// The last maps and what each changed, answered with [`History`](crate::agent::history::History).
    History,
    /// The map that came at a time of that history, answered as `mapper.map/1`, or with null if it is not kept.
    PastMap {
        /// The time, in milliseconds since the beginning of 1970.
        unix_ms: u64,
    },
    /// A notice that what [`Self::Paths`] tells has changed, answered with [`Change`](super::Change) as soon
    /// as its number differs from `seen`.
    Changed {
        /// The number of the change that is known; `None` to be told the number at once.
        seen: Option<u64>,
    },
    /// The hosts that have this name, MAC or address of IP, answered with [`Resolved`].
    Resolve(String),
    /// Who has this name or address, which may not be announced: all hosts are asked. Answered with
    /// [`WhoHas`](super::WhoHas) as soon as it is known.
    WhoHas {
        /// The name or address.
        wanted: String,
        /// How long hosts may take to answer before they are asked again, in milliseconds.
        timeout_ms: u32,
        /// How many more times they are asked.
        retries: u32,
    },
    /// Says which names and addresses this machine has beside those that agents announce, all of them. They
    /// count for a minute. It is answered with null.
    MoreNames(Vec<String>),
    /// The path from the agent's port of InfiniBand to this end, answered with [`PathTo`](super::PathTo) as
    /// soon as it is known. Agents that are not at a port of InfiniBand do not answer, as they tell all paths
    /// by [`Self::Paths`].
    PathTo(PathEnd),
    /// Where the ways to the host of this name or address break off, answered with [`Traced`](super::Traced).
    Trace {
        /// Its name or address.
        host: String,
        /// How long frames are on cables, in bytes behind the Ethernet header; 0 for as short as can be.
        #[serde(default)]
        frame_bytes: u16,
    },
    /// How long frames take along the ways to a host and back, answered with [`Pinged`](super::Pinged).
    Ping {
        /// Its name or address.
        host: String,
        /// How many frames go along each way.
        count: u16,
        /// The time from one to the next, in milliseconds.
        interval_ms: u32,
        /// How long frames are on cables, in bytes behind the Ethernet header; 0 for as short as can be.
        #[serde(default)]
        frame_bytes: u16,
    },
    /// What the ways to a host carry, answered with [`Bandwidths`](super::Bandwidths).
    Bandwidth {
        /// Its name or address.
        host: String,
        /// How many trains of packets go along each way.
        trains: u16,
        /// How many packets a train has.
        packets: u16,
    },
}

/// The most bytes of an answer to [`AgentRequest::Resolve`].
pub const MAX_RESOLVED_BYTES: usize = 1 << 20;
/// The most hosts in an answer, as many may have the same name.
const MOST_HOSTS: usize = 256;

/// The hosts that a name, a MAC or an address of IP stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Resolved {
    /// The hosts in the order of their addresses. It is empty if no host has this name or address.
    pub hosts: Vec<ResolvedHost>,
}

/// A host that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedHost {
    /// Its MAC.
    pub mac: String,
    /// What it is called, if it has said so.
    pub name: Option<String>,
    /// Its addresses of IP, as `10.1.0.1/24`.
    pub addresses: Vec<String>,
    /// Whether the map that is in force lists it.
    pub in_map: bool,
    /// The port that it is cabled to: `0x..:port`, or the number of an xbar without a tag in the map.
    pub place: Option<String>,
    /// The ports that frames from here to that host pass on one of its routes. There are none if it is this
    /// host itself, or no route leads there.
    pub via: Option<Vec<String>>,
}

impl Resolved {
    /// What this host knows of the name, MAC or address of IP `wanted`. A name may have `.fabric` behind it, as in
    /// a file of hosts' names.
    pub fn of(host: &Host, wanted: &str) -> Self {
        let directory = host.directory();
        let mut macs: Vec<Mac> = match (wanted.parse(), wanted.parse()) {
            (Ok(mac), _) => vec![mac],
            (_, Ok(ip)) => directory.host_with(ip).collect(),
            _ => directory.hosts_called(wanted).collect(),
        };
        let base = block::base(wanted);
        if macs.is_empty() && base != wanted {
            macs = directory.hosts_called(base).collect();
        }
        Self::of_hosts(host, macs)
    }

    /// What this host knows of the hosts with these addresses.
    pub fn of_hosts(host: &Host, macs: impl IntoIterator<Item = Mac>) -> Self {
        let known = macs.into_iter().take(MOST_HOSTS).filter_map(|mac| ResolvedHost::of(host, mac));
        Self { hosts: known.collect() }
    }
}

impl ResolvedHost {
    /// What is known of the host with this address; `None` if nothing is.
    fn of(host: &Host, mac: Mac) -> Option<Self> {
        let table = host.table();
        let in_map = mac == host.own() || table.is_some_and(|table| table.basis().lists(mac));
        let name = host.directory().name_of(mac).map(ToString::to_string);
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
        let addresses = host.directory().addresses_of(mac).iter().map(ToString::to_string).collect();
        Some(Self { mac: mac.to_string(), name, addresses, in_map, place, via })
    }
}

/// A port's name, as boards show it.
fn port_name(table: &RouteTable, PortRef { xbar, port }: PortRef) -> String {
    match table.tag(xbar) {
        Some(tag) => format!("{tag:#018x}:{port}"),
        None => format!("xbar{xbar}:{port}"),
    }
}
