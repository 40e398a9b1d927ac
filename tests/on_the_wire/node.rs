//! Tests of a node, by itself or cabled to another: what it does to its interfaces, and what it says of
//! itself.

use std::path::Path;
use std::process::Command;

use mapper_machine::link::interface::Interface;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::lab::{Lab, wait_for};
use crate::namespace::Namespace;
use crate::{MAPPER, can_carry_ip, can_make_namespaces};

/// A namespace with interfaces e1 and e2, which are both down. The far ends of their cables are f1, which is
/// up, and f2, which is down.
fn cables() -> Namespace {
    let namespace = Namespace::new();
    for words in [
        "link add e1 type veth peer name f1",
        "link add e2 type veth peer name f2",
        "link set f1 up",
        "link set lo up",
    ] {
        namespace.ip(words);
    }
    namespace
}

/// The same, with an interface `other` that is no port of the node and is up.
fn cables_and_another() -> Namespace {
    let namespace = cables();
    for words in ["link add other type veth peer name far", "link set other up", "link set far up"] {
        namespace.ip(words);
    }
    namespace
}

fn start(namespace: &Namespace, run_dir: &Path) -> Daemon {
    let run_dir = run_dir.to_str().unwrap();
    let addresses = "10.9.0.1/24,fd09::1/64";
    let words = ["node", "--ports", "e1,e2", "--tap", "t0", "--address", addresses, "--run-dir", run_dir];
    Daemon::start(namespace, &words, "the agent runs")
}

/// The only board, by `mapper board-info`, and the tag of the node's crossbar.
fn board(run_dir: &Path, options: &[&str]) -> (Value, String) {
    let command = ["board-info", "--all", "--format", "json", "--run-dir", run_dir.to_str().unwrap()];
    let output = Command::new(MAPPER).args(command).args(options).output().unwrap();
    let info: Value = serde_json::from_slice(&output.stdout).unwrap();
    (info["boards"][0].clone(), info["xbars"][0]["tag"].as_str().unwrap().to_owned())
}

#[test]
fn an_address_that_another_interface_of_the_machine_has_too_is_named_with_both() {
    if !can_carry_ip() {
        return;
    }
    let namespace = cables_and_another();
    let dir = tempfile::tempdir().unwrap();
    namespace.ip("address add 10.9.0.1/32 dev other");
    let mut node = start(&namespace, dir.path());
    node.read_log_until("both t0 and other, which is not of the fabric, have the address 10.9.0.1");
    let warned = || board(dir.path(), &[]).0["warnings"].to_string().contains("both t0 and other");
    assert!(warned(), "the board says so, too");
    namespace.ip("address del 10.9.0.1/32 dev other");
    wait_for("the board warns no more", || (!warned()).then_some(()));
}

#[test]
fn a_network_that_another_interface_of_the_machine_has_addresses_of_is_named_with_both() {
    if !can_carry_ip() {
        return;
    }
    let namespace = cables_and_another();
    let dir = tempfile::tempdir().unwrap();
    namespace.ip("address add fd09::2/64 dev other nodad");
    let mut node = start(&namespace, dir.path());
    node.read_log_until(
        "both t0 (fd09::1/64) and other, which is not of this fabric, have addresses of one network",
    );
    let warned = || board(dir.path(), &[]).0["warnings"].to_string().contains("--fabric-prefix");
    assert!(warned(), "the board says so, too");
    namespace.ip("address del fd09::2/64 dev other");
    wait_for("the board warns no more", || (!warned()).then_some(()));
}

#[test]
fn a_picked_address_that_another_interface_gets_is_given_up_for_another_which_a_restart_picks_again() {
    if !can_carry_ip() {
        return;
    }
    let namespace = cables_and_another();
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().to_str().unwrap();
    let words = ["node", "--ports", "e1,e2", "--tap", "t0", "--address", "10.9.0.0/30", "--run-dir", run_dir];
    let mut node = Daemon::start(&namespace, &words, "the agent runs");
    let picked = || {
        let addresses = board(dir.path(), &[]).0["addresses"].to_string();
        ["10.9.0.1", "10.9.0.2"].into_iter().find(|address| addresses.contains(address))
    };
    let first = wait_for("an address is picked", picked);
    namespace.ip(&format!("address add {first}/32 dev other"));
    node.read_log_until("another interface of this machine has it");
    let second = wait_for("it has the other one", || picked().filter(|&now| now != first));
    // Started again, it picks the address that it had last, though the one that it would try first is free.
    node.end();
    namespace.ip(&format!("address del {first}/32 dev other"));
    let _node = Daemon::start(&namespace, &words, "the agent runs");
    assert_eq!(wait_for("an address is picked again", picked), second);
}

#[test]
fn a_node_sets_its_ports_up_names_those_without_carrier_and_is_the_same_after_a_restart() {
    if !can_carry_ip() {
        return;
    }
    let namespace = cables();
    let dir = tempfile::tempdir().unwrap();
    let mut tags = Vec::new();
    for _ in 0..2 {
        namespace.ip("link set e1 down");
        let node = start(&namespace, dir.path());
        for name in ["e1", "e2"] {
            assert!(namespace.enter(|| Interface::look_up(name).unwrap().unwrap().up), "{name}");
        }
        let (board, tag) = board(dir.path(), &[]);
        tags.push(tag);
        let ports: Vec<_> =
            board["ports"].as_array().unwrap().iter().map(|port| &port["interface"]).collect();
        assert_eq!(ports, ["e1", "e2"]);
        assert_eq!((&board["ports"][1]["up"], &board["ports"][1]["carrier"]), (&true.into(), &false.into()));
        let addresses: Vec<_> =
            board["addresses"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(addresses.contains(&"10.9.0.1/24") && addresses.contains(&"fd09::1/64"), "{addresses:?}");
        assert_eq!(addresses.len(), 3, "one is made of the fabric's prefix: {addresses:?}");
        assert_eq!(board["warnings"], serde_json::json!([]), "nobody has done anything to the tap");
        // The tap is gone when its node ends. When the node starts again, the tap comes back with its
        // addresses.
        let addresses =
            namespace.command("ip").args(["-o", "address", "show", "dev", "t0"]).output().unwrap();
        let addresses = String::from_utf8(addresses.stdout).unwrap();
        assert!(addresses.contains("10.9.0.1/24 brd 10.9.0.255"), "{addresses}");
        let six = addresses.lines().find(|line| line.contains("fd09::1/64")).unwrap();
        assert!(!six.contains("tentative"), "it can be used at once: {six}");
        wait_for("it says that nobody is there", || {
            let words = ["board-info", "--run-dir", dir.path().to_str().unwrap()];
            let output = Command::new(MAPPER).args(words).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            text.contains("no other host was found: e2 has no carrier").then_some(())
        });
        let log = node.end();
        assert!(!log.contains("tap interface is down") && !log.contains("address was changed"), "{log}");
    }
    assert_eq!(tags[0], tags[1], "others know its crossbar by the tag");
}

#[test]
fn ports_of_a_node_come_and_go_with_its_file_and_the_others_go_on() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cables();
    let dirs = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let file = dirs[0].path().join("node.toml");
    let (file, run_dirs) = (file.to_str().unwrap(), dirs.each_ref().map(|dir| dir.path().to_str().unwrap()));
    std::fs::write(file, "ports = [\"e1\"]\n").unwrap();
    let quick = ["--verify-pause-ms", "100", "--query-interval-ms", "50", "--silence-limit-ms", "500"];
    let words = ["node", "--config", file, "--run-dir", run_dirs[0]];
    let mut node = Daemon::start(&namespace, &[&words[..], &quick].concat(), "the agent runs");
    let agents = [("f1", run_dirs[1]), ("f2", run_dirs[2])].map(|(interface, run_dir)| {
        let words = ["agent", "--interface", interface, "--run-dir", run_dir];
        Daemon::start(&namespace, &[&words[..], &quick].concat(), "the agent runs")
    });
    let mut log = String::new();
    let mut reload = |text: &str, answer: &str| {
        std::fs::write(file, text).unwrap();
        node.signal(rustix::process::Signal::HUP);
        log += &node.read_log_until(answer);
    };
    let done = "the configuration was read again";
    let wait_for_board = |ports: &[&str], hosts: u64| {
        wait_for(&format!("{ports:?} and {hosts} hosts"), || {
            let (board, tag) = board(dirs[0].path(), &[]);
            let shown = |port: &Value| format!("{}={}", port["port"], port["interface"].as_str().unwrap());
            let shown: Vec<_> = board["ports"].as_array().unwrap().iter().map(shown).collect();
            let whole = board["hosts"] == hosts && board["network_configured"] == true;
            (shown == ports && whole).then_some((board["mac"].clone(), tag))
        })
    };
    let before = wait_for_board(&["1=e1"], 2);
    // Port 2 is the agent's, so e2 gets port 3. The test sets e2 up itself, since the node has given up the
    // privilege for that.
    namespace.ip("link set e2 up");
    reload("ports = [\"e2\", \"e1\"]\n", done);
    assert_eq!(wait_for_board(&["1=e1", "3=e2"], 3), before);
    // A configuration that cannot be used changes nothing.
    for wrong in ["ports = [\"e1\"\n", "ports = [\"e1\", \"e1\"]\n", "ports = []\n"] {
        reload(wrong, "the configuration is not used");
    }
    assert_eq!(wait_for_board(&["1=e1", "3=e2"], 3), before);
    reload("ports = [\"e2\"]\n", done);
    assert_eq!(wait_for_board(&["3=e2"], 2), before);
    let lock = namespace.enter(|| mapper_machine::interface_lock::InterfaceLock::take("e1").is_ok());
    assert!(lock, "another may have it");
    // An interface that comes back is numbered like a new one: it gets the port after the one before it in
    // the list.
    reload("ports = [\"e2\", \"e1\"]\n", done);
    assert_eq!(wait_for_board(&["3=e2", "4=e1"], 3), before);
    drop(agents);
    log += &node.end();
    assert_eq!(log.matches("the port is taken").count(), 2, "{log}");
    assert_eq!(log.matches("the node keeps the address of this interface").count(), 1, "{log}");
    assert!(!log.contains("this key counts only at start"), "{log}");
}

#[test]
fn the_routes_in_force_are_shown_and_proved_also_around_a_dead_cable() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=4,hosts=1", &["--nodes"]);
    lab.wait_for_network("the whole ring", 4, 4);
    lab.wait_for_pings("all reach each other", &[]);
    let dir = tempfile::tempdir().unwrap();
    let proved = || {
        let (routes, map) = (dir.path().join("routes"), dir.path().join("map.json"));
        let (routes, map) = (routes.to_str().unwrap(), map.to_str().unwrap());
        // The boards are asked one after the other, and the agents may map anew meanwhile.
        wait_for("routes by one map", || {
            let boards = lab.boards(&["--routes", "--routes-dir", routes, "--map-file", map]);
            boards.iter().all(|board| board["map_version"] == boards[0]["map_version"]).then_some(())
        });
        let check = Command::new(MAPPER).args(["check", map, "--routes-dir", routes]).output().unwrap();
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    };
    proved();
    let used = |board: &Value| {
        board["routes_in_force"].as_array().unwrap().iter().any(|route| {
            route["frames"].as_u64().unwrap() > 0 && route["via"][0].as_str().unwrap().starts_with("0x")
        })
    };
    // A busy machine may map anew at any moment, and new routes have carried nothing yet.
    wait_for("routes that are in use", || {
        lab.wait_for_pings("all reach each other", &[]);
        lab.boards(&["--routes"]).iter().all(used).then_some(())
    });
    lab.run(&["cut", "h1:1"]);
    lab.wait_for_network("without the cable", 4, 3);
    proved();
    // `lab status` shows the address that the board has.
    for (line, board) in lab.run(&["status"]).lines().zip(lab.boards(&[])) {
        assert!(line.contains(board["mac"].as_str().unwrap()), "{line}");
    }
}
