//! What drops packets of IPv4 alone.

use super::*;

/// Whether a node's kernel sends packets to an address of another one.
fn is_sent(ring: &Ring, from: usize, to: IpAddr) -> bool {
    let key = RouteKey { table: Table::Main, to: IpPrefix::host(to) };
    ring.nodes[from].objects.routes.contains_key(&key)
}

/// A ring of nodes that go by destination, and all have the map.
fn plain_ring(count: usize) -> Ring {
    let mut ring = Ring::new(count, |_| PLAIN);
    ring.complete(&map(count, 2), &(0..count).collect::<Vec<_>>());
    ring
}

#[test]
fn where_a_kernel_on_the_way_drops_ipv4_alone_other_packets_go_on() {
    let mut ring = plain_ring(3);
    ring.drops_v4.insert(1);
    ring.wait(20);
    for (from, to) in ring.pairs().collect::<Vec<_>>() {
        let is_dropped = to == 1;
        assert_eq!(is_sent(&ring, from, v4(to)), !is_dropped, "IPv4 from {from} to {to}");
        assert!(is_sent(&ring, from, v6(to)), "IPv6 from {from} to {to}");
        let told = ring.nodes[from].kernel.status().v4_not_carried;
        assert_eq!(told.contains(&mac(to)), is_dropped, "{from} says that of {to}");
    }
    ring.drops_v4.clear();
    ring.wait(20);
    assert_eq!(ring.check_plain(), 3 * 2 * 2);
    assert!(ring.nodes.iter().all(|node| node.kernel.status().v4_not_carried.is_empty()));
}

#[test]
fn packets_of_ipv4_take_those_of_several_ways_along_which_they_get_through() {
    let mut ring = plain_ring(4);
    let first_hops = |ring: &Ring, to: IpAddr| {
        let flows = ring.flows(0, 2, to).into_iter();
        flows.map(|hops| hops.expect("it arrives")[0].port).collect::<BTreeSet<_>>()
    };
    assert_eq!([v4(2), v6(2)].map(|to| first_hops(&ring, to).len()), [2, 2], "both ways around the ring");
    ring.drops_v4.insert(1);
    ring.wait(20);
    assert_eq!(first_hops(&ring, v4(2)), BTreeSet::from([2]), "away from the node that drops them");
    assert_eq!(first_hops(&ring, v6(2)).len(), 2);
    assert_eq!(ring.nodes[0].kernel.status().v4_not_carried, [mac(1)]);
}

#[test]
fn a_host_that_answers_no_probes_of_ipv4_is_sent_ipv4_where_others_are_proved() {
    let mut ring = plain_ring(3);
    ring.nodes[1].kernel.set_v4_probes_from(ring.now, None);
    ring.drops_v4.insert(1);
    ring.wait(20);
    assert!(is_sent(&ring, 0, v4(1)), "nothing tells that it is dropped");
}

#[test]
fn an_address_of_ipv4_that_comes_later_is_tried_at_once() {
    let mut ring = plain_ring(3);
    let now = ring.now;
    for node in &mut ring.nodes {
        node.kernel.set_addresses(now, |of| (0..3).filter(|&n| mac(n) == of).map(v6).collect());
    }
    ring.wait(1);
    assert!(!is_sent(&ring, 0, v4(1)));
    let now = ring.now;
    for node in &mut ring.nodes {
        node.kernel
            .set_addresses(now, |of| (0..3).filter(|&n| mac(n) == of).flat_map(|n| [v4(n), v6(n)]).collect());
    }
    for _ in 0..2 {
        (0..3).for_each(|node| ring.run(node));
    }
    assert!(ring.pairs().all(|(from, to)| is_sent(&ring, from, v4(to))), "without waiting");
}

#[test]
fn packets_of_ipv4_take_a_new_way_to_a_host_whose_agent_is_silent_if_probes_turn_before_it() {
    let mut ring = Ring::new(3, |_| ABLE);
    ring.settle();
    assert!(is_sent(&ring, 0, v4(1)));
    // The agent of node 1 has crashed, and the cable to it looks dead. Nobody listens for the host, so its packets leave the cable.
    ring.nodes[1].addresses.clear();
    let dead = DeadCables::from(BTreeSet::from([PortRef { xbar: 0, port: 1 }]));
    let repaired = Arc::new(ring.nodes[0].table.repair(&dead).unwrap());
    ring.install(0, &repaired);
    ring.change(0);
    assert!(!is_sent(&ring, 0, v6(1)), "the way around the cable is not proved");
    ring.settle();
    assert!(is_sent(&ring, 0, v6(1)), "a probe turned before the host");
    assert!(is_sent(&ring, 0, v4(1)), "nobody can say whether those of IPv4 get through");
}

#[test]
fn an_address_in_none_of_the_own_networks_is_reached_by_the_tap_interface_until_the_kernels_carry_packets_there()
 {
    let address = |node: usize, prefix_bits: [u8; 2]| -> Vec<IpNetworkAddress> {
        let both = [v4(node), v6(node)].into_iter().zip(prefix_bits);
        both.map(|(ip, bits)| IpNetworkAddress::new(ip, bits).unwrap()).collect()
    };
    let mut ring = Ring::new(3, |node| if node == 2 { KernelAbilities::default() } else { ABLE });
    let route = |ring: &Ring, to: usize| {
        let key = RouteKey { table: Table::Main, to: IpPrefix::host(v4(to)) };
        ring.nodes[0].objects.routes.get(&key).cloned()
    };
    assert_eq!(route(&ring, 2), None, "the kernel has a route to the network by itself");
    let now = ring.now;
    ring.nodes[0].kernel.set_own_addresses(now, address(0, [32, 64]), address(0, [32, 64]));
    ring.wait(5);
    let by_tap = Route::Link { interface: TAP, source: Some(v4(0)), mtu: 0 };
    assert_eq!(route(&ring, 2), Some(by_tap.clone()));
    let status = ring.nodes[0].kernel.status();
    assert!(status.not_carried.iter().any(|(host, _)| *host == mac(2)), "that is no way through the kernels");
    assert!(matches!(route(&ring, 1), Some(Route::Group { .. })), "{:?}", route(&ring, 1));
    // Nothing of IPv4 gets through to the other one any more.
    ring.drops_v4.extend(0..3);
    ring.nodes[1].obeys_segments = false;
    ring.nodes[1].addresses.clear();
    ring.wait(20);
    assert_eq!(route(&ring, 1), Some(by_tap));
}
