//! What engines compute beside others.

use super::*;

/// Settings of which some decide what engines share, and some keep them from sharing.
fn all_settings(subnet: &Subnet) -> Vec<Settings> {
    let plain = Settings::default();
    let previous = Engine::Minhop.compute(subnet, &plain).unwrap().tables;
    vec![
        Settings { max_layers: Some(4), ..plain.clone() },
        Settings { xbar_destinations: true, ..plain.clone() },
        Settings { scatter: Some(3), seed: 7, ..plain.clone() },
        Settings { previous: Some(previous), ..plain.clone() },
        plain,
    ]
}

#[test]
fn beside_others_an_engine_computes_what_it_computes_alone() {
    for spec in [
        "cluster:leaves=8,spines=5,hosts=60,missing=2,cables=2,service=every",
        "torus:x=4,y=4,hosts=2",
        "irregular:h=3;x=12,8,4;up=2,3;hosts=40",
        "random:xbars=12,ports=12,hosts=30,links=24,seed=2",
    ] {
        let subnet = Subnet::new(&generate(spec).unwrap(), None).unwrap();
        for settings in all_settings(&subnet) {
            let shared = Shared::new(&subnet, &settings);
            shared.begin_with_dnup(&settings);
            for engine in Engine::ALL {
                let beside = engine.compute_sharing(&subnet, &settings, &shared);
                match (beside, engine.compute(&subnet, &settings)) {
                    (Ok(beside), Ok(alone)) => {
                        let same = beside.tables == alone.tables && beside.layers == alone.layers;
                        assert!(same && beside.notes == alone.notes, "{engine} on {spec}");
                    }
                    (beside, alone) => assert_eq!(beside.err(), alone.err(), "{engine} on {spec}"),
                }
            }
        }
    }
}
