//! Nodes with the ACM service beside them, and those who ask it.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mapper_acm::wire::{Address, EntryFlags, Question, Request, Sought};
use mapper_proto::Mac;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::lab::wait_for;
use crate::ring::Ring;
use crate::{MAPPER, can_make_taps};

/// What the service logs when clients can connect.
pub(super) const READY: &str = "the ACM service runs";

/// Three nodes in a ring, called n1 to n3, and the service at the first.
pub(crate) struct Machines {
    pub(super) service: Daemon,
    pub(super) nodes: Vec<Daemon>,
    pub(crate) ring: Ring,
    pub(super) dir: tempfile::TempDir,
}

impl Machines {
    /// Starts all, where this machine can, and waits until the service knows all hosts by name and address.
    pub(crate) fn start(options: &[&str]) -> Option<Self> {
        // Agents are patient, as a busy machine must not look like a dead cable, around which paths are longer.
        Self::start_with(&["--liveness-misses", "10"], options)
    }

    /// As [`Self::start`], with these options of the nodes.
    pub(super) fn start_with(of_nodes: &[&str], options: &[&str]) -> Option<Self> {
        if !(can_make_taps() && mapper_needs::programs(&["ib_acme"])) {
            return None;
        }
        let ring = Ring::new(3);
        let dir = tempfile::tempdir().unwrap();
        let start = |at: usize| {
            let address = format!("10.1.0.{}/24", at + 1);
            ring.start(at, &[&["--address", &address], of_nodes].concat())
        };
        let nodes: Vec<_> = (0..3).map(start).collect();
        let service = Self::serve(&ring, dir.path(), options);
        let machines = Self { service, nodes, ring, dir };
        for known in ["n -d n2", "n -d n3", "i -d 10.1.0.2", "i -d 10.1.0.3"] {
            wait_for(known, || (machines.judge(&format!("-f {known} -c")).1 == 0).then_some(()));
        }
        Some(machines)
    }

    fn serve(ring: &Ring, dir: &Path, options: &[&str]) -> Daemon {
        let socket = dir.join("acm.sock");
        let words = ["acm", "serve", "--run-dir", ring.run_dir(0), "--socket", socket.to_str().unwrap()];
        Daemon::start(&ring.machines[0], &[&words[..], options].concat(), READY)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("acm.sock")
    }

    /// What `ib_acme` prints, and its exit status, for these options.
    pub(super) fn judge(&self, line: &str) -> (String, i32) {
        self.ask("ib_acme", &format!("-S {} {line}", self.socket().display()))
    }

    /// What `mapper acm query` prints, and its exit status, for these options.
    pub(super) fn query(&self, line: &str) -> (String, i32) {
        self.ask(MAPPER, &format!("acm query -S {} {line}", self.socket().display()))
    }

    /// What both print of the short way to a neighbour. A busy machine looks like a dead cable for a moment, so a path
    /// may lead around it then, there may be none, and two that were asked for one after the other may differ.
    pub(super) fn both(&self, line: &str) -> String {
        wait_for(&format!("the short way, told to both for {line}"), || {
            let (printed, status) = self.judge(line);
            let is_short = status == 0 && field(&printed, "hop limit") == "2";
            (is_short && self.query(line) == (printed.clone(), status)).then_some(printed)
        })
    }

    /// Waits until there is a path, which on a busy machine may be missing for a moment.
    pub(super) fn wait_for_path(&self, line: &str) {
        wait_for(&format!("a path for {line}"), || (self.judge(line).1 == 0).then_some(()));
    }

    /// What a program prints at the first node, and its exit status, for these options. The status is -1 if a signal
    /// ended the program: `ib_acme` ends so if the service takes it for a silent client and closes its connection.
    pub(super) fn ask(&self, program: &str, line: &str) -> (String, i32) {
        let output = self.ring.run(0, &format!("{program} {line}"));
        (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap_or(-1))
    }

    pub(crate) fn mac(&self, at: usize) -> Mac {
        self.ring.board(at, &[])["mac"].as_str().unwrap().parse().unwrap()
    }

    /// An address of IPv6 of a machine.
    pub(crate) fn v6(&self, at: usize) -> String {
        let board = self.ring.board(at, &[]);
        let all = board["addresses"].as_array().unwrap().iter().filter_map(Value::as_str);
        let found = all.filter(|text| text.contains(':')).map(|text| text.split('/').next().unwrap()).next();
        found.unwrap().to_owned()
    }

    pub(super) fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }
}

/// The value behind a name in what `ib_acme` prints.
pub(super) fn field<'a>(printed: &'a str, name: &str) -> &'a str {
    let found = printed.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no {name}: {printed}"))
}

/// A question for the path to a name.
pub(super) fn question(name: &str, flags: EntryFlags) -> Request {
    let destination = Address::Name(name.to_owned());
    Request::Resolve(Question { sought: Sought::Destination { source: None, destination }, flags })
}
