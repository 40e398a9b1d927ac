//! What holds for every engine of the list.

use std::collections::BTreeSet;

use mapper_fabric::generate;
use mapper_proto::map::Fabric;
use proptest::prelude::*;

use super::*;
use crate::fabrics::random;
use crate::{ProofRules, prove_tables};

#[test]
fn names_are_told_apart_and_read_back() {
    let names: BTreeSet<&str> = Engine::ALL.into_iter().map(Engine::name).collect();
    assert_eq!(names.len(), Engine::ALL.len());
    for engine in Engine::ALL {
        assert_eq!(engine.name().parse(), Ok(engine));
        let summary = engine.summary();
        assert!(!summary.is_empty() && summary.len() <= 96 && !summary.contains('\n'), "{engine}: {summary}");
    }
    let error = "best of all".parse::<Engine>().unwrap_err().to_string();
    assert!(error.contains("minhop, updn") && error.contains("nue"), "{error}");
}

/// Tables of an engine on so many threads.
fn on_threads(threads: usize, engine: Engine, subnet: &Subnet) -> Option<Routing> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| engine.compute(subnet, &Settings::default())).ok()
}

#[test]
fn tables_do_not_depend_on_threads() {
    for spec in [
        "clos:hosts=64,ports=8",
        "torus:x=4,y=4,hosts=2",
        "random:xbars=12,ports=12,hosts=30,links=24,seed=2",
    ] {
        let subnet = Subnet::new(&generate(spec).unwrap(), None).unwrap();
        for engine in Engine::ALL {
            let (one, four) = (on_threads(1, engine, &subnet), on_threads(4, engine, &subnet));
            let parts = |routing: Option<Routing>| {
                routing.map(|routing| (routing.tables, routing.layers, routing.notes))
            };
            assert!(parts(one) == parts(four), "{engine} on {spec}");
        }
    }
}

proptest! {
    #[test]
    fn every_engine_refuses_or_joins_all_hosts_or_is_found_out(seed: u64) {
        let subnet = Subnet::new(&Fabric { map: random(seed), ..Fabric::default() }, None).unwrap();
        for engine in Engine::ALL {
            let Ok(routing) = engine.compute(&subnet, &Settings::default()) else { continue };
            let rules = ProofRules { max_hops: Settings::MAX_HOPS, xbar_destinations: false };
            let proof = prove_tables(&subnet, &routing.tables, &routing.layers, &rules);
            let served = select(&subnet, &[engine], &Settings::default(), false);
            prop_assert_eq!(served.is_ok(), proof.holds(), "{}", engine);
        }
    }
}
