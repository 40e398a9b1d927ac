//! Tests of tables that OpenSM loads, and of what the programs of others say of them.

use std::fmt::Write as _;

use mapper_formats::{self as formats, lfts};
use mapper_proto::map::Fabric;
use mapper_routing::Subnet;
use mapper_routing::engines::{Balance, Engine, Proof, Selection, Settings, select};

use crate::dumps::{assert_same, entries, of_tables};
use crate::peers::{Simulation, are_there, text};

/// Computes tables of a fabric, makes OpenSM load them, and makes the programs of others prove and walk them.
fn round_trip(engine: Engine, spec: &str, settings: impl Fn(&Fabric, &Subnet, &Simulation) -> Settings) {
    if !are_there() {
        return;
    }
    let simulation = Simulation::start(&formats::resolve(spec).unwrap());
    // This first run is there only to give LIDs to all ports; its tables do not matter.
    simulation.opensm(&["-R", "minhop"]);
    let fabric = simulation.found();
    let subnet = Subnet::new(&fabric, None).unwrap();
    let settings = settings(&fabric, &subnet, &simulation);
    let selection = select(&subnet, &[engine], &settings, Proof::Required).unwrap();
    assert_loads(&simulation, &fabric, &subnet, &selection);
    assert_proved(&simulation, &subnet, &selection);
    assert_walked(&simulation, &subnet);
}

/// Checks that OpenSM loads the tables without a complaint, and then dumps the same tables.
fn assert_loads(simulation: &Simulation, fabric: &Fabric, subnet: &Subnet, selection: &Selection) {
    let mut dump = Vec::new();
    let tables = &selection.routing.tables;
    lfts::Dump::new(fabric, subnet).unwrap().write(&mut dump, tables).unwrap();
    let file = simulation.write("ours.lfts", &String::from_utf8(dump).unwrap());
    let log = simulation.opensm(&["-R", "file", "-U", text(&file)]);
    assert!(log.contains("file tables configured on all switches"), "{log}");
    let complaints: Vec<_> = log.lines().filter(|line| line.contains(" ERR ")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    let loaded = entries(&simulation.read("opensm-lfts.dump"));
    assert_same(&of_tables(subnet, tables), &loaded, "what OpenSM loaded");
}

/// Checks that `ibdmchk` finds all paths and no credit loop.
fn assert_proved(simulation: &Simulation, subnet: &Subnet, selection: &Selection) {
    let hosts: Vec<u32> = (0..subnet.topology.host_count() as u32).collect();
    let mut levels = String::new();
    for &from in &hosts {
        for &to in hosts.iter().filter(|&&to| to != from) {
            let (Some(source), Some(destination)) = (subnet.xbar_of_host(from), subnet.xbar_of_host(to))
            else {
                continue;
            };
            let level = selection.routing.layers.service_level(source, destination);
            let lid = subnet.destinations.lid(subnet.destinations.slots_of_host(to).start);
            writeln!(levels, "{:#018x} {lid} {level}", subnet.host_guids[from as usize]).unwrap();
        }
    }
    let file = simulation.write("levels", &levels);
    let said = simulation.ibdmchk(&["-c", text(&file)]);
    let paths = format!("-I- Scanned:{} CA to CA paths", hosts.len() * (hosts.len() - 1));
    assert!(said.contains(&paths), "expected `{paths}`:\n{said}");
    assert!(said.contains("-I- no credit loops found"), "{said}");
    assert!(!said.contains("-E-"), "{said}");
}

/// Checks that `ibtracert` gets from some hosts to others.
fn assert_walked(simulation: &Simulation, subnet: &Subnet) {
    let lid = |host: u32| subnet.destinations.lid(subnet.destinations.slots_of_host(host).start);
    let last = subnet.topology.host_count() as u32 - 1;
    for (from, to) in [(0, last), (last, 0), (last / 2, 1)] {
        assert!(simulation.trace(lid(from), lid(to)), "ibtracert from host {from} to host {to}");
    }
}

/// Settings that balance by the counters that OpenSM has.
fn opensm(_: &Fabric, _: &Subnet, _: &Simulation) -> Settings {
    Settings { balance: Balance::Opensm, ..Settings::default() }
}

/// Settings that balance by the loads throughout the fabric, which are the defaults.
fn ours(_: &Fabric, _: &Subnet, _: &Simulation) -> Settings {
    Settings::default()
}

/// Settings with one xbar as the root.
fn one_root(_: &Fabric, _: &Subnet, _: &Simulation) -> Settings {
    Settings { roots: Some(vec![0]), ..Settings::default() }
}

/// Fabrics of which each engine that makes tables by itself serves one.
const SOME_FABRICS: [&str; 3] = ["clos:hosts=32,ports=8", "mesh:x=4,y=3", "torus:x=4,y=3,z=3,hosts=1"];

/// The first of these fabrics that an engine serves.
fn some_fabric(engine: Engine) -> &'static str {
    let serves = |spec: &&str| {
        let subnet = Subnet::new(&formats::resolve(spec).unwrap(), None).unwrap();
        select(&subnet, &[engine], &Settings::default(), Proof::Required).is_ok()
    };
    SOME_FABRICS
        .into_iter()
        .find(serves)
        .unwrap_or_else(|| panic!("{engine} serves none of {SOME_FABRICS:?}"))
}

#[test]
fn every_engine_goes_there_and_back() {
    // The agents' routes are no tables, and tables from a file have a test of their own.
    let others = [Engine::Dispersive, Engine::File];
    for engine in Engine::ALL.into_iter().filter(|engine| !others.contains(engine)) {
        round_trip(engine, some_fabric(engine), ours);
    }
}

#[test]
fn engines_that_count_as_opensm_does() {
    round_trip(Engine::Minhop, "xgft:h=2;m=4,6;w=1,4", opensm);
    round_trip(Engine::Updn, "clos:hosts=32,ports=8", opensm);
    round_trip(Engine::Dnup, "clos:hosts=32,ports=8", opensm);
    round_trip(Engine::Dor, "mesh:x=4,y=3", opensm);
}

#[test]
fn engines_for_trees_on_one_of_three_tiers() {
    for engine in [Engine::Minhop, Engine::Ftree, Engine::Dmodc] {
        round_trip(engine, "xgft:h=3;m=3,3,4;w=1,2,3", ours);
    }
}

#[test]
fn engines_for_fabrics_that_are_no_trees() {
    for engine in [Engine::Lash, Engine::Dfsssp, Engine::Nue] {
        round_trip(engine, "torus:x=4,y=4,hosts=2", ours);
    }
    for engine in [Engine::Lash, Engine::Dor] {
        round_trip(engine, "hypercube:d=3,hosts=2", ours);
    }
    let random = "random:xbars=10,ports=12,hosts=24,links=20,seed=3";
    round_trip(Engine::Nue, random, ours);
    round_trip(Engine::Updn, random, one_root);
}

#[test]
fn file_loads_what_opensm_dumped() {
    round_trip(Engine::File, "clos:hosts=16,ports=8", |fabric, subnet, simulation| {
        let loaded = lfts::read(&simulation.file("opensm-lfts.dump"), fabric, subnet).unwrap();
        assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);
        Settings { file: Some(loaded.found), ..Settings::default() }
    });
}
