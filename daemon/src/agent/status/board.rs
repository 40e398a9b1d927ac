//! The board: an agent of this machine, as `mapper.board-info/1` describes it.

use std::collections::BTreeMap;
use std::fmt;

use mapper_host::directory::Directory;
use mapper_host::healing::HealingCount;
use mapper_host::resolution::Refused;
use mapper_proto::agent::Status;
use mapper_proto::map::{Map, MapVersion};
use mapper_proto::wire::AgentState;
use mapper_proto::{Instant, Mac, Tally};
use serde::{Deserialize, Serialize};

use super::address_clash::AddressClash;
use super::counters::{Counters, FrameCount, MappingCounters};
use super::data_path::DataPath;
use super::healing::{DeadCable, LossyCable, Tap};
use super::host_types::HostsOfType;
use super::narrow_cables::NarrowCable;
use super::node_xbars::xbar_in_words;
use super::plan::PlanStanding;
use super::ports::BoardPort;
use super::subnet::SubnetStanding;
use crate::agent::metrics::{Causes, KnownFabric};
use crate::word::Word;
use crate::xbar::PortTraffic;
use crate::xbar::cable::CableStatus;
use mapper_fabric::wording::plural;

/// One agent of this machine, as `mapper.board-info/1` has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Board {
    /// Board number.
    pub unit: u8,
    /// The network interface, if the agent answered.
    pub interface: Option<String>,
    /// The interface's address, if the agent answered.
    pub mac: Option<String>,
    /// What this host is called, if it has a name to tell.
    pub name: Option<String>,
    /// What the hosts that this board names are called, by address, as far as they have said so.
    pub names: BTreeMap<String, String>,
    /// Level in the election.
    pub level: u8,
    /// What the host runs, by number.
    pub host_type: u8,
    /// Whether the interface exists, which may be deleted while the agent runs. That of a node is within its machine.
    pub interface_exists: bool,
    /// Whether the interface has carrier.
    pub carrier: bool,
    /// The interfaces by which a node is cabled to others; none for an agent alone.
    pub ports: Vec<BoardPort>,
    /// What is known of the cable of an agent alone; `None` for a node, whose ports have one each.
    pub cable: Option<CableStatus>,
    /// What went over the cable of an agent alone; `None` for a node, whose ports have one each.
    #[serde(default)]
    pub traffic: Option<PortTraffic>,
    /// Where the agent is in its life; `starting` if it did not answer.
    pub state: Word<AgentState>,
    /// Whether the agent holds a map and proved routes for it.
    pub configured: bool,
    /// Whether the agent is configured, and the global mapper says that all agents of its map are.
    pub network_configured: bool,
    /// The same, and nothing that this board shows is missing: no cable is dead, no host of the map is silent, and no cable that no map
    /// shows has ends whose frames are of different length.
    #[serde(default)]
    pub network_whole: bool,
    /// The global mapper's address, if known.
    pub leader: Option<String>,
    /// The address of the agent's parent in the tree, if it has one.
    pub parent: Option<String>,
    /// The addresses of the agent's children in the tree.
    pub children: Vec<String>,
    /// The version of the map that the agent holds; `None` without a valid map.
    pub map_version: Option<MapVersionDto>,
    /// How many hosts the map has.
    pub hosts: usize,
    /// What these hosts run, the most common type first; empty without a valid map.
    pub host_types: Vec<HostsOfType>,
    /// How many xbars the map has.
    pub xbars: usize,
    /// How many cables between xbars the map has.
    pub cables: usize,
    /// How many routes are in force; there are several to each destination.
    pub routes: usize,
    /// Listed hosts that do not answer or hold another map version, and why.
    pub unreachable: Vec<Reason>,
    /// Why the last map could not be routed; `None` if it could.
    pub routing_failure: Option<String>,
    /// Cables of the map that are known to be dead; routes lead around them.
    pub dead_cables: Vec<DeadCable>,
    /// Cables of the map that carry frames and lose many, as far as this host's paths in use cross them.
    #[serde(default)]
    pub lossy_cables: Vec<LossyCable>,
    /// How many cables of the map no host's route leads over, as they lose frames.
    #[serde(default)]
    pub left_out_cables: usize,
    /// Cables of the map that carry shorter frames than some host sends; at most 64.
    pub narrow_cables: Vec<NarrowCable>,
    /// Hosts that were seen since the start and that the last map lacks; at most 64 are named.
    pub gone_hosts: Vec<String>,
    /// Cables between xbars that were seen since the start and that the last map lacks, by both ends; at most
    /// 64 are named.
    pub gone_cables: Vec<[String; 2]>,
    /// For each of these cables the hosts whose nodes the xbars at its ends are; `None` for an xbar that is no node's. Empty in
    /// a subnet of InfiniBand, whose switches are no nodes.
    pub gone_cables_hosts: Vec<[Option<String>; 2]>,
    /// How the newest map differs from the plan of the wiring; `None` without a plan, or before the first comparison.
    pub plan: Option<PlanStanding>,
    /// What else keeps users' frames from passing on this machine, in words.
    pub warnings: Vec<String>,
    /// What users' packets go by; `None` for a host without an interface over the fabric.
    pub data_path: Option<DataPath>,
    /// The host's Ethernet interface over the fabric, if it has one.
    pub tap: Option<Tap>,
    /// The addresses of IP of this host that others are told, as `10.1.0.1/24`: those of that interface, and
    /// those that somebody gave the ports of a node.
    pub addresses: Vec<String>,
    /// The networks of IPv4 out of which this host is still to pick an address.
    pub picking: Vec<String>,
    /// Addresses that two or more hosts of the map have; at most 64.
    pub address_clashes: Vec<AddressClash>,
    /// The subnet of a port of InfiniBand; `None` for a board of Ethernet.
    pub subnet: Option<SubnetStanding>,
    /// Why the agent did not answer; `None` if it did. Nothing else is known of an agent that did not answer.
    pub no_answer: Option<String>,
    /// How much was sent, received and dropped.
    pub counters: Counters,
    /// How long the daemon has been running, in milliseconds.
    pub uptime_ms: u64,
}

/// The version of a map: the agent that made it, and the number that it gave the map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapVersionDto {
    /// The address of the global mapper that made the map.
    pub mac: String,
    /// The number of the map, which the mapper raises with each new one.
    pub counter: u32,
}

/// A host, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The host's address.
    pub mac: String,
    /// What is wrong, in words.
    pub why: String,
}

/// What the daemon knows beside the agent's own status.
#[derive(Debug, Clone)]
pub struct Surroundings<'a> {
    /// Board number.
    pub unit: u8,
    /// The network interface.
    pub interface: &'a str,
    /// What the host runs.
    pub host_type: u8,
    /// Whether the interface exists.
    pub interface_exists: bool,
    /// Whether the interface has carrier.
    pub carrier: bool,
    /// The ports of a node that lead out of the machine.
    pub ports: Vec<BoardPort>,
    /// What is known of the cable of an agent alone.
    pub cable: Option<CableStatus>,
    /// What went over that cable.
    pub traffic: Option<PortTraffic>,
    /// The names and addresses that hosts have told.
    pub directory: &'a Directory,
    /// Questions for names and addresses, and answers, that were not taken.
    pub resolution_refused: Tally<Refused>,
    /// How many routes are in force.
    pub routes: usize,
    /// Why the last map could not be routed.
    pub routing_failure: Option<&'a str>,
    /// Frames on the interface.
    pub frames: Tally<FrameCount>,
    /// How often maps were given up and made, counted by the cause.
    pub causes: &'a Causes,
    /// Cables of the map that are known to be dead.
    pub dead_cables: Vec<DeadCable>,
    /// Cables of the map that carry frames and lose many.
    pub lossy_cables: Vec<LossyCable>,
    /// How many cables of the map no host's route leads over.
    pub left_out_cables: usize,
    /// Cables of the newest map that carry shorter frames than some host sends.
    pub narrow_cables: Vec<NarrowCable>,
    /// The newest map.
    pub map: Option<&'a Map>,
    /// What all maps have shown since the start.
    pub known: &'a KnownFabric,
    /// What else keeps users' frames from passing, in words.
    pub warnings: Vec<String>,
    /// How often routes were changed before there was a new map.
    pub repairs: Tally<HealingCount>,
    /// Lines of the log that were lost.
    pub log_lines_lost: u64,
    /// What users' packets go by.
    pub data_path: Option<DataPath>,
    /// The host's Ethernet interface over the fabric.
    pub tap: Option<Tap>,
    /// The networks out of which this host is still to pick an address.
    pub picking: Vec<String>,
    /// Addresses that two or more hosts of the map have.
    pub address_clashes: Vec<AddressClash>,
    /// How the newest map differs from the plan.
    pub plan: Option<PlanStanding>,
    /// The time since the start of the daemon.
    pub now: Instant,
}

/// The most hosts, and the most cables, that are named as gone.
const MOST_GONE: usize = 64;

impl Board {
    /// The board of a running agent.
    pub fn new(status: &Status, around: Surroundings<'_>) -> Self {
        let name_of = |mac: Mac| Some(around.directory.name_of(mac)?.to_string());
        let gone = around.known.gone_cables().take(MOST_GONE);
        let gone = gone.map(|(ends, hosts)| (ends, hosts.map(|mac| mac.map(|mac| mac.to_string()))));
        let (gone_cables, gone_cables_hosts) = gone.unzip();
        let mut board = Self {
            unit: around.unit,
            name: name_of(status.rank.mac),
            names: BTreeMap::new(),
            interface: Some(around.interface.to_owned()),
            mac: Some(status.rank.mac.to_string()),
            level: status.rank.level,
            host_type: around.host_type,
            interface_exists: around.interface_exists,
            carrier: around.carrier,
            ports: around.ports,
            cable: around.cable,
            traffic: around.traffic,
            state: status.state.into(),
            configured: status.state == AgentState::Configured && around.carrier,
            network_configured: false,
            network_whole: false,
            leader: status.leader.map(|rank| rank.mac.to_string()),
            parent: status.parent.map(|mac| mac.to_string()),
            children: status.children.iter().map(ToString::to_string).collect(),
            map_version: MapVersionDto::of(status.version),
            hosts: status.hosts,
            host_types: around
                .map
                .filter(|map| map.version == status.version)
                .map(HostsOfType::of)
                .unwrap_or_default(),
            xbars: status.xbars,
            cables: status.cables,
            routes: around.routes,
            unreachable: status
                .unreachable
                .iter()
                .map(|host| Reason { mac: host.mac.to_string(), why: host.why.clone() })
                .collect(),
            routing_failure: around.routing_failure.map(str::to_owned),
            dead_cables: around.dead_cables,
            lossy_cables: around.lossy_cables,
            left_out_cables: around.left_out_cables,
            narrow_cables: around.narrow_cables,
            gone_hosts: around.known.gone_hosts().take(MOST_GONE).map(|mac| mac.to_string()).collect(),
            gone_cables,
            gone_cables_hosts,
            plan: around.plan,
            warnings: around.warnings,
            data_path: around.data_path,
            tap: around.tap,
            addresses: around
                .directory
                .addresses_of(status.rank.mac)
                .iter()
                .map(ToString::to_string)
                .collect(),
            picking: around.picking,
            address_clashes: around.address_clashes,
            subnet: None,
            no_answer: None,
            counters: Counters {
                frames: around.frames,
                sent: status.sent,
                dropped: status.dropped,
                directory_refused: *around.directory.refused(),
                resolution_refused: around.resolution_refused,
                mapping: status.mapping.map(MappingCounters::from),
                causes: around.causes.counters(),
                liveness: status.liveness,
                repairs: around.repairs,
                log_lines_lost: around.log_lines_lost,
            },
            uptime_ms: around.now.as_nanos() / 1_000_000,
        };
        let named = board.macs().filter_map(|mac| Some((mac.to_owned(), name_of(mac.parse().ok()?)?)));
        board.names = named.collect();
        // An isolated host is its own global mapper, and would say so of itself alone.
        board.network_configured = board.configured && status.network_complete;
        board.network_whole = board.has_whole_network();
        board
    }

    /// The addresses of all hosts that this board names.
    fn macs(&self) -> impl Iterator<Item = &str> {
        let unreachable = self.unreachable.iter().map(|host| &host.mac);
        let of_types = self.host_types.iter().flat_map(|of_type| &of_type.hosts);
        let one = [&self.mac, &self.leader, &self.parent].into_iter().flatten();
        let clashing = self.address_clashes.iter().flat_map(|clash| &clash.hosts);
        let narrow = self.narrow_cables.iter().flat_map(|cable| &cable.ends).map(|end| &end.host);
        let dead = self.dead_cables.iter().filter_map(|cable| cable.host.as_ref());
        let lossy = self.lossy_cables.iter().filter_map(|cable| cable.host.as_ref());
        let many = self.children.iter().chain(&self.gone_hosts).chain(unreachable).chain(of_types);
        let of_gone = self.gone_cables_hosts.iter().flatten().flatten();
        let many = many.chain(clashing).chain(narrow).chain(dead).chain(lossy).chain(of_gone);
        one.chain(many).map(String::as_str)
    }

    /// A host's name with its address, since two hosts may have the same name.
    pub fn called(&self, mac: &str) -> String {
        match self.names.get(mac) {
            // The name came from another machine, and may contain control sequences for a terminal.
            Some(name) => format!("{} ({mac})", name.escape_debug()),
            None => mac.to_owned(),
        }
    }

    /// The end by which a dead cable is named, in words.
    pub fn end_of_dead(&self, cable: &DeadCable) -> String {
        let DeadCable { xbar, tag, host, port, .. } = cable;
        let host_name = host.as_ref().and_then(|mac| self.names.get(mac));
        format!("port {port} of {}", xbar_in_words(*xbar, tag.as_deref(), host_name.map(String::as_str)))
    }

    /// The ends of the cables that are gone, in words: each with the host whose node it is, if it is one's.
    pub fn gone_cable_ends(&self) -> impl Iterator<Item = [String; 2]> {
        let hosts = self.gone_cables_hosts.iter().cloned().chain(std::iter::repeat([None, None]));
        self.gone_cables.iter().zip(hosts).map(|([a, b], [at_a, at_b])| {
            [(a, at_a), (b, at_b)].map(|(end, host)| match host {
                Some(mac) => format!("{end} of {}", self.called(&mac)),
                None => end.clone(),
            })
        })
    }

    /// Says in words which hosts and cables were seen since the start and are gone; `None` if there are none.
    pub fn gone(&self) -> Option<String> {
        let (hosts, cables) = (self.gone_hosts.len(), self.gone_cables.len());
        let (what, are) = match (hosts, cables) {
            (0, 0) => return None,
            (hosts, 0) => (plural(hosts, "host"), hosts > 1),
            (0, cables) => (plural(cables, "cable"), cables > 1),
            (hosts, cables) => (format!("{} and {}", plural(hosts, "host"), plural(cables, "cable")), true),
        };
        let ends = self.gone_cable_ends().map(|[a, b]| format!("{a} to {b}"));
        let hosts = self.gone_hosts.iter().map(|mac| self.called(mac));
        let names: Vec<_> = hosts.chain(ends).collect();
        let are = if are { "are" } else { "is" };
        Some(format!("{what} seen since the start {are} gone: {}", names.join(", ")))
    }

    /// The board of an agent that did not answer; `why` says so in words.
    pub fn silent(unit: u8, why: String) -> Self {
        Self { no_answer: Some(why), ..Self::blank(unit) }
    }

    /// A board that says nothing yet.
    pub(super) fn blank(unit: u8) -> Self {
        Self {
            unit,
            name: None,
            names: BTreeMap::new(),
            interface: None,
            mac: None,
            level: 0,
            host_type: 0,
            interface_exists: false,
            carrier: false,
            ports: Vec::new(),
            cable: None,
            traffic: None,
            state: AgentState::Starting.into(),
            configured: false,
            network_configured: false,
            network_whole: false,
            leader: None,
            parent: None,
            children: Vec::new(),
            map_version: None,
            hosts: 0,
            host_types: Vec::new(),
            xbars: 0,
            cables: 0,
            routes: 0,
            unreachable: Vec::new(),
            routing_failure: None,
            dead_cables: Vec::new(),
            lossy_cables: Vec::new(),
            left_out_cables: 0,
            narrow_cables: Vec::new(),
            gone_hosts: Vec::new(),
            gone_cables: Vec::new(),
            gone_cables_hosts: Vec::new(),
            plan: None,
            warnings: Vec::new(),
            data_path: None,
            tap: None,
            addresses: Vec::new(),
            picking: Vec::new(),
            address_clashes: Vec::new(),
            subnet: None,
            no_answer: None,
            counters: Counters::default(),
            uptime_ms: 0,
        }
    }
}

impl fmt::Display for MapVersionDto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.mac, self.counter)
    }
}

impl MapVersionDto {
    /// A version as boards show it; `None` for the version that stands for no map.
    pub(crate) fn of(version: MapVersion) -> Option<Self> {
        version.is_some().then(|| Self { mac: version.mac.to_string(), counter: version.counter })
    }
}
