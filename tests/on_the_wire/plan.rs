//! An agent with a plan of the wiring.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::can_make_namespaces;
use crate::daemon::Daemon;
use crate::namespace::Namespace;

/// Longer than any step of this test takes on a busy machine. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn what_is_not_as_planned_is_on_the_board_in_metrics_in_the_log_and_told() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = Namespace::new();
    for words in
        ["link set lo up", "link add eth1 type veth peer name far", "link set eth1 up", "link set far up"]
    {
        namespace.ip(words);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (plan, told) = (path("plan.csv"), path("told"));
    fs::write(&plan, "from,to\nleaf1:1,one:1\nleaf1:2,two:1\n").unwrap();
    // A file that is moved into its place is seen whole.
    let on_change = format!("cat > {told}.new && mv {told}.new {told}");
    fs::write(path("mapper.toml"), format!("[plan]\nfile = \"{plan}\"\non-change = \"{on_change}\"\n"))
        .unwrap();
    let config = path("mapper.toml");
    let (run_dir, metrics) = (path("run"), path("metrics.prom"));
    let agent = |interface: &'static str, more: &[&str]| {
        let arguments = ["agent", "--interface", interface, "--run-dir", &run_dir];
        Daemon::start(&namespace, &[&arguments, more].concat(), "the agent runs")
    };
    let _two = agent("far", &["--host-name", "two"]);
    let mut one = agent("eth1", &["--host-name", "one", "--config", &config, "--metrics-file", &metrics]);
    let log = one.read_log_until("told of a change");
    assert!(log.contains("not as planned: ") && log.contains("leaf1"), "{log}");
    let json: Value = serde_json::from_str(&fs::read_to_string(&told).unwrap()).unwrap();
    assert_eq!((&json["schema"], &json["interface"]), (&"mapper.plan/1".into(), &"eth1".into()));
    assert!(!json["differences"].as_array().unwrap().is_empty());
    let started = Instant::now();
    let boards = loop {
        let output = namespace
            .command(crate::MAPPER)
            .args(["board-info", "--run-dir", &run_dir, "--format", "json"])
            .output();
        let boards: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        let has_plan =
            |board: &&Value| board["plan"]["differences"].as_array().is_some_and(|all| !all.is_empty());
        if boards["boards"].as_array().unwrap().iter().filter(has_plan).count() == 1 {
            break boards;
        }
        assert!(started.elapsed() < PATIENCE, "{boards}");
    };
    let board =
        boards["boards"].as_array().unwrap().iter().find(|board| board["interface"] == "eth1").unwrap();
    assert_eq!(board["plan"]["planned_cables"], 2);
    let started = Instant::now();
    while !fs::read_to_string(&metrics)
        .is_ok_and(|text| text.contains("mapper_plan_readable{interface=\"eth1\"} 1"))
    {
        assert!(started.elapsed() < PATIENCE, "{:?}", fs::read_to_string(&metrics));
        std::thread::sleep(Duration::from_millis(100));
    }

    // A plan that cannot be read is refused at the start, by its line and column.
    fs::write(&plan, "from,to\nleaf1:1,one\n").unwrap();
    drop(one);
    let arguments = ["agent", "--interface", "eth1", "--run-dir", &run_dir, "--config", &config];
    let refused = namespace.command(crate::MAPPER).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("plan.csv:2, column 2 (to): `one` has no port"),
        "{said}"
    );
}
