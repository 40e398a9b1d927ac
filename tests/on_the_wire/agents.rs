//! Tests of agents that map, route and verify a fabric of processes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use mapper_machine::link::ethernet::{EthernetSocket, Marking};
use mapper_machine::link::interface::Interface;
use mapper_proto::wire::{Info, Message, Probe, ProbeKind, Route};
use serde_json::Value;

use crate::lab::{Lab, wait_for};
use crate::namespace::Namespace;
use crate::{MAPPER, can_make_namespaces};

/// Whether all boards hold one map of the whole fabric with this many cables, and say that the
/// network is complete.
fn all_agree(boards: &[Value], hosts: u64, xbars: u64, cables: u64) -> bool {
    let version = &boards[0]["map_version"];
    boards.len() as u64 == hosts
        && boards.iter().all(|board| {
            board["configured"] == true
                && board["network_configured"] == true
                && board["map_version"] == *version
                && (&board["hosts"], &board["xbars"], &board["cables"])
                    == (&hosts.into(), &xbars.into(), &cables.into())
        })
}

#[test]
fn a_clos_is_configured_and_again_after_a_cut_and_a_mend() {
    if !can_make_namespaces() {
        return;
    }
    let lab = Lab::up("clos:hosts=8,ports=4", &[]);
    assert_eq!(lab.boards(&["--wait", "60"]).len(), 8);
    let first = lab.wait_until("the whole Clos", |boards| all_agree(boards, 8, 6, 8));
    assert!(first.iter().all(|board| board["routes"].as_u64() >= Some(7)), "{first:#?}");
    assert!(first.iter().all(|board| board["leader"] == "02:00:00:00:00:08"));
    // On a busy machine somebody may be mapping again at any one moment.
    wait_for("the status of all", || {
        let status = lab.run(&["status"]);
        assert_eq!(status.lines().count(), 8);
        status.lines().all(|line| line.ends_with(" configured")).then_some(())
    });

    lab.run(&["cut", "leaf1:3"]);
    let second = lab.wait_until("a cable less", |boards| all_agree(boards, 8, 6, 7));
    assert_ne!(first[0]["map_version"], second[0]["map_version"]);

    lab.run(&["mend", "leaf1:3"]);
    let third = lab.wait_until("the cable again", |boards| all_agree(boards, 8, 6, 8));
    assert_ne!(second[0]["map_version"], third[0]["map_version"]);
}

#[test]
fn plain_xbars_are_mapped_and_a_lost_host_is_missed_and_found() {
    if !can_make_namespaces() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &["--xbars", "plain"]);
    lab.wait_until("the whole ring", |boards| all_agree(boards, 3, 3, 3));
    lab.run(&["cut", "h1"]);
    lab.wait_until("the lost host missed", |boards| {
        let (lost, rest) = boards.split_first().unwrap();
        lost["carrier"] == false && rest.iter().all(|board| board["hosts"] == 2)
    });
    lab.run(&["mend", "h1"]);
    lab.wait_until("the lost host found", |boards| all_agree(boards, 3, 3, 3));
}

#[test]
fn map_once_leaves_when_mapping_is_complete_and_stores_the_map() {
    if !can_make_namespaces() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let map = dir.path().join("map.json");
    let lab = Lab::up("ring:n=3,hosts=1", &[]);
    lab.wait_until("the whole ring", |boards| all_agree(boards, 3, 3, 3));
    // An agent that maps once takes the place of the one that `lab up` started.
    lab.stop_agent("h1");
    let once = [
        "exec",
        "h1",
        MAPPER,
        "agent",
        "--interface",
        "fab0",
        "--unit",
        "1",
        "--map-once",
        "--map-once-limit-s",
        "60",
        "--map-file",
        map.to_str().unwrap(),
    ];
    lab.run(&once);
    let map: Value = serde_json::from_slice(&std::fs::read(&map).unwrap()).unwrap();
    assert_eq!(map["schema"], "mapper.map/1");
    assert_eq!(map["hosts"].as_array().unwrap().len(), 3);
}

#[test]
fn map_once_fails_when_time_runs_out() {
    if !can_make_namespaces() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &["--", "--level", "0"]);
    let once = ["exec", "h1", MAPPER, "agent", "--interface", "fab0", "--unit", "1", "--level", "0"];
    let second = lab.try_run(&once);
    let errors = String::from_utf8(second.stderr).unwrap();
    assert!(errors.contains("`fab0` already has an agent or crossbar: process "), "{errors}");
    lab.stop_agent("h1");
    let output = lab.try_run(&[&once[..], &["--map-once", "--map-once-limit-s", "1"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("not complete everywhere within 1 s"), "{errors}");
}

#[test]
fn a_version_that_is_not_spoken_is_logged_once_and_counted_each_time() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = Namespace::new();
    let run_dir = tempfile::tempdir().unwrap();
    let run_dir = run_dir.path().to_str().unwrap();
    for words in ["link add eth1 type veth peer name far", "link set eth1 up", "link set far up"] {
        namespace.ip(words);
    }
    let agent = ["agent", "--interface", "eth1", "--run-dir", run_dir];
    let mut agent = namespace.command(MAPPER).args(agent).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(agent.stderr.take().unwrap()).lines();
    let line_with = |needle: &str, lines: &mut dyn Iterator<Item = std::io::Result<String>>| {
        lines.map_while(Result::ok).find(|line| line.contains(needle)).unwrap()
    };
    line_with("the agent runs", &mut log);
    namespace.enter(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let far = Interface::look_up("far").unwrap().unwrap();
        let sender = EthernetSocket::open(&far, Marking::default()).unwrap();
        let (info, way_there) = (Info::default(), Route::new());
        let probe = Probe { id: 1, kind: ProbeKind::Loopback, left: 1, info, way_there };
        let mut frame = Message::Probe(probe).encode();
        frame[4] = 77;
        let end = frame.len() - 4;
        let crc = crc32fast::hash(&frame[..end]).to_be_bytes();
        frame[end..].copy_from_slice(&crc);
        for _ in 0..3 {
            sender.send(&[], &frame).unwrap();
        }
    });
    let line = line_with("version 77 ", &mut log);
    assert!(line.contains("one version"), "{line}");
    wait_for("all three are counted", || {
        let output = Command::new(MAPPER)
            .args(["board-info", "--format", "json", "--run-dir", run_dir])
            .output()
            .unwrap();
        let info: Value = serde_json::from_slice(&output.stdout).unwrap();
        (info["boards"][0]["counters"]["dropped"]["unknown_version"] == 3).then_some(())
    });
    agent_ends(&mut agent);
    let rest: Vec<_> = log.map_while(Result::ok).collect();
    assert!(!rest.iter().any(|line| line.contains("version 77 ")), "{rest:?}");
}

/// Ends an agent by SIGTERM, as a service manager would.
fn agent_ends(agent: &mut Child) {
    let pid = rustix::process::Pid::from_raw(agent.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(agent.wait().unwrap().success());
}

#[test]
fn a_lab_leaves_nothing_behind() {
    if !can_make_namespaces() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &[]);
    assert_eq!(lab.namespaces().len(), 6);
    lab.run(&["down"]);
    assert!(lab.namespaces().is_empty());
    assert!(!lab.dir().exists());
}

#[test]
fn a_lab_that_fails_half_way_leaves_nothing_behind_and_says_why() {
    if !can_make_namespaces() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &[]);
    lab.run(&["down"]);
    let failed = lab.try_run(&["up", "ring:n=3,hosts=1", "--", "--piece-bytes", "8000"]);
    assert_eq!(failed.status.code(), Some(1));
    let errors = String::from_utf8(failed.stderr).unwrap();
    assert!(errors.contains("`fab0` carries frames of 1500 bytes"), "{errors}");
    assert!(lab.namespaces().is_empty());
    assert!(!lab.dir().exists());
}
