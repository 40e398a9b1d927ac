//! What must hold for every engine of the list.

mod kept;
mod obedience;
mod sharing;

use std::collections::BTreeSet;

use mapper_fabric::generate;
use mapper_proto::map::Fabric;
use proptest::prelude::*;

use super::*;
use crate::fabrics::random;
use crate::{ProofRules, prove_tables, walk_tables};

#[test]
fn names_are_told_apart_and_read_back() {
    let names: BTreeSet<&str> = Engine::ALL.into_iter().map(Engine::name).collect();
    assert_eq!(names.len(), Engine::ALL.len());
    for engine in Engine::ALL {
        assert_eq!(engine.name().parse(), Ok(engine));
        let summary = engine.summary();
        assert!(!summary.is_empty() && !summary.contains('\n'), "{engine}: {summary}");
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

/// Whether an engine serves a fabric. If it does, its tables must be proved and lead each host to all others.
fn serves(engine: Engine, spec: &str) -> bool {
    let subnet = Subnet::new(&generate(spec).unwrap(), None).unwrap();
    let hosts = subnet.topology.host_count() as u32;
    let loaded = Engine::Updn.compute(&subnet, &Settings::default()).ok().map(|routing| routing.tables);
    let settings = Settings { file: loaded, ..Settings::default() };
    match answer(&subnet, &[engine], &settings, Proof::Required) {
        Ok(Answer::Tables(selection)) => {
            assert!(selection.proof.holds(), "{engine} on {spec}: {}", selection.proof);
            let tables = &selection.routing.tables;
            let reaches = |from, to| {
                let mut slots = subnet.destinations.slots_of_host(to);
                slots.all(|slot| walk_tables(&subnet, tables, from, slot).is_some())
            };
            let mut pairs = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
            assert!(pairs.all(|(from, to)| from == to || reaches(from, to)), "{engine} on {spec}");
            true
        }
        Ok(Answer::SourceRoutes(selection)) => {
            let pairs = u64::from(hosts) * u64::from(hosts - 1);
            assert!(selection.proof.holds() && selection.proof.routes >= pairs, "{engine} on {spec}");
            true
        }
        Err(_) => false,
    }
}

#[test]
fn every_engine_serves_some_small_fabric() {
    let specs = ["xgft:h=2;m=3,3;w=1,3", "mesh:x=3,y=2,hosts=2", "torus:x=3,y=3,hosts=1"];
    for engine in Engine::ALL {
        assert!(specs.iter().any(|spec| serves(engine, spec)), "{engine} serves none of {specs:?}");
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
            let served = select(&subnet, &[engine], &Settings::default(), Proof::Required);
            prop_assert_eq!(served.is_ok(), proof.holds(), "{}", engine);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// In trees of which no two switches are cabled alike, engines that rank either serve or say in their own
    /// words which hosts they cannot join, and updn and nue serve.
    #[test]
    fn irregular_trees_are_served_or_refused_plainly(leaves in 4_u64..24, up in 1_u64..4, seed in 0_u64..1000) {
        let (mids, tops, hosts) = (leaves / 2, leaves.div_ceil(6), 4 * leaves);
        let spec = format!("irregular:h=3;x={leaves},{mids},{tops};up={up},{};hosts={hosts};seed={seed}", up + 1);
        let subnet = Subnet::new(&generate(&spec).unwrap(), None).unwrap();
        for engine in [Engine::Dnup, Engine::Ftree, Engine::Dmodc, Engine::Updn, Engine::Nue] {
            let served = select(&subnet, &[engine], &Settings::default(), Proof::Required);
            let Err(refused) = served else { continue };
            prop_assert!(engine != Engine::Updn && engine != Engine::Nue, "{spec}: {refused}");
            let why_not = &refused.tried[0].why_not;
            prop_assert!(matches!(why_not, WhyNotServed::Refused(_)), "{spec}, {engine}: {why_not}");
        }
    }
}
