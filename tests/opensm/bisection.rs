//! Tests of how good our tables are, compared with those of OpenSM's engine of the same name.

use mapper_formats::{self as formats, lfts};
use mapper_routing::engines::{Engine, Proof, Settings, select};
use mapper_routing::{Quality, Subnet, TableRoutes};

use crate::peers::{Simulation, are_there};

/// Computes tables by OpenSM's engine and by ours, and compares the bandwidth that hosts get.
fn at_least_as_good(engine: Engine, spec: &str) {
    at_least_this_share(engine, spec, 1.0);
}

/// As [`at_least_as_good`], but ours may have a little less bandwidth: at least this share of theirs.
fn at_least_this_share(engine: Engine, spec: &str, share: f64) {
    if !are_there() {
        return;
    }
    let simulation = Simulation::start(&formats::resolve(spec).unwrap());
    let log = simulation.opensm(&["-R", engine.name()]);
    assert!(log.contains(&format!("{engine} tables configured on all switches")), "{spec}: {log}");
    let fabric = simulation.found();
    let subnet = Subnet::new(&fabric, None).unwrap();
    let theirs = lfts::read(&simulation.file("opensm-lfts.dump"), &fabric, &subnet).unwrap().found;
    let ours = select(&subnet, &[engine], &Settings::default(), Proof::Required).unwrap().routing.tables;
    let bisection = |tables| Quality::measure(&TableRoutes::new(&subnet, tables), 1).effective_bisection;
    let (theirs, ours) = (bisection(&theirs), bisection(&ours));
    assert!(ours >= share * theirs, "{engine} on {spec}: {theirs:.3} theirs, {ours:.3} ours");
}

#[test]
fn nue() {
    for spec in [
        "random:xbars=40,ports=16,hosts=110,links=100,seed=3",
        "hypercube:d=7,hosts=8",
        "torus:x=4,y=4,hosts=4",
        "clos:hosts=648,ports=36",
        "dragonfly:a=4,p=2,h=2",
    ] {
        at_least_as_good(Engine::Nue, spec);
    }
}

#[test]
fn dfsssp() {
    for spec in ["clos:hosts=128,ports=16", "hypercube:d=4,hosts=4"] {
        at_least_as_good(Engine::Dfsssp, spec);
    }
    // One layer is not enough for a tree to each host of this, and it has to be worth the second.
    let cluster = "cluster:leaves=24,spines=16,hosts=542,missing=5,cables=2,service=every";
    at_least_this_share(Engine::Dfsssp, cluster, 0.98);
}
