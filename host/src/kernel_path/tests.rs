//! Machines in a ring, whose kernels are the model of [`mapper_fib::model`].

mod by_destination;
mod held;
mod lengths;
mod losses;
mod proofs;
mod uses;
mod version4;
mod without_crossbar;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use mapper_fib::crossbar::CabledPort;
use mapper_fib::model::{Machine, Packet, Step};
use mapper_fib::probe::{DatagramEnds, HOP_LIMIT};
use mapper_fib::segments::{self, Element, LeftUnused, overhead_bytes};
use mapper_fib::{IpPrefix, Nexthop, Route, RouteKey, Rule, Table};
use mapper_proto::crossbar_tag;
use mapper_proto::map::{Cable, FrameSizes, Host, LinkMtu, Map, Xbar, host_type};
use mapper_routing::{DeadCables, RouteOptions};
use proptest::prelude::*;

use super::*;
use crate::routes::Basis;

/// The port of each node's crossbar to its agent.
const AGENT: u8 = 3;

struct Node {
    kernel: KernelPath,
    /// What its kernel holds.
    objects: Objects,
    addresses: Vec<IpAddr>,
    table: Arc<RouteTable>,
    obeys_segments: bool,
}

/// The port of a node to a host without a crossbar.
const TO_LEAF: u8 = 4;

/// Nodes in a ring: port 1 of each leads to port 2 of the next. Behind them there may be a host without a crossbar. Without nodes
/// there are two such hosts, which are cabled to each other.
struct Ring {
    nodes: Vec<Node>,
    now: Instant,
    cut: BTreeSet<PortRef>,
    /// How many nodes there are. The host without a crossbar stands behind them.
    size: usize,
    /// The node that the host without a crossbar is cabled to.
    leaf_at: Option<usize>,
    /// The longest frame of each cable by what its ends say.
    link_mtu: u32,
    /// Cables that carry shorter frames than their ends say, each with the longest that pass.
    carries: BTreeMap<PortRef, u32>,
    /// The hosts whose agents have crashed, and whose kernels go on.
    silent: BTreeSet<usize>,
    /// The nodes whose kernels drop packets of IPv4 without segments that come in.
    drops_v4: BTreeSet<usize>,
}

fn mac(node: usize) -> Mac {
    Mac::from_position(node as u32 + 1)
}

/// The tag of a node's crossbar.
fn tag(node: usize) -> u64 {
    crossbar_tag::derive(b"", &[mac(node)])
}

/// The link address of a node's port.
fn port_mac(node: usize, port: u8) -> Mac {
    Mac::from_position(1000 + 10 * node as u32 + u32::from(port))
}

fn v4(node: usize) -> IpAddr {
    Ipv4Addr::new(10, 1, 0, node as u8 + 1).into()
}

/// The address of a node from which probes of IPv4 come.
fn v4_of(node: usize) -> Option<Ipv4Addr> {
    match v4(node) {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}

fn v6(node: usize) -> IpAddr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, node as u16 + 1).into()
}

fn interface(port: u8) -> u32 {
    10 + u32::from(port)
}

fn map(count: usize, counter: u32) -> Map {
    let at = |xbar: usize, port| PortRef { xbar: xbar as u32, port };
    let mut map = Map {
        xbars: (0..count).map(|n| Xbar { ports: 3, tag: Some(tag(n)), ports_known: true }).collect(),
        hosts: (0..count)
            .rev()
            .map(|n| Host { mac: mac(n), level: 1, host_type: host_type::ETHERNET, at: Some(at(n, AGENT)) })
            .collect(),
        cables: (0..count).map(|n| Cable::new(at(n, 1), at((n + 1) % count, 2))).collect(),
        ..Map::default()
    };
    map.version.counter = counter;
    map.cables.sort_unstable();
    map
}

/// This map of a ring with a host without a crossbar, which is cabled to a node.
fn with_leaf(mut map: Map, at: usize) -> Map {
    let (leaf, at) = (mac(map.xbars.len()), PortRef { xbar: at as u32, port: TO_LEAF });
    map.xbars[at.xbar as usize].ports = TO_LEAF;
    map.hosts.insert(0, Host { mac: leaf, level: 1, host_type: host_type::ETHERNET, at: Some(at) });
    map
}

/// The number of every node's tap interface.
const TAP: u32 = 99;

/// What Linux takes off the MTU of a route: 48 bytes, and 16 for each segment.
const LEFT_UNUSED: LeftUnused =
    LeftUnused::new([64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304]);
const ABLE: KernelAbilities = KernelAbilities {
    segments: true,
    compressed: true,
    by_destination: ByDestination::Never,
    left_unused: LEFT_UNUSED,
};
const PLAIN: KernelAbilities = KernelAbilities {
    segments: false,
    compressed: false,
    by_destination: ByDestination::Always,
    left_unused: LEFT_UNUSED,
};
const WITH_OTHERS: KernelAbilities = KernelAbilities { by_destination: ByDestination::WithOthers, ..ABLE };

/// The table of a node, with routes by destination.
fn table_of(map: &Map, node: usize) -> Arc<RouteTable> {
    let basis = Arc::new(Basis::new(Arc::new(map.clone())).unwrap());
    let table =
        RouteTable::compute(&basis, mac(node), &RouteOptions { max_hops: 11, ..RouteOptions::default() });
    Arc::new(table.unwrap().with_next_hops().unwrap())
}

/// The kernel path of a node whose agent starts, or of a host without a crossbar.
fn starting_kernel(node: usize, abilities: KernelAbilities, agent_port: Option<u8>) -> KernelPath {
    let mut kernel = KernelPath::new(node as u64, 0, TAP, 11);
    kernel.set_abilities(Instant::ZERO, abilities, agent_port);
    let address = |ip, prefix_bits| IpNetworkAddress::new(ip, prefix_bits).unwrap();
    kernel.set_own_addresses(Instant::ZERO, vec![address(v4(node), 24), address(v6(node), 64)]);
    kernel.set_v4_probes_from(Instant::ZERO, v4_of(node));
    kernel
}

impl Ring {
    fn new(count: usize, abilities: impl Fn(usize) -> KernelAbilities) -> Self {
        Self::of(&map(count, 1), None, abilities)
    }

    /// A ring with a host without a crossbar, which is cabled to a node.
    fn with_leaf(count: usize, at: usize, abilities: impl Fn(usize) -> KernelAbilities) -> Self {
        Self::of(&with_leaf(map(count, 1), at), Some(at), abilities)
    }

    fn of(map: &Map, leaf_at: Option<usize>, abilities: impl Fn(usize) -> KernelAbilities) -> Self {
        let basis = Arc::new(Basis::new(Arc::new(map.clone())).unwrap());
        let (size, count) = (map.xbars.len(), map.hosts.len());
        let node = |n: usize| {
            let options = RouteOptions { max_hops: 11, ..RouteOptions::default() };
            let table = RouteTable::compute(&basis, mac(n), &options).unwrap().with_next_hops().unwrap();
            Node {
                kernel: starting_kernel(n, abilities(n), (n < size).then_some(AGENT)),
                objects: Objects::default(),
                addresses: vec![v4(n), v6(n)],
                table: Arc::new(table),
                obeys_segments: abilities(n).segments,
            }
        };
        let nodes = (0..count).map(node).collect();
        let mut ring = Self {
            nodes,
            now: Instant::ZERO,
            cut: BTreeSet::new(),
            size,
            leaf_at,
            link_mtu: 1500,
            carries: BTreeMap::new(),
            silent: BTreeSet::new(),
            drops_v4: BTreeSet::new(),
        };
        let whom = needed_by(map, |of| {
            let host = (0..count).find(|&host| mac(host) == of);
            host.map_or(ByDestination::Never, |host| abilities(host).by_destination.told(host < size))
        });
        for node in &mut ring.nodes {
            node.kernel.keep_company(Instant::ZERO, whom);
        }
        for n in 0..count {
            ring.show_ports(n);
            let table = Arc::clone(&ring.nodes[n].table);
            ring.install(n, &table);
        }
        // By then new ways are tried though nobody has said that all have the map.
        ring.now = ring.now + NEW_WAYS_WITHIN;
        ring.settle();
        ring
    }

    /// Where a port leads, if it has a cable.
    fn far(&self, node: usize, port: u8) -> Option<(usize, u8)> {
        let Self { size, leaf_at, .. } = *self;
        match port {
            0 if size == 0 => Some((1 - node, 0)),
            0 => leaf_at.map(|at| (at, TO_LEAF)),
            1 => Some(((node + 1) % size, 2)),
            2 => Some(((node + size - 1) % size, 1)),
            _ => (leaf_at == Some(node)).then_some((size, 0)),
        }
    }

    /// Shows a host all neighbours that it has.
    fn show_ports(&mut self, node: usize) {
        let ports = if node < self.size { &[1, 2, TO_LEAF][..] } else { &[0] };
        self.set_ports(node, ports);
    }

    fn set_ports(&mut self, node: usize, ports: &[u8]) {
        let port = |&port: &u8| {
            let (far, far_port) = self.far(node, port)?;
            let is_leaf = far >= self.size;
            let by_destination = self.nodes[far].kernel.goes_by_destination();
            // As a daemon takes it of the flags that the neighbour said last.
            let sends_segments = match (is_leaf, self.silent.contains(&far)) {
                (false, false) => self.nodes[far].obeys_segments,
                (false, true) => self.nodes[far].obeys_segments && !by_destination,
                (true, _) => !by_destination,
            };
            Some(KernelPort {
                cabled: CabledPort {
                    port,
                    interface: interface(port),
                    name: format!("e{port}"),
                    neighbour: port_mac(far, far_port),
                    neighbour_port: far_port,
                    sends_segments,
                },
                tag: (!is_leaf).then(|| tag(far)),
                host: is_leaf.then(|| mac(far)),
                mtu: self.link_mtu,
                by_segments: if is_leaf { !by_destination } else { self.nodes[far].obeys_segments },
                by_destination: is_leaf || self.nodes[far].kernel.forwards_by_destination(),
            })
        };
        let ports: Vec<_> = ports.iter().filter_map(port).collect();
        let now = self.now;
        self.nodes[node].kernel.set_ports(now, ports);
    }

    fn install(&mut self, node: usize, table: &Arc<RouteTable>) {
        let count = self.nodes.len();
        let kernel = &mut self.nodes[node].kernel;
        kernel.install(self.now, table, table.basis().map().narrow_ports());
        kernel.set_addresses(self.now, |of| {
            let known = (0..count).find(|&n| mac(n) == of);
            known.map_or_else(Vec::new, |n| vec![v4(n), v6(n)])
        });
        self.nodes[node].table = Arc::clone(table);
    }

    /// Lets time pass until no probe is due within a second.
    fn settle(&mut self) {
        let until = self.now + Duration::from_secs(1);
        loop {
            for node in 0..self.nodes.len() {
                self.run(node);
            }
            let running = self.nodes.iter().zip(0..).filter(|(_, node)| !self.silent.contains(node));
            let next = running.filter_map(|(node, _)| node.kernel.poll_timeout()).min();
            let Some(next) = next.filter(|&next| next <= until) else { return };
            self.now = next.max(self.now);
        }
    }

    /// Lets some seconds pass.
    fn wait(&mut self, seconds: usize) {
        for _ in 0..seconds {
            self.now = self.now + Duration::from_secs(1);
            self.settle();
        }
    }

    fn run(&mut self, node: usize) {
        if self.silent.contains(&node) {
            return;
        }
        let kernel = &mut self.nodes[node].kernel;
        kernel.handle_timeout(self.now, |_| Heard::default());
        self.change(node);
        while let Some(probe) = self.nodes[node].kernel.poll_probe() {
            let to: IpAddr = match probe.ends {
                DatagramEnds::V4 { destination, .. } => destination.into(),
                DatagramEnds::V6 { destination, .. } => destination.into(),
            };
            let packet = Packet::new(to, probe.segments.clone());
            let Some(interface) = self.interface_of(node, probe.towards) else { continue };
            let port = (interface - 10) as u8;
            let arrived = match probe.segments.is_empty() {
                // A probe by the destination leaves by the port that it names, whatever the own table says.
                true => self.cross(node, port, packet, 0),
                false => self.travel(node, None, packet, 0, Vec::new()),
            };
            let fits = |hops: &[PortRef]| {
                let outer = if probe.segments.is_empty() { 0 } else { overhead_bytes(probe.segments.len()) };
                hops.iter().all(|hop| self.passes(*hop) >= probe.inner_bytes as u32 + outer)
            };
            let arrived = arrived.filter(|(at, hops)| {
                let is_asked = probe.asked.is_none_or(|asked| asked == mac(*at));
                is_asked && self.nodes[*at].addresses.contains(&to) && fits(hops)
            });
            if let Some((at, _)) = arrived {
                if probe.is_last {
                    assert!(self.nodes[at].kernel.hear_farewell(mac(node)));
                }
                let answers_v4 = self.nodes[at].kernel.answers_v4();
                self.nodes[node].kernel.answered(self.now, probe.nonce, answers_v4);
                self.change(node);
            }
        }
    }

    /// The interface by which a probe leaves a node.
    fn interface_of(&self, node: usize, towards: IpAddr) -> Option<u32> {
        let mut routes = self.nodes[node].objects.routes.iter();
        let (_, route) = routes.find(|(key, _)| key.table == Table::Main && key.to.contains(towards))?;
        match route {
            Route::Gateway { interface, .. } => Some(*interface),
            _ => None,
        }
    }

    /// The longest frame that passes the cable in a port, in bytes.
    fn passes(&self, port: PortRef) -> u32 {
        let far = self.far(port.xbar as usize, port.port);
        let far = far.map(|(node, port)| PortRef { xbar: node as u32, port });
        let ends = [Some(port), far].into_iter().flatten();
        ends.filter_map(|end| self.carries.get(&end).copied()).min().unwrap_or(u32::MAX)
    }

    /// Has a node's kernel take what is to change, in order.
    fn change(&mut self, node: usize) {
        let Node { kernel, objects, .. } = &mut self.nodes[node];
        kernel.take_changes().iter().for_each(|change| objects.apply(change));
        assert_eq!(*objects, kernel.wanted(), "the changes lead to what is wanted");
    }

    /// Sends a packet over the cable in a port. Returns the node where it is delivered, and the ports it left by.
    fn cross(&self, node: usize, port: u8, packet: Packet, flow: usize) -> Option<(usize, Vec<PortRef>)> {
        self.leave(node, port, packet, flow, Vec::new())
    }

    fn leave(
        &self,
        node: usize,
        port: u8,
        packet: Packet,
        flow: usize,
        mut hops: Vec<PortRef>,
    ) -> Option<(usize, Vec<PortRef>)> {
        hops.push(PortRef { xbar: node as u32, port });
        // The first port of a probe that names it is not chosen by a kernel, which would take one off the hop limit.
        assert!(hops.len() <= usize::from(HOP_LIMIT), "a packet loops: {packet:?} {hops:?}");
        let (far, far_port) = self.far(node, port)?;
        let ends = [(node, port), (far, far_port)].map(|(n, port)| PortRef { xbar: n as u32, port });
        if ends.iter().any(|end| self.cut.contains(end)) {
            return None;
        }
        self.travel(far, Some(far_port), packet, flow, hops)
    }

    fn travel(
        &self,
        node: usize,
        arrival: Option<u8>,
        packet: Packet,
        flow: usize,
        hops: Vec<PortRef>,
    ) -> Option<(usize, Vec<PortRef>)> {
        let Node { objects, addresses, .. } = &self.nodes[node];
        let is_plain_v4 = packet.segments.is_empty() && packet.inner.is_ipv4();
        if is_plain_v4 && arrival.is_some() && self.drops_v4.contains(&node) {
            return None;
        }
        let arrival = arrival.map(|port| format!("e{port}"));
        match (Machine { objects, addresses }).step(arrival.as_deref(), packet, flow) {
            Step::Delivered { .. } => Some((node, hops)),
            Step::Dropped(_) => None,
            Step::Leaves { interface, to, packet } => {
                let port = (interface - 10) as u8;
                let (far, far_port) = self.far(node, port)?;
                if to != port_mac(far, far_port) {
                    assert!([node, far].contains(&self.size), "it is addressed to the neighbour");
                    // The cable was moved, and who is there now takes no frame that is addressed to another.
                    return None;
                }
                self.leave(node, port, packet, flow, hops)
            }
        }
    }

    /// The ports that packets from one node to another leave by, for all flows; `None` for those that are lost,
    /// and nothing if the kernel does not carry them.
    fn flows(&self, from: usize, to: usize, address: IpAddr) -> Vec<Option<Vec<PortRef>>> {
        let key = RouteKey { table: Table::Main, to: IpPrefix::host(address) };
        let is_carried = self.nodes[from].kernel.carried().any(|carried| carried == mac(to));
        if !is_carried || !self.nodes[from].objects.routes.contains_key(&key) {
            return Vec::new();
        }
        (0..4)
            .map(|flow| {
                let packet = Packet::new(address, Vec::new());
                let (at, hops) = self.travel(from, None, packet, flow, Vec::new())?;
                assert_eq!(at, to, "it is delivered where it belongs");
                Some(hops)
            })
            .collect()
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = self.nodes.len();
        (0..count * count).map(move |pair| (pair / count, pair % count)).filter(|(from, to)| from != to)
    }

    /// Checks that all flows between all nodes arrive, along routes of the table; returns how many pairs' do.
    fn check(&self) -> usize {
        let mut carried = 0;
        for (from, to) in self.pairs() {
            for address in [v4(to), v6(to)] {
                let flows = self.flows(from, to, address);
                carried += usize::from(!flows.is_empty());
                let table = &self.nodes[from].table;
                let routes: Vec<Vec<PortRef>> = table
                    .paths_to(table.host(mac(to)).unwrap())
                    .map(|path| path.hops[..path.hops.len() - 1].to_vec())
                    .collect();
                for hops in flows {
                    let hops = hops.expect("a packet that the kernel carries arrives");
                    assert!(routes.contains(&hops), "{hops:?} is no route of {routes:?}");
                }
            }
        }
        carried
    }
}

#[test]
fn all_hosts_are_reached_along_proved_routes_in_both_versions_of_ip() {
    for count in [2, 3, 5] {
        let ring = Ring::new(count, |_| ABLE);
        assert_eq!(ring.check(), 2 * count * (count - 1));
        assert_eq!(ring.nodes[0].kernel.status().not_carried, []);
    }
}

#[test]
fn packets_that_are_too_long_for_an_outer_header_leave_by_the_tap_interface() {
    let ring = Ring::new(3, |_| ABLE);
    let wanted = ring.nodes[0].kernel.wanted();
    assert_eq!(wanted.marked_above, Some(1460));
    // Only IPv6 has a rule for them: one of IPv4 would slow all packets down, also when it is gone again.
    assert!(wanted.rules.contains(&Rule::TooLong));
    for address in [v4(1), v6(1), v4(2), v6(2)] {
        let key = RouteKey { table: Table::TooLong, to: IpPrefix::host(address) };
        assert_eq!(wanted.routes.get(&key), Some(&Route::Link { interface: TAP, mtu: 1417 }));
    }
    // Full segments leave less room, so packets that are too long for the longest way are marked.
    let full = Ring::new(5, |_| KernelAbilities { compressed: false, ..ABLE });
    assert!(full.nodes[0].kernel.wanted().marked_above < Some(1460));
    // Where kernels go by the destination, packets have no outer header.
    let plain = Ring::new(3, |_| PLAIN);
    assert_eq!(plain.nodes[0].kernel.wanted().marked_above, None);
}

#[test]
fn packets_fill_the_cables_whatever_the_kernel_takes_off_the_mtu_of_routes() {
    for (compressed, left_unused) in
        [(true, LEFT_UNUSED), (false, LEFT_UNUSED), (true, LeftUnused::NOTHING), (false, LeftUnused::NOTHING)]
    {
        let ring = Ring::new(5, |_| KernelAbilities { compressed, left_unused, ..ABLE });
        let objects = ring.nodes[0].kernel.wanted();
        let groups = objects.routes.values().filter_map(|route| match route {
            Route::Group { group, mtu, .. } => Some((group, *mtu)),
            _ => None,
        });
        for (group, mtu) in groups {
            let frames = objects.groups[group].iter().map(|id| match &objects.nexthops[id] {
                Nexthop::Segments { segments, .. } => {
                    mtu - left_unused.bytes(segments.len()) + overhead_bytes(segments.len())
                }
                other => panic!("{other:?}"),
            });
            assert_eq!(frames.max(), Some(1500), "{compressed} {left_unused:?}");
        }
    }
}

#[test]
fn kernels_that_know_no_compressed_elements_get_full_ones() {
    // One kernel knows no compressed segments, so ways through it are tried with full ones.
    let ring = Ring::new(5, |node| KernelAbilities { compressed: node != 2, ..ABLE });
    assert_eq!(ring.check(), 2 * 5 * 4);
}

#[test]
fn a_host_whose_kernel_obeys_nothing_is_left_to_the_tap_and_the_others_are_not() {
    let ring = Ring::new(5, |node| if node == 2 { KernelAbilities::default() } else { ABLE });
    let carried = ring.check();
    assert!(carried > 0 && carried < 2 * 5 * 4);
    let status = ring.nodes[0].kernel.status();
    let why = status.not_carried.iter().find(|(host, _)| *host == mac(2)).unwrap().1;
    assert_eq!(why, NotCarried::NoAnswer);
    assert_eq!(ring.nodes[2].kernel.status().not_carried.len(), 4);
    assert_eq!(ring.nodes[2].kernel.wanted(), Objects::default());
}

#[test]
fn a_host_of_another_network_is_told_with_both_networks_where_nothing_comes_back() {
    let mut ring = Ring::new(5, |node| if node == 2 { KernelAbilities::default() } else { ABLE });
    let why_not = |ring: &Ring| {
        let status = ring.nodes[0].kernel.status();
        status.not_carried.iter().find(|(host, _)| *host == mac(2)).map(|(_, why)| *why)
    };
    let elsewhere: IpAddr = "fd99::3".parse().unwrap();
    let tell = |ring: &mut Ring, addresses: Vec<IpAddr>| {
        let now = ring.now;
        ring.nodes[0].kernel.set_addresses(now, |of| match (0..5).find(|&node| mac(node) == of) {
            Some(2) => addresses.clone(),
            node => node.into_iter().flat_map(|node| [v4(node), v6(node)]).collect(),
        });
        ring.wait(5);
    };
    tell(&mut ring, vec![v4(2), elsewhere]);
    let why = why_not(&ring).unwrap();
    assert!(matches!(why, NotCarried::OtherNetwork(_)), "{why:?}");
    let words = why.describe(|host| host.to_string());
    assert!(words.contains("of the network fd99::/64, and this host's of fd00::/64"), "{words}");
    assert!(words.contains("the same --fabric-prefix"), "{words}");
    tell(&mut ring, vec![v4(2), elsewhere, v6(2)]);
    assert_eq!(why_not(&ring), Some(NotCarried::NoAnswer));
}

#[test]
fn whose_kernel_has_no_segments_is_told_by_itself_and_by_its_neighbours() {
    let ring = Ring::new(3, |node| if node == 2 { PLAIN } else { ABLE });
    let why_not = |at: usize, to: usize| {
        let status = ring.nodes[at].kernel.status();
        status.not_carried.iter().find(|(host, _)| *host == mac(to)).map(|(_, why)| *why)
    };
    let behind = |port, node| Behind { port, who: mac(node) };
    assert_eq!(why_not(0, 1), None);
    assert_eq!(why_not(0, 2), Some(NotCarried::NeighbourLacksSegments(behind(2, 2))));
    assert_eq!(why_not(1, 2), Some(NotCarried::NeighbourLacksSegments(behind(1, 2))));
    assert_eq!(why_not(2, 0), Some(NotCarried::NeighbourLacksRoutes(behind(1, 0))));
    let words = why_not(2, 1).unwrap().describe(|host| format!("{host} indeed"));
    assert!(words.contains(&format!("the kernel of {} indeed, behind port 2,", mac(1))), "{words}");
    assert!(ring.nodes[2].kernel.has_tried_all());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn whatever_cables_are_cut_no_packet_of_the_kernels_loops_or_arrives_elsewhere(
        count in 3..7usize,
        cuts in proptest::collection::vec((0..7usize, any::<bool>()), 1..6),
    ) {
        let mut ring = Ring::new(count, |_| ABLE);
        for (node, knows) in cuts {
            let at = PortRef { xbar: (node % count) as u32, port: 1 };
            if !ring.cut.remove(&at) {
                ring.cut.insert(at);
            }
            let dead = DeadCables::from(ring.cut.clone());
            for node in 0..count {
                // Some know of the dead cables, and others do not yet.
                if knows || node % 2 == 0 {
                    let table = Arc::new(ring.nodes[node].table.repair(&dead).unwrap());
                    ring.install(node, &table);
                    ring.change(node);
                }
            }
            for (from, to) in ring.pairs() {
                ring.flows(from, to, v4(to));
            }
            ring.settle();
        }
    }
}

#[test]
fn a_way_by_destination_is_told_with_the_first_crossbar_that_has_others_as_near() {
    let mut map = map(4, 1);
    map.xbars[0].ports = 5;
    map.xbars.push(Xbar { ports: 3, tag: Some(5), ports_known: true });
    let at = |xbar, port| PortRef { xbar, port };
    map.hosts
        .insert(0, Host { mac: mac(4), level: 1, host_type: host_type::ETHERNET, at: Some(at(4, AGENT)) });
    map.cables.push(Cable::new(at(0, 4), at(4, 1)));
    map.cables.sort_unstable();
    let way = |node, first| {
        let table = table_of(&map, node);
        table.way_by_destination(first, table.host(mac(2)).unwrap())
    };
    let straight = way(0, at(0, 1));
    assert_eq!(
        (straight.hops.as_slice(), straight.forks_at),
        (&[at(0, 1), at(1, 1), at(2, AGENT)][..], None)
    );
    let forked = way(4, at(4, 1));
    assert_eq!((forked.hops.len(), forked.hops[1].xbar, forked.forks_at), (4, 0, Some(1)));
}
