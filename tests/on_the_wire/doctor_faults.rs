//! Faults of cables between nodes at work: each is made, and `mapper doctor` names it for as long as it is there.

use serde_json::Value;

use crate::daemon::Daemon;
use crate::lab::wait_for;
use crate::namespace::Namespace;
use crate::ring::Ring;
use crate::{MAPPER, can_carry_ip};

/// What `mapper doctor` finds of the ports of a node.
fn doctor(machine: &Namespace, run_dir: &str) -> Vec<Value> {
    let mut command = machine.command(MAPPER);
    command.args(["doctor", "--format", "json", "--ports", "e1,e2", "--run-dir", run_dir]);
    let report: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    report["checks"].as_array().unwrap().clone()
}

/// The first of these checks that is not fine, and says these words.
fn defect<'a>(checks: &'a [Value], words: &str) -> Option<&'a Value> {
    checks.iter().find(|check| check["status"] != "ok" && check["what"].as_str().unwrap().contains(words))
}

#[test]
fn a_cable_whose_ends_carry_frames_of_different_lengths_is_named_until_both_are_set_alike() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let _daemons = ring.start_all(&[], "srv6");
    ring.machines[0].ip("link set e1 mtu 1400");
    let words = "e1 carries 1400 bytes, and at the other end";
    wait_for("the doctor names the cable", || {
        let checks = doctor(&ring.machines[0], ring.run_dir(0));
        let found = defect(&checks, words)?;
        assert!(found["fix"].as_str()?.contains("ip link set e1 mtu 1500"), "{found}");
        assert_eq!(found["interface"], "e1");
        let times =
            checks.iter().filter(|check| check["what"].as_str().is_some_and(|what| what.contains(words)));
        assert_eq!(times.count(), 1, "{checks:#?}");
        Some(())
    });
    ring.machines[0].ip("link set e1 mtu 1500");
    wait_for("it is content", || {
        defect(&doctor(&ring.machines[0], ring.run_dir(0)), words).is_none().then_some(())
    });
}

#[test]
fn ports_that_the_node_will_set_up_and_its_own_tap_interface_are_no_failures() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(2);
    let failures = || -> Vec<String> {
        let checks = doctor(&ring.machines[0], ring.run_dir(0));
        let failed = checks.iter().filter(|check| check["status"] == "failed");
        failed.map(|check| format!("{} {}: {}", check["interface"], check["name"], check["what"])).collect()
    };
    assert_eq!(failures(), Vec::<String>::new(), "both ports are down");
    let words =
        ["node", "--ports", "e1", "--tap", "fabric0", "--data-path", "tap", "--run-dir", ring.run_dir(0)];
    let _node = Daemon::start(&ring.machines[0], &words, "the agent runs");
    let failed = failures();
    assert!(
        !failed.iter().any(|check| check.contains("fabric0")),
        "it is that of the node at e1: {failed:?}"
    );
}

#[test]
fn rules_of_the_machine_that_somebody_flushed_are_named_with_the_commands_that_put_them_back() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(2);
    let _daemons = ring.start_all(&[], "srv6");
    let named = || defect(&doctor(&ring.machines[0], ring.run_dir(0)), "no rule leads to the table").cloned();
    assert_eq!(named(), None);
    assert!(ring.run(0, "ip -6 rule flush").status.success());
    let found = wait_for("the doctor names the rule", named);
    assert!(found["what"].as_str().unwrap().contains("the table main of IPv6"), "{found}");
    let fix = found["fix"].as_str().unwrap().trim_matches('`');
    assert!(ring.run(0, fix).status.success(), "{fix}");
    assert_eq!(named(), None);
    ring.wait_for_kind(0, "srv6");
}

#[test]
fn a_queue_in_which_agents_frames_wait_behind_users_is_named_until_another_stands_in_it() {
    if !can_carry_ip() || !mapper_needs::programs(&["tc"]) {
        return;
    }
    let ring = Ring::new(3);
    let machine = &ring.machines[0];
    let named = || defect(&doctor(machine, ring.run_dir(0)), "wait behind users' packets").cloned();
    assert_eq!(named(), None);
    let run = |line: &str| assert!(machine.command_line(line).status().unwrap().success(), "{line}");
    run("tc qdisc add dev e1 root tbf rate 50mbit burst 15k latency 50ms");
    let found = named().unwrap();
    assert_eq!((&found["status"], &found["interface"]), (&"warning".into(), &"e1".into()), "{found}");
    run(found["fix"].as_str().unwrap().trim_matches('`'));
    assert_eq!(named(), None);
}

#[test]
fn ports_that_share_one_wire_are_named() {
    if !can_carry_ip() {
        return;
    }
    let (switch, machines) = (Namespace::new(), [Namespace::new(), Namespace::new()]);
    switch.ip("link add wire type bridge group_fwd_mask 0x4000");
    switch.ip("link set wire up");
    for (at, machine) in machines.iter().enumerate() {
        machine.ip("link set lo up");
        for port in ["e1", "e2"] {
            machine.ip(&format!("link add {port} type veth peer name w{at}{port} netns {}", switch.name));
            machine.ip(&format!("link set {port} up"));
            switch.ip(&format!("link set w{at}{port} master wire up"));
        }
    }
    let run_dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let run_dir = |at: usize| run_dirs[at].path().to_str().unwrap();
    let _daemons: Vec<_> = (0..2)
        .map(|at| {
            let words = ["node", "--ports", "e1,e2", "--run-dir", run_dir(at)];
            Daemon::start(&machines[at], &words, "the agent runs")
        })
        .collect();
    wait_for("the doctor names both ports of each machine", || {
        (0..2).try_for_each(|at| {
            let checks = doctor(&machines[at], run_dir(at));
            let named = |port: &str| defect(&checks, &format!("{port} shares its cable with more"));
            named("e1").and(named("e2")).map(drop)
        })
    });
}
