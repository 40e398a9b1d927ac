//! What a daemon does on a signal, and how it ends.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::lab::{Lab, wait_for};
use crate::strangers::PATIENT;
use crate::{MAPPER, can_carry_ip, can_make_namespaces};

const HOSTS: [&str; 3] = ["h1", "h2", "h3"];

#[test]
fn nodes_that_map_once_all_end_with_0() {
    if !can_make_namespaces() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &["--nodes"]);
    for host in HOSTS {
        lab.stop_agent(host);
    }
    let dir = tempfile::tempdir().unwrap();
    let nodes = HOSTS.map(|host| {
        Command::new("ip")
            .args(["netns", "exec", &lab.namespace(host), MAPPER, "node", "--ports", "p1,p2"])
            .args(["--map-once", "--map-once-limit-s", "60", "--run-dir"])
            .arg(dir.path().join(host))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    });
    for node in nodes {
        let output = node.wait_with_output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && log.contains("mapping is complete everywhere"), "{log}");
    }
}

#[test]
fn a_node_that_is_told_to_stop_leaves_nothing_behind() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &["--nodes"]);
    lab.wait_for_network("the whole ring", 3, 3);
    // The log of maps, and the last maps, are there to be read by the next one.
    let entries = |dir: &Path| {
        let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let is_kept = |kind: &OsStr| kind == "history" || kind == "maps";
        names.filter(|path| !path.extension().is_some_and(is_kept)).count()
    };
    let run_dir = lab.dir().join("run").join("h1");
    let tap = || {
        let shown = Command::new("ip").args(["-n", &lab.namespace("h1"), "link", "show", "ip0"]).output();
        shown.unwrap().status.success()
    };
    assert!(entries(&run_dir) > 0 && tap());
    lab.stop_agent("h1");
    assert!(!lab.dir().join("pid").join("h1").exists(), "its pid file");
    assert_eq!(entries(&run_dir), 0, "its socket");
    assert!(!tap(), "its tap interface");
}

#[test]
fn a_level_that_is_read_again_makes_another_host_the_global_mapper() {
    if !can_make_namespaces() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mapper.toml");
    std::fs::write(&file, "level = 1\n").unwrap();
    let lab = Lab::up("ring:n=3,hosts=1", &["--nodes", "--", "--config", file.to_str().unwrap()]);
    let led_by = |boards: &[Value], host: usize| {
        let leader = &boards[host]["mac"];
        boards.iter().all(|board| board["network_configured"] == true && board["leader"] == *leader)
    };
    let boards = lab.wait_for_network("the highest address leads", 3, 3);
    let lower = (0..HOSTS.len()).find(|&host| !led_by(&boards, host)).unwrap();
    std::fs::write(&file, "level = 7\n").unwrap();
    kill_process(lab.pid(HOSTS[lower]), Signal::HUP).unwrap();
    lab.wait_until("the highest level leads", |boards| led_by(boards, lower));
    std::fs::write(&file, "level = 0\nnonsense = 1\n").unwrap();
    kill_process(lab.pid(HOSTS[lower]), Signal::HUP).unwrap();
    wait_for("a wrong file is refused", || {
        lab.log(HOSTS[lower]).contains("configuration is not used").then_some(())
    });
    lab.wait_until("nothing has changed", |boards| led_by(boards, lower));
}

/// A line of a key file.
pub(crate) fn key(id: u32) -> String {
    let output = Command::new(MAPPER).args(["key", "--id", &id.to_string()]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Replaces a key file in one step, so that no daemon reads half of it.
pub(crate) fn write_keys(path: &Path, keys: &[&str]) {
    let new = path.with_extension("new");
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new).unwrap();
    file.write_all(keys.concat().as_bytes()).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[test]
fn keys_are_changed_without_the_loss_of_a_configuration() {
    if !can_make_namespaces() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    let (old, new) = (key(1), key(2));
    write_keys(&file, &[&old]);
    let options = [&["--nodes", "--", "--key-file", file.to_str().unwrap()], &PATIENT[..]].concat();
    let lab = Lab::up("ring:n=3,hosts=1", &options);
    let first = lab.wait_for_network("the whole ring", 3, 3);
    for keys in [&[old.as_str(), &new][..], &[&new, &old], &[&new]] {
        write_keys(&file, keys);
        let sent = |board: &Value| board["counters"]["sent"]["verify"].as_u64().unwrap();
        for host in HOSTS {
            kill_process(lab.pid(host), Signal::HUP).unwrap();
        }
        let before = lab.boards(&[]);
        // An agent that has sent 20 messages more has verified the map with these keys.
        lab.wait_until("they go on", |boards| {
            boards.iter().zip(&before).all(|(now, then)| sent(now) > sent(then) + 20)
        });
        for board in lab.boards(&[]) {
            assert_eq!(board["map_version"], first[0]["map_version"], "{board:#}");
            assert!(board["network_configured"] == true, "{board:#}");
            let dropped = &board["counters"]["dropped"];
            let refused = ["no_tag", "unknown_key", "bad_tag", "unexpected_tag"];
            assert!(refused.iter().all(|&reason| dropped[reason] == 0), "{dropped:#}");
        }
    }
}
