//! What is proved of ways goes on being so, or is found not to be.

use super::*;

#[test]
fn a_way_is_tried_again_after_an_address_was_away() {
    let mut ring = Ring::new(3, |_| ABLE);
    let address = |ip, bits| IpNetworkAddress::new(ip, bits).unwrap();
    let four = address(v4(0), 24);
    ring.nodes[0].kernel.set_own_addresses(ring.now, vec![four], vec![four]);
    ring.wait(5);
    ring.nodes[0].kernel.set_own_addresses(ring.now, vec![four, address(v6(0), 64)], vec![four]);
    ring.change(0);
    ring.settle();
    ring.check();
    ring.cut = BTreeSet::from([PortRef { xbar: 0, port: 1 }]);
    ring.wait(20);
    let flows = ring.flows(0, 1, v4(1));
    assert!(flows.iter().all(Option::is_some), "none goes into the dead cable for ever: {flows:?}");
}

#[test]
fn a_host_that_takes_nothing_any_more_is_left_to_the_tap_though_its_kernel_forwards() {
    let mut ring = Ring::new(3, |_| ABLE);
    // A firewall of node 1 drops what is for the machine itself.
    ring.nodes[1].addresses.clear();
    ring.wait(20);
    assert!(ring.flows(0, 1, v4(1)).is_empty());
}

#[test]
fn what_is_proved_is_what_is_sent_also_where_compressed_elements_are_not_known_everywhere() {
    let mut ring = Ring::new(5, |node| KernelAbilities { compressed: node != 2, ..ABLE });
    ring.check();
    // All cables of a node are dead for a while, and no table tells of it.
    ring.cut = BTreeSet::from([PortRef { xbar: 0, port: 1 }, PortRef { xbar: 0, port: 2 }]);
    ring.wait(12);
    assert!(ring.flows(0, 3, v4(3)).is_empty() && ring.flows(0, 2, v4(2)).is_empty());
    ring.cut.clear();
    for step in 0..1500 {
        ring.now = ring.now + Duration::from_millis(10);
        (0..5).for_each(|node| ring.run(node));
        let is_lost = |to: &usize| ring.flows(0, *to, v4(*to)).iter().any(Option::is_none);
        assert_eq!((1..5).find(is_lost), None, "step {step}");
    }
}

#[test]
fn probes_of_ways_that_are_given_up_are_forgotten() {
    let mut ring = Ring::new(3, |_| ABLE);
    ring.cut = BTreeSet::from([PortRef { xbar: 0, port: 1 }, PortRef { xbar: 0, port: 2 }]);
    ring.wait(20);
    for n in 0..1000u64 {
        ring.now = ring.now + Duration::from_millis(20);
        let extra: IpAddr = Ipv4Addr::new(10, 9, (n / 250) as u8, (n % 250) as u8 + 1).into();
        let addresses = |of| {
            let node = (0..3).find(|&node| mac(node) == of);
            node.map_or_else(Vec::new, |node| vec![v4(node), v6(node), extra])
        };
        ring.nodes[0].kernel.set_addresses(ring.now, addresses);
        ring.run(0);
    }
    // Only the probes of the last two seconds to two hosts are waited for.
    assert!(ring.nodes[0].kernel.prober.under_way() <= 2 * 101 + 2);
}

#[test]
fn probes_come_from_the_address_that_is_told_first_whatever_addresses_the_ports_have() {
    let mut ring = Ring::new(3, |_| ABLE);
    let port = "fc00::7".parse().unwrap();
    let own =
        [(v4(0), 24), (v6(0), 64), (port, 128)].map(|(ip, bits)| IpNetworkAddress::new(ip, bits).unwrap());
    ring.nodes[0].kernel.set_own_addresses(ring.now, own.to_vec(), own.to_vec());
    ring.now = ring.now + Duration::from_secs(3);
    ring.nodes[0].kernel.handle_timeout(ring.now, |_| Heard::default());
    let probe = ring.nodes[0].kernel.poll_probe().unwrap();
    assert!(matches!(probe.ends, DatagramEnds::V6 { source, .. } if IpAddr::from(source) == v6(0)));
}

#[test]
fn new_ways_are_tried_when_all_hosts_have_the_map_or_a_while_later_and_not_while_hosts_map() {
    let mut ring = Ring::new(3, |_| ABLE);
    let carried = |ring: &Ring| ring.nodes[0].kernel.carried().count();
    let find_ways_anew = |ring: &mut Ring| {
        ring.set_ports(0, &[]);
        ring.set_ports(0, &[1, 2]);
        ring.run(0);
    };
    assert_eq!(carried(&ring), 2);
    ring.nodes[0].kernel.set_settled(false);
    find_ways_anew(&mut ring);
    ring.wait(5);
    assert_eq!(carried(&ring), 0, "hosts map");
    ring.nodes[0].kernel.set_settled(true);
    ring.run(0);
    assert_eq!(carried(&ring), 2, "the map before is old enough");
    let basis = Arc::new(Basis::new(Arc::new(map(3, 2))).unwrap());
    let options = RouteOptions { max_hops: 11, ..RouteOptions::default() };
    let table = Arc::new(RouteTable::compute(&basis, mac(0), &options).unwrap());
    ring.install(0, &table);
    find_ways_anew(&mut ring);
    assert_eq!(carried(&ring), 0, "another host may be without this map");
    let now = ring.now;
    ring.nodes[0].kernel.network_complete(now, table.version());
    ring.run(0);
    assert_eq!(carried(&ring), 2);
}

/// The addresses of hosts where node 1 tells these.
fn told_by_1(of_1: Vec<IpAddr>) -> impl Fn(Mac) -> Vec<IpAddr> {
    move |of| match (0..4).find(|&node| mac(node) == of) {
        Some(1) => of_1.clone(),
        Some(node) => vec![v4(node), v6(node)],
        None => Vec::new(),
    }
}

impl Ring {
    /// Has node 0 hear these addresses of node 1.
    fn hear_of_1(&mut self, of_1: &[IpAddr]) {
        self.nodes[0].kernel.set_addresses(self.now, told_by_1(of_1.to_vec()));
        self.change(0);
    }
}

#[test]
fn ways_that_were_proved_with_addresses_of_one_host_carry_nothing_to_those_of_another_before_these_answer() {
    // Where a cable is held for dead, a probe may turn before the host if that has answered lately.
    for dead in [BTreeSet::new(), BTreeSet::from([PortRef { xbar: 2, port: 1 }])] {
        let mut ring = Ring::new(4, |_| ABLE);
        let table = Arc::new(ring.nodes[0].table.repair(&DeadCables::from(dead)).unwrap());
        ring.install(0, &table);
        ring.settle();
        // Node 2 had the MAC of node 1 for a while, and told its own addresses under it.
        ring.hear_of_1(&[v4(2), v6(2)]);
        assert!(ring.flows(0, 1, v4(2)).is_empty());
        ring.wait(3);
        assert!(ring.flows(0, 1, v4(2)).is_empty());
        ring.hear_of_1(&[v4(1), v6(1)]);
        ring.wait(3);
        assert_eq!(ring.check(), 2 * 4 * 3);
    }
}

#[test]
fn a_host_that_has_an_address_more_or_less_or_none_for_a_moment_is_the_same_host() {
    let mut ring = Ring::new(4, |_| ABLE);
    let [extra_v4, extra_v6] = [Ipv4Addr::new(10, 9, 0, 1).into(), v6(8)];
    for told in [&[extra_v4, v4(1), v6(1)][..], &[extra_v6, v4(1)], &[], &[v4(1), v6(1)]] {
        ring.hear_of_1(told);
        let flows = ring.flows(0, 1, v4(1));
        assert_eq!(told.contains(&v4(1)), !flows.is_empty(), "{told:?}");
        assert!(flows.iter().all(Option::is_some), "{told:?}");
    }
}

#[test]
fn what_stays_when_agents_end_does_not_lead_to_addresses_of_another() {
    let mut ring = Ring::new(4, |_| ABLE);
    let version = ring.nodes[0].table.version();
    ring.nodes[0].kernel.hold_once_complete();
    ring.nodes[0].kernel.network_complete(ring.now, version);
    let before = ring.nodes[0].kernel.wanted();
    ring.hear_of_1(&[v4(2), v6(2)]);
    assert_eq!(ring.nodes[0].kernel.wanted(), before);
}
