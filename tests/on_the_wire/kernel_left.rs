//! What a run left in the kernel that crashed or kept its routes, where the next one does not use the kernel.

use rustix::process::Signal;

use crate::can_carry_ip;
use crate::daemon::Daemon;
use crate::kernel_path::wait_for_pings;
use crate::ring::Ring;

/// What forwarding needs of the kernel's settings, and the address that outer headers come from.
fn settings(ring: &Ring, at: usize) -> [String; 2] {
    [
        "sysctl net.ipv6.conf.e1.force_forwarding net.ipv4.conf.e1.forwarding net.ipv4.conf.e2.forwarding \
         net.ipv4.conf.e1.rp_filter net.ipv4.fib_multipath_hash_policy",
        "ip sr tunsrc show",
    ]
    .map(|line| ring.text(at, line))
}

#[test]
fn what_a_crash_left_is_taken_away_by_a_start_that_does_not_use_the_kernel() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    assert!(ring.run(1, "sysctl -w net.ipv4.conf.e1.rp_filter=1").status.success());
    let before = settings(&ring, 1);
    let mut daemons = ring.start_all(&[], "srv6");
    let crashed = daemons.remove(1);
    crashed.signal(Signal::KILL);
    drop(crashed);
    assert!(ring.holds_something(1), "a crash leaves all as it is");
    assert_ne!(settings(&ring, 1), before);
    // Objects of others stay.
    assert!(ring.run(1, "ip route add 192.0.2.0/24 dev e1 proto static").status.success());
    daemons.push(ring.start_addressed(1, &["--data-path", "tap"]));
    assert!(!ring.holds_something(1));
    assert_eq!(settings(&ring, 1), before, "settings are put back");
    assert!(ring.text(1, "ip route show proto static").contains("192.0.2.0/24"));
    wait_for_pings(&ring.machines[1], "10.1.0.3");
}

#[test]
fn what_was_kept_is_taken_away_by_a_crossbar_and_by_a_host_that_do_not_use_the_kernel() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    for daemon in ring.start_all(&["--keep-routes"], "srv6") {
        daemon.end();
    }
    (0..3).for_each(|at| assert!(ring.holds_something(at)));
    let xbar = ["xbar", "--ports", "e1,e2", "--data-path", "tap", "--run-dir", ring.run_dir(0)];
    let _xbar = Daemon::start(&ring.machines[0], &xbar, "a tagged crossbar runs");
    let host = ["agent", "--interface", "e1", "--run-dir", ring.run_dir(1)];
    let _host = Daemon::start(&ring.machines[1], &host, "the agent runs");
    // The kernel is told to have no segments, and a crossbar without an agent uses the kernel for nothing else.
    let lacking = ["xbar", "--ports", "e1,e2", "--kernel-avoid", "segments", "--run-dir", ring.run_dir(2)];
    let _lacking = Daemon::start(&ring.machines[2], &lacking, "a tagged crossbar runs");
    (0..3).for_each(|at| assert!(!ring.holds_something(at), "n{}", at + 1));
}

#[test]
fn what_a_daemon_has_in_the_kernel_stays_when_others_start_beside_it_that_do_not_use_the_kernel() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let _daemons = ring.start_all(&[], "srv6");
    let machine = &ring.machines[1];
    machine.ip("link add x1 type veth peer name x2");
    machine.ip("link set x1 up");
    machine.ip("link set x2 up");
    let (objects, settings_before) = (|| ring.text(1, "ip nexthop show proto 109"), settings(&ring, 1));
    let put_right = || ring.board(1, &[])["data_path"]["put_right"].as_u64().unwrap();
    let before = (objects(), put_right());
    assert!(!before.0.is_empty());
    let run_dir = tempfile::tempdir().unwrap();
    let _host = Daemon::agent(machine, "x1", run_dir.path(), &["--tap", "fabric1", "--data-path", "tap"]);
    let _other = Daemon::agent(machine, "x2", run_dir.path(), &[]);
    assert_eq!((objects(), put_right()), before);
    assert_eq!(settings(&ring, 1), settings_before);
}
