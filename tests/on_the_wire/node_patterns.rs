//! Tests of a node whose ports are named by patterns.

use std::path::Path;
use std::process::Command;

use mapper_machine::link::interface::Interface;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::lab::wait_for;
use crate::namespace::Namespace;
use crate::{MAPPER, can_make_taps};

fn board(run_dir: &Path) -> Option<Value> {
    let words = ["board-info", "--format", "json", "--all", "--run-dir", run_dir.to_str().unwrap()];
    let output = Command::new(MAPPER).args(words).output().unwrap();
    let mut info: Value = serde_json::from_slice(&output.stdout).ok()?;
    let tag = info["xbars"][0]["tag"].take();
    let mut board = info["boards"][0].take();
    board["tag"] = tag;
    Some(board).filter(|board| board["mac"].is_string())
}

/// The ports that exist, as `1=e1`.
fn ports(board: &Value) -> Vec<String> {
    let ports = board["ports"].as_array().unwrap().iter().filter(|port| port["exists"] == true);
    ports.map(|port| format!("{}={}", port["port"], port["interface"].as_str().unwrap())).collect()
}

fn wait_for_ports(run_dir: &Path, expected: &[&str]) -> Value {
    let mut last = Vec::new();
    wait_for(&format!("the ports {expected:?}"), || {
        let board = board(run_dir)?;
        last = ports(&board);
        (last == expected).then_some(board)
    })
}

fn add(namespace: &Namespace, interface: &str, mac: &str) {
    namespace.ip(&format!("link add {interface} address {mac} type veth peer name far-{interface}"));
    namespace.ip(&format!("link set far-{interface} up"));
}

fn is_up(namespace: &Namespace, interface: &str) -> bool {
    namespace.enter(|| Interface::look_up(interface).unwrap().unwrap().up)
}

#[test]
fn ports_come_and_go_are_renamed_and_keep_their_numbers_and_those_in_use_are_left_out() {
    if !can_make_taps() {
        return;
    }
    let namespace = Namespace::new();
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().to_str().unwrap();
    let words = ["node", "--ports", "e*", "--tap", "e-tap", "--run-dir", run_dir];
    namespace.ip("link add e0 type bridge");
    let waits = "no interface that matches e* can be a port (e0: it is a bridge) yet; waiting for one";
    let mut node = Daemon::start(&namespace, &words, waits);
    namespace.ip("link delete e0");
    node.read_log_until("no interface matches e* yet; waiting for one");
    add(&namespace, "e2", "02:00:00:00:05:02");
    node.read_log_until("the agent runs");
    let first = wait_for_ports(dir.path(), &["1=e2"]);
    assert!(is_up(&namespace, "e2"), "it is set up");
    assert_eq!(first["mac"], "02:00:00:00:05:02");

    // Port 2 is the agent's. An interface that comes later is set up, too, and has a lower address.
    add(&namespace, "e1", "02:00:00:00:05:01");
    let two = wait_for_ports(dir.path(), &["1=e2", "3=e1"]);
    wait_for("it is set up", || is_up(&namespace, "e1").then_some(()));
    assert_eq!((&two["mac"], &two["tag"]), (&first["mac"], &first["tag"]));

    for words in ["link set e1 down", "link set e1 name e7", "link set e7 up"] {
        namespace.ip(words);
    }
    wait_for_ports(dir.path(), &["1=e2", "3=e7"]);
    namespace.ip("link delete e7");
    wait_for_ports(dir.path(), &["1=e2"]);
    add(&namespace, "e3", "02:00:00:00:05:03");
    wait_for_ports(dir.path(), &["1=e2", "4=e3"]);
    add(&namespace, "e7", "02:00:00:00:05:01");
    wait_for_ports(dir.path(), &["1=e2", "3=e7", "4=e3"]);
    wait_for("it is set up again", || is_up(&namespace, "e7").then_some(()));

    // An interface that the machine uses for something else is no port.
    namespace.ip("link add e-bridge type bridge");
    add(&namespace, "e4", "02:00:00:00:05:04");
    wait_for_ports(dir.path(), &["1=e2", "3=e7", "4=e3", "5=e4"]);
    namespace.ip("link set e4 master e-bridge");
    wait_for_ports(dir.path(), &["1=e2", "3=e7", "4=e3"]);
    namespace.ip("address add 192.0.2.2/24 dev e3");
    namespace.ip("route add default via 192.0.2.1 dev e3");
    // A change of any interface makes the node look; else it would look within ten seconds.
    namespace.ip("link set e-bridge up");
    wait_for_ports(dir.path(), &["1=e2", "3=e7"]);
    let log = node.end();
    for line in ["e-tap", "it is a bridge", "belongs to a bridge or bond", "the default route leads there"] {
        assert!(log.contains(line), "{line}: {log}");
    }

    // The node is the same whichever of its ports are found first. A port that is named is taken all the same.
    namespace.ip("link delete e2");
    let words = ["node", "--ports", "e*", "--tap", "e-tap", "--run-dir", run_dir];
    let node = Daemon::start(&namespace, &words, "the agent runs");
    let again = wait_for_ports(dir.path(), &["1=e7"]);
    assert_eq!((&again["mac"], &again["tag"]), (&first["mac"], &first["tag"]));
    // The doctor examines the ports that there are, and takes no name of the node for one.
    let mut doctor = namespace.command(MAPPER);
    let output = doctor.args(["doctor", "--format", "json", "--run-dir", run_dir]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let examined = report["checks"].as_array().unwrap().iter().map(|check| &check["interface"]);
    assert!(examined.filter(|name| !name.is_null()).all(|name| name == "e7"), "{report:#}");
    drop(node);
    let words = ["node", "--ports", "e3,e*", "--tap", "e-tap", "--run-dir", run_dir];
    let _node = Daemon::start(&namespace, &words, "the agent runs");
    wait_for_ports(dir.path(), &["1=e3", "2=e7"]);

    // If no other interface matches, one that another daemon has is named, too.
    let mut second = namespace.command(MAPPER);
    let output =
        second.args(["node", "--ports", "e7*", "--tap", "second", "--run-dir", run_dir]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("e7: interface `e7` already has an agent"), "{told}");
}

#[test]
fn the_tap_has_the_mtu_of_the_ports_that_have_a_cable_also_where_frames_go_by_it_alone() {
    if !can_make_taps() {
        return;
    }
    let namespace = Namespace::new();
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().to_str().unwrap();
    add(&namespace, "e1", "02:00:00:00:05:01");
    for words in
        ["link set e1 mtu 9000", "link set far-e1 mtu 9000", "link add e2 type veth peer name far-e2"]
    {
        namespace.ip(words);
    }
    let words = ["node", "--ports", "e*", "--tap", "e-tap", "--data-path", "tap", "--run-dir", run_dir];
    let node = Daemon::start(&namespace, &words, "the agent runs");
    wait_for_ports(dir.path(), &["1=e1", "2=e2"]);
    let has_mtu = |mtu: u32| {
        let found = || namespace.enter(|| Interface::look_up("e-tap").unwrap().unwrap().mtu);
        wait_for(&format!("an MTU of {mtu}"), || (found() == mtu).then_some(()));
    };
    has_mtu(8917);
    // A port that gets carrier later counts from then on, and one that is there only by name no more.
    namespace.ip("link set far-e2 up");
    has_mtu(1417);
    namespace.ip("link set far-e2 down");
    has_mtu(8917);
    // Without any carrier nothing is known of the cables, and nothing changes.
    namespace.ip("link set far-e1 down");
    wait_for("no port has carrier", || {
        let board = board(dir.path())?;
        board["ports"].as_array()?.iter().all(|port| port["carrier"] == false).then_some(())
    });
    namespace.ip("link set e2 mtu 1600");
    wait_for("it is seen", || (board(dir.path())?["ports"][1]["mtu"] == 1600).then_some(()));
    has_mtu(8917);
    let log = node.end();
    assert!(!log.contains("could not set it"), "{log}");
}

#[test]
fn the_tap_follows_what_a_crossbar_at_the_other_end_carries_also_where_frames_go_by_it_alone() {
    if !can_make_taps() {
        return;
    }
    let [one, other] = [(); 2].map(|()| Namespace::new());
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [run_dir, xbar_dir] = [0, 1].map(|at| dirs[at].path().to_str().unwrap());
    one.ip(&format!("link add e1 type veth peer name e1 netns {}", other.name));
    for namespace in [&one, &other] {
        namespace.ip("link set e1 up mtu 9000");
    }
    let words = [
        "node",
        "--ports",
        "e1",
        "--tap",
        "e-tap",
        "--address",
        "10.1.0.0/24",
        "--data-path",
        "tap",
        "--run-dir",
        run_dir,
    ];
    let _node = Daemon::start(&one, &words, "the agent runs");
    let words = ["xbar", "--ports", "e1", "--data-path", "tap", "--run-dir", xbar_dir];
    let _xbar = Daemon::start(&other, &words, "crossbar runs");
    wait_for("the node knows the crossbar", || {
        (board(dirs[0].path())?["ports"][0]["cable"]["state"] == "joined").then_some(())
    });
    let has_mtu = |mtu: u32| {
        let found = || one.enter(|| Interface::look_up("e-tap").unwrap().unwrap().mtu);
        wait_for(&format!("an MTU of {mtu}"), || (found() == mtu).then_some(()));
    };
    has_mtu(8917);
    // No map says what a crossbar's port carries, and nothing changes at the own interface, but hellos tell.
    other.ip("link set e1 mtu 4000");
    has_mtu(3917);
}

#[test]
fn an_interface_that_leads_to_another_network_is_no_port_or_named_and_nobody_hears_of_its_address() {
    if !can_make_taps() {
        return;
    }
    let [one, other] = [(); 2].map(|()| Namespace::new());
    one.ip(&format!("link add e1 type veth peer name e1 netns {}", other.name));
    add(&one, "e2", "02:00:00:00:00:02");
    one.ip("address add 192.0.2.7/24 dev e2");
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let start = |namespace: &Namespace, dir: &tempfile::TempDir| {
        let words = ["node", "--ports", "e*", "--tap", "fabric0", "--run-dir", dir.path().to_str().unwrap()];
        Daemon::start(namespace, &words, "the agent runs")
    };
    let _nodes = [start(&one, &dirs[0]), start(&other, &dirs[1])];
    let told = |board: &Value| board["addresses"].to_string().contains("192.0.2.7");
    let warns = |board: &Value| {
        let words = "the port e2 has the address 192.0.2.7/24, and nothing of the fabric is heard there";
        board["warnings"].to_string().contains(words)
    };
    let of_one = wait_for("both hosts are configured, and the board names the port", || {
        board(dirs[0].path())
            .filter(|board| board["network_configured"] == true && board["hosts"] == 2 && warns(board))
    });
    assert!(!told(&of_one), "{of_one:#}");
    assert_eq!(ports(&of_one), ["1=e1", "2=e2"]);
    // An address of its own counts where a neighbour is heard.
    one.ip("address add 10.9.1.1/32 dev e1");
    wait_for("the address of the port with a neighbour is told", || {
        board(dirs[0].path()).filter(|board| board["addresses"].to_string().contains("10.9.1.1/32"))
    });
    // A server leases it an address.
    one.ip("address replace 192.0.2.7/24 dev e2 valid_lft 600 preferred_lft 600");
    let of_one = wait_for_ports(dirs[0].path(), &["1=e1"]);
    assert!(!told(&of_one) && !warns(&of_one), "{of_one:#}");
}
