//! Tests of `mapper board-info` while agents start, stop and hang.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::daemon::{Daemon, cable};
use crate::{MAPPER, can_make_namespaces};

#[test]
fn a_watcher_sees_an_agent_come_and_go_in_lines_of_json() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().to_str().unwrap();
    let arguments = ["board-info", "--watch", "--format", "json", "--run-dir", run_dir];
    let mut watcher = Command::new(MAPPER).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watcher.stdout.take().unwrap()).lines();
    let mut boards = || -> usize {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["schema"], "mapper.board-info/1");
        line["boards"].as_array().unwrap().len()
    };
    assert_eq!(boards(), 0);
    let agent = Daemon::agent(&namespace, "eth1", dir.path(), &[]);
    while boards() != 1 {}
    drop(agent);
    while boards() != 0 {}
    watcher.kill().unwrap();
    watcher.wait().unwrap();
}

#[test]
fn boards_are_read_truly_while_their_agents_start_and_stop() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().to_str().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut readings = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let arguments = ["board-info", "--run-dir", run_dir];
                let output = Command::new(MAPPER).args(arguments).output().unwrap();
                let text = String::from_utf8(output.stdout).unwrap();
                let errors = String::from_utf8_lossy(&output.stderr).into_owned();
                // The command may fail only while there is no agent, or one that is ending and no longer
                // answers.
                let nobody =
                    text.starts_with("no agent has a status socket") || text.starts_with("unit 0: down\n");
                assert_eq!(output.status.code(), Some(i32::from(nobody)), "{text}{errors}");
                assert!(!text.contains("is fully configured") && !text.contains("not understood"), "{text}");
                readings += 1;
            }
            readings
        });
        for _ in 0..10 {
            // An agent of level 0 that is alone never maps, so it must never be shown as configured.
            drop(Daemon::agent(&namespace, "eth1", dir.path(), &["--level", "0"]));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
}

#[test]
fn board_info_fails_where_the_only_agent_hangs_or_is_dead() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    let dir = tempfile::tempdir().unwrap();
    let agent = Daemon::agent(&namespace, "eth1", dir.path(), &[]);
    let ask = |options: &[&str]| {
        let arguments = ["board-info", "--format", "json", "--run-dir", dir.path().to_str().unwrap()];
        let output = Command::new(MAPPER).args(arguments).args(options).output().unwrap();
        let info: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(info["schema"], "mapper.board-info/1");
        (output.status.code(), info["boards"][0]["no_answer"].as_str().map(str::to_owned))
    };
    let ways_to_ask = [&[][..], &["-b", "0"], &["--all"]];
    for options in ways_to_ask {
        assert_eq!(ask(options), (Some(0), None), "{options:?}");
    }
    for signal in [rustix::process::Signal::STOP, rustix::process::Signal::KILL] {
        agent.signal(signal);
        for options in ways_to_ask {
            let (status, why) = ask(options);
            assert!(status == Some(1) && why.is_some(), "{options:?}: {status:?} {why:?}");
        }
    }
}
