//! Where detours come down.

use super::*;

const TREE: &str = "xgft:h=3;m=4,4,8;w=1,4,4";
const LEAVES: u32 = 32;
const MIDS: u32 = 32;

/// The tree without the first cable up from an xbar, and that cable's ends, the lower one first.
fn without_first_up(low: u32) -> (Fabric, [u32; 2]) {
    let mut fabric = generate(TREE).unwrap();
    let ends =
        |cable: &mapper_proto::map::Cable| [cable.a.xbar.min(cable.b.xbar), cable.a.xbar.max(cable.b.xbar)];
    let place = fabric.map.cables.iter().position(|cable| ends(cable)[0] == low).unwrap();
    let cable = fabric.map.cables.remove(place);
    (fabric, ends(&cable))
}

/// The ways from all leaves to all hosts at others: the host's leaf, its slot and the channels.
fn ways(subnet: &Subnet, tables: &Tables) -> Vec<(u32, u32, Vec<u32>)> {
    let mut all = Vec::new();
    for to in 0..LEAVES {
        for slot in subnet.destinations.host_slots_of(to) {
            for from in (0..LEAVES).filter(|&from| from != to) {
                all.push((to, slot, walk(subnet, tables, from, slot).unwrap()));
            }
        }
    }
    all
}

/// The pod of a leaf.
fn pod(leaf: u32) -> u32 {
    leaf / 4
}

/// The most other hosts that a way to a host outside a pod meets on its way down, and how many ways meet any.
/// On each channel only the hosts count to which most routes down it lead.
fn hosts_met(subnet: &Subnet, tables: &Tables, but: u32) -> (usize, usize) {
    let ways = ways(subnet, tables);
    let mut routes = vec![std::collections::BTreeMap::new(); subnet.topology.channel_count()];
    for (_, slot, way) in &ways {
        way.iter().for_each(|&channel| *routes[channel as usize].entry(*slot).or_insert(0) += 1);
    }
    let is_down =
        |channel: &&u32| subnet.topology.head(**channel).xbar < subnet.topology.tail(**channel).xbar;
    let met = ways.iter().filter(|(to, ..)| pod(*to) != but).map(|(_, slot, way)| {
        let routes = way.iter().filter(is_down).flat_map(|&channel| &routes[channel as usize]);
        let usual = routes.filter(|&(other, &count)| other != slot && count > LEAVES / 2);
        usual.map(|(&other, _)| other).collect::<BTreeSet<u32>>().len()
    });
    met.fold((0, 0), |(most, any), met| (most.max(met), any + usize::from(met > 0)))
}

#[test]
fn detours_round_a_cable_to_a_root_meet_one_other_host() {
    let (fabric, [mid, root]) = without_first_up(LEAVES + 6);
    assert!(mid < LEAVES + MIDS && root >= LEAVES + MIDS);
    let (subnet, routing) = route(&fabric, &Settings::default()).unwrap();
    // The root served a host of each other pod. The hosts of this pod are now more than the roots that serve
    // them.
    assert_eq!(hosts_met(&subnet, &routing.tables, pod(mid - LEAVES)), (1, 7 * 4));
}

#[test]
fn detours_round_a_cable_of_a_leaf_meet_one_host_of_their_destinations_leaf() {
    let (fabric, [leaf, _]) = without_first_up(5);
    let (subnet, routing) = route(&fabric, &Settings::default()).unwrap();
    // A host of each leaf of another pod was reached by this cable.
    assert_eq!(hosts_met(&subnet, &routing.tables, pod(leaf)), (1, 28));
    let mut leaves_below = vec![BTreeSet::new(); subnet.topology.channel_count()];
    for (to, _, way) in ways(&subnet, &routing.tables) {
        // The planes that lead to this leaf are one fewer than its hosts, so some hosts share one.
        if pod(to) != pod(leaf) {
            way.iter().for_each(|&channel| _ = leaves_below[channel as usize].insert(to));
        }
    }
    for channel in 0..subnet.topology.channel_count() as u32 {
        if subnet.topology.tail(channel).xbar >= LEAVES + MIDS {
            assert!(leaves_below[channel as usize].len() <= 1, "channel {channel}: {leaves_below:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn no_damaged_tree_is_routed_worse_than_by_minhops_counters(per_mille in 5_u32..80, seed in any::<u64>()) {
        let fabric = degraded("xgft:h=3;m=4,4,8;w=1,4,4", per_mille, seed);
        let roots = Some((LEAVES + MIDS..LEAVES + MIDS + 16).collect());
        let Ok((subnet, routing)) = route(&fabric, &Settings { roots, ..Settings::default() }) else {
            return Ok(());
        };
        let counters = Settings { balance: crate::engines::Balance::Opensm, ..Settings::default() };
        let other = Engine::Minhop.compute(&subnet, &counters).unwrap().tables;
        let bisection = |tables: &Tables| {
            let routes = crate::TableRoutes::new(&subnet, tables);
            crate::Quality::measure(&routes, seed).effective_bisection
        };
        let (ours, theirs) = (bisection(&routing.tables), bisection(&other));
        prop_assert!(ours >= theirs, "{ours} and {theirs}");
    }
}
