//! Tests of the logs of daemons.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use mapper_machine::link::ethernet::{EthernetSocket, Marking};
use mapper_machine::link::interface::Interface;
use serde_json::Value;

use crate::daemon::{Daemon, cable};
use crate::lab::wait_for;
use crate::namespace::Namespace;
use crate::{MAPPER, can_make_namespaces};

/// The two ends of a pipe that is full, since nobody reads it.
fn full_pipe() -> (File, Stdio) {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while rustix::io::write(&writer, &[b'#'; 4096]).is_ok() {}
    while rustix::io::write(&writer, b"#").is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    (File::from(reader), writer.into())
}

/// The JSON that a `mapper` command prints.
fn json_of(namespace: &Namespace, arguments: &[&str]) -> Value {
    let output = namespace.command(MAPPER).args(arguments).args(["--format", "json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_log_that_nobody_reads_holds_up_neither_agent_nor_crossbar_and_lost_lines_are_told() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().to_str().unwrap();
    let start = |arguments: &[&str]| {
        let (reader, stderr) = full_pipe();
        let mut command = namespace.command(MAPPER);
        command.args(arguments).args(["--run-dir", run_dir]).env("RUST_LOG", "trace").stderr(stderr);
        (command.spawn().unwrap(), reader)
    };
    let (mut xbar, _unread) = start(&["xbar", "--ports", "far"]);
    wait_for("the crossbar works", || {
        let status = json_of(&namespace, &["xbar", "--status", "--run-dir", run_dir]);
        (status["xbars"][0]["uptime_ms"].as_u64() > Some(0)).then_some(())
    });
    let (mut agent, log) = start(&["agent", "--interface", "eth1"]);
    let lost = || {
        let info = json_of(&namespace, &["board-info", "--run-dir", run_dir]);
        info["boards"][0]["counters"]["log_lines_lost"].as_u64()
    };
    wait_for("the agent works", lost);
    // The agent logs a line for each frame. It must keep working although it cannot write them.
    wait_for("more lines than are kept", || {
        namespace.enter(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let _inside = runtime.enter();
            let far = Interface::look_up("far").unwrap().unwrap();
            let sender = EthernetSocket::open(&far, Marking::default()).unwrap();
            (0..2000).for_each(|_| drop(sender.send(&[], &[0; 1000])));
        });
        lost().filter(|&lines| lines > 0)
    });
    // When the log is read again, it says that lines are lost.
    let mut log = BufReader::new(log);
    let mut line = Vec::new();
    while !String::from_utf8_lossy(&line).contains("log lines are lost") {
        line.clear();
        assert_ne!(log.read_until(b'\n', &mut line).unwrap(), 0, "it ended");
    }
    // A daemon whose log is not read must nevertheless end when it is told to.
    for (daemon, child) in [("crossbar", &mut xbar), ("agent", &mut agent)] {
        let pid = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(child.wait().unwrap().success(), "{daemon}");
    }
}

#[test]
fn the_log_is_json_on_request_and_its_file_is_opened_anew() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    let dir = tempfile::tempdir().unwrap();
    let (file, moved) = (dir.path().join("log"), dir.path().join("log.1"));
    let options = ["--log-format", "json", "--verbose-file", file.to_str().unwrap()];
    let agent = Daemon::agent(&namespace, "eth1", dir.path(), &options);
    std::fs::rename(&file, &moved).unwrap();
    agent.signal(rustix::process::Signal::USR1);
    let text = wait_for("the new file", || {
        std::fs::read_to_string(&file).ok().filter(|text| text.contains("opened anew"))
    });
    for line in text.lines().chain(std::fs::read_to_string(&moved).unwrap().lines()) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["message"].is_string() && line["level"].is_string(), "{line}");
    }
}
