use mapper_fabric::generate;
use mapper_proto::map::Fabric;
use proptest::prelude::*;

use super::*;
use crate::fabrics::random;
use crate::{ProofRules, prove_tables};

const RULES: ProofRules = ProofRules { max_hops: 64, xbar_destinations: false };

fn subnet(spec: &str) -> Subnet {
    Subnet::new(&generate(spec).unwrap(), None).unwrap()
}

/// Routes a fabric, proves that, and tells the number of layers.
fn layers_of(spec: &str) -> u8 {
    let subnet = subnet(spec);
    let routing = Engine::Lash.compute(&subnet, &Settings::default()).unwrap();
    check(&subnet, &routing, &RULES);
    routing.layers.count
}

/// Checks what must hold for all tables and layers.
fn check(subnet: &Subnet, routing: &Routing, rules: &ProofRules) {
    let proof = prove_tables(subnet, &routing.tables, &routing.layers, rules);
    assert!(proof.holds(), "{proof}");
    let xbars = subnet.topology.xbar_count() as u32;
    for a in 0..xbars {
        for b in 0..xbars {
            assert_eq!(routing.layers.of(a, b), routing.layers.of(b, a), "one layer for both directions");
        }
    }
    assert_eq!(routing.layers.highest() + 1, routing.layers.count);
}

#[test]
fn few_layers_are_enough() {
    // OpenSM 3.3.23 needs 4, 3, 3, 5, 3 and 3 layers for these fabrics.
    assert_eq!(layers_of("ring:n=8,hosts=1"), 2);
    assert_eq!(layers_of("ring:n=6,hosts=1"), 2);
    assert_eq!(layers_of("torus:x=5,y=5,hosts=1"), 2);
    assert_eq!(layers_of("torus:x=6,y=6,hosts=1"), 3);
    assert_eq!(layers_of("dragonfly:a=4,p=2,h=2"), 2);
    assert_eq!(layers_of("random:xbars=32,ports=24,hosts=128,links=100,seed=1"), 2);
}

#[test]
fn where_one_layer_is_enough_one_is_used() {
    for spec in
        ["mesh:x=5,y=5,hosts=1", "hypercube:d=7,hosts=8", "clos:hosts=128,ports=16", "now:subclusters=3"]
    {
        assert_eq!(layers_of(spec), 1, "{spec}");
    }
}

#[test]
fn a_torus_of_150_routers_fits() {
    // OpenSM needs 7, and its dfsssp more than 8.
    assert!(layers_of("torus:x=6,y=5,z=5,hosts=16") <= 5);
}

#[test]
fn hosts_of_a_fat_tree_spread_over_the_spines() {
    let subnet = subnet("xgft:h=2;m=8,8;w=1,8");
    let trees = ShortestTrees::new(&subnet, Choice::LeastLoadedByHost);
    // Each of the 64 hosts sends to the 56 that are elsewhere, over 8 channels of its leaf.
    assert_eq!(trees.busiest, 56);
    assert_eq!(Engine::Lash.compute(&subnet, &Settings::default()).unwrap().layers.count, 1);
}

#[test]
fn in_as_many_layers_as_a_refusal_tells_it_serves() {
    for spec in [
        "torus:x=6,y=5,z=5,hosts=1",
        "torus:x=6,y=6,hosts=1",
        "random:xbars=32,ports=24,hosts=128,links=100,seed=1",
    ] {
        let subnet = subnet(spec);
        let with =
            |most| Engine::Lash.compute(&subnet, &Settings { max_layers: Some(most), ..Settings::default() });
        let Refusal::TooManyLayers(told) = with(1).unwrap_err().why else { panic!("{spec}") };
        let routing = with(told.needed as u8).unwrap();
        check(&subnet, &routing, &RULES);
    }
}

#[test]
fn layers_are_filled_alike() {
    for spec in ["ring:n=9,hosts=1", "torus:x=5,y=5,hosts=1", "dragonfly:a=4,p=2,h=2"] {
        let subnet = subnet(spec);
        let routing = Engine::Lash.compute(&subnet, &Settings::default()).unwrap();
        let mut sizes = vec![0_usize; routing.layers.count.into()];
        for (a, b) in Pairs::new(&subnet, false).both_ways() {
            sizes[usize::from(routing.layers.of(a, b))] += 2;
        }
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        assert!(most - least < 6, "{spec}: {sizes:?}");
    }
}

#[test]
fn first_and_most_layers_bound_the_layers() {
    let subnet = subnet("ring:n=8,hosts=1");
    let with = |first_layer, max_layers| {
        let settings = Settings { first_layer, max_layers: Some(max_layers), ..Settings::default() };
        Engine::Lash.compute(&subnet, &settings)
    };
    let routing = with(3, 5).unwrap();
    assert_eq!((routing.layers.first, routing.layers.count), (3, 2));
    let why = with(3, 4).unwrap_err().why.to_string();
    assert_eq!(
        why,
        "it would serve in 2 layers, but there are 1 from layer 3 on; allow more (--max-layers), or try updn"
    );
    assert_eq!(
        with(4, 4).unwrap_err().why.to_string(),
        "no layer is left: 4 are allowed (--max-layers), the first is 4 (--lash-start-vl)"
    );
    assert!(with(14, 16).is_ok() && with(15, 16).is_err());
}

#[test]
fn several_addresses_are_refused() {
    let subnet = Subnet::new(&generate("ring:n=4,hosts=1").unwrap(), Some(1)).unwrap();
    let why = Engine::Lash.compute(&subnet, &Settings::default()).unwrap_err().why.to_string();
    assert_eq!(why, "hosts have 2 addresses each (LMC 1); it needs LMC 0");
}

#[test]
fn a_cut_fabric_is_routed_part_by_part() {
    let mut fabric = generate("torus:x=6,y=6,hosts=1").unwrap();
    // Two rings are cut off from the others.
    let inner = |xbar: u32| xbar < 12;
    fabric.map.cables.retain(|cable| inner(cable.a.xbar) == inner(cable.b.xbar));
    let subnet = Subnet::new(&fabric, None).unwrap();
    let routing = Engine::Lash.compute(&subnet, &Settings::default()).unwrap();
    check(&subnet, &routing, &RULES);
    assert!(prove_tables(&subnet, &routing.tables, &routing.layers, &RULES).cut_off.len() == 12);
}

proptest! {
    #[test]
    fn what_is_computed_is_proved(seed: u64, xbar_destinations: bool) {
        let map = random(seed);
        let fabric = Fabric {
            hosts: vec![Default::default(); map.hosts.len()],
            xbars: vec![Default::default(); map.xbars.len()],
            map,
            ..Fabric::default()
        };
        let subnet = Subnet::new(&fabric, None).unwrap();
        let settings = Settings { xbar_destinations, ..Settings::default() };
        let routing = Engine::Lash.compute(&subnet, &settings).unwrap();
        check(&subnet, &routing, &ProofRules { xbar_destinations, ..RULES });
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let again = alone.install(|| Engine::Lash.compute(&subnet, &settings)).unwrap();
        prop_assert_eq!((again.tables, again.layers), (routing.tables, routing.layers));
    }

    #[test]
    fn a_layer_takes_what_closes_no_cycle_and_nothing_else(
        seed: u64, steps in prop::collection::vec((any::<u16>(), 1..4_usize, any::<bool>()), 1..120),
    ) {
        let topology = crate::Topology::from_map(&random(seed)).unwrap();
        let numbers = DependencyNumbers::new(&topology);
        let every: Vec<(u32, u32)> = (0..topology.channel_count() as u32)
            .flat_map(|held| topology.channels_of(topology.head(held).xbar).map(move |wanted| (held, wanted)))
            .collect();
        let mut layer = crate::engines::layer::Layer::new(&numbers);
        let mut there: Vec<Vec<(u32, u32)>> = Vec::new();
        for (at, count, remove) in steps {
            if remove && !there.is_empty() {
                let gone = there.swap_remove(usize::from(at) % there.len());
                layer.remove(&gone.iter().map(|&(held, wanted)| numbers.dependency(held, wanted)).collect::<Vec<_>>());
                continue;
            }
            let pick = |i: usize| every[(usize::from(at) + 37 * i) % every.len()];
            let Some(_) = every.first() else { continue };
            let batch: Vec<(u32, u32)> = (0..count).map(pick).collect();
            let mut union = crate::UnionProof::new(&topology);
            there.iter().flatten().chain(&batch).for_each(|&(held, wanted)| union.add_dependency(held, wanted));
            let dependencies: Vec<_> =
                batch.iter().map(|&(held, wanted)| numbers.dependency(held, wanted)).collect();
            prop_assert_eq!(layer.add(&dependencies), union.prove_acyclic().is_ok());
            if union.prove_acyclic().is_ok() {
                there.push(batch);
            }
        }
    }
}
