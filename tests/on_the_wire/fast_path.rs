//! Tests of `mapper doctor` on what the kernel's forwarding of users' packets needs.

use std::path::Path;

use serde_json::Value;

use crate::daemon::Daemon;
use crate::kernel_path::wait_for_pings;
use crate::lab::wait_for;
use crate::namespace::Namespace;
use crate::ring::Ring;
use crate::{MAPPER, can_carry_ip, can_make_namespaces};

/// A namespace with two ports that have carrier.
fn two_ports() -> Namespace {
    let namespace = Namespace::new();
    for words in [
        "link set lo up",
        "link add eth1 type veth peer name far1",
        "link add eth2 type veth peer name far2",
        "link set eth1 up",
        "link set far1 up",
        "link set eth2 up",
        "link set far2 up",
    ] {
        namespace.ip(words);
    }
    namespace
}

/// What `mapper doctor` says of the two ports.
fn doctor(namespace: &Namespace, run_dir: &Path, more: &[&str]) -> Value {
    let run_dir = run_dir.to_str().unwrap();
    let mut command = namespace.command(MAPPER);
    command.args(["doctor", "--format", "json", "--ports", "eth1,eth2", "--run-dir", run_dir]).args(more);
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
}

/// The checks of this name.
fn checks<'a>(report: &'a Value, name: &str) -> Vec<&'a Value> {
    report["checks"].as_array().unwrap().iter().filter(|check| check["name"] == name).collect()
}

fn run(namespace: &Namespace, line: &str) {
    let output = namespace.command_line(line).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
}

/// The rules of the chain FORWARD.
fn rules(namespace: &Namespace) -> String {
    let output = namespace.command("ip6tables").args(["-S", "FORWARD"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_firewall_that_drops_what_is_forwarded_is_named_and_opened_for_the_ports_alone() {
    if !can_make_namespaces() || !mapper_needs::programs(&["nft", "ip6tables"]) {
        return;
    }
    let (namespace, dir) = (two_ports(), tempfile::tempdir().unwrap());
    let report = doctor(&namespace, dir.path(), &[]);
    assert_eq!(checks(&report, "firewall")[0]["status"], "ok", "{report:#}");
    run(&namespace, "ip6tables -P FORWARD DROP");
    let report = doctor(&namespace, dir.path(), &[]);
    assert_eq!(checks(&report, "firewall")[0]["status"], "failed", "{report:#}");
    assert_eq!(rules(&namespace).lines().count(), 1, "nothing is changed without --fix");
    let report = doctor(&namespace, dir.path(), &["--fix"]);
    assert_eq!(checks(&report, "firewall")[0]["status"], "ok", "{report:#}");
    let mended = &report["mended"][0];
    assert_eq!(mended["error"], Value::Null);
    let rules_now = rules(&namespace);
    let accepting: Vec<_> = rules_now.lines().filter(|rule| rule.contains("ACCEPT")).collect();
    assert_eq!(accepting.len(), 4, "{rules_now}");
    assert!(accepting.iter().all(|rule| rule.contains("-i eth") && rule.contains("-o eth")), "{rules_now}");
    for undo in mended["undo"].as_array().unwrap() {
        run(&namespace, undo.as_str().unwrap());
    }
    assert_eq!(rules(&namespace), "-P FORWARD DROP\n");
}

#[test]
fn what_others_have_among_segments_is_named_and_left_alone() {
    if !can_make_namespaces() {
        return;
    }
    let (namespace, dir) = (two_ports(), tempfile::tempdir().unwrap());
    namespace.ip("-6 route add fcbb:bb00:7::/48 dev lo");
    namespace.ip("-6 rule add priority 109 to fd00::/8 table 77");
    namespace.ip("-4 route add 10.9.0.0/16 dev lo table 28001");
    let report = doctor(&namespace, dir.path(), &["--fix"]);
    let check = checks(&report, "forwarding tables")[0];
    assert_eq!(check["status"], "warning", "{check:#}");
    let fix = check["fix"].as_str().unwrap();
    for removal in [
        "ip -6 route del fcbb:bb00:7::/48 table 254",
        "ip -4 route del 10.9.0.0/16 table 28001",
        "ip -6 rule del priority 109 table 77",
    ] {
        assert!(fix.contains(removal), "{fix}");
        run(&namespace, removal);
    }
    let report = doctor(&namespace, dir.path(), &[]);
    assert_eq!(checks(&report, "forwarding tables")[0]["status"], "ok", "{report:#}");
}

#[test]
fn what_a_daemon_of_another_run_directory_has_in_the_kernel_is_not_to_be_flushed() {
    if !can_carry_ip() {
        return;
    }
    let (namespace, dirs) = (two_ports(), [(); 2].map(|()| tempfile::tempdir().unwrap()));
    let leave_route = || namespace.ip("-6 route replace fcbb:bb00:7::/48 dev lo proto 109");
    let found = || {
        let report = doctor(&namespace, dirs[0].path(), &[]);
        let check = checks(&report, "forwarding tables")[0];
        (
            check["status"].as_str().unwrap().to_owned(),
            check["fix"].to_string().contains("start the node or agent once"),
        )
    };
    leave_route();
    assert_eq!(found(), ("warning".to_owned(), true), "no daemon runs");
    // These work on an interface that the doctor is not asked about.
    let start = |options: &[&str]| Daemon::agent(&namespace, "far1", dirs[1].path(), options);
    let agent = start(&["--tap", "fabric0", "--data-path", "tap"]);
    leave_route();
    assert_eq!(found(), ("warning".to_owned(), true), "a daemon runs that does not use the kernel");
    drop(agent);
    let agent = start(&["--tap", "fabric0"]);
    leave_route();
    assert_eq!(found(), ("ok".to_owned(), false), "the agent may need it");
    let settings = doctor(&namespace, dirs[0].path(), &[]);
    assert_eq!(checks(&settings, "settings")[0]["status"], "ok", "what that agent is to set is not known");
    drop(agent);
    leave_route();
    assert_eq!(found(), ("warning".to_owned(), true), "no daemon runs any more");
}

/// The value of a setting of IPv4 of the first port.
fn setting(namespace: &Namespace, key: &str) -> String {
    let line = format!("cat /proc/sys/net/ipv4/conf/eth1/{key}");
    let output = namespace.command_line(&line).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn forwarding_and_the_filter_of_sources_are_left_to_the_daemon_that_is_to_set_them() {
    if !can_carry_ip() {
        return;
    }
    let (namespace, dir) = (two_ports(), tempfile::tempdir().unwrap());
    run(&namespace, "sysctl -w net.ipv4.conf.eth1.rp_filter=1 net.ipv4.conf.eth1.forwarding=0");
    let report = doctor(&namespace, dir.path(), &["--fix"]);
    let check = checks(&report, "settings")[0];
    let what = check["what"].as_str().unwrap();
    assert_eq!(check["status"], "ok", "{check:#}");
    for needed in ["net/ipv4/conf/eth1/rp_filter=0", "net/ipv4/conf/eth1/forwarding=1"] {
        assert!(
            what.contains("the daemon sets, and at its end puts back") && what.contains(needed),
            "{what}"
        );
    }
    let now = || ["rp_filter", "forwarding"].map(|key| setting(&namespace, key));
    assert_eq!(now(), ["1", "0"], "the doctor leaves them as they are");
    let words = ["node", "--ports", "eth1,eth2", "--run-dir", dir.path().to_str().unwrap()];
    let node = Daemon::start(&namespace, &words, "the agent runs");
    wait_for("the daemon has set them", || (now() == ["0", "1"]).then_some(()));
    let report = doctor(&namespace, dir.path(), &[]);
    let what = checks(&report, "settings")[0]["what"].as_str().unwrap();
    assert_eq!(what, "the kernel's settings are as forwarding needs them");
    node.end();
    assert_eq!(now(), ["1", "0"], "they are what they were");
}

#[test]
fn forwarding_and_the_filter_of_sources_are_named_where_a_daemon_works_that_does_not_set_them() {
    if !can_carry_ip() {
        return;
    }
    let (namespace, dir) = (two_ports(), tempfile::tempdir().unwrap());
    run(&namespace, "sysctl -w net.ipv4.conf.eth1.rp_filter=1 net.ipv4.conf.eth1.forwarding=0");
    let words = ["node", "--ports", "eth1,eth2", "--data-path", "tap", "--run-dir"];
    let words = [&words[..], &[dir.path().to_str().unwrap()]].concat();
    let _node = Daemon::start(&namespace, &words, "the agent runs");
    let report = doctor(&namespace, dir.path(), &[]);
    let check = checks(&report, "settings")[0];
    assert_eq!(check["status"], "warning", "{check:#}");
    let (what, fix) = (check["what"].as_str().unwrap(), check["fix"].as_str().unwrap());
    for (is, command) in [
        ("net/ipv4/conf/eth1/rp_filter is 1", "sysctl -w net/ipv4/conf/eth1/rp_filter=0"),
        ("net/ipv4/conf/eth1/forwarding is 0", "sysctl -w net/ipv4/conf/eth1/forwarding=1"),
    ] {
        assert!(what.contains(is), "{what}");
        assert!(fix.contains(&format!("`{command}`")), "{fix}");
    }
    // Each command that it names mends what it names.
    fix.split('`').filter(|part| part.starts_with("sysctl -w")).for_each(|command| run(&namespace, command));
    let report = doctor(&namespace, dir.path(), &[]);
    assert_eq!(checks(&report, "settings")[0]["status"], "ok", "{report:#}");
}

#[test]
fn trying_what_the_kernel_can_leaves_no_trace_and_ports_that_differ_are_named() {
    if !can_make_namespaces() {
        return;
    }
    let (namespace, dir) = (two_ports(), tempfile::tempdir().unwrap());
    namespace.ip("link set eth1 mtu 9000");
    let ours = || {
        let show = |words: &str| {
            let output = namespace.command("ip").args(words.split(' ')).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        [
            "-6 route show table all proto 109",
            "route show table all proto 109",
            "nexthop show",
            "-6 rule show",
        ]
        .map(show)
    };
    let before = ours();
    let report = doctor(&namespace, dir.path(), &[]);
    assert_eq!(ours(), before);
    assert!(checks(&report, "kernel")[0]["what"].as_str().unwrap().contains("it has"), "{report:#}");
    let mtus = checks(&report, "MTU of the fast path");
    assert_eq!((mtus.len(), &mtus[0]["interface"]), (1, &Value::from("eth2")), "{report:#}");
    let settings = checks(&report, "settings")[0];
    assert!(settings["what"].as_str().unwrap().contains("force_forwarding=1"), "{settings:#}");
    let report = doctor(&namespace, dir.path(), &["--data-path", "tap"]);
    assert!(checks(&report, "kernel").is_empty(), "the kernel carries nothing then");
}

#[test]
fn who_accepts_packets_by_the_tap_interface_gets_them_by_the_ports_too_once_a_firewall_is_opened() {
    if !can_carry_ip() || !mapper_needs::programs(&["nft", "iptables", "ip6tables"]) {
        return;
    }
    let ring = Ring::new(2);
    for program in ["iptables", "ip6tables"] {
        for rule in ["-A INPUT -i fabric0 -j ACCEPT", "-A INPUT -i lo -j ACCEPT", "-P INPUT DROP"] {
            run(&ring.machines[1], &format!("{program} {rule}"));
        }
    }
    let _daemons = [0, 1].map(|at| ring.start_addressed(at, &[]));
    wait_for_pings(&ring.machines[0], "10.1.0.2");
    let doctor = || -> Value {
        let line = format!("{MAPPER} doctor --format json --ports e1,e2 --fix --run-dir {}", ring.run_dir(1));
        serde_json::from_slice(&ring.run(1, &line).stdout).unwrap()
    };
    let report = doctor();
    assert!(checks(&report, "firewall").iter().all(|check| check["status"] == "ok"), "{report:#}");
    let rules = ring.text(1, "iptables -S INPUT");
    assert!(["e1", "e2"].iter().all(|port| rules.contains(&format!("-i {port} -j ACCEPT"))), "{rules}");
    ring.wait_for_kind(0, "srv6");
    wait_for_pings(&ring.machines[0], "10.1.0.2");
}
