//! Tests of what `mapper doctor` finds at one cable.

use serde_json::Value;

use crate::daemon::{Daemon, cable};
use crate::lab::wait_for;
use crate::namespace::Namespace;
use crate::{MAPPER, can_make_namespaces};

/// What `mapper doctor` finds, by the names of its checks, and its exit status.
fn doctor(namespace: &Namespace, options: &[&str]) -> (Vec<Value>, i32) {
    let output =
        namespace.command(MAPPER).args(["doctor", "--format", "json"]).args(options).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "mapper.doctor/1");
    (report["checks"].as_array().unwrap().clone(), output.status.code().unwrap())
}

fn check<'a>(checks: &'a [Value], name: &str) -> &'a Value {
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check {name}: {checks:#?}"))
}

/// The two ends of a cable, and a folder for what runs at each.
fn cable_and_folders() -> Option<(Namespace, [tempfile::TempDir; 2])> {
    can_make_namespaces().then(|| (cable(), [(); 2].map(|()| tempfile::tempdir().unwrap())))
}

#[test]
fn the_doctor_says_who_is_at_the_other_end_of_the_cable() {
    let Some((namespace, dirs)) = cable_and_folders() else { return };
    let run_dir = dirs[0].path().to_str().unwrap();
    let options = ["--interface", "eth1", "--run-dir", run_dir];
    // On a busy machine an answer may come later than the doctor waits for it.
    let finds = |status: &str, what: &str| {
        wait_for(what, || {
            let (checks, exit) = doctor(&namespace, &options);
            assert_eq!(exit, 0, "{checks:#?}");
            let check = check(&checks, "neighbour");
            (check["status"] == status && check["what"].as_str().unwrap().contains(what)).then_some(())
        });
    };
    finds("warning", "nobody answers");
    {
        let _agent = Daemon::agent(&namespace, "far", dirs[1].path(), &[]);
        finds("ok", "the agent of host");
    }
    for (kind, wanted) in
        [("tagged", "port 7 of the crossbar with tag 0x0000000000000005"), ("plain", "a plain crossbar")]
    {
        let mut arguments = vec!["xbar", "--port", "7=far", "--kind", kind];
        if kind == "tagged" {
            arguments.extend(["--tag", "5"]);
        }
        let _xbar = Daemon::start(&namespace, &arguments, "crossbar runs");
        finds("ok", wanted);
    }
}

#[test]
fn the_doctor_names_what_is_missing_and_what_to_do() {
    let Some((namespace, dirs)) = cable_and_folders() else { return };
    let run_dir = dirs[0].path().to_str().unwrap();
    let options = ["--interface", "eth1", "--run-dir", run_dir];
    let failed = |name: &str, fix: &str| {
        let (checks, status) = doctor(&namespace, &options);
        let check = check(&checks, name);
        assert_eq!((check["status"].as_str(), status), (Some("failed"), 1), "{checks:#?}");
        assert!(check["fix"].as_str().unwrap().contains(fix), "{check:#}");
    };
    namespace.ip("link set far down");
    failed("carrier", "plug the cable in");
    namespace.ip("link set eth1 down");
    failed("state", "ip link set eth1 up");
    namespace.ip("link set eth1 mtu 1280 up");
    namespace.ip("link set far up");
    failed("MTU", "ip link set eth1 mtu 1500");
    namespace.ip("link set eth1 mtu 1500");
    let _elsewhere = Daemon::agent(&namespace, "eth1", dirs[1].path(), &[]);
    failed("daemon", "stop that one");
}

#[test]
fn the_doctor_finds_nodes_and_crossbars_at_work_and_daemons_that_hang() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().to_str().unwrap();
    let daemon = |interface: &str| {
        let (checks, _) = doctor(&namespace, &["--interface", interface, "--run-dir", run_dir]);
        let check = check(&checks, "daemon");
        (check["status"].as_str().unwrap().to_owned(), check["what"].as_str().unwrap().to_owned())
    };
    let xbar = Daemon::start(&namespace, &["xbar", "--port", "far", "--run-dir", run_dir], "crossbar runs");
    let (status, what) = daemon("far");
    assert_eq!((status.as_str(), what.as_str()), ("ok", "it is a port of the crossbar far"));
    let agent = Daemon::agent(&namespace, "eth1", dir.path(), &[]);
    assert_eq!(daemon("eth1").0, "ok");
    for (daemon_of, interface) in [(&xbar, "far"), (&agent, "eth1")] {
        daemon_of.signal(rustix::process::Signal::STOP);
        let (status, what) = daemon(interface);
        daemon_of.signal(rustix::process::Signal::CONT);
        assert_eq!((status.as_str(), what.contains("hangs")), ("failed", true), "{what}");
    }
}

#[test]
fn the_doctor_names_patterns_without_a_port_and_what_they_leave_out() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    namespace.ip("link add br0 type bridge");
    let dir = tempfile::tempdir().unwrap();
    let found = |ports: &str| {
        let run_dir = dir.path().to_str().unwrap();
        let (checks, exit) = doctor(&namespace, &["--ports", ports, "--run-dir", run_dir]);
        let check = checks.iter().find(|check| check["name"] == "interfaces");
        let text = |key: &str| check.map(|check| check[key].as_str().unwrap_or_default().to_owned());
        (text("status"), text("what").unwrap_or_default(), exit)
    };
    let (status, what, exit) = found("zz*");
    assert_eq!((status.as_deref(), what.as_str(), exit), (Some("failed"), "none here matches zz*", 1));
    let (status, what, exit) = found("br*");
    assert_eq!((status.as_deref(), exit), (Some("failed"), 1));
    assert_eq!(what, "none that matches br* can be a port: br0: it is a bridge");
    let (status, what, exit) = found("*");
    assert_eq!((status.as_deref(), exit), (Some("ok"), 0), "{what}");
    assert!(what.contains("br0: it is a bridge"), "{what}");
    assert_eq!(found("eth*").0, None, "all that match are ports");
}
