//! A test of agents on a machine whose time of day is set back.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::lab::wait_for;
use crate::namespace::Namespace;
use crate::{MAPPER, can_make_namespaces};

/// Sets the environment in which libfaketime changes the time of day by the offset in a file, which it reads
/// each time.
fn faked(command: &mut Command, offset: &std::path::Path) {
    let shown = Command::new("faketime").args(["-f", "+0", "printenv", "LD_PRELOAD"]).output().unwrap();
    command
        .env("LD_PRELOAD", String::from_utf8(shown.stdout).unwrap().trim())
        .env("FAKETIME_TIMESTAMP_FILE", offset)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
}

/// An agent's process, which is ended when the test ends.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _already_ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

#[test]
fn agents_go_on_when_the_time_of_day_is_set_back() {
    if !(can_make_namespaces() && mapper_needs::programs(&["faketime"])) {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link add eth1 type veth peer name eth2");
    let dir = tempfile::tempdir().unwrap();
    let offset = dir.path().join("offset");
    std::fs::write(&offset, "+0").unwrap();
    let run_dir = dir.path().to_str().unwrap();
    let mut agents = Vec::new();
    let mut logs = Vec::new();
    for (unit, interface) in [("0", "eth1"), ("1", "eth2")] {
        namespace.ip(&format!("link set {interface} up"));
        let mut command = namespace.command(MAPPER);
        command.args(["agent", "--interface", interface, "--unit", unit, "--run-dir", run_dir]);
        faked(&mut command, &offset);
        let mut agent = command.stderr(Stdio::piped()).spawn().unwrap();
        logs.push(BufReader::new(agent.stderr.take().unwrap()).lines().map_while(Result::ok));
        agents.push(Agent(agent));
    }
    let configured = |wanted: bool| {
        let output = Command::new(MAPPER)
            .args(["board-info", "--format", "json", "--run-dir", run_dir])
            .output()
            .unwrap();
        let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let boards = info["boards"].as_array().unwrap();
        let right = |board: &serde_json::Value| board["configured"] == wanted;
        (boards.len() == 2 && boards.iter().all(right)).then_some(())
    };
    wait_for("configured", || configured(true));
    std::fs::write(&offset, "-1000d").unwrap();
    for state in ["down", "up"] {
        namespace.ip(&format!("link set eth1 {state}"));
        wait_for(state, || configured(state == "up"));
    }
    drop(agents);
    for log in logs {
        let years: Vec<_> = log.filter_map(|line| line.get(..4).map(str::to_owned)).collect();
        assert!(years.is_sorted_by(|a, b| a >= b) && years.first() != years.last(), "{years:?}");
    }
}
