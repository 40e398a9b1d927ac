//! Tests that `mapper check --interface` judges the tables that switches hold, whoever wrote them.

use std::process::{Command, Output};

use mapper_formats as formats;

use crate::peers::{Simulation, are_there};

/// Judges what the switches of a simulation hold, with patience, as the simulator answers late under load.
fn check(simulation: &Simulation, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mapper"))
        .args(["check", "--interface", "ibsim:h1", "--timeout", "5000", "--retries", "20"])
        .args(more)
        .env("IBSIM_SOCKNAME", simulation.socket())
        .output()
        .unwrap()
}

#[test]
fn tables_are_read_out_of_switches_and_those_that_lead_into_a_dead_cable_are_named() {
    if !are_there() {
        return;
    }
    let fabric = formats::resolve("clos:hosts=16,ports=8").unwrap();
    let mut simulation = Simulation::with_console(&fabric);
    let before = check(&simulation, &[]);
    let told = String::from_utf8_lossy(&before.stderr).into_owned();
    assert!(before.status.code() == Some(1) && told.contains("no host has a LID"), "{told}");
    simulation.opensm(&["-R", "updn"]);
    let json = check(&simulation, &["--format", "json"]);
    let answer: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(json.status.success() && answer["holds"] == true, "{answer}");
    assert_eq!((&answer["hosts"], &answer["xbars"]), (&16.into(), &6.into()));
    let (leaf, spine) = (&fabric.xbars[0].name, &fabric.xbars[4].name);
    simulation.console(&format!("Unlink \"{leaf}\"[5]"));
    let after = check(&simulation, &[]);
    let told = String::from_utf8_lossy(&after.stdout).into_owned();
    assert_eq!(after.status.code(), Some(3), "nobody has healed {leaf} and {spine}: {told}");
}

#[test]
fn tables_that_can_deadlock_are_told_of() {
    if !are_there() {
        return;
    }
    let fabric = formats::resolve("ring:n=6").unwrap();
    let simulation = Simulation::start(&fabric);
    // Shortest ways around a ring can deadlock.
    simulation.opensm(&["-R", "minhop"]);
    let judged = check(&simulation, &[]);
    let told = String::from_utf8_lossy(&judged.stdout).into_owned();
    assert!(judged.status.code() == Some(3) && told.contains("deadlock"), "{told}");
    let both = check(&simulation, &["--lfts", "some.lfts"]);
    assert_eq!(both.status.code(), Some(2), "tables come from one place");
}
