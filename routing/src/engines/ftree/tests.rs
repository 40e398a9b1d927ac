mod detours;

use std::collections::BTreeSet;

use mapper_fabric::generate;
use mapper_proto::map::{Fabric, PortRef};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::{Far, ProofRules, Tables, prove_tables};

/// Full trees of two to four ranks.
const FULL: [&str; 9] = [
    "clos:hosts=32,ports=8",
    "clos:hosts=128,ports=8",
    "xgft:h=2;m=18,36;w=1,18",
    "xgft:h=2;m=6,5;w=1,6",
    "xgft:h=3;m=4,4,8;w=1,4,4",
    "xgft:h=3;m=3,4,5;w=1,3,4",
    "xgft:h=3;m=6,3,4;w=1,6,3",
    "xgft:h=4;m=2,2,2,4;w=1,2,2,2",
    "xgft:h=4;m=3,2,3,2;w=1,3,2,3",
];

fn subnet(fabric: &Fabric) -> Subnet {
    Subnet::new(fabric, None).unwrap()
}

fn route(fabric: &Fabric, settings: &Settings) -> Result<(Subnet, Routing), EngineError> {
    let subnet = subnet(fabric);
    let routing = compute(&subnet, settings)?;
    Ok((subnet, routing))
}

/// A fabric without some of the cables between its xbars, which a seed chooses.
fn degraded(spec: &str, per_mille: u32, seed: u64) -> Fabric {
    let mut fabric = generate(spec).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    fabric.map.cables.retain(|_| rng.random_range(0..1000) >= per_mille);
    fabric
}

/// Two-rank tree whose leaves have `cables` cables to each spine.
fn with_parallel_cables(leaves: u32, spines: u32, cables: u32) -> Fabric {
    let mut builder = crate::fabrics::Builder::new((leaves + spines) as usize);
    for leaf in 0..leaves {
        (0..spines * cables).for_each(|_| builder.host(leaf));
        for spine in 0..spines {
            (0..cables).for_each(|_| builder.cable(leaf, leaves + spine));
        }
    }
    Fabric { map: builder.build(), ..Fabric::default() }
}

/// The channels of the way from a host's xbar to a slot.
fn walk(subnet: &Subnet, tables: &Tables, from: u32, slot: u32) -> Option<Vec<u32>> {
    let (mut at, mut way) = (from, Vec::new());
    loop {
        match subnet.topology.far(PortRef { xbar: at, port: tables.port(at, slot) }) {
            Far::Channel(channel) if way.len() < 64 => {
                way.push(channel);
                at = subnet.topology.head(channel).xbar;
            }
            Far::Host(host) => return (host_of_slot(subnet, slot) == Some(host)).then_some(way),
            Far::Channel(_) | Far::Nothing => return None,
        }
    }
}

/// Most flows on a channel in any shift of the hosts, in the order of the ordering file.
fn shift_congestion(subnet: &Subnet, tables: &Tables) -> u32 {
    let order = HostOrder::new(subnet, &Settings::default());
    let hosts: Vec<u32> = order.leaves.iter().flat_map(|leaf| leaf.hosts.clone()).collect();
    let slots: Vec<u32> = hosts.iter().map(|&host| subnet.destinations.slots_of_host(host).start).collect();
    let xbars: Vec<u32> = hosts.iter().map(|&host| subnet.xbar_of_host(host).unwrap()).collect();
    let mut worst = 0;
    for shift in 1..hosts.len() {
        let mut flows = vec![0; subnet.topology.channel_count()];
        for (place, &from) in xbars.iter().enumerate() {
            for channel in walk(subnet, tables, from, slots[(place + shift) % slots.len()]).unwrap() {
                flows[channel as usize] += 1;
                worst = worst.max(flows[channel as usize]);
            }
        }
    }
    worst
}

#[test]
fn a_full_fat_tree_shifts_without_congestion() {
    for spec in FULL {
        let (subnet, routing) = route(&generate(spec).unwrap(), &Settings::default()).unwrap();
        assert_eq!(routing.notes, [""; 0], "{spec}");
        assert_eq!(shift_congestion(&subnet, &routing.tables), 1, "{spec}");
    }
}

#[test]
fn parallel_cables_shift_without_congestion() {
    for (leaves, spines, cables) in [(4, 2, 2), (6, 3, 4), (5, 1, 7), (3, 4, 3)] {
        let fabric = with_parallel_cables(leaves, spines, cables);
        let (subnet, routing) = route(&fabric, &Settings::default()).unwrap();
        assert_eq!(shift_congestion(&subnet, &routing.tables), 1, "{leaves} {spines} {cables}");
    }
}

#[test]
fn numbers_and_ports_do_not_matter_to_a_full_tree() {
    let mut fabric = generate("xgft:h=3;m=4,4,8;w=1,4,4").unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    // The ports of each xbar are rotated by some number, whatever is cabled to them.
    let turns: Vec<u8> = fabric.map.xbars.iter().map(|_| rng.random_range(0..8)).collect();
    let turned = |at: PortRef| PortRef { port: (at.port - 1 + turns[at.xbar as usize]) % 8 + 1, ..at };
    for cable in &mut fabric.map.cables {
        *cable = mapper_proto::map::Cable::new(turned(cable.a), turned(cable.b));
    }
    fabric.map.hosts.iter_mut().for_each(|host| host.at = host.at.map(turned));
    let (subnet, routing) = route(&fabric, &Settings::default()).unwrap();
    assert_eq!(shift_congestion(&subnet, &routing.tables), 1);
}

/// Checks that all hosts reach each other by the shortest way up and down. Returns the loads of all channels.
fn check(fabric: &Fabric, settings: &Settings, tables: &Tables) -> Result<Vec<u64>, TestCaseError> {
    let subnet = subnet(fabric);
    let order = HostOrder::new(&subnet, settings);
    let tree =
        Tree::new(&subnet, Ranks::new(&subnet, settings, &order, &Tiers::of(&subnet.topology)).unwrap());
    let reach = Reach::new(&tree);
    let mut loads = vec![0; subnet.topology.channel_count()];
    for from in 0..tree.xbar_count() as u32 {
        for slot in 0..subnet.destinations.slot_count() as u32 {
            let Some(host) = host_of_slot(&subnet, slot) else { continue };
            let to = subnet.xbar_of_host(host).unwrap();
            let steps = reach.between(from, to);
            if steps == Reach::NONE {
                prop_assert!(
                    tree.hosts_at(from) == 0
                        || !subnet.topology.connected(subnet.topology.hosts_of(from)[0], host)
                );
                continue;
            }
            let way = walk(&subnet, tables, from, slot);
            prop_assert!(way.is_some(), "from {from} to {slot}");
            let way = way.unwrap();
            prop_assert_eq!(way.len(), usize::from(steps), "from {} to {}", from, slot);
            let rank = |port: PortRef| tree.rank(port.xbar);
            let ups = way
                .iter()
                .map(|&channel| rank(subnet.topology.head(channel)) < rank(subnet.topology.tail(channel)));
            let ups: Vec<bool> = ups.collect();
            prop_assert!(ups.is_sorted_by(|a, b| a >= b), "down and up again");
            way.iter().for_each(|&channel| loads[channel as usize] += u64::from(tree.hosts_at(from)));
        }
    }
    Ok(loads)
}

/// Checks what `mapper route` proves before it writes tables.
fn prove(subnet: &Subnet, routing: &Routing) -> Result<(), TestCaseError> {
    let rules = ProofRules { max_hops: 64, xbar_destinations: false };
    let proof = prove_tables(subnet, &routing.tables, &routing.layers, &rules);
    prop_assert!(proof.holds(), "{}", proof.summary());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damaged_trees_are_routed_up_and_down(
        spec in prop::sample::select(FULL.iter().copied().filter(|spec| !spec.contains("18")).collect::<Vec<_>>()),
        per_mille in 0_u32..150,
        seed in any::<u64>(),
    ) {
        let fabric = degraded(spec, per_mille, seed);
        let settings = Settings::default();
        match route(&fabric, &settings) {
            Ok((_, routing)) => {
                let loads = check(&fabric, &settings, &routing.tables)?;
                // The worst case is all routes of a damaged part on one cable of three.
                let hosts = fabric.map.hosts.len() as u64;
                prop_assert!(loads.iter().all(|&load| load <= hosts * hosts), "{:?}", loads.iter().max());
            }
            Err(error) => prop_assert!(error.why.to_string().contains("goes up and then down"), "{}", error.why),
        }
    }

    #[test]
    fn all_tables_pass_the_proof(
        spec in prop::sample::select(FULL.iter().copied().filter(|spec| !spec.contains("18")).collect::<Vec<_>>()),
        per_mille in 0_u32..200,
        seed in any::<u64>(),
        dead in any::<prop::sample::Index>(),
    ) {
        let fabric = degraded(spec, per_mille, seed);
        let Ok((subnet, routing)) = route(&fabric, &Settings::default()) else { return Ok(()) };
        prove(&subnet, &routing)?;
        // One more cable is lost, and the right entries of the tables stay.
        let Some(cable) = (!fabric.map.cables.is_empty()).then(|| dead.get(&fabric.map.cables)) else {
            return Ok(());
        };
        let cut = without(&subnet, cable.a);
        let kept = Settings { previous: Some(routing.tables), ..Settings::default() };
        if let Ok(mended) = compute(&cut, &kept) {
            prove(&cut, &mended)?;
        }
    }

    #[test]
    fn threads_do_not_matter(per_mille in 0_u32..150, seed in any::<u64>()) {
        let fabric = degraded("xgft:h=3;m=4,4,4;w=1,4,4", per_mille, seed);
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| route(&fabric, &Settings::default()).map(|(_, routing)| routing.tables))
        };
        prop_assert_eq!(on(1), on(2));
    }
}

/// Why a fabric is refused.
fn why(fabric: &Fabric, settings: &Settings) -> String {
    route(fabric, settings).unwrap_err().why.to_string()
}

fn built(build: impl FnOnce(&mut crate::fabrics::Builder), xbars: usize) -> Fabric {
    let mut builder = crate::fabrics::Builder::new(xbars);
    build(&mut builder);
    Fabric { map: builder.build(), ..Fabric::default() }
}

#[test]
fn what_is_no_tree_is_refused_with_a_reason() {
    let settings = Settings::default();
    let tree = generate("clos:hosts=32,ports=8").unwrap();
    let two_paths = Subnet::new(&tree, Some(1)).unwrap();
    assert!(compute(&two_paths, &settings).unwrap_err().why.to_string().contains("LMC of 1"));
    let one = built(|fabric| (0..3).for_each(|_| fabric.host(0)), 1);
    assert!(why(&one, &settings).contains("at least 2 xbars"), "{}", why(&one, &settings));
    let one_leaf = built(
        |fabric| {
            (0..2).for_each(|_| fabric.host(0));
            fabric.cable(0, 1);
        },
        2,
    );
    assert!(why(&one_leaf, &settings).contains("at least 2 leaves"));
    let pair = built(|fabric| (0..2).for_each(|_| fabric.host_at(None)), 0);
    assert!(why(&pair, &settings).contains("is cabled to another host"), "{}", why(&pair, &settings));
    let ring = generate("ring:n=5,hosts=1").unwrap();
    assert!(why(&ring, &settings).contains("joins ranks 0 and 0"), "{}", why(&ring, &settings));
    let beside = Settings { roots: Some(vec![0, 99]), ..Settings::default() };
    assert!(why(&tree, &beside).contains("root 99 is no xbar"));
    // A single host at a spine is taken for a service adapter, and served. If there are half as many as at a
    // leaf, they are compute nodes on another rank once the roots are known; without known roots, their
    // cables are within a rank.
    let mut at_spine = tree.clone();
    at_spine.map.hosts[31].at = Some(PortRef { xbar: 11, port: 9 });
    assert!(route(&at_spine, &settings).is_ok());
    at_spine.map.hosts[30].at = Some(PortRef { xbar: 11, port: 10 });
    assert!(why(&at_spine, &settings).contains("joins ranks"), "{}", why(&at_spine, &settings));
    let roots = Settings { roots: Some(vec![8, 9, 10, 11]), ..Settings::default() };
    assert!(why(&at_spine, &roots).contains("on different ranks"), "{}", why(&at_spine, &roots));
    let io = Settings { io_nodes: [30, 31].into(), ..roots };
    assert!(route(&at_spine, &io).is_ok());
}

#[test]
fn pairs_without_a_common_ancestor_are_refused_unless_one_is_an_io_node() {
    // Two trees of two leaves, joined at one leaf that has cables to both roots.
    let fabric = built(
        |fabric| {
            (0..3).for_each(|leaf| fabric.host(leaf));
            for (leaf, root) in [(0, 3), (1, 3), (1, 4), (2, 4)] {
                fabric.cable(leaf, root);
            }
        },
        5,
    );
    let refused = why(&fabric, &Settings::default());
    assert!(refused.contains("host 2") && refused.contains("host 0"), "{refused}");
    let io = Settings { io_nodes: [2].into(), ..Settings::default() };
    let refused = why(&fabric, &Settings { roots: Some(vec![3, 4]), ..io.clone() });
    assert!(refused.contains("0 steps the wrong way"), "{refused}");
    let allowed = Settings { max_reverse_hops: 1, roots: Some(vec![3, 4]), ..io };
    let (subnet, routing) = route(&fabric, &allowed).unwrap();
    for (from, to) in [(0, 2), (2, 0), (0, 1), (1, 2)] {
        let slot = subnet.destinations.slots_of_host(to).start;
        assert!(walk(&subnet, &routing.tables, from, slot).is_some(), "{from} {to}");
    }
}

#[test]
fn the_first_irregular_group_is_named_also_if_it_is_not_the_first_xbars() {
    let mut fabric = generate("xgft:h=3;m=4,4,4;w=1,4,4").unwrap();
    fabric.map.cables.retain(|cable| cable.a.xbar != 21 || cable.b.xbar < 32);
    let notes = route(&fabric, &Settings::default()).unwrap().1.notes;
    assert!(notes.len() == 1 && notes[0].contains("groups of cables"), "{notes:?}");
    let roots = Settings { roots: Some((32..48).collect()), ..Settings::default() };
    assert_eq!(route(&fabric, &roots).unwrap().1.notes, [""; 0]);
}

#[test]
fn parts_are_routed_each_for_itself() {
    let mut fabric = generate("xgft:h=3;m=4,4,4;w=1,4,4").unwrap();
    // The first pod loses all cables to the roots, and one leaf of the second all of its own.
    fabric.map.cables.retain(|cable| {
        let (low, high) = (cable.a.xbar.min(cable.b.xbar), cable.a.xbar.max(cable.b.xbar));
        !((16..20).contains(&low) && high >= 32) && low != 5
    });
    for roots in [None, Some((32..48).collect())] {
        let settings = Settings { roots, ..Settings::default() };
        let (_, routing) = route(&fabric, &settings).unwrap();
        check(&fabric, &settings, &routing.tables).unwrap();
    }
}

#[test]
fn compute_nodes_come_first() {
    let fabric = generate("clos:hosts=32,ports=8").unwrap();
    let settings = Settings { compute_nodes: Some((0..32).step_by(2).collect()), ..Settings::default() };
    let subnet = subnet(&fabric);
    let order = HostOrder::new(&subnet, &settings);
    assert_eq!((order.leaves[0].hosts.as_slice(), order.padded), ([0, 2].as_slice(), 2));
    assert_eq!(order.others.len(), 16);
    let routing = compute(&subnet, &settings).unwrap();
    check(&fabric, &settings, &routing.tables).unwrap();
    let all = compute(&subnet, &Settings::default()).unwrap();
    assert_ne!(routing.tables, all.tables);
}

/// The fabric without one cable, as a subnet whose nodes are numbered as before.
fn without(subnet: &Subnet, port: PortRef) -> Subnet {
    Subnet { topology: subnet.topology.without(&BTreeSet::from([port])), ..subnet.clone() }
}

#[test]
fn what_is_right_stays_and_only_the_rest_is_routed_anew() {
    let fabric = generate("xgft:h=3;m=4,4,4;w=1,4,4").unwrap();
    let (subnet, routing) = route(&fabric, &Settings::default()).unwrap();
    let kept = Settings { previous: Some(routing.tables.clone()), ..Settings::default() };
    assert_eq!(compute(&subnet, &kept).unwrap().tables, routing.tables);
    for dead in [PortRef { xbar: 3, port: 6 }, PortRef { xbar: 18, port: 7 }] {
        let cut = without(&subnet, dead);
        let mended = compute(&cut, &kept).unwrap().tables;
        let tree_settings = Settings::default();
        let order = HostOrder::new(&cut, &tree_settings);
        let tree =
            Tree::new(&cut, Ranks::new(&cut, &tree_settings, &order, &Tiers::of(&cut.topology)).unwrap());
        let reach = Reach::new(&tree);
        for slot in 0..cut.destinations.slot_count() as u32 {
            for from in 0..tree.xbar_count() as u32 {
                let Some(to) = host_of_slot(&cut, slot).and_then(|host| cut.xbar_of_host(host)) else {
                    continue;
                };
                if reach.between(from, to) == Reach::NONE {
                    // A spine that lost its cable to a leaf reaches its hosts by way of another leaf, so that it answers them.
                    let port = mended.port(from, slot);
                    assert!(port == Tables::NONE || walk(&cut, &mended, from, slot).is_some());
                    continue;
                }
                assert!(
                    walk(&cut, &mended, from, slot)
                        .is_some_and(|way| way.len() == usize::from(reach.between(from, to)))
                );
                let port = routing.tables.port(from, slot);
                if let Far::Channel(channel) = cut.topology.far(PortRef { xbar: from, port }) {
                    let next = cut.topology.head(channel).xbar;
                    if reach.between(next, to).saturating_add(1) == reach.between(from, to) {
                        assert_eq!(mended.port(from, slot), port, "a right entry stays");
                    }
                }
            }
        }
        let again = Settings { reassign: true, ..kept.clone() };
        assert_eq!(
            compute(&cut, &again).unwrap().tables,
            compute(&cut, &Settings::default()).unwrap().tables
        );
    }
    let small = Settings { previous: Some(Tables::empty(1, 1)), ..Settings::default() };
    assert_eq!(Engine::Ftree.compute(&subnet, &small).unwrap().tables, routing.tables);
}

#[test]
fn steps_are_those_of_the_shortest_ways_up_and_then_down() {
    for spec in ["xgft:h=3;m=3,3,4;w=1,3,3", "cluster:leaves=9,spines=5,hosts=60,cables=2,missing=3"] {
        for lost in 0..20 {
            let mut fabric = generate(spec).unwrap();
            for nth in 0..lost % 5 {
                let cables = fabric.map.cables.len();
                fabric.map.cables.remove((lost * 7 + nth * 13) % cables);
            }
            let (subnet, settings) = (subnet(&fabric), Settings::default());
            let (order, tiers) = (HostOrder::new(&subnet, &settings), Tiers::of(&subnet.topology));
            let Ok(ranks) = Ranks::new(&subnet, &settings, &order, &tiers) else { continue };
            let tree = Tree::new(&subnet, ranks);
            let reach = Reach::new(&tree);
            for from in 0..tree.xbar_count() as u32 {
                assert_eq!(reach.of(from), steps_from(&tree, from), "{spec} {lost} {from}");
            }
        }
    }
}

/// The steps from an xbar to all others by a search, whose ends have gone up only or have begun to go down.
fn steps_from(tree: &Tree<'_>, from: u32) -> Vec<u8> {
    let mut steps = vec![Reach::NONE; tree.xbar_count()];
    let mut met = std::collections::BTreeSet::from([(from, true)]);
    let mut ends = vec![(from, true)];
    for step in 0.. {
        let mut next = Vec::new();
        for (xbar, rises) in std::mem::take(&mut ends) {
            let known = &mut steps[xbar as usize];
            *known = step.min(*known);
            let up = tree.up.of(xbar).iter().filter(|_| rises).map(|group| (group.far, true));
            let down = tree.down.of(xbar).iter().map(|group| (group.far, false));
            next.extend(up.chain(down).filter(|&end| met.insert(end)));
        }
        if next.is_empty() {
            return steps;
        }
        ends = next;
    }
    steps
}
