use mapper_fabric::generate;
use proptest::prelude::*;

use super::*;
use crate::engines::{Proof, WhyNotServed, select};
use crate::fabrics::random;
use crate::{ProofRules, Topology, prove_tables};
use mapper_proto::map::Fabric;

fn subnet(spec: &str, lmc: Option<u8>) -> Subnet {
    Subnet::new(&generate(spec).unwrap(), lmc).unwrap()
}

#[test]
fn trees_need_one_layer_and_rings_two() {
    for (spec, layers) in [("clos:hosts=64,ports=8", 1), ("ring:n=7,hosts=2", 2)] {
        let served =
            select(&subnet(spec, None), &[Engine::Dfsssp], &Settings::default(), Proof::Required).unwrap();
        assert_eq!(served.routing.layers.count, layers, "{spec}");
    }
}

#[test]
fn cubes_and_tori_need_fewer_layers_than_there_are() {
    // OpenSM's dfsssp would need nine layers for either, and has eight.
    for (spec, layers) in [("hypercube:d=7,hosts=1", 2), ("torus:x=6,y=5,z=5,hosts=1", 5)] {
        let served =
            select(&subnet(spec, None), &[Engine::Dfsssp], &Settings::default(), Proof::Required).unwrap();
        assert!(served.routing.layers.count <= layers, "{spec}: {}", served.routing.layers.count);
    }
}

#[test]
fn several_addresses_a_host_are_served() {
    let subnet = subnet("torus:x=5,y=5,hosts=2", Some(1));
    let settings = Settings { xbar_destinations: true, ..Settings::default() };
    let served = select(&subnet, &[Engine::Dfsssp], &settings, Proof::Required).unwrap();
    assert!(served.proof.holds() && served.routing.layers.count > 1);
}

#[test]
fn too_few_layers_are_refused_with_the_number_that_is_needed() {
    let ring = subnet("ring:n=7,hosts=1", None);
    let with = |first_layer, most| {
        let settings = Settings { first_layer, max_layers: Some(most), ..Settings::default() };
        Dfsssp.compute(&ring, &settings)
    };
    assert_eq!(with(3, 5).unwrap().layers.first, 3);
    let why = with(3, 4).unwrap_err().why.to_string();
    assert_eq!(
        why,
        "it would serve in 2 layers, but there are 1 from layer 3 on; allow more (--max-layers), or try nue, which needs one"
    );
    assert!(with(4, 4).unwrap_err().why.to_string().starts_with("no layer is left"));
}

#[test]
fn sssp_is_refused_where_its_routes_close_a_circle() {
    let settings = Settings::default();
    let error =
        select(&subnet("ring:n=7,hosts=1", None), &[Engine::Sssp], &settings, Proof::Required).unwrap_err();
    let WhyNotServed::Unproved(proof) = &error.tried[0].why_not else { panic!("{error}") };
    assert!(!proof.deadlock_free);
    let served =
        select(&subnet("clos:hosts=64,ports=8", None), &[Engine::Sssp], &settings, Proof::Required).unwrap();
    assert_eq!(served.proof.max_hops, 5);
}

proptest! {
    #[test]
    fn any_fabric_is_served_by_shortest_routes(seed: u64, xbar_destinations: bool) {
        let map = random(seed);
        let shortest = Topology::from_map(&map).unwrap();
        let subnet = Subnet::new(&Fabric { map, ..Fabric::default() }, None).unwrap();
        let settings = Settings { xbar_destinations, ..Settings::default() };
        let routing = Dfsssp.compute(&subnet, &settings).unwrap();
        let rules = ProofRules { max_hops: Settings::MAX_HOPS, xbar_destinations };
        let proof = prove_tables(&subnet, &routing.tables, &routing.layers, &rules);
        prop_assert!(proof.holds(), "{:?}", proof.violations);
        prop_assert!(proof.max_hops <= shortest.xbar_count());
    }
}
