//! Tests that `mapper topology discover` finds what ibsim simulates, and what `ibnetdiscover` finds there.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use mapper_formats as formats;
use mapper_proto::map::{Fabric, PortRef};

use crate::peers::{Simulation, are_there, text};

/// `mapper topology` with the simulator of this socket for the network.
fn topology(simulation: &Simulation, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mapper"));
    command.arg("topology").args(arguments).env("IBSIM_SOCKNAME", simulation.socket());
    command.output().unwrap()
}

/// What is explored from a node, with many questions under way and patience, as the simulator answers late under load.
fn explored(simulation: &Simulation, node: &str, more: &[&str]) -> Output {
    let interface = format!("ibsim:{node}");
    let patience = ["discover", "--interface", &interface, "--timeout", "5000", "--retries", "20"];
    let output = topology(simulation, &[&patience[..], more].concat());
    let problems = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && problems.is_empty(), "{node}: {problems}");
    output
}

fn parsed(output: &Output) -> Fabric {
    formats::parse("mapper topology discover", &String::from_utf8_lossy(&output.stdout)).unwrap()
}

/// All that both programs tell of a fabric, in an order that does not depend on that of their output.
fn told(fabric: &Fabric) -> BTreeSet<String> {
    let end = |end: PortRef| format!("{} port {}", fabric.xbars[end.xbar as usize].name, end.port);
    let xbars = fabric.map.xbars.iter().zip(&fabric.xbars);
    let xbars = xbars.map(|(xbar, label)| format!("{label:?} with {} ports", xbar.ports));
    let hosts = fabric.map.hosts.iter().zip(&fabric.hosts);
    let hosts = hosts.map(|(host, label)| format!("{label:?} at {:?}", host.at.map(end)));
    let cables = fabric.map.cables.iter().map(|cable| {
        let mut ends = [end(cable.a), end(cable.b)];
        ends.sort_unstable();
        ends.join(" - ")
    });
    let speeds = fabric.link_speeds.iter().map(|(&at, speed)| format!("{} {speed}", end(at)));
    xbars.chain(hosts).chain(cables).chain(speeds).collect()
}

/// Fails with what one of two fabrics says and the other does not.
fn assert_same(found: &Fabric, expected: &Fabric, what: &str) {
    let (found, expected) = (told(found), told(expected));
    let only: Vec<_> = found.symmetric_difference(&expected).take(6).collect();
    assert!(only.is_empty(), "{what}: {only:#?}");
}

/// Explores a simulated fabric, and compares with the file that the simulator was given and with ibnetdiscover.
fn explore(simulation: &Simulation, fabric: &Fabric, what: &str) {
    let node = &fabric.hosts[0].name;
    let file = simulation.file("found.net");
    explored(simulation, node, &["-o", text(&file)]);
    let given = simulation.file("fabric.net");
    let difference = topology(simulation, &["diff", text(&given), text(&file)]);
    assert_eq!(String::from_utf8_lossy(&difference.stdout), "no difference\n", "{what}");
    let found = formats::read_fabric(&file).unwrap();
    assert_same(&found, &simulation.found(), what);
    let json = explored(simulation, node, &["--format", "json", "--window", "1"]);
    assert_same(&parsed(&json), &found, what);
}

#[test]
fn small_fabrics_are_explored_as_ibnetdiscover_does() {
    if !are_there() {
        return;
    }
    for (name, fabric) in crate::fabrics::all() {
        explore(&Simulation::start(&fabric), &fabric, name);
    }
}

#[test]
fn a_torus_and_a_fat_tree_of_648_hosts_are_explored_as_ibnetdiscover_does() {
    if !are_there() {
        return;
    }
    for spec in ["torus:x=6,y=5,z=5,hosts=2", "clos:hosts=648,ports=36"] {
        let fabric = formats::resolve(spec).unwrap();
        explore(&Simulation::with_console(&fabric), &fabric, spec);
    }
}

#[test]
fn lids_are_those_that_opensm_gave() {
    if !are_there() {
        return;
    }
    let fabric = formats::resolve("clos:hosts=32,ports=8").unwrap();
    let simulation = Simulation::start(&fabric);
    simulation.opensm(&["-R", "minhop", "-l", "1"]);
    explore(&simulation, &fabric, "after OpenSM");
    let found = parsed(&explored(&simulation, &fabric.hosts[0].name, &[]));
    assert!(found.hosts.iter().all(|host| host.lid.is_some() && host.lmc == 1));
    assert!(found.xbars.iter().all(|xbar| xbar.lid.is_some()));
}

#[test]
fn a_node_that_ibsim_does_not_know_and_an_ibsim_that_is_gone_are_named() {
    if !are_there() {
        return;
    }
    let simulation = Simulation::start(&formats::resolve("ring:n=3").unwrap());
    let refused = topology(&simulation, &["discover", "--interface", "ibsim:nobody"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(told.contains("lets nobody in at `nobody`"), "{told}");
    let refused = topology(&simulation, &["discover", "--interface", "umad9999", "--format", "json"]);
    let told = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(
        told.contains("mapper.error/1") && told.contains("there is no /dev/infiniband/umad9999"),
        "{told}"
    );
}
