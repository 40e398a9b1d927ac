//! Interfaces that become ports of a crossbar, and go again, while it runs.

use std::process::{Child, Stdio};

use mapper_proto::wire::Element;
use serde_json::Value;

use super::bench::Bench;
use crate::{MAPPER, can_make_namespaces};

#[test]
fn an_interface_may_vanish_and_return() {
    if !can_make_namespaces() {
        return;
    }
    let mut bench = Bench::new(&["--tag", "1"]);
    bench.namespace.ip("link delete p1");
    bench.wait_for_log("the interface is gone");
    assert!(!bench.stamp_seen_from("h2").has_carrier(1));
    for words in ["link add p1 type veth peer name h1", "link set h1 up", "link set p1 up"] {
        bench.namespace.ip(words);
    }
    bench.wait_for_log("carrier=true");
    assert!(bench.stamp_seen_from("h2").has_carrier(1));
    assert_eq!(bench.exchange("h2", &[Element::Relative(-1)], &[0; 60], "h1"), [0; 60]);
    assert_eq!(bench.exchange("h1", &[Element::Relative(1)], &[0; 60], "h2"), [0; 60]);
}

#[test]
fn an_interface_may_be_renamed_away_and_back() {
    if !can_make_namespaces() {
        return;
    }
    let mut bench = Bench::new(&["--tag", "1"]);
    bench.namespace.ip("link set p1 down");
    bench.namespace.ip("link set p1 name elsewhere");
    bench.wait_for_log("the interface is gone");
    assert!(!bench.status()["ports"][0]["exists"].as_bool().unwrap());
    bench.namespace.ip("link set elsewhere name p1");
    bench.namespace.ip("link set p1 up");
    bench.wait_for_log("carrier=true");
    assert_eq!(bench.exchange("h2", &[Element::Relative(-1)], &[0; 60], "h1"), [0; 60]);
}

#[test]
fn an_interface_may_come_after_the_crossbar() {
    if !can_make_namespaces() {
        return;
    }
    let mut bench = Bench::new(&["--tag", "1", "--port", "5=late"]);
    bench.namespace.ip("link add late type veth peer name far");
    bench.namespace.ip("link set far up");
    bench.namespace.ip("link set late up");
    bench.wait_for_log("carrier=true");
    assert!(bench.stamp_seen_from("h2").has_carrier(5));
    assert_eq!(bench.exchange("h2", &[Element::Absolute(5)], &[0; 60], "far"), [0; 60]);
    assert_eq!(bench.exchange("far", &[Element::Absolute(2)], &[0; 60], "h2"), [0; 60]);
}

#[test]
fn an_interface_that_matches_a_pattern_becomes_a_port_when_it_comes() {
    if !can_make_namespaces() {
        return;
    }
    let mut bench = Bench::new(&["--tag", "1", "--ports", "late*"]);
    bench.namespace.ip("link add other type veth peer name far2");
    bench.namespace.ip("link add late7 type veth peer name far");
    bench.wait_for_log("the port is taken");
    bench.namespace.ip("link set far up");
    bench.namespace.ip("link set late7 up");
    bench.wait_for_log("carrier=true");
    assert_eq!(bench.exchange("h2", &[Element::Absolute(3)], &[0; 60], "far"), [0; 60]);
    assert_eq!(bench.exchange("far", &[Element::Absolute(2)], &[0; 60], "h2"), [0; 60]);
    // An interface keeps its port number while it is gone.
    bench.namespace.ip("link delete late7");
    bench.wait_for_log("the interface is gone");
    bench.namespace.ip("link add late8 type veth peer name far8");
    bench.wait_for_log("the port is taken");
    let ports = bench.status()["ports"].as_array().unwrap().clone();
    let named: Vec<_> =
        ports.iter().map(|port| (port["port"].as_u64(), port["interface"].as_str())).collect();
    let expected = [(1, "p1"), (2, "p2"), (3, "late7"), (4, "late8")];
    assert_eq!(named, expected.map(|(number, name)| (Some(number), Some(name))));
}

#[test]
fn ports_come_and_go_with_its_file_and_the_others_go_on() {
    if !can_make_namespaces() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("xbar.toml");
    std::fs::write(&file, "ports = [\"p1\", \"p2\"]\n").unwrap();
    let mut bench = Bench::with(&["--tag", "1", "--config", file.to_str().unwrap()]);
    bench.exchange("h1", &[Element::Absolute(2)], &[0; 60], "h2");
    bench.namespace.ip("link add p3 type veth peer name h3");
    bench.namespace.ip("link set p3 up");
    bench.namespace.ip("link set h3 up");
    let pid = rustix::process::Pid::from_child(&bench.xbar);
    let mut reload = |text: &str, answer: &str| {
        std::fs::write(&file, text).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
        bench.wait_for_log(answer);
        let ports = bench.status()["ports"].as_array().unwrap().clone();
        ports
            .iter()
            .map(|port| format!("{}={}", port["port"], port["interface"]))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(reload("ports = [\"p1\", \"p2\", \"5=p3\"]\n", "was read again"), r#"1="p1" 2="p2" 5="p3""#);
    assert_eq!(reload("ports = [\"p2\", \"5=p3\"]\n", "was read again"), r#"2="p2" 5="p3""#);
    assert_eq!(reload("ports = [\"p2\"\n", "configuration is not used"), r#"2="p2" 5="p3""#);
    assert!(!bench.stamp_seen_from("h2").has_carrier(1), "given up");
    assert_eq!(bench.exchange("h2", &[Element::Absolute(5)], &[0; 60], "h3"), [0; 60]);
    assert_eq!(bench.exchange("h3", &[Element::Absolute(2)], &[0; 60], "h2"), [0; 60]);
    // Another daemon may take an interface that was given up.
    let lock = bench.namespace.enter(|| mapper_machine::interface_lock::InterfaceLock::take("p1").is_ok());
    assert!(lock, "another may have it");
}

#[test]
fn agents_map_a_crossbar_that_has_grown() {
    if !can_make_namespaces() {
        return;
    }
    let bench = Bench::with(&["--tag", "1", "--ports", "p*"]);
    let mut agents = Vec::new();
    let start = |host: &str| {
        let agent = ["agent", "--interface", host, "--verify-pause-ms", "100"];
        let mut command = bench.namespace.command(MAPPER);
        command.args(agent).env("MAPPER_RUN_DIR", bench.run_dir.path()).stderr(Stdio::null());
        Ended(command.spawn().unwrap())
    };
    let wait_for_hosts = |hosts: u64| {
        crate::lab::wait_for("all hosts are configured", || {
            let mut command = bench.namespace.command(MAPPER);
            let command = command.args(["board-info", "--format", "json"]);
            let output = command.env("MAPPER_RUN_DIR", bench.run_dir.path()).output().unwrap();
            let info: Value = serde_json::from_slice(&output.stdout).unwrap();
            let boards = info["boards"].as_array().unwrap();
            let is_whole = |board: &Value| board["network_configured"] == true && board["hosts"] == hosts;
            (boards.len() as u64 == hosts && boards.iter().all(is_whole)).then_some(())
        });
    };
    agents.extend(["h1", "h2"].map(start));
    wait_for_hosts(2);
    bench.namespace.ip("link add p9 type veth peer name h9");
    bench.namespace.ip("link set p9 up");
    bench.namespace.ip("link set h9 up");
    agents.push(start("h9"));
    wait_for_hosts(3);
}

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _already_ended = self.0.kill();
        let _ended = self.0.wait();
    }
}
