//! A daemon of the program under test, and a cable to run it at.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::MAPPER;
use crate::namespace::Namespace;

/// A namespace with a cable, whose two ends are eth1 and far.
pub(crate) fn cable() -> Namespace {
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
        command.args(arguments);
        Self::start_command(command, ready)
    }

    /// Starts a daemon by this command, and waits until its log says `ready`.
    pub(crate) fn start_command(mut command: Command, ready: &str) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains(ready) {
            line.clear();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "it ended: {command:?}");
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
    pub(crate) fn wait_for_end(mut self) -> String {
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
        rest
    }

    /// Starts an agent, and waits until it runs.
    pub(crate) fn agent(namespace: &Namespace, interface: &str, run_dir: &Path, options: &[&str]) -> Self {
        let run_dir = run_dir.to_str().unwrap();
        let arguments = [&["agent", "--interface", interface, "--run-dir", run_dir], options].concat();
        Self::start(namespace, &arguments, "the agent runs")
    }

    /// The number of the daemon's process.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.signal(rustix::process::Signal::TERM);
        }
        let mut rest = Vec::new();
        let _all_that_it_wrote = self.log.read_to_end(&mut rest);
        let _ended = self.child.wait();
        if std::thread::panicking() && !rest.is_empty() {
            eprintln!("a daemon wrote:\n{}", String::from_utf8_lossy(&rest));
        }
    }
}
