use mapper_fabric::generate;
use mapper_proto::map::{Cable, Fabric, Host, HostLabel, Map, PortRef, XbarLabel};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::Attachment;
use crate::fabrics::random;
use crate::tables::SlotEnd;
use crate::{Far, UnionProof};

const RULES: ProofRules = ProofRules { max_hops: 64, xbar_destinations: false };

fn labelled(map: Map) -> Fabric {
    let host = |i: usize, _: &Host| HostLabel { name: format!("h{}", i + 1), ..HostLabel::default() };
    let hosts = map.hosts.iter().enumerate().map(|(i, h)| host(i, h)).collect();
    let xbar = |i: usize| XbarLabel { name: format!("leaf{}", i + 1), ..XbarLabel::default() };
    let xbars = (0..map.xbars.len()).map(xbar).collect();
    Fabric { map, hosts, xbars, ..Default::default() }
}

/// Shortest routes, chosen at random among equals.
fn shortest(subnet: &Subnet, rng: &mut ChaCha8Rng) -> Tables {
    let (topology, all) = (&subnet.topology, &subnet.destinations);
    let mut tables = Tables::empty(topology.xbar_count(), all.slot_count());
    for end in 0..topology.xbar_count() as u32 {
        for slot in all.slots_of(end) {
            if let SlotEnd::Host { host, .. } = all.end(slot)
                && let Attachment::Port(at) = topology.attachment(host)
            {
                tables.set_port(end, slot, at.port);
            }
            let mut reached = vec![end];
            let mut at = 0;
            while at < reached.len() {
                let mut channels: Vec<u32> = topology.channels_of(reached[at]).collect();
                while !channels.is_empty() {
                    let channel = channels.swap_remove(rng.random_range(0..channels.len()));
                    let head = topology.head(channel);
                    if !reached.contains(&head.xbar) {
                        reached.push(head.xbar);
                        tables.set_port(head.xbar, slot, head.port);
                    }
                }
                at += 1;
            }
        }
    }
    tables
}

#[derive(Default, Debug, PartialEq, Eq)]
struct Counts {
    no_route: u64,
    loops: u64,
    too_long: u64,
    max_hops: usize,
    deadlocked: Vec<u8>,
}

/// Walks every pair by itself.
fn walked(subnet: &Subnet, tables: &Tables, layers: &Layers, rules: &ProofRules) -> Counts {
    let (topology, all) = (&subnet.topology, &subnet.destinations);
    let mut counts = Counts::default();
    let mut unions = vec![UnionProof::new(topology); 16];
    for end in 0..topology.xbar_count() as u32 {
        for slot in all.slots_of(end) {
            let to = all.end(slot);
            if matches!(to, SlotEnd::Xbar(_)) && !rules.xbar_destinations {
                continue;
            }
            for from in 0..topology.xbar_count() as u32 {
                let leaf = subnet.is_leaf(from);
                let begins = leaf || rules.xbar_destinations && matches!(to, SlotEnd::Host { .. });
                if !begins || topology.component(from) != topology.component(end) {
                    continue;
                }
                let mut passed = vec![from];
                let mut channels = Vec::new();
                let arrived = loop {
                    let xbar = passed[passed.len() - 1];
                    if to == SlotEnd::Xbar(xbar) {
                        break Ok(true);
                    }
                    match topology.far(PortRef { xbar, port: tables.port(xbar, slot) }) {
                        Far::Nothing => break Ok(false),
                        Far::Host(host) => {
                            break Ok(matches!(to, SlotEnd::Host { host: wanted, .. } if wanted == host));
                        }
                        Far::Channel(channel) => {
                            let next = topology.head(channel).xbar;
                            if passed.contains(&next) {
                                break Err(());
                            }
                            channels.push(channel);
                            passed.push(next);
                        }
                    }
                };
                let alone = from == end && topology.hosts_of(end).len() == 1 && !rules.xbar_destinations;
                match arrived {
                    Ok(true) => {
                        counts.max_hops = counts.max_hops.max(passed.len());
                        counts.too_long += u64::from(passed.len() > rules.max_hops.into());
                        for pair in channels.windows(2) {
                            unions[layers.of(from, end) as usize].add_dependency(pair[0], pair[1]);
                        }
                    }
                    _ if alone => {}
                    Ok(false) => counts.no_route += 1,
                    Err(()) => counts.loops += 1,
                }
            }
        }
    }
    let locked = |layer: &u8| unions[*layer as usize].prove_acyclic().is_err();
    counts.deadlocked = (0..16).filter(locked).collect();
    counts
}

fn counted(proof: &TablesProof) -> (bool, bool, bool, u64, usize, Vec<u8>) {
    let layer = |violation: &TableViolation| match violation {
        TableViolation::Deadlock { layer, .. } => Some(*layer),
        _ => None,
    };
    let layers = proof.violations.iter().filter_map(layer).collect();
    let TablesProof { reachable, loop_free, deadlock_free, violation_count, max_hops, .. } = *proof;
    (reachable, loop_free, deadlock_free, violation_count, max_hops, layers)
}

/// Checks each listed violation by itself.
fn check_violation(subnet: &Subnet, tables: &Tables, violation: &TableViolation) {
    let topology = &subnet.topology;
    let next = |xbar, slot| match topology.far(PortRef { xbar, port: tables.port(xbar, slot) }) {
        Far::Channel(channel) => Some(topology.head(channel).xbar),
        Far::Host(_) | Far::Nothing => None,
    };
    match violation {
        TableViolation::NoRoute { from, slot, at, .. } => {
            let mut xbar = *from;
            while let Some(next) = next(xbar, *slot) {
                xbar = next;
            }
            assert_eq!(xbar, *at);
        }
        TableViolation::Loop { slot, xbars, .. } => {
            for (place, &xbar) in xbars.iter().enumerate() {
                assert_eq!(next(xbar, *slot), Some(xbars[(place + 1) % xbars.len()]));
            }
        }
        TableViolation::Deadlock { cycle, .. } => {
            for (place, &port) in cycle.ports.iter().enumerate() {
                let Far::Channel(channel) = topology.far(port) else { panic!("{port:?} holds no cable") };
                assert_eq!(topology.head(channel).xbar, cycle.ports[(place + 1) % cycle.ports.len()].xbar);
            }
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn a_proof_finds_what_a_walk_of_every_pair_finds(
        seed: u64, corrupted in prop_oneof![Just(0), 0..4_usize, 20..60_usize], layer_count in 1..=16_u8,
        max_hops in prop_oneof![Just(64), 1..6_u8], xbar_destinations: bool,
    ) {
        let subnet = Subnet::new(&labelled(random(seed)), None).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut tables = shortest(&subnet, &mut rng);
        let (xbars, slots) = (subnet.topology.xbar_count(), subnet.destinations.slot_count());
        for _ in 0..corrupted {
            let (xbar, slot) = (rng.random_range(0..xbars as u32), rng.random_range(0..slots as u32));
            let ports = subnet.topology.channels_of(xbar).map(|channel| subnet.topology.tail(channel).port);
            let mut choices: Vec<u8> = ports.collect();
            choices.extend([Tables::NONE, rng.random_range(0..=255), 199]);
            tables.set_port(xbar, slot, choices[rng.random_range(0..choices.len())]);
        }
        let layers = if layer_count == 1 { Layers::single() } else {
            let of = (0..xbars * xbars).map(|_| rng.random_range(0..layer_count)).collect();
            Layers::by_destination(layer_count, 0, of, xbars)
        };
        let rules = ProofRules { max_hops, xbar_destinations };
        let proof = prove_tables(&subnet, &tables, &layers, &rules);
        let expected = walked(&subnet, &tables, &layers, &rules);
        let total = expected.no_route + expected.loops + expected.too_long + expected.deadlocked.len() as u64;
        prop_assert_eq!(counted(&proof), (
            expected.no_route + expected.loops == 0, expected.loops == 0, expected.deadlocked.is_empty(),
            total, expected.max_hops, expected.deadlocked,
        ));
        prop_assert_eq!(proof.holds(), total == 0);
        for violation in &proof.violations {
            check_violation(&subnet, &tables, violation);
        }
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        prop_assert_eq!(&alone.install(|| prove_tables(&subnet, &tables, &layers, &rules)), &proof);
    }
}

/// A ring of 4 xbars with a host each, where frames turn right all the way.
fn ring() -> (Fabric, Subnet, Tables) {
    let fabric = labelled(generate("ring:n=4,hosts=1").unwrap().map);
    let subnet = Subnet::new(&fabric, None).unwrap();
    let mut tables = Tables::empty(4, 8);
    for host in 0..4 {
        let slot = subnet.destinations.slots_of_host(host).start;
        for xbar in 0..4 {
            let right = |&channel: &u32| subnet.topology.head(channel).xbar == (xbar + 1) % 4;
            let right = subnet.topology.channels_of(xbar).find(right).unwrap();
            tables.set_port(xbar, slot, subnet.topology.tail(right).port);
        }
        let Attachment::Port(at) = subnet.topology.attachment(host) else { panic!("no cable") };
        tables.set_port(at.xbar, slot, at.port);
    }
    (fabric, subnet, tables)
}

#[test]
fn violations_are_told_by_name() {
    let (_, subnet, mut tables) = ring();
    let prove = |tables: &Tables| prove_tables(&subnet, tables, &Layers::single(), &RULES);
    let told = |proof: &TablesProof| proof.violations[0].describe(&subnet);
    let locked = prove(&tables);
    assert!(locked.reachable && locked.loop_free && !locked.deadlock_free && !locked.holds());
    assert_eq!(locked.max_hops, 4);
    let circle = told(&locked);
    assert!(
        circle.starts_with("layer 0 can deadlock: frames wait in a circle to leave leaf1 port "),
        "{circle}"
    );
    let slot = subnet.destinations.slots_of_host(3).start;
    let (good, back) = (tables.port(1, slot), tables.port(2, slot));
    tables.set_port(1, slot, Tables::NONE);
    assert_eq!(
        told(&prove(&tables)),
        "leaf2 has no entry for LID 0x0004: h1 cannot reach h4, nor does 1 more route arrive"
    );
    tables.set_port(1, slot, 77);
    let no_cable = "leaf2 sends LID 0x0004 out of port 77, where no cable leads on: h1 cannot reach h4, nor does 1 \
                    more route arrive";
    assert_eq!(told(&prove(&tables)), no_cable);
    let Attachment::Port(h2) = subnet.topology.attachment(1) else { panic!("no cable") };
    tables.set_port(1, slot, h2.port);
    let wrong = format!(
        "leaf2 sends LID 0x0004 out of port {}, to h2: h1 cannot reach h4, nor does 1 more route arrive",
        h2.port
    );
    assert_eq!(told(&prove(&tables)), wrong);
    tables.set_port(1, slot, good);
    let left = subnet.topology.channels_of(2).find(|&out| subnet.topology.head(out).xbar == 1).unwrap();
    tables.set_port(2, slot, subnet.topology.tail(left).port);
    let proof = prove(&tables);
    assert_eq!(told(&proof), "frames from h1 for h4 (LID 0x0004) go round in a loop: leaf2, leaf3, leaf2");
    assert_eq!(
        proof.to_string(),
        "frames from xbar 0 for slot 7 go round in a loop: xbar 1, xbar 2, xbar 1 (3 more violations)"
    );
    tables.set_port(2, slot, back);
    let short = ProofRules { max_hops: 3, ..RULES };
    let long = prove_tables(&subnet, &tables, &Layers::single(), &short);
    assert_eq!(told(&long), "the route from h2 to h1 is too long: it passes 4 xbars");
}

#[test]
fn a_pair_in_its_own_layer_opens_the_circle() {
    let (_, subnet, tables) = ring();
    // Frames that cross from xbar 3 to xbar 0 travel in layer 1, those that come from xbar 1 in layer 2.
    let crosses = |from: usize, to: usize| u8::from(to < from) + u8::from(to == 0 && from == 1);
    let of = (0..16).map(|pair| crosses(pair % 4, pair / 4)).collect();
    let proof = prove_tables(&subnet, &tables, &Layers::by_destination(3, 3, of, 4), &RULES);
    assert!(proof.holds(), "{proof}");
    assert_eq!(proof.to_string(), "every pair has a route, of 4 hops at most; no deadlock");
    let all_in_1 = prove_tables(&subnet, &tables, &Layers::by_destination(2, 3, vec![1; 16], 4), &RULES);
    assert!(matches!(all_in_1.violations[..], [TableViolation::Deadlock { layer: 4, .. }]));
    let too_high = prove_tables(&subnet, &tables, &Layers::by_destination(2, 15, vec![1; 16], 4), &RULES);
    assert!(matches!(too_high.violations[0], TableViolation::NoSuchLayer { from: 0, to: 0, layer: 16 }));
}

#[test]
fn tables_of_another_fabric_are_told_apart() {
    let (_, subnet, tables) = ring();
    let other = prove_tables(&subnet, &Tables::empty(5, 10), &Layers::single(), &RULES);
    assert!(!other.holds() && !other.reachable);
    assert!(other.violations[0].describe(&subnet).starts_with("the tables are another fabric's"));
    let layers = Layers::by_destination(2, 0, vec![0; 9], 3);
    assert!(!prove_tables(&subnet, &tables, &layers, &RULES).holds());
}

#[test]
fn hosts_that_no_table_can_join_are_cut_off_and_no_violation() {
    let mut map = generate("ring:n=4,hosts=1").unwrap().map;
    map.cables.retain(|cable: &Cable| ![cable.a.xbar, cable.b.xbar].contains(&2));
    map.hosts[0].at = None;
    let subnet = Subnet::new(&labelled(map), None).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let tables = shortest(&subnet, &mut rng);
    let proof = prove_tables(&subnet, &tables, &Layers::single(), &RULES);
    assert!(proof.holds(), "{proof}");
    assert_eq!(proof.cut_off, [0, 2]);
}

#[test]
fn an_empty_fabric_has_nothing_to_prove() {
    let subnet = Subnet::new(&Fabric::default(), None).unwrap();
    let proof = prove_tables(&subnet, &Tables::empty(0, 0), &Layers::single(), &RULES);
    assert!(proof.holds() && proof.reachable && proof.max_hops == 0);
}
