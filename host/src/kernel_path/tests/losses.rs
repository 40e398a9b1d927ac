//! Cables, kernels, neighbours and hosts get lost, and runs are followed by others.

use super::*;
use crate::kernel_path::left::UNPROVED_FOR;
use crate::kernel_path::unlisted::UNLISTED_FOR;

/// The host that the fabric gave an address of IPv6, in any ring of these tests.
fn host_with(ip: Ipv6Addr) -> Option<Mac> {
    (0..16).find(|&node| v6(node) == IpAddr::V6(ip)).map(mac)
}

#[test]
fn ways_over_a_dead_cable_are_left_at_once_and_taken_again_when_it_is_back() {
    let mut ring = Ring::new(5, |_| ABLE);
    let at = PortRef { xbar: 1, port: 1 };
    ring.cut = BTreeSet::from([at]);
    for node in 0..5 {
        let repaired = Arc::new(ring.nodes[node].table.repair(&DeadCables::from(ring.cut.clone())).unwrap());
        ring.install(node, &repaired);
        ring.change(node);
        // No time has passed and nothing was probed, and all flows avoid the cable already.
        for to in (0..5).filter(|&to| to != node) {
            assert!(ring.flows(node, to, v4(to)).iter().all(Option::is_some));
        }
    }
    ring.settle();
    let around = ring.check();
    ring.cut.clear();
    for node in 0..5 {
        let whole = Arc::new(ring.nodes[node].table.repair(&DeadCables::default()).unwrap());
        ring.install(node, &whole);
    }
    ring.settle();
    assert_eq!(ring.check(), 2 * 5 * 4);
    assert!(around > 0);
}

#[test]
fn a_kernel_that_stops_forwarding_is_found_by_probes() {
    let mut ring = Ring::new(3, |_| ABLE);
    ring.cut = BTreeSet::from([PortRef { xbar: 0, port: 1 }]);
    // No table goes around the cable: the agents' own frames pass it.
    ring.now = ring.now + Duration::from_secs(3);
    (0..6).for_each(|_| ring.settle());
    assert_eq!(ring.check(), 2 * 4, "the pair at its ends has no other way");
    ring.cut.clear();
    ring.now = ring.now + Duration::from_secs(40);
    ring.settle();
    assert_eq!(ring.check(), 2 * 6);
}

#[test]
fn a_port_that_lost_its_neighbour_takes_its_ways_along() {
    let mut ring = Ring::new(3, |_| ABLE);
    ring.set_ports(0, &[2]);
    ring.settle();
    let hops: Vec<_> = ring.flows(0, 1, v4(1)).into_iter().flatten().flatten().collect();
    assert!(hops.iter().all(|hop| *hop != PortRef { xbar: 0, port: 1 }));
    ring.set_ports(0, &[]);
    ring.settle();
    assert_eq!(ring.nodes[0].kernel.wanted(), Objects::default());
}

#[test]
fn a_port_whose_cable_was_moved_takes_its_ways_along_before_there_is_a_map_of_that() {
    let mut ring = Ring::new(4, |_| ABLE);
    let leave_by = |ring: &Ring, port: u8| {
        let nexthops = ring.nodes[0].kernel.wanted().nexthops;
        nexthops.values().filter(|nexthop| nexthop.interface() == interface(port)).count()
    };
    assert!(leave_by(&ring, 1) > 0 && leave_by(&ring, 2) > 0);
    let moved = |tag: Option<u64>, neighbour_port: u8| {
        let mut ports: Vec<_> = ring.nodes[0].kernel.ports.values().cloned().collect();
        (ports[0].tag, ports[0].cabled.neighbour_port) = (tag, neighbour_port);
        ports
    };
    // The cable leads to another crossbar, to another port of the same one, and to a host.
    for elsewhere in [moved(Some(3), 2), moved(Some(2), 1), moved(None, 0)] {
        let now = ring.now;
        ring.nodes[0].kernel.set_ports(now, elsewhere);
        assert_eq!(leave_by(&ring, 1), 0);
        assert!(leave_by(&ring, 2) > 0);
        ring.set_ports(0, &[1, 2]);
        ring.settle();
        assert!(leave_by(&ring, 1) > 0);
    }
}

#[test]
fn what_an_earlier_run_left_goes_on_only_along_routes_of_the_new_map_and_to_hosts_that_are_known() {
    let left = Ring::new(4, |_| ABLE).nodes[0].kernel.wanted();
    let leads_on = |kernel: &KernelPath| {
        let members = |to: IpAddr| {
            let key = RouteKey { table: Table::Main, to: IpPrefix::host(to) };
            let Some(Route::Group { group, .. }) = left.routes.get(&key) else { panic!("a route to {to}") };
            left.groups[group].iter().map(|id| &left.nexthops[id])
        };
        [1, 2, 3].map(|to| members(v6(to)).filter(|nexthop| kernel.leads_on(v6(to), nexthop)).count())
    };
    let mut ring = Ring::new(4, |_| ABLE);
    let all = leads_on(&ring.nodes[0].kernel);
    assert!(all.iter().all(|&count| count > 0));
    // A way to one host does not count as a way to another.
    let to_second = left.nexthops.values().find(|it| ring.nodes[0].kernel.leads_on(v6(1), it)).unwrap();
    assert!(!ring.nodes[0].kernel.leads_on(v6(3), to_second));
    ring.nodes[0]
        .kernel
        .set_addresses(Instant::ZERO, |of| if of == mac(1) { vec![v6(1)] } else { Vec::new() });
    assert_eq!(
        leads_on(&ring.nodes[0].kernel),
        [all[0], 0, 0],
        "nobody has told the addresses of the others"
    );
    // By the fabric's address of a host it is known whose all addresses were that the same run sent to by it.
    let of_left = LeftRoutes::of(left.clone(), |ip| host_with(ip).filter(|&of| of != mac(3)));
    let known = [1, 2].into_iter().flat_map(|node| [v4(node), v6(node)].map(|ip| (ip, mac(node))));
    assert_eq!(of_left.addresses, known.collect());
    ring.nodes[0].kernel.set_left(ring.now, of_left);
    assert_eq!(leads_on(&ring.nodes[0].kernel), [all[0], all[1], 0], "the second has told nothing yet");
    ring.nodes[0].kernel.target(&left);
    assert!(!ring.nodes[0].kernel.poll_read());
    ring.nodes[0]
        .kernel
        .set_addresses(Instant::ZERO, |of| if of == mac(2) { vec![v4(2)] } else { Vec::new() });
    assert_eq!(
        leads_on(&ring.nodes[0].kernel),
        [all[0], 0, 0],
        "it has told that its address is another now"
    );
    assert!(ring.nodes[0].kernel.poll_read(), "what was left is looked at anew");
    assert_eq!(leads_on(&KernelPath::new(0, 0, TAP, 11)), all, "there is no map yet");
    ring.nodes[0].kernel.forget_routes();
    assert_eq!(leads_on(&ring.nodes[0].kernel), [0; 3], "another host has this one's address, say");
}

#[test]
fn what_an_earlier_run_left_does_not_go_on_along_a_way_that_this_run_tried_in_vain() {
    for abilities in [ABLE, PLAIN] {
        let mut ring = Ring::new(3, |_| abilities);
        ring.complete(&map(3, 2), &[0, 1, 2]);
        let left = ring.nodes[0].kernel.wanted();
        let leads_on = |ring: &Ring, to: usize| {
            left.nexthops.values().filter(|nexthop| ring.nodes[0].kernel.leads_on(v6(to), nexthop)).count()
        };
        let before = leads_on(&ring, 1);
        assert!(before > 0);
        // The cable to the first carries agents' frames and no packets.
        ring.cut = BTreeSet::from([PortRef { xbar: 0, port: 1 }]);
        ring.now = ring.now + Duration::from_secs(3);
        (0..6).for_each(|_| ring.settle());
        assert_eq!(leads_on(&ring, 1), 0, "{abilities:?}");
        assert!(leads_on(&ring, 2) > 0);
        ring.cut.clear();
        ring.now = ring.now + Duration::from_secs(40);
        ring.settle();
        assert_eq!(leads_on(&ring, 1), before);
    }
}

/// Has time pass and loses all probes.
fn lose_probes_until(kernel: &mut KernelPath, until: Instant) {
    let mut last = None;
    while let Some(at) = kernel.poll_timeout().filter(|&at| at <= until) {
        assert!(last.replace(at).is_none_or(|last| at > last), "time passes");
        kernel.handle_timeout(at, |_| Heard::default());
        while kernel.poll_probe().is_some() {}
    }
}

#[test]
fn what_an_earlier_run_left_goes_on_without_a_proof_for_half_a_second_after_all_have_the_map() {
    const COUNT: usize = 11;
    for (abilities, tries) in [(ABLE, true), (ABLE, false), (PLAIN, true), (PLAIN, false)] {
        let map = map(COUNT, 2);
        let mut ring = Ring::new(COUNT, |_| abilities);
        ring.complete(&map, &Vec::from_iter(0..COUNT));
        let left = ring.nodes[0].kernel.wanted();
        ring.nodes[0].kernel = starting_kernel(0, abilities, Some(AGENT));
        ring.set_ports(0, &[1, 2]);
        ring.install(0, &table_of(&map, 0));
        let (began, kernel) = (ring.now, &mut ring.nodes[0].kernel);
        let of_left = LeftRoutes::of(left.clone(), host_with);
        let sent_to: BTreeSet<Mac> = of_left.addresses.values().copied().collect();
        kernel.set_left(ring.now, of_left);
        // How many hosts packets go on to.
        let go_on = |kernel: &KernelPath| {
            let leads = |to: &usize| left.nexthops.values().any(|it| kernel.leads_on(v6(*to), it));
            (1..COUNT).filter(leads).count()
        };
        // An agent that maps tries nothing, which holds up neither the one nor the other.
        kernel.set_settled(tries);
        let waited = if tries { Duration::from_millis(400) } else { Duration::from_secs(5) };
        let all_have_it = began + waited;
        lose_probes_until(kernel, all_have_it);
        assert_eq!(go_on(kernel), COUNT - 1, "not all are known to have the map");
        let used: BTreeSet<Mac> = kernel.used(all_have_it).collect();
        assert!(!used.is_empty() && used == sent_to, "nobody counts packets by what was left");
        assert!(kernel.may_carry() && !kernel.carries());
        kernel.network_complete(all_have_it, map.version);
        lose_probes_until(kernel, all_have_it + (UNPROVED_FOR - Duration::from_millis(1)));
        let waiting = go_on(kernel);
        kernel.target(&left);
        // The window lets a few ways be tried at once.
        assert!(
            waiting > 0 && (waiting < COUNT - 1) == tries,
            "{abilities:?}: {waiting} wait for their turn"
        );
        lose_probes_until(kernel, all_have_it + UNPROVED_FOR);
        assert_eq!(go_on(kernel), 0, "{abilities:?}");
        assert!(kernel.used(all_have_it + UNPROVED_FOR).next().is_none() && !kernel.may_carry());
        assert!(kernel.poll_read(), "so that it is looked at");
        kernel.network_complete(all_have_it + Duration::from_secs(1), map.version);
        assert_eq!(go_on(kernel), 0, "that was known");
    }
}

#[test]
fn the_kernel_is_to_hold_what_an_earlier_run_left_until_this_one_has_tried_all_its_ways() {
    for abilities in [ABLE, PLAIN] {
        let mut ring = Ring::new(4, |_| abilities);
        ring.complete(&map(4, 2), &[0, 1, 2, 3]);
        let left = ring.nodes[0].kernel.wanted();
        let of_left = LeftRoutes::of(left.clone(), host_with);
        let mut starting = starting_kernel(0, abilities, Some(AGENT));
        starting.numbers = Numbers::from(of_left.first_free_number());
        starting.set_left(ring.now, of_left);
        (ring.nodes[0].kernel, ring.nodes[0].objects) = (starting, Objects::default());
        assert!(ring.nodes[0].kernel.is_taking_over());
        assert_eq!(ring.nodes[0].kernel.target(&left).objects, left, "{abilities:?}: nothing is known yet");
        ring.set_ports(0, &[1, 2]);
        ring.install(0, &table_of(&map(4, 2), 0));
        let target = ring.nodes[0].kernel.target(&left);
        let main = |objects: &Objects| objects.routes.keys().filter(|key| key.table == Table::Main).count();
        assert!(target.clears_left && main(&target.objects) == main(&left), "{abilities:?}");
        ring.complete(&map(4, 2), &[0]);
        let kernel = &mut ring.nodes[0].kernel;
        assert!(!kernel.is_taking_over() && kernel.poll_read() && kernel.may_hold_left());
        let target = kernel.target(&left);
        assert!(target.clears_left && target.objects == kernel.wanted(), "{abilities:?}");
        assert!(!kernel.poll_read() && !kernel.may_hold_left());
        assert!(!kernel.target(&left).clears_left, "what is there now was put there by somebody else");
    }
}

#[test]
fn what_an_earlier_run_left_goes_on_for_good_along_ways_that_this_run_has_proved() {
    for abilities in [ABLE, PLAIN] {
        let mut ring = Ring::new(4, |_| abilities);
        ring.complete(&map(4, 2), &[0, 1, 2, 3]);
        let left = ring.nodes[0].kernel.wanted();
        let count = |ring: &Ring| {
            left.nexthops.values().filter(|it| ring.nodes[0].kernel.leads_on(v6(1), it)).count()
        };
        let before = count(&ring);
        ring.wait(2);
        assert!(before > 0 && count(&ring) == before);
        // Nexthops of routes of a new map get the whole time again.
        ring.complete(&map(4, 3), &[0, 1, 2, 3]);
        assert_eq!(count(&ring), before);
    }
}

#[test]
fn what_an_earlier_run_left_goes_on_to_a_host_that_a_first_map_lacks_if_the_map_ends_before_it() {
    for abilities in [ABLE, PLAIN] {
        let mut earlier = Ring::new(4, |_| abilities);
        earlier.complete(&map(4, 2), &[0, 1, 2, 3]);
        let left = earlier.nodes[0].kernel.wanted();
        let of_left = LeftRoutes::of(left.clone(), host_with);
        let mut ring = Ring::new(4, |_| abilities);
        let leads_on = |ring: &Ring, to: usize| {
            let key = RouteKey { table: Table::Main, to: IpPrefix::host(v4(to)) };
            let Some(Route::Group { group, .. }) = left.routes.get(&key) else { panic!("a route to n{to}") };
            let mut members = left.groups[group].iter().map(|id| &left.nexthops[id]);
            members.any(|nexthop| ring.nodes[0].kernel.leads_on(v4(to), nexthop))
        };
        // The others did not answer in time when this one looked for them.
        let mut alone = map(4, 2);
        alone.hosts.retain(|host| host.mac == mac(0));
        alone.xbars.truncate(1);
        alone.cables.clear();
        ring.nodes[0].kernel.set_left(ring.now, of_left);
        ring.nodes[0].kernel.install(Instant::ZERO, &table_of(&alone, 0), BTreeMap::new());
        assert!(ring.nodes[0].kernel.misses_left_hosts());
        assert_eq!([1, 2, 3].map(|to| leads_on(&ring, to)), [true; 3]);
        // Answers come back by the kernel of this one, whose neighbours ask whether it takes them.
        assert_eq!(ring.nodes[0].kernel.forwards_by_destination(), abilities == PLAIN);
        // Where the map has another host at the end of the way, packets would go to that one.
        let mut other = map(4, 3);
        let moved = other.hosts.iter_mut().find(|host| host.mac == mac(1)).unwrap();
        moved.mac = mac(7);
        ring.nodes[0].kernel.install(Instant::ZERO, &table_of(&other, 0), BTreeMap::new());
        assert!(!leads_on(&ring, 1));
    }
}

#[test]
fn ways_to_a_host_that_is_not_listed_end_with_the_cables_that_they_cross() {
    let mut ring = Ring::new(4, |_| ABLE);
    let options = RouteOptions { max_hops: 11, ..RouteOptions::default() };
    let table_of = |map: Map| {
        let basis = Arc::new(Basis::new(Arc::new(map)).unwrap());
        Arc::new(RouteTable::compute(&basis, mac(0), &options).unwrap())
    };
    let mut without = map(4, 2);
    without.hosts.retain(|host| host.mac != mac(2));
    let is_sent_to = |ring: &Ring| {
        let key = RouteKey { table: Table::Main, to: IpPrefix::host(v6(2)) };
        ring.nodes[0].kernel.wanted().routes.contains_key(&key)
    };
    ring.install(0, &table_of(without.clone()));
    assert!(is_sent_to(&ring), "its daemon may have crashed, and its kernel go on");
    // No cable leads to the node's crossbar any more.
    let is_its = |cable: &Cable| cable.a.xbar == 2 || cable.b.xbar == 2;
    without.version.counter += 1;
    without.cables.retain(|cable| !is_its(cable));
    without.cables.push(Cable::new(PortRef { xbar: 1, port: 1 }, PortRef { xbar: 3, port: 2 }));
    without.cables.sort();
    ring.install(0, &table_of(without));
    assert!(!is_sent_to(&ring));
}

#[test]
fn ways_out_of_a_crossbar_that_was_exchanged_end_with_the_cables_that_lead_elsewhere_now() {
    for (loops, goes_on) in [(false, true), (true, false)] {
        let mut ring = Ring::new(4, |_| ABLE);
        // The crossbar of this node has another tag, and no cable leads from it to others.
        let mut alone = map(1, 2);
        alone.xbars[0].tag = Some(100);
        alone.cables.clear();
        if loops {
            alone.cables.push(Cable::new(PortRef { xbar: 0, port: 1 }, PortRef { xbar: 0, port: 2 }));
        }
        ring.install(0, &table_of(&alone, 0));
        for node in 1..4 {
            let key = RouteKey { table: Table::Main, to: IpPrefix::host(v6(node)) };
            assert_eq!(ring.nodes[0].kernel.wanted().routes.contains_key(&key), goes_on, "{node}");
        }
    }
    // Where its cables lead to the same crossbars as before, nothing ends.
    let mut ring = Ring::new(4, |_| ABLE);
    let before = ring.nodes[0].kernel.wanted();
    let mut exchanged = map(4, 2);
    exchanged.xbars[0].tag = Some(100);
    exchanged.hosts.retain(|host| host.mac != mac(2));
    ring.install(0, &table_of(&exchanged, 0));
    assert_eq!(ring.nodes[0].kernel.wanted().routes, before.routes);
}

#[test]
fn a_way_that_was_set_aside_does_not_come_back_over_a_cable_that_was_moved_since() {
    for (moves, goes_on) in [(false, true), (true, false)] {
        let mut ring = Ring::new(4, |_| PLAIN);
        ring.complete(&map(4, 2), &[0, 1, 2, 3]);
        // The next node falls silent, so no cable seems to lead there.
        let dead = [PortRef { xbar: 0, port: 1 }, PortRef { xbar: 1, port: 1 }];
        let repaired = Arc::new(ring.nodes[0].table.repair(&DeadCables::from(BTreeSet::from(dead))).unwrap());
        ring.install(0, &repaired);
        let mut ports: Vec<_> = ring.nodes[0].kernel.ports.values().cloned().collect();
        let is_to_it = |port: &&mut KernelPort| port.cabled.port == 1;
        let to_it = ports.iter_mut().find(is_to_it).unwrap();
        to_it.by_destination = false;
        if moves {
            (to_it.tag, to_it.cabled.neighbour_port) = (Some(3), 1);
        }
        let now = ring.now;
        ring.nodes[0].kernel.set_ports(now, ports);
        let mut without = map(4, 3);
        without.hosts.retain(|host| host.mac != mac(1));
        without.cables.retain(|cable| cable.a.xbar != 1 && cable.b.xbar != 1);
        ring.install(0, &table_of(&without, 0));
        let key = RouteKey { table: Table::Main, to: IpPrefix::host(v6(1)) };
        assert_eq!(ring.nodes[0].kernel.wanted().routes.contains_key(&key), goes_on);
    }
}

#[test]
fn nothing_leaves_for_a_host_that_is_not_listed_by_a_cable_that_had_no_carrier_when_the_map_came() {
    for abilities in [ABLE, PLAIN] {
        let mut ring = Ring::new(4, |_| abilities);
        ring.complete(&map(4, 2), &[0, 1, 2, 3]);
        let leaves_by_it = |ring: &Ring| {
            let wanted = ring.nodes[0].kernel.wanted();
            wanted.nexthops.values().any(|nexthop| nexthop.interface() == interface(2))
        };
        assert!(leaves_by_it(&ring));
        let ports: Vec<_> = ring.nodes[0].kernel.ports.values().cloned().collect();
        // The last node, which is beside this one, has no power: its cables have no carrier, and the map lacks it.
        let is_its = |cable: &Cable| cable.a.xbar == 3 || cable.b.xbar == 3;
        let its = map(4, 2).cables.into_iter().filter(is_its);
        let dead = DeadCables::from(its.flat_map(|cable| [cable.a, cable.b]).collect::<BTreeSet<_>>());
        let repaired = Arc::new(ring.nodes[0].table.repair(&dead).unwrap());
        ring.install(0, &repaired);
        ring.set_ports(0, &[1]);
        let mut without = map(4, 3);
        without.hosts.retain(|host| host.mac != mac(3));
        without.cables.retain(|cable| !is_its(cable));
        without.xbars.truncate(3);
        ring.install(0, &table_of(&without, 0));
        assert!(!leaves_by_it(&ring), "{abilities:?}: the kernel would refuse it");
        // When there is carrier again, whoever is there may not have started, or be another: a map will tell.
        let now = ring.now;
        ring.nodes[0].kernel.set_ports(now, ports);
        assert!(!leaves_by_it(&ring), "{abilities:?}");
    }
}

#[test]
fn a_host_that_falls_silent_is_sent_packets_for_a_while_and_goes_on_when_it_is_back() {
    let mut ring = Ring::new(3, |_| ABLE);
    let before = ring.nodes[0].kernel.wanted();
    let options = RouteOptions { max_hops: 11, ..RouteOptions::default() };
    let table_of = |map: Map| {
        let basis = Arc::new(Basis::new(Arc::new(map)).unwrap());
        Arc::new(RouteTable::compute(&basis, mac(0), &options).unwrap())
    };
    let mut without = map(3, 2);
    without.hosts.retain(|host| host.mac != mac(1));
    ring.install(0, &table_of(without.clone()));
    ring.change(0);
    assert_eq!(ring.nodes[0].kernel.wanted(), before, "its daemon may have crashed, and its kernel go on");
    ring.install(0, &table_of(map(3, 3)));
    ring.change(0);
    assert_eq!(ring.nodes[0].kernel.wanted(), before);
    ring.settle();
    assert_eq!(ring.check(), 2 * 6);
    without.version.counter = 4;
    ring.install(0, &table_of(without));
    ring.now = ring.now + UNLISTED_FOR;
    ring.run(0);
    let objects = ring.nodes[0].kernel.wanted();
    assert!(objects.len() < before.len() && objects.groups.len() == 2, "in the end it is given up");
}

#[test]
fn a_way_that_was_proved_is_used_again_when_the_agent_at_its_end_is_gone_and_nothing_leads_around_it() {
    let mut ring = Ring::new(3, |_| ABLE);
    ring.settle();
    let has_route = |ring: &Ring, node: usize| {
        let key = RouteKey { table: Table::Main, to: IpPrefix::host(v4(1)) };
        ring.nodes[node].kernel.wanted().routes.contains_key(&key)
    };
    assert!(has_route(&ring, 0) && has_route(&ring, 2));
    // The agent of node 1 has crashed. One of its cables looks dead, and nobody answers on the way around it.
    ring.nodes[1].addresses.clear();
    let cables = [PortRef { xbar: 0, port: 1 }, PortRef { xbar: 1, port: 1 }];
    let install_repaired = |ring: &mut Ring, cables: &[PortRef]| {
        let dead = DeadCables::from(BTreeSet::from_iter(cables.iter().copied()));
        for node in [0, 2] {
            let table = Arc::new(ring.nodes[node].table.repair(&dead).unwrap());
            ring.install(node, &table);
            ring.change(node);
        }
    };
    install_repaired(&mut ring, &cables[..1]);
    ring.settle();
    // Then both look dead, and then there is a map without the node.
    install_repaired(&mut ring, &cables);
    assert!(has_route(&ring, 0) && has_route(&ring, 2), "its kernel may go on");
    let mut without = map(3, 2);
    without.hosts.retain(|host| host.mac != mac(1));
    for node in [0, 2] {
        ring.install(node, &table_of(&without, node));
        ring.change(node);
    }
    assert!(has_route(&ring, 0) && has_route(&ring, 2), "it is sent packets for a while");
}

#[test]
fn ways_to_a_host_that_left_end_when_another_is_said_to_have_its_address() {
    for abilities in [ABLE, PLAIN] {
        let mut ring = Ring::new(4, |_| abilities);
        ring.complete(&map(4, 2), &[0, 1, 2, 3]);
        // Another host is in its place.
        let mut now = map(4, 3);
        now.hosts.iter_mut().filter(|host| host.mac == mac(3)).for_each(|host| host.mac = mac(7));
        ring.install(0, &table_of(&now, 0));
        let kernel = &mut ring.nodes[0].kernel;
        let to_it = |kernel: &KernelPath| {
            let wanted = kernel.wanted();
            wanted.routes.keys().filter(|key| key.table == Table::Main && key.to.contains(v4(3))).count()
        };
        assert!(kernel.unlisted.contains_key(&mac(3)) && to_it(kernel) == 1, "{abilities:?}");
        // Its old ways could close a circle with those that others have to whoever has the address now.
        kernel.set_addresses(ring.now, |of| if of == mac(7) { vec![v4(3)] } else { Vec::new() });
        assert!(
            !kernel.unlisted.contains_key(&mac(3)),
            "{abilities:?}: the ways to the other are not proved yet"
        );
    }
}
