//! The model that these tests run on: nodes in a ring, whose kernels are the model of [`mapper_fib::model`].

use super::*;

/// The port of each node's crossbar to its agent.
pub(super) const AGENT: u8 = 3;

pub(super) struct Node {
    pub(super) kernel: KernelPath,
    /// What its kernel holds.
    pub(super) objects: Objects,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) table: Arc<RouteTable>,
    pub(super) obeys_segments: bool,
}

/// The port of a node to a host without a crossbar.
pub(super) const TO_LEAF: u8 = 4;

/// Nodes in a ring: port 1 of each leads to port 2 of the next. Behind them there may be a host without a crossbar. Without nodes
/// there are two such hosts, which are cabled to each other.
pub(super) struct Ring {
    pub(super) nodes: Vec<Node>,
    pub(super) now: Instant,
    pub(super) cut: BTreeSet<PortRef>,
    /// How many nodes there are. The host without a crossbar stands behind them.
    pub(super) size: usize,
    /// The node that the host without a crossbar is cabled to.
    pub(super) leaf_at: Option<usize>,
    /// The longest frame of each cable by what its ends say.
    pub(super) link_mtu: u32,
    /// Cables that carry shorter frames than their ends say, each with the longest that pass.
    pub(super) carries: BTreeMap<PortRef, u32>,
    /// The hosts whose agents have crashed, and whose kernels go on.
    pub(super) silent: BTreeSet<usize>,
    /// The nodes whose kernels drop packets of IPv4 without segments that come in.
    pub(super) drops_v4: BTreeSet<usize>,
}

pub(super) fn mac(node: usize) -> Mac {
    Mac::from_position(node as u32 + 1)
}

/// The tag of a node's crossbar.
pub(super) fn tag(node: usize) -> u64 {
    crossbar_tag::derive(b"", &[mac(node)])
}

/// The link address of a node's port.
pub(super) fn port_mac(node: usize, port: u8) -> Mac {
    Mac::from_position(1000 + 10 * node as u32 + u32::from(port))
}

pub(super) fn v4(node: usize) -> IpAddr {
    Ipv4Addr::new(10, 1, 0, node as u8 + 1).into()
}

/// The address of a node from which probes of IPv4 come.
pub(super) fn v4_of(node: usize) -> Option<Ipv4Addr> {
    match v4(node) {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}

pub(super) fn v6(node: usize) -> IpAddr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, node as u16 + 1).into()
}

pub(super) fn interface(port: u8) -> u32 {
    10 + u32::from(port)
}

pub(super) fn map(count: usize, counter: u32) -> Map {
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
pub(super) fn with_leaf(mut map: Map, at: usize) -> Map {
    let (leaf, at) = (mac(map.xbars.len()), PortRef { xbar: at as u32, port: TO_LEAF });
    map.xbars[at.xbar as usize].ports = TO_LEAF;
    map.hosts.insert(0, Host { mac: leaf, level: 1, host_type: host_type::ETHERNET, at: Some(at) });
    map
}

/// The number of every node's tap interface.
pub(super) const TAP: u32 = 99;

/// What Linux takes off the MTU of a route: 48 bytes, and 16 for each segment.
pub(super) const LEFT_UNUSED: LeftUnused =
    LeftUnused::new([64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304]);
pub(super) const ABLE: KernelAbilities = KernelAbilities {
    segments: true,
    compressed: true,
    by_destination: ByDestination::Never,
    left_unused: LEFT_UNUSED,
};
pub(super) const PLAIN: KernelAbilities = KernelAbilities {
    segments: false,
    compressed: false,
    by_destination: ByDestination::Always,
    left_unused: LEFT_UNUSED,
};
pub(super) const WITH_OTHERS: KernelAbilities =
    KernelAbilities { by_destination: ByDestination::WithOthers, ..ABLE };

/// The table of a node, with routes by destination.
pub(super) fn table_of(map: &Map, node: usize) -> Arc<RouteTable> {
    let basis = Arc::new(Basis::new(Arc::new(map.clone())).unwrap());
    let table =
        RouteTable::compute(&basis, mac(node), &RouteOptions { max_hops: 11, ..RouteOptions::default() });
    Arc::new(table.unwrap().with_next_hops().unwrap())
}

/// The kernel path of a node whose agent starts, or of a host without a crossbar.
pub(super) fn starting_kernel(node: usize, abilities: KernelAbilities, agent_port: Option<u8>) -> KernelPath {
    let mut kernel = KernelPath::new(node as u64, 0, TAP, 11);
    kernel.set_abilities(Instant::ZERO, abilities, agent_port);
    let address = |ip, prefix_bits| IpNetworkAddress::new(ip, prefix_bits).unwrap();
    let own = vec![address(v4(node), 24), address(v6(node), 64)];
    kernel.set_own_addresses(Instant::ZERO, own.clone(), own);
    kernel.set_v4_probes_from(Instant::ZERO, v4_of(node));
    kernel
}

impl Ring {
    pub(super) fn new(count: usize, abilities: impl Fn(usize) -> KernelAbilities) -> Self {
        Self::of(&map(count, 1), None, abilities)
    }

    /// A ring with a host without a crossbar, which is cabled to a node.
    pub(super) fn with_leaf(count: usize, at: usize, abilities: impl Fn(usize) -> KernelAbilities) -> Self {
        Self::of(&with_leaf(map(count, 1), at), Some(at), abilities)
    }

    pub(super) fn of(
        map: &Map,
        leaf_at: Option<usize>,
        abilities: impl Fn(usize) -> KernelAbilities,
    ) -> Self {
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
    pub(super) fn far(&self, node: usize, port: u8) -> Option<(usize, u8)> {
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
    pub(super) fn show_ports(&mut self, node: usize) {
        let ports = if node < self.size { &[1, 2, TO_LEAF][..] } else { &[0] };
        self.set_ports(node, ports);
    }

    pub(super) fn set_ports(&mut self, node: usize, ports: &[u8]) {
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

    pub(super) fn install(&mut self, node: usize, table: &Arc<RouteTable>) {
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
    pub(super) fn settle(&mut self) {
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
    pub(super) fn wait(&mut self, seconds: usize) {
        for _ in 0..seconds {
            self.now = self.now + Duration::from_secs(1);
            self.settle();
        }
    }

    pub(super) fn run(&mut self, node: usize) {
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
    pub(super) fn interface_of(&self, node: usize, towards: IpAddr) -> Option<u32> {
        let mut routes = self.nodes[node].objects.routes.iter();
        let (_, route) = routes.find(|(key, _)| key.table == Table::Main && key.to.contains(towards))?;
        match route {
            Route::Gateway { interface, .. } => Some(*interface),
            _ => None,
        }
    }

    /// The longest frame that passes the cable in a port, in bytes.
    pub(super) fn passes(&self, port: PortRef) -> u32 {
        let far = self.far(port.xbar as usize, port.port);
        let far = far.map(|(node, port)| PortRef { xbar: node as u32, port });
        let ends = [Some(port), far].into_iter().flatten();
        ends.filter_map(|end| self.carries.get(&end).copied()).min().unwrap_or(u32::MAX)
    }

    /// Has a node's kernel take what is to change, in order.
    pub(super) fn change(&mut self, node: usize) {
        let Node { kernel, objects, .. } = &mut self.nodes[node];
        kernel.take_changes().iter().for_each(|change| objects.apply(change));
        assert_eq!(*objects, kernel.wanted(), "the changes lead to what is wanted");
    }

    /// Sends a packet over the cable in a port. Returns the node where it is delivered, and the ports it left by.
    pub(super) fn cross(
        &self,
        node: usize,
        port: u8,
        packet: Packet,
        flow: usize,
    ) -> Option<(usize, Vec<PortRef>)> {
        self.leave(node, port, packet, flow, Vec::new())
    }

    pub(super) fn leave(
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

    pub(super) fn travel(
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
    pub(super) fn flows(&self, from: usize, to: usize, address: IpAddr) -> Vec<Option<Vec<PortRef>>> {
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

    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = self.nodes.len();
        (0..count * count).map(move |pair| (pair / count, pair % count)).filter(|(from, to)| from != to)
    }

    /// Checks that all flows between all nodes arrive, along routes of the table; returns how many pairs' do.
    pub(super) fn check(&self) -> usize {
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
