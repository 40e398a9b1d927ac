//! What must be true of topologies, orientations, routes and proofs together.

use std::collections::{BTreeSet, VecDeque};

use mapper_proto::map::{Map, MapVersion, PortRef};
use mapper_proto::wire::Route;
use proptest::prelude::*;

use super::fabrics::{self, Builder};
use super::*;
use mapper_fabric::names::Names;

fn tables(topology: &Topology, orientation: &Orientation, options: &RouteOptions) -> Vec<HostRoutes> {
    (0..topology.host_count() as u32)
        .map(|host| HostRoutes::compute(topology, orientation, host, options).unwrap())
        .collect()
}

/// How many xbars a shortest way has that need not be legal, found by a plain search.
fn shortest_hops(topology: &Topology, from: u32, to: u32) -> Option<usize> {
    let (Attachment::Port(from), Attachment::Port(to)) = (topology.attachment(from), topology.attachment(to))
    else {
        return None;
    };
    let mut hops = vec![None; topology.xbar_count()];
    hops[from.xbar as usize] = Some(1);
    let mut queue = VecDeque::from([from.xbar]);
    while let Some(xbar) = queue.pop_front() {
        for channel in topology.channels_of(xbar) {
            let head = topology.head(channel).xbar as usize;
            if hops[head].is_none() {
                hops[head] = hops[xbar as usize].map(|hops: usize| hops + 1);
                queue.push_back(head as u32);
            }
        }
    }
    hops[to.xbar as usize]
}

/// Walks every route of every table from its port numbers, and proves the union both ways.
fn walk_all(topology: &Topology, orientation: &Orientation, tables: &[HostRoutes]) {
    let mut by_tables = UnionProof::new(topology);
    let mut by_routes = UnionProof::new(topology);
    for table in tables {
        let proof = prove_host(topology, orientation, table).unwrap();
        by_tables.add_table(table).unwrap();
        let (mut routes, mut longest, mut reachable) = (0, 0, 0);
        for to in 0..topology.host_count() as u32 {
            let all: Vec<_> = table.routes_to(topology, to).collect();
            assert_eq!(all.len(), table.count_to(topology, to));
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "a route is there twice");
            assert_eq!(!all.is_empty(), to != table.from() && topology.connected(table.from(), to));
            for hops in &all {
                let channels = walk(topology, table.from(), to, hops, 11).unwrap();
                assert!(channels.windows(2).all(|pair| orientation.allows(pair[0], pair[1])));
                assert!(channels.windows(2).all(|pair| {
                    orientation.number(topology, pair[0]) < orientation.number(topology, pair[1])
                }));
                by_routes.add_route(table.from(), to, hops).unwrap();
                longest = longest.max(hops.len());
            }
            routes += all.len();
            reachable += usize::from(!all.is_empty());
        }
        assert_eq!((proof.routes, proof.longest_hops, proof.reachable), (routes, longest, reachable));
        assert_eq!(proof.unreachable, table.unreachable(topology).count());
    }
    by_tables.prove_acyclic().unwrap();
    by_routes.prove_acyclic().unwrap();
    assert_eq!(by_tables.dependency_count(), by_routes.dependency_count());
    by_routes.merge(&by_tables);
    assert_eq!(by_tables.dependency_count(), by_routes.dependency_count());
}

fn check(map: &Map, non_clos: bool) -> (Topology, Orientation, Vec<HostRoutes>) {
    let topology = Topology::from_map(map).unwrap();
    let orientation = Orientation::new(&topology, non_clos);
    let tables = tables(&topology, &orientation, &RouteOptions { max_hops: 20, ..RouteOptions::default() });
    (topology, orientation, tables)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_route_of_a_random_fabric_is_sound(seed: u64, non_clos: bool, passes in 1..=12_u8) {
        let map = fabrics::random(seed);
        let topology = Topology::from_map(&map).unwrap();
        let orientation = Orientation::new(&topology, non_clos);
        orientation.prove(&topology).unwrap();
        let options = RouteOptions { passes, max_hops: 20 };
        let tables = tables(&topology, &orientation, &options);
        walk_all(&topology, &orientation, &tables);
    }

    #[test]
    fn the_order_of_cables_makes_no_difference(seed: u64) {
        let mut map = fabrics::random(seed);
        let (.., before) = check(&map, false);
        map.cables.reverse();
        let (.., after) = check(&map, false);
        prop_assert_eq!(before, after);
    }

    #[test]
    fn a_clos_is_recognised_only_if_its_legal_routes_are_shortest(seed: u64) {
        let map = fabrics::random(seed);
        let (topology, orientation, tables) = check(&map, false);
        if matches!(orientation.shape(), Shape::Clos { .. }) {
            assert_minimal(&topology, &tables);
        }
    }
}

fn assert_minimal(topology: &Topology, tables: &[HostRoutes]) {
    for table in tables {
        for to in 0..topology.host_count() as u32 {
            for hops in table.routes_to(topology, to) {
                assert_eq!(Some(hops.len()), shortest_hops(topology, table.from(), to));
            }
        }
    }
}

#[test]
fn a_clos_of_128_hosts_uses_its_eight_spines_for_every_pair() {
    let map = fabrics::clos(16, 8, 8);
    let (topology, orientation, tables) = check(&map, false);
    assert_eq!(orientation.shape(), &Shape::Clos { tiers: 2 });
    walk_all(&topology, &orientation, &tables);
    assert_minimal(&topology, &tables);
    let mut loads = ChannelLoads::new(&topology);
    for table in &tables {
        loads.add_table(table);
        for to in 0..128 {
            let routes: Vec<_> = table.routes_to(&topology, to).collect();
            let spines: BTreeSet<_> =
                routes.iter().filter(|hops| hops.len() == 3).map(|hops| hops[1].xbar).collect();
            let far = to / 8 != table.from() / 8;
            assert_eq!(spines.len(), if far { 8 } else { 0 });
            assert_eq!(routes.len(), if far { 8 } else { usize::from(to != table.from()) });
        }
    }
    // Every pair uses every spine, so 8 x 120 pairs leave a leaf by 8 channels.
    assert!((loads.edge_forwarding_index() - 120.0).abs() < 1e-6, "{}", loads.edge_forwarding_index());
    assert!((loads.mean() - 120.0).abs() < 1e-6);
}

#[test]
fn a_fat_tree_gives_eight_different_minimal_routes() {
    let map = fabrics::fat_tree(8);
    let (topology, orientation, tables) = check(&map, false);
    assert_eq!(orientation.shape(), &Shape::Clos { tiers: 3 });
    walk_all(&topology, &orientation, &tables);
    assert_minimal(&topology, &tables);
    let counts: BTreeSet<_> = (0..128).map(|to| tables[0].count_to(&topology, to)).collect();
    // A host has no route to itself, one to hosts of its own leaf, four within its pod, and eight to another pod, of
    // the sixteen that there are.
    assert_eq!(counts, BTreeSet::from([0, 1, 4, 8]));
}

#[test]
fn hosts_of_one_far_xbar_get_different_routes() {
    let map = fabrics::fat_tree(8);
    let (topology, _, tables) = check(&map, false);
    let sets: BTreeSet<Vec<_>> = (124..128).map(|to| tables[0].routes_to(&topology, to).collect()).collect();
    assert!(sets.len() > 1);
}

#[test]
fn a_clos_that_lost_cables_is_still_one() {
    let mut map = fabrics::fat_tree(8);
    map.cables.retain(|cable| (cable.a.xbar + 3 * cable.b.xbar) % 17 != 0);
    let (topology, orientation, tables) = check(&map, false);
    assert_eq!(orientation.shape(), &Shape::Clos { tiers: 3 });
    walk_all(&topology, &orientation, &tables);
    assert_minimal(&topology, &tables);
}

#[test]
fn a_tree_that_is_no_clos_is_routed_by_its_tiers() {
    let map = mapper_fabric::generate("irregular:h=3;x=128,64,24;up=3,4;hosts=128").unwrap().map;
    let busiest = |non_clos| {
        let (topology, orientation, tables) = check(&map, non_clos);
        walk_all(&topology, &orientation, &tables);
        let mut loads = ChannelLoads::new(&topology);
        tables.iter().for_each(|table| loads.add_table(table));
        (orientation.shape().clone(), loads.edge_forwarding_index())
    };
    let ((shape, by_tiers), (_, from_root)) = (busiest(false), busiest(true));
    assert_eq!(shape, Shape::Tree { tiers: 3 });
    assert!(1.5 * by_tiers < from_root, "{by_tiers} {from_root}");
}

#[test]
fn non_clos_forces_up_down_from_a_root_in_the_middle() {
    let map = fabrics::clos(4, 2, 2);
    let (topology, orientation, tables) = check(&map, true);
    // Leaves and spines are as far from all, but a spine has more cables.
    assert_eq!(orientation.shape(), &Shape::UpDown { roots: vec![4] });
    walk_all(&topology, &orientation, &tables);
}

#[test]
fn a_ring_is_cut_by_up_down_and_closes_a_circle_without() {
    let map = fabrics::ring(5);
    let (topology, orientation, tables) = check(&map, false);
    assert_eq!(orientation.shape(), &Shape::UpDown { roots: vec![0] });
    walk_all(&topology, &orientation, &tables);

    let mut union = UnionProof::new(&topology);
    for from in 0..5 {
        let to = (from + 2) % 5;
        let hops = clockwise(&topology, from, to);
        union.add_route(from, to, &hops).unwrap();
    }
    let cycle = union.prove_acyclic().unwrap_err();
    assert_eq!(cycle.ports.len(), 5);
    let text = cycle.to_string();
    assert!(text.contains("out of xbar 0 port 2, then xbar 1 port 3"), "{text}");
}

/// The route that goes round the ring by rising xbars.
fn clockwise(topology: &Topology, from: u32, to: u32) -> Vec<PortRef> {
    let mut hops = Vec::new();
    let mut xbar = from;
    while xbar != to {
        let next = (xbar + 1) % topology.xbar_count() as u32;
        let out = topology.channels_of(xbar).find(|&c| topology.head(c).xbar == next).unwrap();
        hops.push(topology.tail(out));
        xbar = next;
    }
    let Attachment::Port(at) = topology.attachment(to) else { panic!("host {to} has no xbar") };
    hops.push(at);
    hops
}

#[test]
fn a_route_past_the_limit_names_the_pair() {
    let mut builder = Builder::new(12);
    (0..11).for_each(|xbar| builder.cable(xbar, xbar + 1));
    builder.host(0);
    builder.host(11);
    builder.host(10);
    let topology = Topology::from_map(&builder.build()).unwrap();
    let orientation = Orientation::new(&topology, false);
    let error = HostRoutes::compute(&topology, &orientation, 0, &RouteOptions::default()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("from 02:00:00:00:00:01 to 02:00:00:00:00:02 has 12 hops"), "{text}");
    HostRoutes::compute(&topology, &orientation, 0, &RouteOptions { max_hops: 12, passes: 8 }).unwrap();
    HostRoutes::compute(&topology, &orientation, 2, &RouteOptions::default()).unwrap();
}

#[test]
fn options_out_of_range_are_refused() {
    let topology = Topology::from_map(&fabrics::ring(3)).unwrap();
    let orientation = Orientation::new(&topology, false);
    let compute = |host, passes, max_hops| {
        HostRoutes::compute(&topology, &orientation, host, &RouteOptions { passes, max_hops })
    };
    assert_eq!(compute(0, 0, 11), Err(RoutingError::Passes(0)));
    assert_eq!(compute(0, 65, 11), Err(RoutingError::Passes(65)));
    assert_eq!(compute(0, 8, 0), Err(RoutingError::MaxHops(0)));
    assert_eq!(
        compute(0, 8, RouteOptions::MAX_HOPS + 1),
        Err(RoutingError::MaxHops(RouteOptions::MAX_HOPS + 1))
    );
    assert_eq!(compute(3, 8, 11), Err(RoutingError::NoSuchHost { host: 3, hosts: 3 }));
}

/// The routes of host 0 to a host as they travel.
fn wire_routes<'a>(
    topology: &'a Topology,
    routes: &'a HostRoutes,
    to: u32,
) -> impl Iterator<Item = Result<Route, RoutingError>> + 'a {
    routes.routes_to(topology, to).map(|hops| wire_route(topology, 0, &hops))
}

#[test]
fn two_hosts_on_one_cable_need_no_hop() {
    let mut builder = Builder::new(0);
    builder.host_at(None);
    builder.host_at(None);
    let mut map = builder.build();
    map.hosts.push(mapper_proto::map::Host { host_type: 0, ..map.hosts[0] });
    let (topology, orientation, tables) = check(&map, false);
    assert_eq!(topology.attachment(0), Attachment::Host(1));
    assert_eq!(tables[0].routes_to(&topology, 1).collect::<Vec<_>>(), [Vec::new()]);
    assert_eq!(walk(&topology, 0, 1, &[], 11), Ok(Vec::new()));
    let route = wire_routes(&topology, &tables[0], 1).next().unwrap().unwrap();
    assert!(route.is_empty());
    // The phantom is neither reachable nor missed.
    let proof = prove_host(&topology, &orientation, &tables[0]).unwrap();
    assert_eq!(proof, Proof { reachable: 1, unreachable: 0, routes: 1, longest_hops: 0 });
}

#[test]
fn each_part_has_its_root_and_the_other_is_reported() {
    let mut builder = Builder::new(7);
    (0..3).for_each(|xbar| builder.cable(xbar, (xbar + 1) % 3));
    (3..7).for_each(|xbar| builder.cable(xbar, 3 + (xbar - 2) % 4));
    (0..7).for_each(|xbar| builder.host(xbar));
    builder.host_at(None);
    let (topology, orientation, tables) = check(&builder.build(), false);
    assert_eq!(orientation.shape(), &Shape::UpDown { roots: vec![0, 3] });
    walk_all(&topology, &orientation, &tables);
    assert_eq!(tables[1].unreachable(&topology).collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
    assert_eq!(tables[7].unreachable(&topology).count(), 7);
}

#[test]
fn another_host_or_version_disperses_otherwise() {
    let mut map = fabrics::fat_tree(8);
    let (.., before) = check(&map, false);
    assert_eq!(before, check(&map, false).2);
    map.version = MapVersion { counter: 6, ..map.version };
    let (.., after) = check(&map, false);
    assert_ne!(before[0], after[0]);
}

#[test]
fn routes_travel_as_deltas_that_follow_the_cables() {
    let map = fabrics::clos(3, 2, 2);
    let (topology, _, tables) = check(&map, false);
    for to in 1..6 {
        for (hops, route) in tables[0].routes_to(&topology, to).zip(wire_routes(&topology, &tables[0], to)) {
            let Attachment::Port(mut at) = topology.attachment(0) else { panic!("host 0 has no xbar") };
            let mut elements = route.as_ref().unwrap().elements();
            for hop in hops {
                let delta = i16::from(hop.port) - i16::from(at.port);
                assert_eq!(elements.next(), Some(mapper_proto::wire::Element::Relative(delta as i8)));
                if let Far::Channel(channel) = topology.far(hop) {
                    at = topology.head(channel);
                }
            }
            assert_eq!(elements.next(), None);
        }
    }
}

#[test]
fn a_wide_turn_is_absolute_and_a_plain_xbar_cannot_make_it() {
    let mut builder = Builder::new(1);
    builder.host_at(Some(PortRef { xbar: 0, port: 1 }));
    builder.host_at(Some(PortRef { xbar: 0, port: 33 }));
    let mut map = builder.build();
    let (topology, _, tables) = check(&map, false);
    let route = wire_routes(&topology, &tables[0], 1).next().unwrap().unwrap();
    assert_eq!(route.to_string(), "@33");
    map.xbars[0].tag = None;
    let (topology, _, tables) = check(&map, false);
    let error = wire_routes(&topology, &tables[0], 1).next().unwrap().unwrap_err();
    assert_eq!(error, RoutingError::DeltaTooLarge { xbar: 0, arrival: 1, out: 33 });
}

#[test]
fn maps_that_no_fabric_looks_like_are_refused() {
    let mut map = fabrics::ring(3);
    map.hosts[1].at = map.hosts[1].at.map(|at| PortRef { port: 2, ..at });
    let error = Topology::from_map(&map).unwrap_err();
    assert_eq!(error, TopologyError::PortTwice { port: PortRef { xbar: 1, port: 2 } });
    let mut names = Names::default();
    names.xbars = vec!["spine".to_owned(), "leaf".to_owned()];
    assert_eq!(error.describe(&names), "leaf port 2 holds two cables; one of them must be elsewhere");
    assert_eq!(error.describe(&Names::default()), error.to_string());
    map.hosts[1].at = Some(PortRef { xbar: 3, port: 2 });
    let error = Topology::from_map(&map).unwrap_err();
    assert_eq!(
        error.to_string(),
        "host 02:00:00:00:00:02 is at xbar 3, but the map lists 3 xbars, counted from 0"
    );
}

/// Every single change of a byte or bit of a table is either harmless to the routes or found.
#[test]
fn the_proof_finds_spoiled_tables() {
    let map = fabrics::random(11);
    let (topology, orientation, tables) = check(&map, true);
    let mut found = 0;
    for table in &tables {
        for place in 0..table.entries.len() {
            for value in 0..6 {
                let mut spoiled = table.clone();
                spoiled.entries[place] = value;
                found += usize::from(sound_or_found(&topology, &orientation, &spoiled));
            }
        }
        for place in 0..table.backwards.len() {
            let mut spoiled = table.clone();
            std::sync::Arc::make_mut(&mut spoiled.backwards)[place] ^= 1;
            found += usize::from(sound_or_found(&topology, &orientation, &spoiled));
        }
        for place in 0..table.distinct.len() {
            let mut spoiled = table.clone();
            spoiled.distinct[place] = 0;
            found += usize::from(sound_or_found(&topology, &orientation, &spoiled));
        }
    }
    assert!(found > 100, "{found}");
}

/// Whether the proof refuses a table. If it does not, every route must be sound on its own.
fn sound_or_found(topology: &Topology, orientation: &Orientation, table: &HostRoutes) -> bool {
    if prove_host(topology, orientation, table).is_err() {
        return true;
    }
    for to in (0..topology.host_count() as u32).filter(|&to| to != table.from()) {
        assert_eq!(table.count_to(topology, to) > 0, topology.connected(table.from(), to));
        for hops in table.routes_to(topology, to) {
            let channels = walk(topology, table.from(), to, &hops, 20).unwrap();
            assert!(channels.windows(2).all(|pair| orientation.allows(pair[0], pair[1])));
        }
    }
    false
}
