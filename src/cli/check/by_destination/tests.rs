//! What is proved of kernels that go by the destination.

use mapper_fabric::{generate, names};

use super::*;

/// What is proved of a ring of four hosts whose kernels have packets to hosts leave by these ports: the number of the
/// host, that of the destination, and the ports. Port 1 of each leads to port 2 of the next.
fn proved(entries: &[(u32, u32, &[u8])], hosts: u32) -> Forwarded {
    proved_on(&ring_of_nodes(1), entries, 0..hosts)
}

/// A ring of four xbars with so many hosts each. Each is the crossbar of the node of its first host.
fn ring_of_nodes(hosts: u32) -> Fabric {
    let mut fabric = generate(&format!("ring:n=4,hosts={hosts}")).unwrap();
    let topology = Topology::from_map(&fabric.map).unwrap();
    for (xbar, of) in (0..).zip(&mut fabric.map.xbars) {
        of.tag = Some(topology.mac(topology.hosts_of(xbar)[0]).to_u64() << 16 | 7);
    }
    fabric
}

/// The same of another fabric, in which these hosts have told what their kernels do.
fn proved_on(
    fabric: &Fabric,
    entries: &[(u32, u32, &[u8])],
    hosts: impl IntoIterator<Item = u32>,
) -> Forwarded {
    let topology = Topology::from_map(&fabric.map).unwrap();
    let mut kernels = Kernels::new(fabric, &topology);
    for from in hosts {
        let of_host = entries.iter().filter(|(at, ..)| *at == from);
        let by_destination = of_host.map(|&(_, to, ports)| (to, ports.to_vec())).collect();
        kernels.add(&ListedRoutes {
            from,
            routes: Vec::new(),
            faults: Vec::new(),
            by_destination,
            by_segments: Vec::new(),
            segments_differ: Vec::new(),
            objects_differ: Vec::new(),
            segments_not_compared: None,
            strangers: 0,
        });
    }
    let shown = names::Names::of(fabric);
    kernels.prove(&Describer { fabric, topology: &topology, shown: &shown })
}

#[test]
fn what_leads_to_each_destination_by_every_port_is_proved() {
    let forwarded = proved(&[(0, 2, &[1, 2]), (1, 2, &[1]), (3, 2, &[2])], 4);
    let expected = Forwarded { count: 3, longest: 3, ..Forwarded::default() };
    assert_eq!(forwarded, expected);
}

#[test]
fn what_hosts_without_a_crossbar_hand_to_nodes_and_have_from_them_is_proved() {
    let fabric = ring_of_nodes(2);
    let topology = Topology::from_map(&fabric.map).unwrap();
    // Of the two hosts at each xbar the first one is the node, and the other cabled to it.
    let [node, leaf] = [0, 1].map(|nth| (0..4).map(|xbar| topology.hosts_of(xbar)[nth]).collect::<Vec<_>>());
    let Attachment::Port(home) = topology.attachment(leaf[0]) else { panic!("it has a cable") };
    let told = |entries: &[(u32, u32, &[u8])]| {
        let hosts: BTreeSet<u32> = entries.iter().map(|&(from, ..)| from).collect();
        proved_on(&fabric, entries, hosts)
    };
    let to_and_fro =
        [(leaf[0], node[1], &[CABLE][..]), (node[0], node[1], &[1]), (node[0], leaf[0], &[home.port])];
    assert_eq!(told(&to_and_fro), Forwarded { count: 3, longest: 2, ..Forwarded::default() });
    let handed_over = told(&[(leaf[0], node[1], &[CABLE]), (node[0], node[2], &[1])]);
    assert!(handed_over.notes[0].contains("by the tap interface"), "{:?}", handed_over.notes);
    let unknown = told(&[(leaf[0], node[1], &[CABLE])]);
    assert!(unknown.notes[0].contains("has no file"), "{:?}", unknown.notes);
    let astray = told(&[(node[0], leaf[0], &[1])]);
    assert_eq!((astray.broken, astray.violations.len()), (1, 1));
}

#[test]
fn a_node_that_has_no_route_to_the_host_without_a_crossbar_at_its_own_port_is_named() {
    let fabric = ring_of_nodes(3);
    let topology = Topology::from_map(&fabric.map).unwrap();
    let [node, leaf, other] = [0, 1, 2].map(|nth| topology.hosts_of(0)[nth]);
    let far = topology.hosts_of(3)[0];
    for (from, by) in [(far, &[1][..]), (other, &[CABLE])] {
        let forwarded = proved_on(&fabric, &[(from, leaf, by)], [from, node]);
        assert_eq!((forwarded.broken, forwarded.violations.len()), (1, 1), "{forwarded:?}");
        let told = &forwarded.violations[0];
        let names = names::Names::of(&fabric);
        assert!(told.contains(&names.host(leaf)) && told.contains(&names.host(node)), "{told}");
    }
    // Without a file of the node nothing is known of it, whatever files there are of hosts that are cabled to it.
    let forwarded = proved_on(&fabric, &[(far, leaf, &[1])], [far, leaf, other]);
    assert_eq!((forwarded.broken, forwarded.notes.len()), (0, 1), "{forwarded:?}");
    assert!(forwarded.notes[0].contains("has no file"), "{:?}", forwarded.notes);
    let forwarded = proved_on(&fabric, &[(far, node, &[1])], [far]);
    assert_eq!((forwarded.broken, forwarded.notes.len()), (0, 0), "it is there already: {forwarded:?}");
}

#[test]
fn a_host_without_a_crossbar_that_sends_nothing_says_nothing_of_the_crossbar_that_it_is_cabled_to() {
    let fabric = ring_of_nodes(2);
    let topology = Topology::from_map(&fabric.map).unwrap();
    let [sender, silent, to] = [(0, 0), (1, 1), (2, 0)].map(|(xbar, nth)| topology.hosts_of(xbar)[nth]);
    let forwarded = proved_on(&fabric, &[(sender, to, &[1])], [sender, silent]);
    assert_eq!(forwarded.notes.len(), 1, "{:?}", forwarded.notes);
    assert!(forwarded.notes[0].contains("has no file"), "{:?}", forwarded.notes);
}

#[test]
fn kernels_that_send_a_packet_back_to_each_other_are_named() {
    let forwarded = proved(&[(0, 2, &[1]), (1, 2, &[2]), (3, 2, &[2])], 4);
    assert_eq!((forwarded.loops, forwarded.broken, forwarded.violations.len()), (1, 0, 1));
    let told = &forwarded.violations[0];
    assert!(told.contains("xbar1 port 1, then xbar2 port 2, then xbar1 port 1"), "{told}");
}

#[test]
fn packets_of_all_that_wait_for_each_other_in_a_circle_are_found() {
    // Each goes on to the one after the next by port 1.
    let round: Vec<(u32, u32, &[u8])> =
        (0..4).flat_map(|at| [(at, (at + 1) % 4, &[1][..]), (at, (at + 2) % 4, &[1][..])]).collect();
    let forwarded = proved(&round, 4);
    assert_eq!((forwarded.loops, forwarded.cycle), (0, true));
    assert!(forwarded.violations[0].starts_with("what kernels forward by the destination: "));
}

#[test]
fn a_port_that_leads_nowhere_and_a_kernel_without_a_route_or_a_file_are_told() {
    let forwarded = proved(&[(0, 2, &[1, 9])], 4);
    assert_eq!((forwarded.broken, forwarded.violations.len()), (1, 1));
    assert!(forwarded.notes[0].contains("go on by the tap interface"), "{:?}", forwarded.notes);
    let forwarded = proved(&[(0, 2, &[1])], 1);
    assert!(forwarded.notes[0].contains("has no file"), "{:?}", forwarded.notes);
}
