//! Kernels that go by the destination, while maps change.

use super::*;
use crate::kernel_path::unlisted::UNLISTED_FOR;

#[test]
fn tables_by_destination_wait_until_all_hosts_have_the_map() {
    let mut ring = Ring::new(5, |_| PLAIN);
    assert_eq!(ring.check_plain(), 0);
    // The hosts have not all said that they have the map, so none counts as out of reach yet.
    let not_carried = ring.nodes[0].kernel.status().not_carried;
    assert!(not_carried.len() == 4 && not_carried.iter().all(|(_, why)| *why == NotCarried::BeingTried));
    let version = ring.nodes[0].table.version();
    for node in 0..5 {
        let now = ring.now;
        ring.nodes[node].kernel.network_complete(now, version);
    }
    ring.settle();
    assert_eq!(ring.check_plain(), 2 * 5 * 4);
    // Ways that the new map does not have go out of use before other hosts hear of it, and the other ways
    // stay.
    let table = table_of(&map_without(5, 0, 2), 0);
    ring.install(0, &table);
    ring.change(0);
    assert!(ring.flows(0, 1, v4(1)).is_empty(), "packets went by the cable that is not there any more");
    for to in [3, 4] {
        let way_round: Vec<PortRef> = (to + 1..=5).rev().map(|node| port(node % 5, 2)).collect();
        assert_eq!(ring.flows(0, to, v4(to))[0], Some(way_round), "packets to n{to} go on");
    }
    for node in 1..5 {
        ring.install(node, &table_of(&map_without(5, 0, 2), node));
        ring.change(node);
    }
    for node in 0..5 {
        let now = ring.now;
        ring.nodes[node].kernel.network_complete(now, table.version());
    }
    ring.settle();
    assert_eq!(ring.check_plain(), 2 * 5 * 4);
}

#[test]
fn nodes_with_segments_go_by_destination_as_long_as_a_node_has_none() {
    let mut ring = Ring::new(5, |node| if node == 2 { PLAIN } else { WITH_OTHERS });
    ring.complete(&map(5, 2), &[0, 1, 2, 3, 4]);
    assert_eq!(ring.check_plain(), 2 * 5 * 4);
    let by = |ring: &Ring, node: usize| {
        let KernelPathStatus { by_segments, by_destination, .. } = ring.nodes[node].kernel.status();
        (by_segments, by_destination, ring.nodes[node].kernel.forwards_by_destination())
    };
    let others = [0, 1, 3, 4];
    assert_eq!(others.map(|node| by(&ring, node)), [(0, 4, true); 4]);
    // It leaves, or gets another kernel. Its own kernel may go on for a while, and needs the others then.
    let begun = ring.now;
    for node in others {
        assert!(!ring.nodes[node].kernel.keep_company(begun, None));
    }
    ring.settle();
    assert_eq!(others.map(|node| by(&ring, node)), [(0, 4, true); 4]);
    // First they all say that they go their own ways, and then they do.
    ring.now = begun + UNLISTED_FOR;
    for node in others {
        ring.nodes[node].kernel.handle_timeout(begun + UNLISTED_FOR, |_| Heard::default());
    }
    assert_eq!(others.map(|node| by(&ring, node)), [(0, 4, false); 4]);
    others.into_iter().for_each(|node| ring.change(node));
    ring.now = begun + UNLISTED_FOR + Duration::from_secs(1);
    ring.wait(2);
    // Where a route leads through the node without segments, no kernel obeys it.
    for node in others {
        let (by_segments, by_destination, forwards) = by(&ring, node);
        assert!(by_segments >= 2 && (by_destination, forwards) == (0, false), "{node}: {by_segments}");
    }
    let alike = Ring::new(5, |_| WITH_OTHERS);
    assert_eq!((alike.check(), alike.nodes[0].kernel.goes_by_destination()), (2 * 5 * 4, false));
}

#[test]
fn a_run_that_follows_goes_on_by_destination_if_the_earlier_one_did() {
    let says_of = |abilities: [KernelAbilities; 2]| {
        let mut ring = Ring::new(3, |node| if node == 2 { abilities[1] } else { abilities[0] });
        ring.complete(&map(3, 2), &[0, 1, 2]);
        let left = ring.nodes[0].kernel.wanted();
        let mut starting = KernelPath::new(0, 0, TAP, 11);
        starting.set_left(ring.now, LeftRoutes::of(left.clone(), |_| None));
        starting.set_abilities(ring.now, abilities[0], Some(AGENT));
        starting.forwards_by_destination()
    };
    assert!(says_of([WITH_OTHERS, PLAIN]));
    let mut plain = Ring::new(3, |_| PLAIN);
    let left = LeftRoutes { by_destination: true, ..LeftRoutes::default() };
    plain.nodes[0].kernel.set_left(plain.now, left);
    plain.nodes[0].kernel.handle_timeout(plain.now + UNLISTED_FOR, |_| Heard::default());
    assert!(plain.nodes[0].kernel.forwards_by_destination(), "a kernel that does nothing else goes on");
    assert!(!says_of([WITH_OTHERS, WITH_OTHERS]), "it went by segments");
    assert!(!says_of([ABLE, ABLE]));
}

#[test]
fn who_cannot_go_by_destination_has_nobody_do_so_for_another_s_sake() {
    let goes = |map: &Map, who: [ByDestination; 3]| {
        needed_by(map, |of| (0..3).find(|&node| mac(node) == of).map_or(ByDestination::Never, |n| who[n]))
    };
    let (never, with_others, always) =
        (ByDestination::Never, ByDestination::WithOthers, ByDestination::Always);
    assert_eq!(goes(&map(3, 1), [with_others, always, with_others]), Some(mac(1)));
    assert_eq!(goes(&map(3, 1), [with_others; 3]), None, "nobody needs it");
    assert_eq!(
        goes(&map(3, 1), [never, always, with_others]),
        None,
        "a host without a crossbar that goes by segments, or one that is not known yet"
    );
    let mut with_xbar = map(4, 1);
    with_xbar.hosts.retain(|host| host.mac != mac(3));
    assert_eq!(goes(&with_xbar, [with_others, always, with_others]), None, "a crossbar that is no node's");
    // A host without a crossbar that does nothing else is no node.
    let with_leaf = with_leaf(map(2, 1), 1);
    let alone = always.told(false);
    assert_eq!(goes(&with_leaf, [with_others, with_others, alone]), Some(mac(2)));
    assert_eq!(goes(&with_leaf, [with_others, never, alone]), None);
    assert_eq!(goes(&with_leaf, [with_others, always, with_others.told(false)]), None, "it goes by segments");
    assert_eq!(
        goes(&map(3, 1), [with_others, with_others, alone]),
        None,
        "it is at a crossbar that is no node's"
    );
}

#[test]
fn packets_by_destination_are_as_long_as_the_narrowest_cable_behind_the_next_node_carries() {
    // Node 3 has shorter frames on its cables than the others.
    let less = vec![(mac(3), LinkMtu { bytes: 1400, ports: PortSet::from_iter([1, 2]) })];
    let map = Map { frame_sizes: FrameSizes { longest: 1500, less }, ..map(5, 2) };
    let mut ring = Ring::new(5, |_| PLAIN);
    ring.complete(&map, &[0, 1, 2, 3, 4]);
    assert_eq!(ring.check_plain(), 2 * 5 * 4);
    let objects = ring.nodes[1].kernel.wanted();
    let mtu = |to: usize| {
        let key = RouteKey { table: Table::Main, to: IpPrefix::host(v6(to)) };
        match objects.routes.get(&key) {
            Some(Route::Group { mtu, .. }) => *mtu,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([0, 2, 3, 4].map(mtu), [1500, 1500, 1400, 1500], "two nodes on is the narrow one");
}

#[test]
fn a_node_without_routes_that_fit_those_of_others_says_that_it_forwards_nothing_by_destination() {
    let mut ring = Ring::new(3, |_| PLAIN);
    let says = |ring: &Ring| ring.nodes[0].kernel.forwards_by_destination();
    let gateway =
        Nexthop::Gateway { interface: interface(1), gateway: mapper_fib::segments::NEIGHBOUR_V4.into() };
    let leads_on = |ring: &Ring| ring.nodes[0].kernel.leads_on(v4(1), &gateway);
    let mut starting = KernelPath::new(0, 0, TAP, 11);
    assert!(!starting.forwards_by_destination(), "nothing is known of the kernel");
    starting.set_abilities(Instant::ZERO, PLAIN, Some(AGENT));
    assert!(starting.forwards_by_destination() && starting.leads_on(v4(1), &gateway), "an earlier run may");
    assert!(says(&ring));
    ring.nodes[0].kernel.forget_routes();
    assert!(!says(&ring) && !leads_on(&ring), "another host has its address, say");
    ring.complete(&map(3, 2), &[0, 1, 2]);
    assert!(says(&ring) && leads_on(&ring));
    // No cable leads from its agent any more, and so it is alone.
    let alone = Host { at: None, ..map(3, 3).hosts[2] };
    let alone = Map { hosts: vec![alone], xbars: Vec::new(), cables: Vec::new(), ..map(3, 3) };
    ring.install(0, &table_of(&alone, 0));
    assert!(!says(&ring) && !leads_on(&ring));
    assert!(!Ring::new(3, |_| ABLE).nodes[0].kernel.forwards_by_destination(), "it goes by segments");
}

#[test]
fn what_passes_has_routes_of_its_own_that_lead_where_those_of_the_machine_lead() {
    let of_passing = |objects: &Objects| {
        let routes = objects.routes.iter().filter(|(key, _)| key.table == Table::Passing);
        routes.map(|(key, route)| (key.to, route.clone())).collect::<Vec<_>>()
    };
    let mut ring = Ring::new(4, |node| if node == 3 { WITH_OTHERS } else { PLAIN });
    let now = ring.now;
    ring.nodes[3].kernel.keep_company(now, Some(mac(0)));
    (0..4).for_each(|node| ring.show_ports(node));
    ring.complete(&map(4, 2), &[0, 1, 2, 3]);
    for node in &ring.nodes {
        let objects = node.kernel.wanted();
        let passing = of_passing(&objects);
        assert_eq!(passing.len(), 2 * 3, "of both versions: {passing:?}");
        for (to, route) in passing {
            let Route::Group { group, source: None, mtu } = route else { panic!("{route:?}") };
            let own = objects.routes.get(&RouteKey { table: Table::Main, to }).cloned();
            let Some(Route::Group { group: own, mtu: own_mtu, .. }) = own else { panic!("{own:?}") };
            let interfaces = |group: mapper_fib::GroupId| {
                let members = objects.groups[&group].iter();
                members.map(|id| objects.nexthops[id].interface()).collect::<Vec<_>>()
            };
            assert!(own != group && own_mtu == mtu && interfaces(own) == interfaces(group));
        }
        let rules = objects.rules.iter().filter(|rule| matches!(rule, Rule::Passing { .. }));
        assert_eq!(rules.count(), 2, "a rule for each port");
    }
    // By segments nobody else's packets are looked up where this machine's own are.
    for node in Ring::new(3, |_| ABLE).nodes {
        let objects = node.kernel.wanted();
        assert!(of_passing(&objects).is_empty());
        assert!(!objects.rules.iter().any(|rule| matches!(rule, Rule::Passing { .. })));
    }
}

pub(super) const fn port(node: usize, port: u8) -> PortRef {
    PortRef { xbar: node as u32, port }
}

/// The map of a ring without the cable from this node to the next one.
pub(super) fn map_without(count: usize, node: usize, counter: u32) -> Map {
    let mut map = map(count, counter);
    let without = Cable::new(port(node, 1), port((node + 1) % count, 2));
    map.cables.retain(|cable| *cable != without);
    map
}

impl Ring {
    /// Checks the same as [`Self::check`], but that packets keep to source routes.
    pub(super) fn check_plain(&self) -> usize {
        let all = self.pairs().flat_map(|(from, to)| [v4(to), v6(to)].map(|address| (from, to, address)));
        let flows = all.map(|(from, to, address)| self.flows(from, to, address));
        flows.filter(|flows| !flows.is_empty() && flows.iter().all(Option::is_some)).count()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whoever_has_which_map_and_knows_who_else_has_it_no_packet_by_destination_loops(
        count in 3..7usize,
        steps in proptest::collection::vec((0..7usize, proptest::option::weighted(0.2, 0..8usize)), 1..40),
        have_segments: [bool; 7],
    ) {
        let mut ring = Ring::new(count, |node| if have_segments[node] { WITH_OTHERS } else { PLAIN });
        let mut newest = map(count, 1);
        let mut held = vec![1; count];
        for (node, cut) in steps {
            if let Some(cut) = cut {
                let counter = newest.version.counter + 1;
                newest = if cut < count { map_without(count, cut, counter) } else { map(count, counter) };
            }
            let (node, counter) = (node % count, newest.version.counter);
            if held[node] != counter {
                held[node] = counter;
                ring.install(node, &table_of(&newest, node));
                ring.change(node);
            } else if held.iter().all(|&held| held == counter) {
                let now = ring.now;
                ring.nodes[node].kernel.network_complete(now, newest.version);
            }
            // `cross` asserts that no packet loops.
            ring.settle();
            ring.check_plain();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whoever_knows_that_others_need_it_no_packet_by_destination_meets_segments_that_are_not_its_own(
        count in 3..6usize,
        have_segments: [bool; 6],
        steps in proptest::collection::vec((0..6usize, any::<bool>(), 0..20u64), 1..20),
        has_leaf: bool,
    ) {
        let abilities = |host: usize| match (have_segments[host], host < count) {
            (false, _) => PLAIN,
            (true, true) => WITH_OTHERS,
            (true, false) => ABLE,
        };
        let mut ring = if has_leaf { Ring::with_leaf(count, 0, abilities) } else { Ring::new(count, abilities) };
        let hosts = ring.nodes.len();
        let version = ring.nodes[0].table.version();
        for node in &mut ring.nodes {
            node.kernel.network_complete(ring.now, version);
        }
        for (node, needed, seconds) in steps {
            let now = ring.now;
            ring.nodes[node % hosts].kernel.keep_company(now, needed.then(|| mac(0)));
            // Hellos tell it before time goes on.
            (0..hosts).for_each(|node| ring.show_ports(node));
            ring.settle();
            ring.check_plain();
            // The two steps of going one's own way fall between others' and before them.
            ring.now = ring.now + Duration::from_secs(4 * seconds);
            for _ in 0..2 {
                ring.settle();
                (0..hosts).for_each(|node| ring.show_ports(node));
                (0..hosts).for_each(|node| ring.change(node));
                ring.check_plain();
            }
        }
    }
}

#[test]
fn what_is_proved_stays_though_agents_end_one_by_one_where_that_is_wanted() {
    for abilities in [PLAIN, ABLE] {
        let mut ring = Ring::new(4, |_| abilities);
        let version = ring.nodes[0].table.version();
        for node in 0..4 {
            let now = ring.now;
            ring.nodes[node].kernel.hold_once_complete();
            ring.nodes[node].kernel.network_complete(now, version);
        }
        ring.settle();
        assert_eq!(ring.check_plain(), 2 * 4 * 3);
        // The agent of the last one ends: its cables look dead, then there is a map without it, and it answers no probe.
        let dead = DeadCables::from(BTreeSet::from([port(3, 1), port(3, 2)]));
        let mut without = map(4, 2);
        without.hosts.retain(|host| host.mac != mac(3));
        ring.nodes[3].addresses.clear();
        for node in 0..3 {
            let before = ring.nodes[node].kernel.wanted();
            let table = Arc::new(ring.nodes[node].table.repair(&dead).unwrap());
            ring.install(node, &table);
            ring.install(node, &table_of(&without, node));
            ring.change(node);
            ring.wait(10);
            assert_eq!(ring.nodes[node].kernel.wanted(), before);
        }
        // A later map with all of the hosts and others is still taken.
        for node in 0..3 {
            let table = table_of(&map(5, 3), node);
            ring.nodes[node].kernel.install(ring.now, &table, BTreeMap::new());
            assert_eq!(ring.nodes[node].kernel.version(), Some(table.version()));
        }
    }
}

#[test]
fn agents_that_end_are_needed_until_all_others_have_tried_their_ways_to_them() {
    for abilities in [PLAIN, ABLE] {
        let mut ring = Ring::new(4, |_| abilities);
        let version = ring.nodes[0].table.version();
        let needed = |ring: &Ring| ring.nodes.iter().map(|node| node.kernel.is_needed()).collect::<Vec<_>>();
        for node in 0..4 {
            assert!(!ring.nodes[node].kernel.is_needed(), "nobody ends");
            ring.nodes[node].kernel.hold_once_complete();
        }
        // The last one hears late that all hosts have the map.
        for node in 0..3 {
            let now = ring.now;
            ring.nodes[node].kernel.network_complete(now, version);
        }
        ring.wait(5);
        assert_eq!(needed(&ring), [true, true, true, false]);
        let now = ring.now;
        ring.nodes[3].kernel.network_complete(now, version);
        ring.settle();
        assert_eq!(needed(&ring), [false; 4]);
        assert_eq!(ring.check_plain(), 2 * 4 * 3);
    }
}

#[test]
fn who_has_ended_without_a_word_is_not_asked_for_ever() {
    let mut ring = Ring::new(3, |_| ABLE);
    let version = ring.nodes[0].table.version();
    ring.nodes[2].addresses.clear();
    for node in 0..2 {
        let now = ring.now;
        ring.nodes[node].kernel.hold_once_complete();
        ring.nodes[node].kernel.network_complete(now, version);
    }
    ring.wait(5);
    assert!(ring.nodes[0].kernel.is_needed(), "the driver waits no longer than that host may take");
    assert_eq!(ring.nodes[0].kernel.poll_timeout(), None);
}

#[test]
fn a_host_whose_agent_has_crashed_is_sent_packets_for_a_while_by_all_that_have_tables_to_it() {
    let mut ring = Ring::new(4, |_| PLAIN);
    let version = ring.nodes[0].table.version();
    for node in 0..4 {
        let now = ring.now;
        ring.nodes[node].kernel.network_complete(now, version);
    }
    ring.settle();
    // The route that a node's kernel has to node 1.
    let to_it = |ring: &Ring, node: usize| {
        let key = RouteKey { table: Table::Main, to: IpPrefix::host(v4(1)) };
        ring.nodes[node].kernel.wanted().routes.get(&key).cloned()
    };
    let before = to_it(&ring, 0);
    // One of its cables looks dead, then both do, and then there is a map without it.
    ring.nodes[1].addresses.clear();
    for cables in [&[port(0, 1)][..], &[port(0, 1), port(1, 1)]] {
        let dead = DeadCables::from(BTreeSet::from_iter(cables.iter().copied()));
        for node in [0, 2, 3] {
            let table = Arc::new(ring.nodes[node].table.repair(&dead).unwrap());
            ring.install(node, &table);
            ring.change(node);
        }
    }
    let mut without = map(4, 2);
    without.hosts.retain(|host| host.mac != mac(1));
    for node in [0, 2, 3] {
        ring.install(node, &table_of(&without, node));
        ring.change(node);
    }
    ring.nodes[1].addresses = vec![v4(1), v6(1)];
    let arrived = ring.travel(0, None, Packet::new(v4(1), Vec::new()), 0, Vec::new());
    assert_eq!(arrived.map(|(at, _)| at), Some(1), "the kernel of the node without an agent goes on");
    assert!(before.is_some() && to_it(&ring, 0) == before && to_it(&ring, 3).is_some());
    // If the cable to the node is moved, the table is of no use any more.
    let mut ports: Vec<KernelPort> = ring.nodes[0].kernel.ports.values().cloned().collect();
    (ports[0].cabled.neighbour, ports[0].tag) = (port_mac(2, 2), Some(tag(2)));
    let now = ring.now;
    ring.nodes[0].kernel.set_ports(now, ports);
    assert_eq!(to_it(&ring, 0), None);
    // The node is given up in the end, whatever happens.
    ring.now = ring.now + UNLISTED_FOR;
    ring.run(3);
    assert_eq!(to_it(&ring, 3), None);
}

impl Ring {
    /// Some agents crash and stay away. The others get this map without them, in which nobody needs to go by destination, and a while
    /// passes, until all that can send by segments do.
    pub(super) fn crash_for_good(&mut self, crashed: &[usize], without: &Map) {
        self.silent.extend(crashed);
        let left: Vec<usize> = (0..self.nodes.len()).filter(|host| !crashed.contains(host)).collect();
        for &host in &left {
            self.install(host, &table_of(without, host));
            let now = self.now;
            self.nodes[host].kernel.network_complete(now, without.version);
            self.nodes[host].kernel.keep_company(now, None);
        }
        for _ in 0..70 {
            self.now = self.now + Duration::from_secs(1);
            left.iter().for_each(|&host| self.run(host));
            left.iter().for_each(|&host| self.show_ports(host));
            left.iter().for_each(|&host| self.change(host));
        }
        assert!(left.iter().all(|&host| !self.nodes[host].kernel.goes_by_destination()));
    }

    /// Where the packets of a host arrive that are for another: of both versions of IP, and of several flows.
    pub(super) fn arrivals(&self, from: usize, to: usize) -> BTreeSet<Option<usize>> {
        let arrival = |(address, flow)| {
            let packet = Packet::new(address, Vec::new());
            self.travel(from, None, packet, flow, Vec::new()).map(|(at, _)| at)
        };
        [v4(to), v6(to)]
            .into_iter()
            .flat_map(|address| (0..4).map(move |flow| (address, flow)))
            .map(arrival)
            .collect()
    }
}

#[test]
fn what_a_crashed_daemon_s_kernel_sends_by_destination_arrives_where_it_belongs_when_others_go_by_segments_again()
 {
    // Beside the node that needs others to go by destination, one that goes along for its sake may crash, too.
    for crashed in [&[3][..], &[2, 3]] {
        let mut ring = Ring::new(5, |node| if node == 3 { PLAIN } else { WITH_OTHERS });
        (0..5).for_each(|host| ring.show_ports(host));
        ring.complete(&map(5, 2), &[0, 1, 2, 3, 4]);
        assert_eq!(ring.check_plain(), 2 * 5 * 4);
        let mut without = map(5, 3);
        for &node in crashed {
            without.hosts.retain(|host| host.mac != mac(node));
            without
                .cables
                .retain(|cable| [cable.a.xbar, cable.b.xbar].iter().all(|&xbar| xbar != node as u32));
        }
        ring.crash_for_good(crashed, &without);
        for &from in crashed {
            for to in (0..5).filter(|to| !crashed.contains(to)) {
                assert_eq!(
                    ring.arrivals(from, to),
                    [Some(to)].into(),
                    "from {from} to {to}, {crashed:?} crashed"
                );
            }
        }
    }
}

#[test]
fn a_silent_cable_is_left_by_destination_once_the_host_behind_it_is_heard_and_not_before() {
    let mut ring = Ring::new(4, |_| PLAIN);
    ring.complete(&map(4, 2), &[0, 1, 2, 3]);
    let leave_by = |ring: &Ring, to: usize| -> BTreeSet<u32> {
        let objects = ring.nodes[0].kernel.wanted();
        let key = RouteKey { table: Table::Main, to: IpPrefix::host(v4(to)) };
        let Some(Route::Group { group, .. }) = objects.routes.get(&key) else { return BTreeSet::new() };
        objects.groups[group].iter().map(|id| objects.nexthops[id].interface()).collect()
    };
    let (first, second) = (interface(1), interface(2));
    let before = [1, 2, 3].map(|to| leave_by(&ring, to));
    assert_eq!(before, [[first].into(), [first, second].into(), [second].into()]);
    let whole = Arc::clone(&ring.nodes[0].table);
    let hears = |ring: &mut Ring, heard: Heard| {
        ring.nodes[0].kernel.handle_timeout(ring.now, |_| heard);
        ring.change(0);
    };
    // The second time, nobody listens for the host, so that it would never be heard.
    for listens in [true, false] {
        let silent = DeadCables::from(BTreeSet::from([port(0, 1)]));
        let table = Arc::new(ring.nodes[0].table.repair(&silent).unwrap());
        let heard_before = ring.now;
        ring.now = ring.now + Duration::from_millis(1);
        ring.nodes[0].kernel.set_silent(silent.avoided.clone(), false);
        ring.install(0, &table);
        ring.change(0);
        let left = [[first].into(), [second].into(), [second].into()];
        assert_eq!([1, 2, 3].map(|to| leave_by(&ring, to)), left, "the agent of node 1 may have crashed");
        if listens {
            // Paths that are watched anew, as there is a new map, may not have been answered at all.
            for at in [None, Some(heard_before)] {
                hears(&mut ring, Heard { is_listened_for: true, at });
                assert_eq!(leave_by(&ring, 1), [first].into());
            }
            ring.now = ring.now + Duration::from_millis(1);
        }
        let at = listens.then_some(ring.now);
        hears(&mut ring, Heard { is_listened_for: listens, at });
        assert_eq!(leave_by(&ring, 1), BTreeSet::new(), "it is the cable that is dead");
        ring.install(0, &whole);
        ring.change(0);
        assert_eq!([1, 2, 3].map(|to| leave_by(&ring, to)), before);
    }
}

impl Ring {
    /// Puts a map into force at all these nodes, which then know that all have it.
    pub(super) fn complete(&mut self, map: &Map, nodes: &[usize]) {
        for &node in nodes {
            self.install(node, &table_of(map, node));
            self.change(node);
        }
        for &node in nodes {
            self.nodes[node].kernel.network_complete(self.now, map.version);
        }
        self.settle();
    }

    /// Which ports packets from these nodes leave by, and by which before.
    fn turns(&self, from: &[usize]) -> BTreeSet<(PortRef, PortRef)> {
        let flows = (0..self.nodes.len()).flat_map(|to| (0..4).map(move |flow| (to, flow)));
        let packets = from.iter().flat_map(|&from| flows.clone().map(move |(to, flow)| (from, to, flow)));
        let ways = packets.filter_map(|(from, to, flow)| {
            self.travel(from, None, Packet::new(v4(to), Vec::new()), flow, Vec::new())
        });
        ways.flat_map(|(_, hops)| hops.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>())
            .collect()
    }
}

/// Whether some of these turns lead round to where they began.
fn close_a_circle(mut turns: BTreeSet<(PortRef, PortRef)>) -> bool {
    loop {
        let waiting: BTreeSet<PortRef> = turns.iter().map(|&(first, _)| first).collect();
        let before = turns.len();
        turns.retain(|(_, next)| waiting.contains(next));
        if turns.len() == before {
            return before > 0;
        }
    }
}

#[test]
fn what_is_sent_to_a_host_that_is_gone_closes_no_circle_with_tables_of_the_new_map() {
    let mut sent_on = 0;
    for (count, cut, gone) in (4..7)
        .flat_map(|count| (0..count).flat_map(move |cut| (0..count).map(move |gone| (count, cut, gone))))
    {
        let mut ring = Ring::new(count, |_| PLAIN);
        let all: Vec<usize> = (0..count).collect();
        // Xbars stand in another order in the map of the whole ring.
        ring.complete(&map_without(count, cut, 2), &all);
        let others: Vec<usize> = all.into_iter().filter(|&node| node != gone).collect();
        let mut without = map(count, 3);
        without.hosts.retain(|host| host.mac != mac(gone));
        // Its agent ends, so nobody keeps its kernel in step, and it sends nothing itself.
        ring.silent.insert(gone);
        ring.complete(&without, &others);
        assert!(!close_a_circle(ring.turns(&others)), "{count} nodes, cable {cut}, {gone} is gone");
        let is_sent_to = |&&node: &&usize| ring.nodes[node].kernel.unlisted.contains_key(&mac(gone));
        sent_on += others.iter().filter(is_sent_to).count();
    }
    assert!(sent_on > 0);
}
