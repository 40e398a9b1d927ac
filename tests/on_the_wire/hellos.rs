//! Tests of what neighbours at the two ends of a cable tell each other, and of cables that have more ends.

use std::path::Path;
use std::process::Command;

use mapper_machine::link::ethernet::{EthernetSocket, Marking};
use mapper_machine::link::interface::Interface;
use mapper_proto::wire::{Hello, HelloEnd, HelloFlags};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::lab::wait_for;
use crate::namespace::Namespace;
use crate::{MAPPER, can_make_namespaces};

/// What a command of the program says as JSON.
fn ask(words: &[&str], run_dir: &Path) -> Value {
    let options = ["--format", "json", "--run-dir", run_dir.to_str().unwrap()];
    let output = Command::new(MAPPER).args(words).args(options).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

fn board(run_dir: &Path) -> Value {
    ask(&["board-info"], run_dir)["boards"][0].take()
}

fn port(run_dir: &Path, nth: usize) -> Value {
    ask(&["xbar", "--status"], run_dir)["xbars"][0]["ports"][nth].take()
}

fn mac(namespace: &Namespace, interface: &str) -> String {
    namespace.enter(|| Interface::look_up(interface).unwrap().unwrap().mac.to_string())
}

fn agent(namespace: &Namespace, interface: &str, run_dir: &TempDir) -> Daemon {
    let run_dir = run_dir.path().to_str().unwrap();
    Daemon::start(namespace, &["agent", "--interface", interface, "--run-dir", run_dir], "the agent runs")
}

fn send(namespace: &Namespace, interface: &str, payloads: &[Vec<u8>]) {
    send_marked(namespace, interface, Marking::default(), payloads);
}

fn send_marked(namespace: &Namespace, interface: &str, marking: Marking, payloads: &[Vec<u8>]) {
    namespace.enter(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let interface = Interface::look_up(interface).unwrap().unwrap();
        let socket = EthernetSocket::open(&interface, marking).unwrap();
        payloads.iter().for_each(|payload| socket.send(&[], payload).unwrap());
    });
}

#[test]
fn both_ends_of_a_cable_know_each_other_and_name_an_mtu_that_differs() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link add p1 type veth peer name h1");
    namespace.ip("link set p1 up mtu 9000");
    namespace.ip("link set h1 up");
    let [dir, agents_dir] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let run_dir = dir.path().to_str().unwrap();
    // What the kernel of the crossbar can do depends on the machine, so it is not used.
    let words = ["xbar", "--ports", "p1", "--tag", "0xfeed", "--data-path", "tap", "--run-dir", run_dir];
    let xbar = Daemon::start(&namespace, &words, "crossbar runs");
    let agent = agent(&namespace, "h1", &agents_dir);
    let (own, far) = (mac(&namespace, "p1"), mac(&namespace, "h1"));
    let of_agent = wait_for("the agent knows the crossbar", || {
        Some(board(agents_dir.path())).filter(|board| board["cable"]["state"] == "joined")
    });
    let neighbour = json!({"mac": own, "host": null, "tag": "000000000000feed", "port": 1, "name": null, "mtu": 9000, "flags": []});
    assert_eq!(of_agent["cable"]["neighbour"], neighbour);
    let of_xbar = wait_for("the crossbar knows the agent", || {
        Some(port(dir.path(), 0)).filter(|port| port["cable"]["state"] == "joined")
    });
    let neighbour =
        json!({"mac": far, "host": far, "tag": null, "port": null, "name": null, "mtu": 1500, "flags": []});
    assert_eq!(of_xbar["cable"]["neighbour"], neighbour);
    let told =
        |board: &Value| board["warnings"].to_string().contains("h1 carries 1500 bytes, and at the other end");
    assert!(told(&of_agent), "{of_agent:#}");
    let text = || {
        let words = ["xbar", "--status", "--run-dir", dir.path().to_str().unwrap()];
        String::from_utf8(Command::new(MAPPER).args(words).output().unwrap().stdout).unwrap()
    };
    assert!(text().contains("port 1: p1 carries 9000 bytes, and at the other end"), "{}", text());
    namespace.ip("link set h1 mtu 9000");
    wait_for("both have heard that it was mended", || {
        (!told(&board(agents_dir.path())) && !text().contains("carries 9000 bytes")).then_some(())
    });
    let before = port(dir.path(), 0)["cable"].take();
    assert_eq!(before["neighbour"]["mtu"], 9000);
    // Other programs' frames, and hellos that are not from whom they name, are counted and change nothing.
    let end = HelloEnd::Host { mac: mapper_proto::Mac::from_position(9) };
    let forged = Hello {
        end,
        mac: mapper_proto::Mac::from_position(9),
        mtu: 1,
        flags: HelloFlags::NONE,
        heard: Vec::new(),
    };
    send(&namespace, "h1", &[vec![0x11; 60], vec![0x45; 60], forged.encode()]);
    let of_xbar = wait_for("all three are counted", || {
        Some(port(dir.path(), 0)).filter(|port| port["dropped"]["bad_hello"] == 1)
    });
    assert_eq!(of_xbar["dropped"]["foreign"], 2, "{of_xbar:#}");
    assert_eq!(of_xbar["cable"], before, "they change nothing");
    // Whatever they look like, frames that are addressed to others are other programs': here a route, and a hello.
    let everybody = Marking { destination: mapper_proto::Mac([0xff; 6]), ..Marking::default() };
    let route = [vec![0xc0, 1], vec![0; 60]].concat();
    send_marked(&namespace, "h1", everybody, &[route, forged.encode()]);
    let of_xbar = wait_for("both are counted as foreign", || {
        Some(port(dir.path(), 0)).filter(|port| port["dropped"]["foreign"] == 4)
    });
    assert_eq!(of_xbar["dropped"]["bad_hello"], 1, "{of_xbar:#}");
    send(&namespace, "p1", &[vec![0x11; 60]]);
    let before = board(agents_dir.path());
    send_marked(&namespace, "p1", everybody, &[vec![0; 60], forged.encode()]);
    let of_agent = wait_for("the agent counts them too", || {
        Some(board(agents_dir.path())).filter(|board| board["counters"]["dropped"]["foreign"] == 3)
    });
    for count in ["malformed", "bad_crc", "truncated", "unknown_kind"] {
        let [before, now] = [&before, &of_agent].map(|board| &board["counters"]["dropped"][count]);
        assert_eq!(before, now, "{count}: {of_agent:#}");
    }
    assert_eq!(of_agent["counters"]["frames"]["bad_hellos"], 0, "{of_agent:#}");
    drop(agent);
    wait_for("the agent is missed", || (port(dir.path(), 0)["cable"]["state"] == "silent").then_some(()));
    drop(xbar);
}

#[test]
fn a_wire_with_more_than_two_ends_is_refused_by_name_and_used_once_it_has_two() {
    if !can_make_namespaces() {
        return;
    }
    // Two interfaces of each of two machines are at one bridge, which forwards the fabric's frames.
    let (bridge, machines) = (Namespace::new(), [Namespace::new(), Namespace::new()]);
    bridge.ip("link add br0 type bridge group_fwd_mask 0x4000");
    bridge.ip("link set br0 up");
    for (nth, machine) in machines.iter().enumerate() {
        for port in ["e1", "e2"] {
            let far = format!("m{nth}{port}");
            machine.ip(&format!("link add {port} type veth peer name {far} netns {}", bridge.name));
            machine.ip(&format!("link set {port} up"));
            bridge.ip(&format!("link set {far} master br0 up"));
        }
    }
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let nodes: Vec<Daemon> = machines
        .iter()
        .zip(&dirs)
        .map(|(machine, dir)| {
            let quick =
                ["--verify-pause-ms", "100", "--query-interval-ms", "50", "--silence-limit-ms", "500"];
            let words = ["node", "--ports", "e1,e2", "--run-dir", dir.path().to_str().unwrap()];
            Daemon::start(machine, &[&words[..], &quick].concat(), "the agent runs")
        })
        .collect();
    let boards = || dirs.each_ref().map(|dir| board(dir.path()));
    let shared = |board: &Value| {
        let ports = board["ports"].as_array().unwrap();
        ports.iter().all(|port| port["cable"]["shared_with"].as_array().is_some_and(|with| with.len() == 3))
    };
    let refused = wait_for("all ports know that they share a wire", || {
        Some(boards()).filter(|boards| boards.iter().all(|board| shared(board) && board["hosts"] == 1))
    });
    for (nth, board) in refused.iter().enumerate() {
        assert_eq!((&board["xbars"], &board["cables"]), (&1.into(), &0.into()), "no wrong map: {board:#}");
        let warnings = board["warnings"].to_string();
        for (machine, port) in [(0, "e1"), (0, "e2"), (1, "e1"), (1, "e2")] {
            let named = warnings.contains(&mac(&machines[machine], port));
            assert!(named, "{port} of {machine} is named at {nth}: {warnings}");
        }
    }
    for (nth, machine) in machines.iter().enumerate() {
        bridge.ip(&format!("link set m{nth}e2 nomaster"));
        machine.ip("link set e2 down");
    }
    wait_for("the first interfaces of both make a cable", || {
        let whole = |board: &Value| {
            board["hosts"] == 2 && board["cables"] == 1 && board["network_configured"] == true
        };
        boards().iter().all(whole).then_some(())
    });
    for (nth, machine) in machines.iter().enumerate() {
        machine.ip("link set e2 up");
        bridge.ip(&format!("link set m{nth}e2 master br0"));
    }
    wait_for("a wire that gets more ends is left", || {
        boards().iter().all(|board| shared(board) && board["hosts"] == 1).then_some(())
    });
    drop(nodes);
}
