use mapper_fabric::generate;
use mapper_proto::map::Fabric;
use proptest::prelude::*;

use super::*;
use crate::engines::select;
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
        let served = select(&subnet(spec, None), &[Engine::Nue], &Settings::default(), false).unwrap();
        assert_eq!(served.routing.layers.count, 1, "{spec}");
    }
}

#[test]
fn no_address_of_a_tree_is_left_to_the_escape_tree() {
    for spec in ["clos:hosts=128,ports=8", "xgft:h=3;m=4,4,6;w=1,4,4"] {
        let served = select(&subnet(spec, None), &[Engine::Nue], &Settings::default(), false).unwrap();
        assert_eq!(served.routing.notes, [""; 0], "{spec}");
        assert_eq!(served.proof.max_hops, 5, "{spec}: all routes are shortest");
    }
}

#[test]
fn as_many_layers_as_are_allowed_are_used() {
    let ring = subnet("ring:n=9,hosts=1", None);
    for most in [1, 2, 4, 16] {
        let settings = Settings { max_layers: Some(most), ..Settings::default() };
        let served = select(&ring, &[Engine::Nue], &settings, false).unwrap();
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
