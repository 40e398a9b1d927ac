//! Clusters whose spines have service adapters, which are hosts that run an agent, too.

use mapper_fabric::generate;
use mapper_sim::fabric::Xbars;

use crate::lab::{Lab, Plan, ms};

const CLUSTERS: [&str; 4] = [
    "cluster:leaves=4,spines=3,hosts=16,service=spines",
    "cluster:leaves=5,spines=3,hosts=20,service=every,missing=3,seed=2",
    "cluster:leaves=4,spines=2,hosts=16,service=spines,cables=2,uneven=2,seed=3",
    "cluster:leaves=5,spines=3,hosts=20,service=every,storage=1,seed=4",
];

#[test]
fn all_hosts_are_configured_those_of_spines_too() {
    for spec in CLUSTERS {
        for kinds in [Xbars::Plain, Xbars::Tagged] {
            Lab::configured(Plan::new(spec, kinds));
        }
    }
}

/// A small cluster, which has and lacks other parts for each seed.
fn cluster(seed: u64) -> String {
    let (leaves, spines, cables) = (2 + seed % 5, 1 + seed % 4, 1 + seed % 2);
    let missing = (seed / 4 % 4).min(leaves * (spines - 1) / 3);
    let uneven = if cables > 1 { seed / 2 % 3 } else { 0 };
    let (storage, rails) = (seed / 3 % 2, 1 + seed / 8 % 2);
    let service = if seed.is_multiple_of(3) { "spines" } else { "every" };
    format!(
        "cluster:leaves={leaves},spines={spines},hosts={},cables={cables},missing={missing},uneven={uneven},\
         storage={storage},rails={rails},service={service},seed={seed}",
        4 * leaves
    )
}

#[test]
fn two_hundred_clusters_are_configured() {
    for seed in 1..=200_u64 {
        let kinds = if seed.is_multiple_of(7) { Xbars::Plain } else { Xbars::Tagged };
        Lab::configured(Plan::new(&cluster(seed), kinds));
    }
}

#[test]
fn they_are_again_when_a_cable_or_a_switch_is_lost() {
    for spec in CLUSTERS {
        let fabric = generate(spec).unwrap();
        let end = fabric.map.cables[0].a;
        let cable = format!("{}:{}", fabric.xbars[end.xbar as usize].name, end.port);
        let faults = format!("at 3s cut {cable}\nat 5s mend {cable}\nat 6s off rail1-spine1\n");
        let mut lab = Plan::new(spec, Xbars::Tagged).faults(&faults).start();
        lab.agree_at(ms(4900));
        lab.agree_at(ms(8000));
    }
}
