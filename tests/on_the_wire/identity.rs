//! Tests of who a host is: interfaces that come back with another name or address, and hosts that share an
//! address.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::Lab;
use crate::namespace::Namespace;
use crate::{MAPPER, can_make_namespaces};

/// Longer than any step of these tests takes on a busy machine. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a board says that several hosts have this address.
fn names_conflict(board: &Value, mac: &str) -> bool {
    let unreachable = board["unreachable"].as_array().unwrap();
    unreachable.iter().any(|host| {
        let why = host["why"].as_str().unwrap();
        host["mac"] == mac && why.contains("address") && why.contains("give one")
    })
}

#[test]
fn two_hosts_with_one_address_are_both_named_and_left_out_until_one_has_another() {
    if !can_make_namespaces() {
        return;
    }
    for xbars in ["plain", "tagged"] {
        let lab = Lab::up("ring:n=3,hosts=2", &["--xbars", xbars]);
        let whole = |boards: &[Value]| {
            boards.iter().all(|board| board["network_configured"] == true && board["hosts"] == 6)
        };
        lab.wait_until("the whole ring", whole);
        let (own, shared) = ("02:00:00:00:00:02", "02:00:00:00:00:06");
        // h2 becomes a twin of the global mapper. It is restarted for that, since an agent with a tap keeps
        // the address that it began with.
        let begin_as = |mac: &str| {
            lab.run(&["exec", "h2", "ip", "link", "set", "fab0", "address", mac]);
            lab.run(&["restart", "h2"]);
        };
        begin_as(shared);
        lab.wait_until("both named, neither believed", |boards| {
            boards.iter().all(|board| {
                let is_twin = board["mac"] == shared;
                let state = if is_twin { "isolated" } else { "configured" };
                board["state"] == state
                    && (is_twin || board["hosts"] == 4)
                    && board["network_configured"] == false
                    && names_conflict(board, shared)
            }) && boards.iter().filter(|board| board["mac"] == shared).count() == 2
        });
        let text = lab.run(&["boards"]);
        assert!(!text.contains("Network is fully configured."), "{text}");
        assert!(text.contains("two hosts have this address: at port "), "{text}");
        begin_as(own);
        lab.wait_until("the whole ring again", whole);
    }
}

#[test]
fn two_nodes_with_one_address_are_both_named_and_left_out() {
    if !can_make_namespaces() {
        return;
    }
    let lab = Lab::up("ring:n=4,hosts=1", &["--nodes"]);
    let boards = lab.wait_for_network("the whole ring", 4, 4);
    let shared = boards[1]["mac"].as_str().unwrap().to_owned();
    lab.ip("h4", &format!("link set p1 address {shared}"));
    lab.run(&["restart", "h4"]);
    lab.wait_until("both named, neither believed", |boards| {
        boards.iter().all(|board| {
            let is_twin = board["mac"] == *shared;
            let state = if is_twin { "isolated" } else { "configured" };
            board["state"] == state
                && (is_twin || board["hosts"] == 2)
                && board["network_configured"] == false
                && names_conflict(board, &shared)
        }) && boards.iter().filter(|board| board["mac"] == *shared).count() == 2
    });
}

/// Two agents in one namespace, whose interfaces are the ends of one cable.
struct Pair {
    namespace: Namespace,
    run_dir: tempfile::TempDir,
    agents: Vec<Child>,
}

impl Pair {
    fn new() -> Self {
        let namespace = Namespace::new();
        let mut pair = Self { namespace, run_dir: tempfile::tempdir().unwrap(), agents: Vec::new() };
        pair.plug_in("02:00:00:00:01:01");
        for (unit, interface) in [("0", "eth1"), ("1", "eth2")] {
            let run_dir = pair.run_dir.path().to_str().unwrap();
            let words = ["agent", "--interface", interface, "--unit", unit, "--run-dir", run_dir];
            pair.agents.push(pair.namespace.command(MAPPER).args(words).spawn().unwrap());
        }
        pair
    }

    fn plug_in(&self, mac: &str) {
        self.namespace.ip(&format!("link add eth1 address {mac} type veth peer name eth2"));
        self.namespace.ip("link set eth1 up");
        self.namespace.ip("link set eth2 up");
    }

    fn boards(&self) -> Vec<Value> {
        let run_dir = self.run_dir.path().to_str().unwrap();
        let words = ["board-info", "--format", "json", "--run-dir", run_dir];
        let output = Command::new(MAPPER).args(words).output().unwrap();
        let info: Value = serde_json::from_slice(&output.stdout).unwrap();
        info["boards"].as_array().cloned().unwrap_or_default()
    }

    fn wait_until(&self, what: &str, reached: impl Fn(&[Value]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let boards = self.boards();
            if boards.len() == 2 && reached(&boards) {
                return;
            }
            assert!(Instant::now() < deadline, "not reached: {what}\n{boards:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            let _already_ended = agent.kill();
            let _ended = agent.wait();
        }
    }
}

/// Whether both are configured with one map of two hosts, and the first has this address.
fn are_a_pair(boards: &[Value], mac: &str) -> bool {
    let configured = |board: &Value| board["network_configured"] == true && board["hosts"] == 2;
    boards.iter().all(configured)
        && boards[0]["mac"] == mac
        && boards[0]["map_version"] == boards[1]["map_version"]
        && boards
            .iter()
            .any(|board| board["leader"] == boards[0]["mac"] || board["leader"] == boards[1]["mac"])
}

#[test]
fn an_interface_may_be_renamed_changed_or_removed_and_return_with_another_address() {
    if !can_make_namespaces() {
        return;
    }
    let pair = Pair::new();
    pair.wait_until("a pair", |boards| are_a_pair(boards, "02:00:00:00:01:01"));

    for words in ["link set eth1 down", "link set eth1 name other", "link set other up"] {
        pair.namespace.ip(words);
    }
    pair.wait_until("it is missed", |boards| {
        let alone = |board: &Value| board["state"] == "isolated" && board["network_configured"] == false;
        boards[0]["carrier"] == false && boards.iter().all(alone)
    });
    for words in ["link set other down", "link set other name eth1", "link set eth1 up"] {
        pair.namespace.ip(words);
    }
    pair.wait_until("a pair, renamed back", |boards| are_a_pair(boards, "02:00:00:00:01:01"));

    pair.namespace.ip("link set eth1 address 02:00:00:00:01:02");
    pair.wait_until("a pair, the address changed", |boards| are_a_pair(boards, "02:00:00:00:01:02"));

    pair.namespace.ip("link delete eth1");
    pair.wait_until("both are gone", |boards| {
        boards.iter().all(|board| board["carrier"] == false && board["interface_exists"] == false)
    });
    pair.plug_in("02:00:00:00:01:03");
    pair.wait_until("a pair, returned as another", |boards| are_a_pair(boards, "02:00:00:00:01:03"));
}
