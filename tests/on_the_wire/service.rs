//! Tests of daemons under a service manager.

use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::Duration;

use crate::namespace::Namespace;
use crate::{MAPPER, can_make_namespaces};

/// Longer than any step of these tests takes on a busy machine. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a message with this line, and returns the messages before it.
fn hear(socket: &UnixDatagram, line: &str) -> Vec<String> {
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let length =
            socket.recv(&mut buffer).unwrap_or_else(|error| panic!("no `{line}`: {error}: {heard:?}"));
        let message = String::from_utf8(buffer[..length].to_vec()).unwrap();
        if message.lines().any(|said| said == line) {
            return heard;
        }
        heard.push(message);
    }
}

#[test]
fn a_daemon_says_that_it_is_ready_turns_and_stops_and_keeps_only_what_it_needs() {
    if !can_make_namespaces() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().join("run");
    let run_dir = run_dir.to_str().unwrap();
    let agent = ["agent", "--interface", "eth1", "--run-dir", run_dir];
    let tapped = [&agent[..], &["--tap", "ip0"]].concat();
    let xbar = ["xbar", "--port", "eth1", "--port", "far", "--run-dir", run_dir];
    let by_tap = ["--data-path", "tap"];
    let (tapped_alone, xbar_alone) = ([&tapped[..], &by_tap].concat(), [&xbar[..], &by_tap].concat());
    // CAP_NET_RAW is for interfaces that come back, and CAP_NET_ADMIN for what the kernel is to hold.
    let (raw, both) = ("0000000000002000", "0000000000003000");
    let daemons =
        [(&agent[..], raw), (&tapped_alone, raw), (&xbar_alone, raw), (&tapped, both), (&xbar, both)];
    for (daemon, kept) in daemons {
        let namespace = Namespace::new();
        for words in ["link add eth1 type veth peer name far", "link set eth1 up", "link set far up"] {
            namespace.ip(words);
        }
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut command = namespace.command(MAPPER);
        command.args(daemon).env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
        let mut process = command.stderr(Stdio::null()).spawn().unwrap();

        hear(&socket, "READY=1");
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
        let sets = ["CapPrm", "CapEff", "CapBnd"].map(|set| format!("{set}:\t{kept}\n"));
        let none = ["CapInh:\t0000000000000000\n", "CapAmb:\t0000000000000000\n", "NoNewPrivs:\t1\n"];
        for line in sets.iter().map(String::as_str).chain(none) {
            assert!(status.contains(line), "{daemon:?}: {line}: {status}");
        }
        hear(&socket, "WATCHDOG=1");
        hear(&socket, "WATCHDOG=1");
        let pid = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        hear(&socket, "STOPPING=1");
        assert!(process.wait().unwrap().success());
        std::fs::remove_file(&path).unwrap();
    }
}
