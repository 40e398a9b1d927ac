//! Tests of what an operator sees: doctor, metrics, logs and boards.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use mapper_machine::link::ethernet::{EthernetSocket, Marking};
use mapper_machine::link::interface::Interface;
use serde_json::Value;

use crate::namespace::Namespace;
use crate::{MAPPER, can_make_namespaces};

/// Longer than any step of these tests takes on a busy machine. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A namespace with a cable, whose two ends are eth1 and far.
fn cable() -> Namespace {
    let namespace = Namespace::new();
    for words in
        ["link set lo up", "link add eth1 type veth peer name far", "link set eth1 up", "link set far up"]
    {
        namespace.ip(words);
    }
    namespace
}

/// A daemon that is ended, as a user would end it, when the test ends.
pub(crate) struct Daemon {
    child: Child,
    /// The reading end of the daemon's log. It is kept open so that the daemon can continue to write.
    log: BufReader<ChildStderr>,
}

impl Daemon {
    /// Starts a daemon, and waits until its log says `ready`.
    pub(crate) fn start(namespace: &Namespace, arguments: &[&str], ready: &str) -> Self {
        let mut command = namespace.command(MAPPER);
        let mut child = command.args(arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains(ready) {
            line.clear();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "it ended: {arguments:?}");
        }
        Self { child, log }
    }

    /// Waits until the log says `wanted`, and returns all lines up to that one.
    pub(crate) fn read_log_until(&mut self, wanted: &str) -> String {
        let mut lines = String::new();
        while !lines.contains(wanted) {
            assert_ne!(self.log.read_line(&mut lines).unwrap(), 0, "it ended: {lines}");
        }
        lines
    }

    /// Ends the daemon, and returns the part of its log that has not been read.
    pub(crate) fn end(mut self) -> String {
        self.signal(rustix::process::Signal::TERM);
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        rest
    }

    /// Waits until the daemon has ended by itself, without an error.
    pub(crate) fn wait_for_end(mut self) {
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
    }

    fn agent(namespace: &Namespace, interface: &str, run_dir: &Path, options: &[&str]) -> Self {
        let run_dir = run_dir.to_str().unwrap();
        let arguments = [&["agent", "--interface", interface, "--run-dir", run_dir], options].concat();
        Self::start(namespace, &arguments, "the agent runs")
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        self.signal(rustix::process::Signal::TERM);
        let mut rest = Vec::new();
        let _all_that_it_wrote = self.log.read_to_end(&mut rest);
        let _ended = self.child.wait();
    }
}

/// Repeats `attempt` until it has a result, and returns that.
fn wait_for<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        assert!(Instant::now() < deadline, "not reached: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What `mapper doctor` finds, by the names of its checks, and its exit status.
fn doctor(namespace: &Namespace, options: &[&str]) -> (Vec<Value>, i32) {
    let output =
        namespace.command(MAPPER).args(["doctor", "--format", "json"]).args(options).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "mapper.doctor/1");
    (report["checks"].as_array().unwrap().clone(), output.status.code().unwrap())
}

fn check<'a>(checks: &'a [Value], name: &str) -> &'a Value {
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check {name}: {checks:#?}"))
}

#[test]
fn the_doctor_says_who_is_at_the_other_end_of_the_cable() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let run_dir = dirs[0].path().to_str().unwrap();
    let options = ["--interface", "eth1", "--run-dir", run_dir];
    // On a busy machine an answer may come later than the doctor waits for it.
    let finds = |status: &str, what: &str| {
        wait_for(what, || {
            let (checks, exit) = doctor(&namespace, &options);
            assert_eq!(exit, 0, "{checks:#?}");
            let check = check(&checks, "neighbour");
            (check["status"] == status && check["what"].as_str().unwrap().contains(what)).then_some(())
        });
    };
    finds("warning", "nobody answers");
    {
        let _agent = Daemon::agent(&namespace, "far", dirs[1].path(), &[]);
        finds("ok", "the agent of host");
    }
    for (kind, wanted) in
        [("tagged", "port 7 of the crossbar with tag 0x0000000000000005"), ("plain", "a plain crossbar")]
    {
        let mut arguments = vec!["xbar", "--port", "7=far", "--kind", kind];
        if kind == "tagged" {
            arguments.extend(["--tag", "5"]);
        }
        let _xbar = Daemon::start(&namespace, &arguments, "crossbar runs");
        finds("ok", wanted);
    }
}

#[test]
fn the_doctor_names_what_is_missing_and_what_to_do() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let run_dir = dirs[0].path().to_str().unwrap();
    let options = ["--interface", "eth1", "--run-dir", run_dir];
    let failed = |name: &str, fix: &str| {
        let (checks, status) = doctor(&namespace, &options);
        let check = check(&checks, name);
        assert_eq!((check["status"].as_str(), status), (Some("failed"), 1), "{checks:#?}");
        assert!(check["fix"].as_str().unwrap().contains(fix), "{check:#}");
    };
    namespace.ip("link set far down");
    failed("carrier", "plug the cable in");
    namespace.ip("link set eth1 down");
    failed("state", "ip link set eth1 up");
    namespace.ip("link set eth1 mtu 1280 up");
    namespace.ip("link set far up");
    failed("MTU", "ip link set eth1 mtu 1500");
    namespace.ip("link set eth1 mtu 1500");
    let _elsewhere = Daemon::agent(&namespace, "eth1", dirs[1].path(), &[]);
    failed("daemon", "stop that one");
}

#[test]
fn the_doctor_finds_nodes_and_crossbars_at_work_and_daemons_that_hang() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().to_str().unwrap();
    let daemon = |interface: &str| {
        let (checks, _) = doctor(&namespace, &["--interface", interface, "--run-dir", run_dir]);
        let check = check(&checks, "daemon");
        (check["status"].as_str().unwrap().to_owned(), check["what"].as_str().unwrap().to_owned())
    };
    let xbar = Daemon::start(&namespace, &["xbar", "--port", "far", "--run-dir", run_dir], "crossbar runs");
    let (status, what) = daemon("far");
    assert_eq!((status.as_str(), what.as_str()), ("ok", "it is a port of the crossbar far"));
    let agent = Daemon::agent(&namespace, "eth1", dir.path(), &[]);
    assert_eq!(daemon("eth1").0, "ok");
    for (daemon_of, interface) in [(&xbar, "far"), (&agent, "eth1")] {
        daemon_of.signal(rustix::process::Signal::STOP);
        let (status, what) = daemon(interface);
        daemon_of.signal(rustix::process::Signal::CONT);
        assert_eq!((status.as_str(), what.contains("hangs")), ("failed", true), "{what}");
    }
}

#[test]
fn two_agents_on_one_interface_are_refused_whatever_their_run_directories() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let first = Daemon::agent(&namespace, "eth1", dirs[0].path(), &[]);
    let run_dir = dirs[1].path().to_str().unwrap();
    let second = namespace
        .command(MAPPER)
        .args(["agent", "--interface", "eth1", "--run-dir", run_dir])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    let errors = String::from_utf8(second.stderr).unwrap();
    let process = format!("process {} (", first.child.id());
    assert!(errors.contains("already has an agent") && errors.contains(&process), "{errors}");
    drop(first);
    let _next = Daemon::agent(&namespace, "eth1", dirs[1].path(), &[]);
}

#[test]
fn an_agent_that_a_service_runs_is_known_to_one_that_root_starts_by_hand() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    // Other users may not be able to run the program where it was built, so they get a copy in the directory
    // where they may make a socket.
    let program = dirs[0].path().join("mapper");
    mapper_needs::copy_program(Path::new(MAPPER), &program);
    std::fs::set_permissions(dirs[0].path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = namespace.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.args(["--inh-caps=+net_raw", "--ambient-caps=+net_raw"]).arg(&program);
    command.args(["agent", "--interface", "eth1", "--run-dir"]).arg(dirs[0].path().join("run"));
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("the agent runs") {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "it ended");
    }
    let _service = Daemon { child, log };
    let second = namespace
        .command(MAPPER)
        .args(["agent", "--interface", "eth1", "--run-dir"])
        .arg(dirs[1].path())
        .output()
        .unwrap();
    let errors = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1), "{errors}");
    assert!(errors.contains("`eth1` already has an agent"), "{errors}");
}

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

/// The metrics of the agent that serves them in this namespace.
fn scrape(namespace: &Namespace) -> String {
    namespace.enter(|| {
        let mut stream = TcpStream::connect("127.0.0.1:9797").unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        body.to_owned()
    })
}

#[test]
fn metrics_are_served_and_written_and_a_host_that_is_gone_reads_0() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    namespace.ip("link set far address 02:00:00:00:00:09");
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let file = dirs[0].path().join("mapper.prom");
    let options = ["--metrics-listen", "127.0.0.1:9797", "--metrics-file", file.to_str().unwrap()];
    let agent = Daemon::agent(&namespace, "eth1", dirs[0].path(), &options);
    let other = Daemon::agent(&namespace, "far", dirs[1].path(), &[]);
    let has = |line: &str| scrape(&namespace).lines().any(|found| found == line);
    let up = |value: u8| format!(r#"mapper_host_up{{interface="eth1",mac="02:00:00:00:00:09"}} {value}"#);
    wait_for("the other host up", || has(&up(1)).then_some(()));
    wait_for("configured", || {
        has(r#"mapper_agent_state{interface="eth1",mapper_agent_state="configured"} 1"#).then_some(())
    });
    drop(other);
    wait_for("the other host gone", || has(&up(0)).then_some(()));
    assert!(scrape(&namespace).ends_with("# EOF\n"));
    let written = wait_for("the file", || std::fs::read_to_string(&file).ok());
    assert!(written.contains("# TYPE mapper_agent_state gauge\n"), "{written}");
    drop(agent);
    assert!(!file.exists(), "numbers of a daemon that has gone are no numbers");
}

#[test]
fn metrics_are_not_served_to_the_network() {
    let arguments = ["agent", "--interface", "lo", "--metrics-listen", "0.0.0.0:9797"];
    let output = Command::new(MAPPER).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("loopback"), "{errors}");
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
