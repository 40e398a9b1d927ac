//! Hosts that go by the destination and have no crossbar of their own: each is cabled to a node's, or to another such host.

use super::by_destination::{map_without, port};
use super::*;

/// The number of the host behind three nodes.
const LEAF: usize = 3;

/// Three nodes and a host that is cabled to node 1, all of which go by the destination and have one map.
fn three_nodes_and_a_leaf() -> Ring {
    let mut ring = Ring::with_leaf(3, 1, |_| PLAIN);
    ring.complete(&with_leaf(map(3, 2), 1), &[0, 1, 2, LEAF]);
    ring
}

/// The longest packet of a host's kernel to another host, in bytes; `None` if it has no route there.
pub(super) fn mtu(ring: &Ring, from: usize, to: usize) -> Option<u32> {
    let key = RouteKey { table: Table::Main, to: IpPrefix::host(v6(to)) };
    match ring.nodes[from].kernel.wanted().routes.get(&key) {
        Some(Route::Group { mtu, .. }) => Some(*mtu),
        _ => None,
    }
}

#[test]
fn a_host_without_a_crossbar_and_all_nodes_reach_each_other_once_all_have_the_map() {
    let mut ring = Ring::with_leaf(3, 1, |_| PLAIN);
    assert_eq!(ring.check_plain(), 0);
    ring.complete(&with_leaf(map(3, 2), 1), &[0, 1, 2, LEAF]);
    assert_eq!(ring.check_plain(), 2 * 4 * 3);
    let leaf = &ring.nodes[LEAF].kernel;
    let status = leaf.status();
    assert_eq!((status.by_segments, status.by_destination, status.not_carried), (0, 3, Vec::new()));
    let wanted = leaf.wanted();
    let by_cable =
        |it: &Nexthop| matches!(it, Nexthop::Gateway { interface: out, .. } if *out == interface(0));
    assert!(wanted.nexthops.values().all(by_cable) && wanted.rules.is_empty(), "{wanted:?}");
    assert!(!leaf.forwards_by_destination(), "it sends on nothing for others");
    assert_eq!(ring.flows(LEAF, 2, v4(2))[0], Some(vec![port(LEAF, 0), port(1, 1)]));
    assert_eq!(ring.flows(0, LEAF, v4(LEAF))[0], Some(vec![port(0, 1), port(1, TO_LEAF)]));
}

#[test]
fn what_leads_out_of_the_one_interface_stays_while_maps_change() {
    let mut ring = three_nodes_and_a_leaf();
    let before = ring.nodes[LEAF].kernel.wanted();
    let newer = with_leaf(map_without(3, 0, 3), 1);
    ring.install(LEAF, &table_of(&newer, LEAF));
    ring.change(LEAF);
    assert_eq!(ring.nodes[LEAF].kernel.wanted(), before);
    ring.complete(&newer, &[0, 1, 2, LEAF]);
    assert_eq!(ring.nodes[LEAF].kernel.wanted(), before);
    assert_eq!(ring.check_plain(), 2 * 4 * 3);
}

#[test]
fn a_kernel_without_segments_sends_nothing_to_a_crossbar_that_goes_by_nothing_else_and_says_whose() {
    let ring = Ring::with_leaf(3, 1, |node| if node == LEAF { PLAIN } else { ABLE });
    let why = NotCarried::NeighbourLacksRoutes(Behind { port: 0, who: mac(1) });
    let status = ring.nodes[LEAF].kernel.status();
    assert_eq!(status.not_carried, [0, 1, 2].map(|node| (mac(node), why)));
    assert_eq!(ring.check_plain(), 2 * 3 * 2, "the nodes reach each other by segments");
    let status = ring.nodes[1].kernel.status();
    let why = NotCarried::NeighbourLacksSegments(Behind { port: TO_LEAF, who: mac(LEAF) });
    assert_eq!(status.not_carried, [(mac(LEAF), why)], "the node at its cable says whose");
}

#[test]
fn the_kernel_that_lacks_something_is_called_by_its_node_also_where_a_host_is_cabled_to_it() {
    let ring = Ring::with_leaf(3, 1, |node| if node == 0 { PLAIN } else { ABLE });
    let status = ring.nodes[0].kernel.status();
    let of = |node: usize| status.not_carried.iter().find(|(it, _)| *it == mac(node)).map(|it| it.1);
    let lacks =
        |port: u8, node: usize| Some(NotCarried::NeighbourLacksRoutes(Behind { port, who: mac(node) }));
    assert_eq!([of(2), of(1)], [lacks(2, 2), lacks(1, 1)]);
}

#[test]
fn nodes_with_segments_go_by_destination_beside_a_host_without_a_crossbar_that_does_nothing_else() {
    let mut ring = Ring::with_leaf(3, 1, |host| if host == LEAF { PLAIN } else { WITH_OTHERS });
    (0..4).for_each(|host| ring.show_ports(host));
    ring.complete(&with_leaf(map(3, 2), 1), &[0, 1, 2, LEAF]);
    assert_eq!(ring.check_plain(), 2 * 4 * 3);
    let status = ring.nodes[0].kernel.status();
    assert_eq!((status.by_segments, status.by_destination, status.for_sake_of), (0, 3, Some(mac(LEAF))));
}

#[test]
fn nodes_that_go_by_destination_reach_a_host_that_sends_by_segments() {
    let mut ring = Ring::with_leaf(3, 1, |node| if node == LEAF { ABLE } else { PLAIN });
    ring.complete(&with_leaf(map(3, 2), 1), &[0, 1, 2, LEAF]);
    assert_eq!(ring.check_plain(), 2 * (3 * 2 + 3), "it takes what is for itself");
    let status = ring.nodes[LEAF].kernel.status();
    assert!(matches!(status.not_carried[0].1, NotCarried::NeighbourLacksSegments(_)), "{status:?}");
}

#[test]
fn packets_are_as_long_as_the_cables_of_both_hosts_and_all_between_carry() {
    let mut ring = Ring::with_leaf(3, 1, |_| PLAIN);
    let longest = |less| FrameSizes { longest: 1500, less };
    let narrow_leaf = longest(vec![(mac(LEAF), LinkMtu { bytes: 1400, ports: PortSet::NONE })]);
    ring.complete(&Map { frame_sizes: narrow_leaf, ..with_leaf(map(3, 2), 1) }, &[0, 1, 2, LEAF]);
    assert_eq!(ring.check_plain(), 2 * 4 * 3);
    assert_eq!([0, 1, 2].map(|from| mtu(&ring, from, LEAF)), [Some(1400); 3]);
    assert_eq!([0, 1, 2].map(|to| mtu(&ring, LEAF, to)), [Some(1400); 3]);
    assert_eq!(mtu(&ring, 0, 2), Some(1500));
    let narrow_node = longest(vec![(mac(0), LinkMtu { bytes: 1400, ports: PortSet::from_iter([1, 2]) })]);
    ring.complete(&Map { frame_sizes: narrow_node, ..with_leaf(map(3, 3), 1) }, &[0, 1, 2, LEAF]);
    assert_eq!([0, 1, 2].map(|to| mtu(&ring, LEAF, to)), [Some(1400), Some(1500), Some(1500)]);
    assert_eq!([0, 1, 2].map(|from| mtu(&ring, from, LEAF)), [Some(1400), Some(1500), Some(1500)]);
}

#[test]
fn a_cable_that_leads_elsewhere_than_in_the_map_is_not_used_at_either_end() {
    let mut ring = three_nodes_and_a_leaf();
    ring.leaf_at = Some(2);
    (0..4).for_each(|node| ring.show_ports(node));
    (0..4).for_each(|node| ring.change(node));
    ring.settle();
    assert_eq!([0, 1, 2].map(|to| mtu(&ring, LEAF, to)), [None; 3]);
    assert_eq!([mtu(&ring, 1, LEAF), mtu(&ring, 2, LEAF)], [None, Some(1500)], "node 2 has it by node 1");
    ring.complete(&with_leaf(map(3, 3), 2), &[0, 1, 2, LEAF]);
    assert_eq!(ring.check_plain(), 2 * 4 * 3);
    // Another host is at the port now.
    let mut ports: Vec<KernelPort> = ring.nodes[2].kernel.ports.values().cloned().collect();
    ports[2].host = Some(mac(9));
    let now = ring.now;
    ring.nodes[2].kernel.set_ports(now, ports);
    assert_eq!(mtu(&ring, 2, LEAF), None);
}

#[test]
fn segments_are_not_sent_along_a_cable_that_was_moved_as_they_would_lead_to_another_host() {
    let mut ring = Ring::with_leaf(3, 1, |_| ABLE);
    assert_eq!(ring.check_plain(), 2 * 4 * 3);
    ring.leaf_at = Some(2);
    (0..4).for_each(|node| ring.show_ports(node));
    (0..4).for_each(|node| ring.change(node));
    assert_eq!([0, 1, 2].map(|to| mtu(&ring, LEAF, to)), [None; 3]);
    assert_eq!(mtu(&ring, 1, LEAF), None, "no cable is there any more");
    ring.complete(&with_leaf(map(3, 2), 2), &[0, 1, 2, LEAF]);
    assert_eq!(ring.check_plain(), 2 * 4 * 3);
}

#[test]
fn packets_to_and_from_a_host_without_a_crossbar_go_on_for_a_while_when_an_agent_crashes() {
    // The agent of the host itself crashes.
    let mut ring = three_nodes_and_a_leaf();
    ring.complete(&map(3, 3), &[0, 1, 2]);
    assert_eq!([0, 1, 2].map(|from| mtu(&ring, from, LEAF)), [Some(1500); 3]);
    for from in 0..3 {
        let packet = Packet::new(v4(LEAF), Vec::new());
        let arrived = ring.travel(from, None, packet, 0, Vec::new());
        assert_eq!(arrived.map(|(at, _)| at), Some(LEAF), "its kernel goes on");
    }
    // The agent of a node crashes.
    let mut ring = three_nodes_and_a_leaf();
    let mut without = with_leaf(map(3, 3), 1);
    without.hosts.retain(|host| host.mac != mac(2));
    ring.complete(&without, &[0, 1, LEAF]);
    let arrived = ring.travel(LEAF, None, Packet::new(v4(2), Vec::new()), 0, Vec::new());
    assert_eq!(arrived.map(|(at, _)| at), Some(2), "so does that kernel");
    // The host is cabled to another node then.
    ring.leaf_at = Some(0);
    ring.set_ports(LEAF, &[]);
    assert_eq!(mtu(&ring, LEAF, 2), None);
    ring.leaf_at = Some(1);
    ring.show_ports(LEAF);
    assert_eq!(mtu(&ring, LEAF, 2), None, "it is given up");
}

#[test]
fn packets_to_a_host_whose_agent_is_back_go_on_while_the_map_that_lists_it_again_goes_round() {
    // Xbars and hosts may stand in another order in that map.
    for counter in 4..6 {
        let mut ring = three_nodes_and_a_leaf();
        let mut without = with_leaf(map(3, 3), 1);
        without.hosts.retain(|host| host.mac != mac(LEAF));
        ring.silent.insert(LEAF);
        ring.complete(&without, &[0, 1, 2]);
        let goes_on = |ring: &Ring, from: usize| {
            let flows = ring.flows(from, LEAF, v4(LEAF));
            !flows.is_empty() && flows.iter().all(Option::is_some)
        };
        for node in 0..3 {
            ring.install(node, &table_of(&with_leaf(map(3, counter), 1), node));
            ring.change(node);
            assert!((0..=node).all(|from| goes_on(&ring, from)), "the map is at {node}");
        }
    }
}

#[test]
fn packets_go_on_when_the_daemon_of_the_node_at_the_cable_has_crashed() {
    let mut ring = three_nodes_and_a_leaf();
    let alone = Host { mac: mac(LEAF), level: 1, host_type: host_type::ETHERNET, at: None };
    let mut alone = Map { hosts: vec![alone], ..Map::default() };
    alone.version.counter = 3;
    ring.install(LEAF, &table_of(&alone, LEAF));
    ring.change(LEAF);
    let arrived = [0, 1, 2].map(|to| {
        let packet = Packet::new(v4(to), Vec::new());
        ring.travel(LEAF, None, packet, 0, Vec::new()).map(|(at, _)| at)
    });
    assert_eq!(arrived, [0, 1, 2].map(Some));
}

#[test]
fn what_the_kernel_of_a_crashed_agent_sends_arrives_where_it_belongs_when_nodes_go_by_segments_again() {
    let mut ring = Ring::with_leaf(3, 1, |host| if host == LEAF { PLAIN } else { WITH_OTHERS });
    (0..4).for_each(|host| ring.show_ports(host));
    ring.complete(&with_leaf(map(3, 2), 1), &[0, 1, 2, LEAF]);
    assert_eq!(ring.check_plain(), 2 * 4 * 3);
    ring.crash_for_good(&[LEAF], &map(3, 3));
    for to in 0..3 {
        assert_eq!(ring.arrivals(LEAF, to), [Some(to)].into(), "to {to}");
    }
}

#[test]
fn what_an_earlier_run_left_goes_on_to_hosts_that_a_first_map_lacks() {
    let earlier = three_nodes_and_a_leaf();
    let left = earlier.nodes[LEAF].kernel.wanted();
    let host_with = |ip: Ipv6Addr| (0..4).find(|&host| v6(host) == IpAddr::V6(ip)).map(mac);
    let mut ring = Ring::with_leaf(3, 1, |_| PLAIN);
    ring.nodes[LEAF].kernel = starting_kernel(LEAF, PLAIN, None);
    ring.nodes[LEAF].kernel.set_left(ring.now, LeftRoutes::of(left.clone(), host_with));
    ring.show_ports(LEAF);
    // No other host answered in time, and so no crossbar did.
    let alone = Host { mac: mac(LEAF), level: 1, host_type: host_type::ETHERNET, at: None };
    ring.install(LEAF, &table_of(&Map { hosts: vec![alone], ..Map::default() }, LEAF));
    let leads_on = |ring: &Ring| {
        let leads = |to| left.nexthops.values().all(|it| ring.nodes[LEAF].kernel.leads_on(v4(to), it));
        [0, 1, 2].map(leads)
    };
    assert_eq!(leads_on(&ring), [true; 3]);
    // Another host has taken the crossbar's place, to which no packets for others are to go.
    let mut ports: Vec<KernelPort> = ring.nodes[LEAF].kernel.ports.values().cloned().collect();
    (ports[0].tag, ports[0].host) = (None, Some(mac(2)));
    let now = ring.now;
    ring.nodes[LEAF].kernel.set_ports(now, ports);
    assert_eq!(leads_on(&ring), [false, false, true]);
}

#[test]
fn two_hosts_that_are_cabled_to_each_other_need_no_crossbar() {
    let alone = |node| Host { mac: mac(node), level: 1, host_type: host_type::ETHERNET, at: None };
    let mut map = Map { hosts: vec![alone(1), alone(0)], ..Map::default() };
    let mut ring = Ring::of(&map, None, |_| PLAIN);
    assert_eq!(ring.check_plain(), 0);
    map.version.counter = 2;
    ring.complete(&map, &[0, 1]);
    assert_eq!(ring.check_plain(), 2 * 2);
    assert_eq!(mtu(&ring, 0, 1), Some(1500));
    let mut ports: Vec<KernelPort> = ring.nodes[0].kernel.ports.values().cloned().collect();
    ports[0].host = Some(mac(9));
    let now = ring.now;
    ring.nodes[0].kernel.set_ports(now, ports);
    assert_eq!(mtu(&ring, 0, 1), None, "another host is at the cable");
}

/// What happens next in a ring with a host without a crossbar.
#[derive(Debug, Clone)]
enum Happens {
    /// There is a map without the cable from this node to the next, if there is such a node.
    Cut(usize),
    /// The host is cabled to this node, and there is a map of that.
    Moved(usize),
    /// There is a map without the host.
    Unlisted,
    /// Hosts hear of what there is.
    Nothing,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        1 => (0..8usize).prop_map(Happens::Cut),
        1 => (0..7usize).prop_map(Happens::Moved),
        1 => Just(Happens::Unlisted),
        9 => Just(Happens::Nothing),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn wherever_the_host_is_cabled_and_whoever_has_which_map_no_packet_loops_or_ends_elsewhere(
        count in 3..6usize,
        steps in proptest::collection::vec((0..6usize, happens()), 1..40),
        have_segments: [bool; 6],
        moves_before_maps: bool,
    ) {
        let abilities = |host: usize| match (have_segments[host], host < count) {
            (false, _) => PLAIN,
            (true, true) => WITH_OTHERS,
            (true, false) => ABLE,
        };
        let mut ring = Ring::with_leaf(count, 0, abilities);
        let leaf = count;
        let (mut cut, mut listed, mut counter) = (count, true, 1);
        let mut held = vec![1; count + 1];
        for (host, happens) in steps {
            let at_before = ring.leaf_at.unwrap_or_default();
            match happens {
                Happens::Cut(node) => cut = node.min(count),
                Happens::Moved(node) => (ring.leaf_at, listed) = (Some(node % count), true),
                Happens::Unlisted => listed = false,
                Happens::Nothing => {}
            }
            counter += u32::from(!matches!(happens, Happens::Nothing));
            let at = ring.leaf_at.unwrap_or_default();
            if at != at_before && moves_before_maps {
                // Both ends hear of it at once, as the carrier is lost.
                (0..=count).for_each(|host| ring.show_ports(host));
                (0..=count).for_each(|host| ring.change(host));
                ring.check_plain();
            }
            let of_nodes = if cut < count { map_without(count, cut, counter) } else { map(count, counter) };
            let newest = if listed { with_leaf(of_nodes, at) } else { of_nodes };
            let host = host % (count + 1);
            if held[host] != counter && (listed || host != leaf) {
                held[host] = counter;
                ring.install(host, &table_of(&newest, host));
                ring.change(host);
            } else if held[..count].iter().all(|&held| held == counter) && (!listed || held[leaf] == counter) {
                let now = ring.now;
                ring.nodes[host].kernel.network_complete(now, newest.version);
            }
            // `leave` asserts that no packet loops, and `flows` that none ends elsewhere.
            ring.check_plain();
            (0..=count).for_each(|host| ring.show_ports(host));
            ring.settle();
            ring.check_plain();
        }
    }
}
