//! Probes along a path and back, by `mapper acm query --verify`.

use super::*;

/// What `--verify` says of the path to n3, and the exit status.
fn probed(machines: &Machines, run_dir: &str) -> (String, i32) {
    let (printed, status) = machines.query(&format!("-f n -d n3 --verify --run-dir {run_dir}"));
    (field(&printed, "Probe").to_owned(), status)
}

#[test]
fn a_probe_goes_along_a_path_and_back() {
    let Some(machines) = Machines::start(&[]) else { return };
    let (said, status) = probed(&machines, machines.ring.run_dir(0));
    assert!(said.starts_with("success") && status == 0, "{said}");
    let line = format!("-f n -d n3 --verify --run-dir {} --format json", machines.ring.run_dir(0));
    let (report, _) = machines.query(&line);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["services"][0]["resolved"][0]["probed"]["reached"], true);
    // Only agents of this machine can send them.
    let elsewhere = tempfile::tempdir().unwrap();
    let (said, status) = probed(&machines, elsewhere.path().to_str().unwrap());
    assert!(
        said.starts_with("failed (no agent of this machine is at the path's source") && status == 255,
        "{said}"
    );
}

/// Options of agents that notice nothing by themselves once they have mapped.
const UNATTENTIVE: [&str; 4] = ["--liveness-interval-ms", "0", "--verify-pause-ms", "600000"];

#[test]
fn a_probe_says_where_it_stops_when_a_host_is_silent_and_nobody_has_noticed() {
    let Some(machines) = Machines::start_with(&UNATTENTIVE, &[]) else { return };
    let (said, status) = probed(&machines, machines.ring.run_dir(0));
    assert!(said.starts_with("success") && status == 0, "{said}");
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
