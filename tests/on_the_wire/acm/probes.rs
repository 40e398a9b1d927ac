//! Probes along a path and back, by `mapper acm query --verify`.

use rustix::process::Signal;
use serde_json::Value;

use super::machines::{Machines, field};
use crate::lab::wait_for;

/// What `--verify` says of the path to n3, and the exit status.
fn probed(machines: &Machines, run_dir: &str) -> (String, i32) {
    let (printed, status) = machines.query(&format!("-f n -d n3 --verify --run-dir {run_dir}"));
    (field(&printed, "Probe").to_owned(), status)
}

/// Waits until a probe goes along the path to n3 and back, which on a busy machine may take a second one.
fn wait_for_probe(machines: &Machines) {
    wait_for("a probe that comes back", || {
        let (said, status) = probed(machines, machines.ring.run_dir(0));
        (said.starts_with("success") && status == 0).then_some(())
    });
}

#[test]
fn a_probe_goes_along_a_path_and_back() {
    let Some(machines) = Machines::start(&[]) else { return };
    wait_for_probe(&machines);
    let line = format!("-f n -d n3 --verify --run-dir {} --format json", machines.ring.run_dir(0));
    wait_for("the same in JSON", || {
        let report: Value = serde_json::from_str(&machines.query(&line).0).unwrap();
        (report["services"][0]["resolved"][0]["probed"]["reached"] == true).then_some(())
    });
    // Only agents of this machine can send them.
    let elsewhere = tempfile::tempdir().unwrap();
    let (said, status) = probed(&machines, elsewhere.path().to_str().unwrap());
    assert!(
        said.starts_with("failed (no agent of this machine is at the path's source") && status == 255,
        "{said}"
    );
}

/// Options of agents that notice nothing by themselves once they have mapped. They wait long for answers, as on a busy
/// machine they would else miss a neighbour for good.
const UNATTENTIVE: [&str; 6] =
    ["--liveness-interval-ms", "0", "--verify-pause-ms", "600000", "--probe-timeout-ms", "500"];

#[test]
fn a_probe_says_where_it_stops_when_a_host_is_silent_and_nobody_has_noticed() {
    let Some(machines) = Machines::start_with(&UNATTENTIVE, &[]) else { return };
    wait_for_probe(&machines);
    // A process that is stopped answers nothing, though its cables have carrier.
    machines.nodes[2].signal(Signal::STOP);
    let line = format!("-f n -d n3 --verify --run-dir {} --format json", machines.ring.run_dir(0));
    let silent = machines.query(&line);
    let said = probed(&machines, machines.ring.run_dir(0));
    machines.nodes[2].signal(Signal::CONT);
    let report: Value = serde_json::from_str(&silent.0).unwrap();
    let resolved = &report["services"][0]["resolved"][0];
    assert!(resolved["path"].is_object(), "the path is in force still: {report:#}");
    assert_eq!(resolved["probed"]["reached"], false);
    assert_eq!(resolved["probed"]["stopped_at"], "crossbar of n3", "{report:#}");
    assert!(said.0.starts_with("failed") && said.0.contains("crossbar of n3") && said.1 == 255, "{said:?}");
}
