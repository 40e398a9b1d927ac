//! How evenly cables are loaded, compared with tables that each xbar balances by its own counters.

use super::*;
use crate::engines::Balance;
use crate::quality::{Quality, TableRoutes};

fn quality(subnet: &Subnet, tables: &Tables) -> Quality {
    Quality::measure(&TableRoutes::new(subnet, tables), 1)
}

#[test]
fn a_full_tree_is_loaded_evenly() {
    for (spec, index) in [("xgft:h=2;m=6,12;w=1,6", 66.0), ("xgft:h=3;m=4,4,8;w=1,4,4", 124.0)] {
        let subnet = subnet(spec);
        for engine in [Engine::Minhop, Engine::Updn, Engine::Dnup] {
            let found = tables(engine, &subnet, &Settings::default());
            assert!(proved(&subnet, &found).holds(), "{spec} {engine}");
            let quality = quality(&subnet, &found);
            assert_eq!(quality.edge_forwarding_index, index, "{spec} {engine}");
        }
    }
}

#[test]
fn no_tree_is_worse_than_by_counters_of_single_xbars() {
    let specs = ["xgft:h=2;m=18,36;w=1,18", "xgft:h=3;m=6,6,12;w=1,6,6"];
    for (spec, per_mille) in specs.into_iter().flat_map(|spec| [(spec, 0), (spec, 10), (spec, 50)]) {
        let subnet = degraded(spec, per_mille);
        for engine in [Engine::Minhop, Engine::Updn] {
            let ours = tables(engine, &subnet, &Settings::default());
            assert!(proved(&subnet, &ours).holds(), "{spec} {engine}");
            let settings = Settings { balance: Balance::Opensm, ..Settings::default() };
            let Ok(theirs) = engine.compute(&subnet, &settings) else { continue };
            let (ours, theirs) = (quality(&subnet, &ours), quality(&subnet, &theirs.tables));
            let (ours, theirs) = (ours.effective_bisection, theirs.effective_bisection);
            assert!(ours >= theirs, "{spec} less {per_mille} per mille, {engine}: {ours} and {theirs}");
        }
    }
}

#[test]
fn irregular_trees_stand_by_their_tiers() {
    // By statistics of distances, all routes of the first would meet at one root, and the last would have no root.
    for (spec, bisection) in [
        ("irregular:h=3;x=128,64,24;up=3,4;hosts=512", 0.29),
        ("irregular:h=3;x=128,64,24;up=3,4;hosts=512;seed=2", 0.28),
        ("irregular:h=2;x=40,16;up=4;hosts=400", 0.18),
    ] {
        let subnet = subnet(spec);
        let found = tables(Engine::Updn, &subnet, &Settings::default());
        assert!(proved(&subnet, &found).holds(), "{spec}");
        assert!(quality(&subnet, &found).effective_bisection > bisection, "{spec}");
    }
}

#[test]
fn a_random_fabric_is_balanced_better_than_by_counters_of_single_xbars() {
    let subnet = subnet("random:xbars=64,ports=24,hosts=384,links=300,seed=1");
    let ours = tables(Engine::Minhop, &subnet, &Settings::default());
    let settings = Settings { balance: Balance::Opensm, ..Settings::default() };
    let theirs = Engine::Minhop.compute(&subnet, &settings).unwrap().tables;
    let (ours, theirs) = (quality(&subnet, &ours), quality(&subnet, &theirs));
    assert!(ours.effective_bisection >= theirs.effective_bisection);
    assert!(ours.edge_forwarding_index <= theirs.edge_forwarding_index);
}
