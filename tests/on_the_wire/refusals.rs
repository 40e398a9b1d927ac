//! Tests of refusals, which must say what is wrong and what to do.

use std::path::Path;
use std::process::{Command, Output};

use crate::namespace::Namespace;
use crate::{MAPPER, can_make_namespaces};

/// The error text of a command, which must have failed.
fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    text.lines().find_map(|line| line.strip_prefix("mapper: ")).unwrap_or_else(|| panic!("{text}")).to_owned()
}

fn agent(options: &[&str]) -> Output {
    Command::new(MAPPER).arg("agent").args(options).output().unwrap()
}

#[test]
fn an_interface_that_does_not_exist() {
    let text = refusal(&agent(&["--interface", "nosuch0"]));
    assert!(text.contains("`nosuch0` does not exist"), "{text}");
}

#[test]
fn an_interface_that_is_not_ethernet() {
    let text = refusal(&agent(&["--interface", "lo"]));
    assert!(text.contains("`lo` is not an Ethernet interface"), "{text}");
}

#[test]
fn no_interface_at_all() {
    let text = refusal(&agent(&[]));
    assert!(text.contains("--interface IF"), "{text}");
}

#[test]
fn routes_by_destination_where_nobody_knows_destinations_and_abilities_that_no_kernel_has() {
    let words = ["xbar", "--ports", "lo", "--data-path", "routes"];
    let text = refusal(&Command::new(MAPPER).args(words).output().unwrap());
    assert!(text.contains("holds no map") && text.contains("run `mapper node`"), "{text}");
    let text = refusal(&agent(&["--interface", "lo", "--data-path", "routes"]));
    assert!(text.contains("--tap NAME"), "{text}");
    let unknown = agent(&["--interface", "lo", "--kernel-avoid", "segment"]);
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
    let text = String::from_utf8(unknown.stderr).unwrap();
    assert!(text.contains("expected one of nexthops, segments"), "{text}");
}

#[test]
fn an_interface_that_is_down_or_too_narrow_or_not_ours() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = Namespace::new();
    let run_dir = tempfile::tempdir().unwrap();
    namespace.ip("link add eth1 type veth peer name eth2");
    let agent = ["agent", "--interface", "eth1", "--run-dir", run_dir.path().to_str().unwrap()];
    // An agent that may set its interface up does so, so this one is denied the privilege for it.
    let may_not = ["--inh-caps=-net_admin", "--bounding-set=-net_admin", MAPPER];
    let down = refusal(&namespace.command("setpriv").args(may_not).args(agent).output().unwrap());
    assert!(down.contains("`ip link set eth1 up`"), "{down}");
    let refused = || refusal(&namespace.command(MAPPER).args(agent).output().unwrap());

    namespace.ip("link set eth1 mtu 1280 up");
    assert!(refused().contains("`ip link set eth1 mtu 1500`"), "{}", refused());

    namespace.ip("link set eth1 mtu 1500");
    // Other users may not be able to run the program where it was built, so they get a copy in the directory
    // where they may make a socket.
    let program = run_dir.path().join("mapper");
    mapper_needs::copy_program(Path::new(MAPPER), &program);
    std::fs::set_permissions(run_dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = namespace
        .command("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(agent)
        .output()
        .unwrap();
    let text = refusal(&output);
    assert!(text.contains("setcap cap_net_raw+ep") && text.contains("`eth1`"), "{text}");
}

#[test]
fn a_port_of_a_node_that_is_too_narrow() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = Namespace::new();
    let run_dir = tempfile::tempdir().unwrap();
    namespace.ip("link add e1 type veth peer name e2");
    namespace.ip("link set e1 up");
    namespace.ip("link set e2 mtu 1280 up");
    let node = ["node", "--ports", "e1,e2", "--run-dir", run_dir.path().to_str().unwrap()];
    let text = refusal(&namespace.command(MAPPER).args(node).output().unwrap());
    assert!(text.contains("`ip link set e2 mtu 1500`"), "{text}");
}

#[test]
fn a_configuration_file_with_a_mistake() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.toml");
    let file_name = file.to_str().unwrap();
    for (text, wanted) in [
        ("level = 1\nlevle = 2\n", "my.toml:2: unknown field `levle`, did you mean `level`?"),
        ("\nprobe-tries = 0\n", "my.toml:2: `probe-tries`: expected a whole number from 1 to 100"),
        ("destination = \"nowhere\"\n", "my.toml:1: `destination`: `nowhere` is not a MAC address"),
    ] {
        std::fs::write(&file, text).unwrap();
        let refused = refusal(&agent(&["--interface", "lo", "--config", file_name]));
        assert!(refused.contains(wanted), "{refused}");
    }
    let missing = refusal(&agent(&["--config", "/nonexistent/my.toml"]));
    assert!(missing.contains("cannot read /nonexistent/my.toml"), "{missing}");
}

#[test]
fn failure_is_json_if_asked_for() {
    let output = agent(&["--interface", "nosuch0", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "mapper.error/1");
    assert!(json["error"].as_str().unwrap().contains("nosuch0"));
}

#[test]
fn a_wrong_option_is_a_wrong_command_line() {
    for options in [&["--probe-tries", "0"][..], &["--nonsense"], &["--host-type", "vax"]] {
        assert_eq!(agent(options).status.code(), Some(2), "{options:?}");
    }
    let output = Command::new(MAPPER).args(["xbar"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "a crossbar has ports");
}

#[test]
fn nobody_there_is_no_board_and_a_failure_and_waiting_for_it_times_out() {
    let board_info = |options: &[&str]| {
        Command::new(MAPPER)
            .args(["board-info", "--format", "json", "--run-dir", "/nonexistent/mapper"])
            .args(options)
            .output()
            .unwrap()
    };
    for (options, status) in [(&[][..], 1), (&["--all"], 1), (&["--wait", "0"], 4)] {
        let output = board_info(options);
        assert_eq!(output.status.code(), Some(status));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["schema"], "mapper.board-info/1");
        assert_eq!(json["boards"], serde_json::json!([]));
    }
    assert!(!Path::new("/nonexistent").exists());
}
