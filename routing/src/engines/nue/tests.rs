use mapper_fabric::generate;
use mapper_proto::Mac;
use mapper_proto::map::{Cable, Fabric, Host, Map, PortRef, Xbar, host_type};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::engines::{Proof, select};
use crate::fabrics::random;
use crate::{ProofRules, prove_tables};

fn subnet(spec: &str, lmc: Option<u8>) -> Subnet {
    Subnet::new(&generate(spec).unwrap(), lmc).unwrap()
}

#[test]
fn one_layer_serves_whatever_the_shape() {
    let specs = [
        "ring:n=9,hosts=2",
        "torus:x=5,y=5,hosts=2",
        "hypercube:d=5,hosts=2",
        "clos:hosts=64,ports=8",
        "random:xbars=40,ports=16,hosts=110,links=100,seed=3",
        "dragonfly:a=4,p=2,h=2",
    ];
    for spec in specs {
        let served =
            select(&subnet(spec, None), &[Engine::Nue], &Settings::default(), Proof::Required).unwrap();
        assert_eq!(served.routing.layers.count, 1, "{spec}");
    }
}

#[test]
fn no_address_of_a_tree_is_left_to_the_escape_tree() {
    for spec in ["clos:hosts=128,ports=8", "xgft:h=3;m=4,4,6;w=1,4,4"] {
        let served =
            select(&subnet(spec, None), &[Engine::Nue], &Settings::default(), Proof::Required).unwrap();
        assert_eq!(served.routing.notes, [""; 0], "{spec}");
        assert_eq!(served.proof.max_hops, 5, "{spec}: all routes are shortest");
    }
}

/// The effective bisection of an engine's tables.
fn bisection(subnet: &Subnet, engine: Engine) -> f64 {
    let served = select(subnet, &[engine], &Settings::default(), Proof::Required).unwrap();
    Quality::measure(&TableRoutes::new(subnet, &served.routing.tables), 1).effective_bisection
}

#[test]
fn one_layer_is_no_worse_than_an_order_of_xbars() {
    for (spec, more) in [
        // Service adapters on spines need turns at leaves, which would block the ways of all others if they were
        // used at every leaf.
        ("cluster:leaves=24,spines=16,hosts=542,missing=5,service=every", 1.0),
        ("random:xbars=40,ports=16,hosts=110,links=100,seed=3", 1.03),
        ("dragonfly:a=8,p=1,h=7,groups=15", 1.03),
        // An order of xbars leads too many routes by its top, though all of them are shortest.
        ("hypercube:d=6,hosts=4", 1.05),
    ] {
        let subnet = subnet(spec, None);
        let (dnup, nue) = (bisection(&subnet, Engine::Dnup), bisection(&subnet, Engine::Nue));
        assert!(nue >= more * dnup, "{spec}: {nue:.3}, and dnup {dnup:.3}");
    }
}

#[test]
fn turns_that_no_tree_makes_any_more_block_nothing() {
    // When they were, a channel of this mesh had 432 routes.
    let subnet = subnet("mesh:x=6,y=6,hosts=2", None);
    let served = select(&subnet, &[Engine::Nue], &Settings::default(), Proof::Required).unwrap();
    let quality = Quality::measure(&TableRoutes::new(&subnet, &served.routing.tables), 1);
    assert!(quality.edge_forwarding_index <= 300.0, "{}", quality.edge_forwarding_index);
}

#[test]
fn what_is_forgotten_may_be_used_again() {
    let subnet = subnet("ring:n=3,hosts=1", None);
    let topology = &subnet.topology;
    let mut turns = Turns::new(topology, &(0..topology.channel_count() as u32).collect::<Vec<_>>());
    // The channels one way round, from the first one on.
    let mut round = vec![0];
    while round.len() < 3 {
        let last = *round.last().unwrap();
        let onward = topology.channels_of(topology.head(last).xbar);
        round.extend(onward.filter(|&channel| channel != topology.reverse(last)));
    }
    assert!(turns.make_used(round[0], round[1]) && turns.make_used(round[1], round[2]));
    assert!(!turns.make_used(round[2], round[0]) && turns.are_some_blocked());
    turns.forget();
    assert!(!turns.are_some_blocked() && turns.may_use(round[2], round[0]));
    assert!(turns.make_used(round[2], round[0]) && turns.make_used(round[0], round[1]));
    assert!(!turns.make_used(round[1], round[2]));
}

/// A tree of three tiers whose cables are drawn, so that there are leaves that no way up and then down joins.
fn irregular_tree() -> Fabric {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let xbar = Xbar { ports: 40, tag: None, ports_known: true };
    let mut map = Map { xbars: vec![xbar; 108], ..Map::default() };
    let mut next = [1; 108];
    let mut port = |xbar: u32| {
        next[xbar as usize] += 1;
        PortRef { xbar, port: next[xbar as usize] }
    };
    for host in 0..256 {
        let at = Some(port(host / 4));
        map.hosts.push(Host { mac: Mac::from_position(host), at, ..map_host() });
    }
    for leaf in 0..64 {
        for _ in 0..2 {
            let middle = 64 + leaf / 16 * 8 + rng.random_range(0..8);
            map.cables.push(Cable::new(port(leaf), port(middle)));
        }
    }
    for middle in 64..96 {
        for _ in 0..3 {
            let top = 96 + rng.random_range(0..12);
            map.cables.push(Cable::new(port(middle), port(top)));
        }
    }
    Fabric { map, ..Fabric::default() }
}

fn map_host() -> Host {
    Host { mac: Mac::default(), level: 1, host_type: host_type::GM, at: None }
}

#[test]
fn a_tree_without_legal_ways_up_and_down_is_not_left_to_the_escape_tree() {
    let subnet = Subnet::new(&irregular_tree(), None).unwrap();
    assert!(select(&subnet, &[Engine::Dnup], &Settings::default(), Proof::Required).is_err());
    for most in [1, 2] {
        let settings = Settings { max_layers: Some(most), ..Settings::default() };
        let routing = select(&subnet, &[Engine::Nue], &settings, Proof::Required).unwrap().routing;
        assert_eq!(routing.notes, [""; 0], "{most} layers");
    }
}

#[test]
fn as_many_layers_as_are_allowed_are_used() {
    let ring = subnet("ring:n=9,hosts=1", None);
    for most in [1, 2, 4, 16] {
        let settings = Settings { max_layers: Some(most), ..Settings::default() };
        let served = select(&ring, &[Engine::Nue], &settings, Proof::Required).unwrap();
        assert!(served.routing.layers.count <= most, "{most}");
    }
    let settings = Settings { first_layer: 4, max_layers: Some(6), ..Settings::default() };
    let layers = Nue.compute(&ring, &settings).unwrap().layers;
    assert_eq!((layers.first, layers.count), (4, 2));
    let none = Settings { first_layer: 6, ..settings };
    assert!(Nue.compute(&ring, &none).unwrap_err().why.to_string().starts_with("no layer is left"));
}

proptest! {
    #[test]
    fn any_fabric_is_served_in_any_number_of_layers(
        seed: u64, most in 1..9_u8, xbar_destinations: bool, lmc in 0..2_u8,
    ) {
        let fabric = Fabric { map: random(seed), ..Fabric::default() };
        let subnet = Subnet::new(&fabric, Some(lmc)).unwrap();
        let settings = Settings { max_layers: Some(most), xbar_destinations, ..Settings::default() };
        let routing = Nue.compute(&subnet, &settings).unwrap();
        prop_assert!(routing.layers.count <= most);
        let rules = ProofRules { max_hops: Settings::MAX_HOPS, xbar_destinations };
        let proof = prove_tables(&subnet, &routing.tables, &routing.layers, &rules);
        prop_assert!(proof.holds(), "{:?}", proof.violations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Tables that were in force stay, whichever engine made them, if they close no circle. If a cable is
    /// gone, what is left of them is completed to tables that hold.
    #[test]
    fn tables_in_force_stay_and_are_completed(seed: u64, most in 1_u8..3, gone: prop::sample::Index) {
        let map = random(seed);
        let subnet = |map: &Map| Subnet::new(&Fabric { map: map.clone(), ..Fabric::default() }, None).unwrap();
        let whole = subnet(&map);
        let rules = ProofRules { max_hops: Settings::MAX_HOPS, xbar_destinations: false };
        let after = |subnet: &Subnet, previous: &Tables| {
            let settings = Settings { max_layers: Some(most), previous: Some(previous.clone()), ..Settings::default() };
            let routing = Nue.compute(subnet, &settings).unwrap();
            let proof = prove_tables(subnet, &routing.tables, &routing.layers, &rules);
            (routing.tables, proof)
        };
        for engine in [Engine::Nue, Engine::Updn, Engine::Dnup, Engine::Minhop] {
            let settings = Settings { max_layers: Some(most), ..Settings::default() };
            let Ok(served) = select(&whole, &[engine], &settings, Proof::Required) else { continue };
            let in_force = served.routing.tables;
            let (again, proof) = after(&whole, &in_force);
            prop_assert!(proof.holds(), "{engine}: {}", proof);
            let hosts = (0..whole.topology.xbar_count() as u32).flat_map(|xbar| whole.destinations.host_slots_of(xbar));
            for slot in hosts {
                prop_assert_eq!(again.of_slot(slot), in_force.of_slot(slot), "{}", engine);
            }
            if map.cables.is_empty() {
                continue;
            }
            let mut cut = map.clone();
            cut.cables.remove(gone.index(map.cables.len()));
            let (_, proof) = after(&subnet(&cut), &in_force);
            prop_assert!(proof.holds(), "{engine}, a cable gone: {}", proof);
        }
    }
}
