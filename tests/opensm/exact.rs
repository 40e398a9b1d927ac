//! Tests that our tables equal OpenSM's, entry by entry.

use mapper_formats::lid_matrix;
use mapper_routing::Subnet;
use mapper_routing::engines::{Balance, Engine, EngineError, Settings, hop_matrix};

use crate::dumps::{assert_same, entries, of_tables};
use crate::fabrics;
use crate::peers::{Simulation, are_there};

pub(crate) fn exact() -> Settings {
    Settings { balance: Balance::Opensm, ..Settings::default() }
}

/// The engine whose tables OpenSM used, by its log.
pub(crate) fn served(log: &str) -> String {
    let line = log.lines().find(|line| line.contains(" tables configured on all switches")).unwrap();
    let (before, _) = line.split_once(" tables configured").unwrap();
    before.rsplit(' ').next().unwrap().to_owned()
}

/// Routes all fabrics by an engine and by OpenSM's engine of the same name. Where OpenSM's fails, ours must
/// fail, too.
fn compare_all(engine: Engine) {
    if !are_there() {
        return;
    }
    let mut compared = 0;
    for (name, fabric) in fabrics::all() {
        let simulation = Simulation::start(&fabric);
        let log = simulation.opensm(&["-R", engine.name()]);
        let subnet = Subnet::new(&simulation.found(), None).unwrap();
        let ours = engine.compute(&subnet, &exact());
        if served(&log) != engine.name() {
            assert!(matches!(ours, Err(EngineError { .. })), "{name}: OpenSM's {engine} failed, ours not");
            continue;
        }
        let theirs = lid_matrix::read(&simulation.file("opensm-lid-matrix.dump"), &subnet).unwrap();
        assert!(theirs.notes.is_empty(), "{:?}", theirs.notes);
        assert!(hop_matrix(engine, &subnet, &exact()).unwrap() == theirs.found, "hops by {engine} on {name}");
        let ours = of_tables(&subnet, &ours.unwrap().tables);
        assert_same(&ours, &entries(&simulation.read("opensm-lfts.dump")), &format!("{engine} on {name}"));
        compared += 1;
    }
    assert!(compared >= 3, "{engine} served {compared} fabrics only");
}

#[test]
fn minhop() {
    compare_all(Engine::Minhop);
}

#[test]
fn updn() {
    compare_all(Engine::Updn);
}

#[test]
fn dnup() {
    compare_all(Engine::Dnup);
}

#[test]
fn dor() {
    compare_all(Engine::Dor);
}
