use mapper_fabric::generate;
use mapper_proto::Mac;
use mapper_proto::map::PortRef;
use proptest::prelude::*;

use super::*;

fn tiers_of(spec: &str) -> (Topology, Tiers) {
    let topology = Topology::from_map(&generate(spec).unwrap().map).unwrap();
    let tiers = Tiers::of(&topology);
    (topology, tiers)
}

#[test]
fn an_adapter_on_every_switch_makes_no_spine_a_leaf() {
    for service in ["every", "spines", "none"] {
        let spec = format!("cluster:leaves=24,spines=16,hosts=542,missing=60,service={service}");
        let (topology, tiers) = tiers_of(&spec);
        assert_eq!(tiers.leaves(), (0..24).collect::<Vec<_>>(), "{service}");
        assert_eq!(tiers.service_adapters(&topology), if service == "none" { 0 } else { 16 }, "{service}");
    }
}

#[test]
fn an_adapter_on_every_switch_makes_no_leaf_where_leaves_have_two_hosts_of_their_own() {
    for hosts in [12, 15, 18] {
        let (_, tiers) = tiers_of(&format!("cluster:leaves=6,spines=3,hosts={hosts},service=every"));
        assert_eq!((tiers.leaves(), tiers.served()), (&[0, 1, 2, 3, 4, 5][..], &[6, 7, 8][..]), "{hosts}");
    }
}

#[test]
fn xbars_with_as_many_hosts_as_others_are_all_leaves() {
    for (spec, leaves) in [
        ("torus:x=5,y=5,hosts=1", 25),
        ("dragonfly:a=4,p=2,h=2", 36),
        ("clos:hosts=128,ports=8", 32),
        ("now", 21),
    ] {
        let (_, tiers) = tiers_of(spec);
        assert_eq!((tiers.leaves().len(), tiers.served()), (leaves, &[][..]), "{spec}");
    }
}

/// A fabric with one more host at each of some xbars.
fn with_hosts_at(spec: &str, xbars: impl Iterator<Item = u32>) -> Topology {
    let mut fabric = generate(spec).unwrap();
    for xbar in xbars {
        let mut host = fabric.map.hosts[0];
        host.mac = Mac::from_position(1_000_000 + xbar);
        host.at = Some(PortRef { xbar, port: 200 });
        fabric.map.hosts.push(host);
        fabric.map.xbars[xbar as usize].ports = 200;
    }
    Topology::from_map(&fabric.map).unwrap()
}

#[test]
fn adapters_on_all_tiers_of_a_deep_tree_make_no_leaf() {
    for (spec, leaves, xbars) in
        [("clos:hosts=1024,ports=16", 128, 320), ("xgft:h=3;m=4,4,8;w=1,4,4", 32, 80)]
    {
        let bare = with_hosts_at(spec, 0..0);
        for from in [leaves, leaves + 1, leaves * 2] {
            let topology = with_hosts_at(spec, from..xbars);
            let tiers = Tiers::of(&topology);
            assert_eq!(tiers.leaves(), (0..leaves).collect::<Vec<_>>(), "{spec} from {from}");
            assert_eq!(tiers.heights(), Tiers::of(&bare).heights(), "{spec} from {from}");
        }
    }
}

#[test]
fn a_leaf_of_two_storage_hosts_is_a_leaf() {
    let (_, tiers) = tiers_of("cluster:leaves=8,spines=4,hosts=128,missing=4,storage=2,service=spines");
    assert_eq!(tiers.leaves(), [0, 1, 2, 3, 4, 5, 6, 7, 12, 13]);
    assert_eq!(tiers.served(), [8, 9, 10, 11]);
}

#[test]
fn where_cables_join_xbars_of_one_tier_all_that_have_hosts_are_leaves() {
    // A ring of unequal xbars, with a cable across.
    let topology = with_hosts_at("dragonfly:a=4,p=8,h=2", 0..1);
    assert!(Tiers::of(&topology).served().is_empty());
}

/// Whether a step leads up in an order.
fn climbs(place: &[u32], from: u32, to: u32) -> bool {
    place[to as usize] < place[from as usize]
}

proptest! {
    /// In the order with one top all xbars of a part climb to one, and a shortest way between leaves that
    /// goes up and then down a tree goes up and then down in that order, too.
    #[test]
    fn an_order_with_one_top_joins_all_and_keeps_the_routes_between_leaves(
        leaves in 2_u64..9,
        spines in 1_u64..7,
        missing in 0_u64..20,
        cables in 1_u64..3,
        seed in any::<u64>(),
    ) {
        let missing = missing.min(leaves * (spines - 1));
        let hosts = 4 * leaves;
        let spec = format!(
            "cluster:leaves={leaves},spines={spines},hosts={hosts},missing={missing},cables={cables},service=spines,seed={seed}"
        );
        let (topology, tiers) = tiers_of(&spec);
        let by_height: Vec<u32> = (0..(leaves + spines) as u32)
            .map(|xbar| if u64::from(xbar) < leaves { xbar + spines as u32 } else { xbar - leaves as u32 })
            .collect();
        let place = with_one_top(&topology, &tiers, &by_height, tiers.served());
        let mut sorted = place.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, (0..place.len() as u32).collect::<Vec<_>>());
        for xbar in 0..place.len() as u32 {
            let is_top = !neighbours(&topology, xbar).any(|head| climbs(&place, xbar, head));
            let alone = topology.component(xbar);
            let tops = (0..place.len() as u32)
                .filter(|&other| topology.component(other) == alone)
                .filter(|&other| !neighbours(&topology, other).any(|head| climbs(&place, other, head)));
            prop_assert!(!is_top || tops.count() == 1);
        }
        for spine in leaves as u32..place.len() as u32 {
            let above = neighbours(&topology, spine).filter(|&leaf| climbs(&place, spine, leaf));
            let mut above: Vec<u32> = above.collect();
            above.dedup();
            prop_assert!(above.len() <= 1, "spine {} is below {:?}: no route joins these over it", spine, above);
        }
    }
}

/// All xbars that ways up from one lead to, itself too.
fn climbed(topology: &Topology, tiers: &Tiers, from: u32) -> Vec<u32> {
    let mut all = vec![from];
    let mut next = 0;
    while let Some(&xbar) = all.get(next) {
        next += 1;
        for head in neighbours(topology, xbar) {
            if tiers.heights()[head as usize] > tiers.heights()[xbar as usize] && !all.contains(&head) {
                all.push(head);
            }
        }
    }
    all
}

proptest! {
    /// Leaves are apart that are cabled together and climb to no xbar in common.
    #[test]
    fn leaves_that_climb_to_no_xbar_in_common_are_apart(seed: u64) {
        let topology = Topology::from_map(&crate::fabrics::random(seed)).unwrap();
        let tiers = Tiers::of(&topology);
        let above: Vec<Vec<u32>> =
            tiers.leaves().iter().map(|&leaf| climbed(&topology, &tiers, leaf)).collect();
        let is_apart = |one: usize, other: usize| {
            topology.component(tiers.leaves()[one]) == topology.component(tiers.leaves()[other])
                && !above[one].iter().any(|xbar| above[other].contains(xbar))
        };
        let all = 0..tiers.leaves().len();
        let apart = all.clone().filter(|&one| all.clone().any(|other| is_apart(one, other)));
        let apart: Vec<u32> = apart.map(|at| tiers.leaves()[at]).collect();
        prop_assert_eq!(leaves_apart(&topology, &tiers), apart);
    }
}
