use std::collections::BTreeSet;

use mapper_proto::map::{Fabric, PortRef};
use mapper_sim::topology::generate;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::routing::{Attachment, Far};

/// Trees of two to four ranks, full.
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

/// A fabric less some of the cables between its xbars, chosen by a seed.
fn degraded(spec: &str, per_mille: u32, seed: u64) -> Fabric {
    let mut fabric = generate(spec).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    fabric.map.cables.retain(|_| rng.random_range(0..1000) >= per_mille);
    fabric
}

/// Two-rank tree whose leaves have `cables` cables to each spine.
fn with_parallel_cables(leaves: u32, spines: u32, cables: u32) -> Fabric {
    let mut builder = crate::routing::fabrics::Builder::new((leaves + spines) as usize);
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
    // Turns each xbar's ports round by some number, whatever is cabled to them.
    let turns: Vec<u8> = fabric.map.xbars.iter().map(|_| rng.random_range(0..8)).collect();
    let turned = |at: PortRef| PortRef { port: (at.port - 1 + turns[at.xbar as usize]) % 8 + 1, ..at };
    for cable in &mut fabric.map.cables {
        *cable = mapper_proto::map::Cable::new(turned(cable.a), turned(cable.b));
    }
    fabric.map.hosts.iter_mut().for_each(|host| host.at = host.at.map(turned));
    let (subnet, routing) = route(&fabric, &Settings::default()).unwrap();
    assert_eq!(shift_congestion(&subnet, &routing.tables), 1);
}

/// Checks that all hosts reach each other the shortest way up and down; the loads of all channels.
fn check(fabric: &Fabric, settings: &Settings, tables: &Tables) -> Result<Vec<u64>, TestCaseError> {
    let subnet = subnet(fabric);
    let order = HostOrder::new(&subnet, settings);
    let tree = Tree::new(&subnet, Ranks::new(&subnet, settings, &order).unwrap());
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
                // Nothing is worse than all routes of a damaged part on one cable of three.
                let hosts = fabric.map.hosts.len() as u64;
                prop_assert!(loads.iter().all(|&load| load <= hosts * hosts), "{:?}", loads.iter().max());
            }
            Err(error) => prop_assert!(error.why.contains("goes up and then down"), "{}", error.why),
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
