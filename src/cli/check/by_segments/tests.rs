use std::collections::BTreeMap;

use mapper_fabric::{generate, names};
use mapper_formats::routes::ListedDifference;

use super::*;

/// What is proved of a ring of four hosts whose kernels send by these segments: the number of the host, that of the
/// destination, the port to leave by, and the elements behind the block. Port 1 of each crossbar leads to port 2 of the
/// next, and the host is at port 3. The agents' own routes are given by the ports to leave by.
fn proved(entries: &[(u32, u32, u8, &str)], of_agents: &[(u32, u32, &[PortRef])]) -> Forwarded {
    let listed = entries.iter().map(|&(from, to, port, elements)| of_host(from, [list(to, port, elements)]));
    proved_with(&listed.collect::<Vec<_>>(), of_agents)
}

fn list(to: u32, port: u8, elements: &str) -> ListedSegments {
    ListedSegments { to, port, segments: vec![format!("fcbb:bb00:{elements}::").parse().unwrap()] }
}

fn of_host(from: u32, by_segments: impl Into<Vec<ListedSegments>>) -> ListedRoutes {
    ListedRoutes {
        from,
        routes: Vec::new(),
        faults: Vec::new(),
        by_destination: BTreeMap::new(),
        by_segments: by_segments.into(),
        segments_differ: Vec::new(),
        objects_differ: Vec::new(),
        segments_not_compared: None,
        strangers: 0,
    }
}

fn proved_with(hosts: &[ListedRoutes], of_agents: &[(u32, u32, &[PortRef])]) -> Forwarded {
    let fabric = generate("ring:n=4,hosts=1").unwrap();
    let topology = Topology::from_map(&fabric.map).unwrap();
    let mut senders = Senders::new(&topology, 3);
    hosts.iter().for_each(|host| senders.add(host));
    let mut union = UnionProof::new(&topology);
    of_agents.iter().for_each(|&(from, to, hops)| union.add_route(from, to, hops).unwrap());
    let shown = names::Names::of(&fabric);
    senders.prove(&Describer { fabric: &fabric, topology: &topology, shown: &shown }, Some(&union))
}

#[test]
fn segments_that_lead_to_the_host_that_they_are_for_are_proved_of_nodes_and_of_agents_alone() {
    let forwarded =
        proved(&[(0, 1, 1, "f101:3:fff4"), (0, 2, 2, "f102:2:3:fff6"), (1, 2, 0, "f100:1:3:fff4")], &[]);
    let expected = Forwarded { count: 3, longest: 3, ..Forwarded::default() };
    assert_eq!(forwarded, expected);
}

#[test]
fn each_fault_is_named_with_host_destination_and_segments() {
    let told = |entry| {
        let forwarded = proved(&[entry], &[]);
        assert_eq!((forwarded.count, forwarded.loops + forwarded.broken), (1, 1));
        let [told] = forwarded.violations.as_slice() else { panic!("{forwarded:?}") };
        told.clone()
    };
    let start = "the kernel of h1 sends packets to h3 by the segments ";
    for (port, elements, why) in [
        (1, "f101:3:fff4", "lead to h2"),
        (1, "f101:1:fff4", "end at xbar3 and at no host"),
        (1, "f101:9:3:fff4", "cannot leave xbar2 port 9: no cable leads on from there"),
        (9, "f109:3:fff4", "cannot leave xbar1 port 9: no cable leads on from there"),
        (1, "f101:3:1:fff4", "go on behind h2, which is a host"),
        (3, "f103:fff4", "lead to h1"),
        (1, "f101:1:1:3:fff4", "have 4 hops, but at most 3 are allowed"),
        (2, "f101:1:3:fff4", "begin with port 1, though the packets leave by port 2"),
        (1, "f201:1:3:fff4", "are no segments that crossbars obey"),
        (1, "f101:1:3", "are no route: that is a port of the sender's, ports of crossbars, and a delivery"),
        (
            1,
            "f101:f101:3:fff4",
            "are no route: that is a port of the sender's, ports of crossbars, and a delivery",
        ),
    ] {
        let segment: Ipv6Addr = format!("fcbb:bb00:{elements}::").parse().unwrap();
        assert_eq!(told((0, 2, port, elements)), format!("{start}{segment}, which {why}"));
    }
    let twice = proved(&[(0, 2, 1, "f101:2:3:fff4")], &[]);
    assert_eq!((twice.loops, twice.broken), (1, 0));
    assert_eq!(twice.violations, [format!("{start}fcbb:bb00:f101:2:3:fff4::, which pass xbar1 twice")]);
}

#[test]
fn segments_that_a_kernel_was_not_told_or_lacks_are_faults_and_one_that_was_not_compared_is_noted() {
    let mut host = of_host(0, [list(2, 1, "f101:1:3:fff4")]);
    host.segments_differ = vec![
        ListedDifference { segments: list(2, 2, "f102:2:3:fff4"), is_held: false },
        ListedDifference { segments: list(2, 1, "f101:1:3:fff4"), is_held: true },
    ];
    let told = proved_with(&[host], &[]);
    assert_eq!((told.count, told.broken, &told.notes), (1, 2, &Vec::new()));
    let expected = [
        "the kernel of h1 does not send packets to h3 by the segments fcbb:bb00:f102:2:3:fff4:: out of port 2, as its \
         agent told it",
        "the kernel of h1 sends packets to h3 by the segments fcbb:bb00:f101:1:3:fff4::, which leave by port 1 and are \
         none that its agent told it",
    ];
    assert_eq!(told.violations, expected);
    let hosts = [1, 2].map(|from| ListedRoutes {
        segments_not_compared: Some("it was changed".to_owned()),
        ..of_host(from, [])
    });
    let told = proved_with(&hosts, &[]);
    let note = "2 kernels' routes were not held against what they were told: the first is that of h2: it was changed";
    assert_eq!((told.broken, told.notes), (0, vec![note.to_owned()]));
}

#[test]
fn what_a_crossbar_holds_otherwise_than_it_was_told_is_a_fault_also_where_nothing_is_sent_by_segments() {
    let differs = |how| ObjectDiffersJson { object: "route fcbb:bb00:3::/48 in table 28001".to_owned(), how };
    let host = ListedRoutes {
        objects_differ: [DifferenceJson::Missing, DifferenceJson::Other, DifferenceJson::Extra]
            .map(differs)
            .to_vec(),
        ..of_host(1, [])
    };
    let told = proved_with(&[host], &[]);
    let object = "route fcbb:bb00:3::/48 in table 28001";
    let expected = [
        format!("the kernel of h2 lacks {object}, which its agent told it"),
        format!("the kernel of h2 has another {object} than its agent told it"),
        format!("the kernel of h2 has {object}, which its agent did not tell it"),
    ];
    assert_eq!((told.count, told.broken, told.violations), (0, 3, expected.to_vec()));
}

#[test]
fn packets_that_wait_for_each_other_in_a_circle_are_found_also_with_the_agents_own_routes() {
    let round = [
        (0, 2, 1, "f101:1:3:fff4"),
        (1, 3, 1, "f101:1:3:fff4"),
        (2, 0, 1, "f101:1:3:fff4"),
        (3, 1, 1, "f101:1:3:fff4"),
    ];
    let circle = proved(&round, &[]);
    assert!(circle.cycle && circle.violations.len() == 1, "{circle:?}");
    assert!(circle.violations[0].starts_with("what kernels send by segments: layer 0 can deadlock"));
    let most = proved(&round[..3], &[]);
    assert_eq!((most.cycle, most.violations), (false, Vec::new()));
    let last = [3, 0, 1].map(|xbar| PortRef { xbar, port: if xbar == 1 { 3 } else { 1 } });
    let united = proved(&round[..3], &[(3, 1, &last)]);
    assert!(united.cycle, "{united:?}");
    let told = &united.violations[0];
    assert!(told.contains("by segments, together with the agents' own routes: layer 0 can"), "{told}");
}
