//! Machines that are cabled in a ring, each with a node.

use std::process::Output;

use serde_json::Value;

use crate::MAPPER;
use crate::daemon::Daemon;
use crate::namespace::Namespace;

/// Machines in a ring: e1 of each leads to e2 of the next.
pub(crate) struct Ring {
    pub(crate) machines: Vec<Namespace>,
    run_dirs: Vec<tempfile::TempDir>,
}

impl Ring {
    pub(crate) fn new(count: usize) -> Self {
        let machines: Vec<_> = (0..count).map(|_| Namespace::new()).collect();
        for (at, machine) in machines.iter().enumerate() {
            let next = &machines[(at + 1) % count].name;
            machine.ip("link set lo up");
            machine.ip(&format!("link add e1 type veth peer name e2 netns {next}"));
        }
        Self { machines, run_dirs: (0..count).map(|_| tempfile::tempdir().unwrap()).collect() }
    }

    pub(crate) fn run_dir(&self, at: usize) -> &str {
        self.run_dirs[at].path().to_str().unwrap()
    }

    /// Starts the node of a machine, which is called n1, n2 and so on.
    pub(crate) fn start(&self, at: usize, options: &[&str]) -> Daemon {
        let name = format!("n{}", at + 1);
        let words = ["node", "--ports", "e1,e2", "--host-name", &name, "--run-dir", self.run_dir(at)];
        Daemon::start(&self.machines[at], &[&words[..], options].concat(), "the agent runs")
    }

    /// Starts the node of a machine, whose ports are all that are called like one.
    pub(crate) fn start_by_pattern(&self, at: usize, options: &[&str]) -> Daemon {
        let words = ["node", "--ports", "e*", "--run-dir", self.run_dir(at)];
        Daemon::start(&self.machines[at], &[&words[..], options].concat(), "the agent runs")
    }

    /// Runs a program at a machine. Its words are parted by single spaces.
    pub(crate) fn run(&self, at: usize, line: &str) -> Output {
        self.machines[at].command_line(line).output().unwrap()
    }

    /// The board of a machine's agent, or null while it has none.
    pub(crate) fn board(&self, at: usize, options: &[&str]) -> Value {
        let mut command = self.machines[at].command(MAPPER);
        command.args(["board-info", "--format", "json", "--run-dir", self.run_dir(at)]).args(options);
        let info: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap_or_default();
        info["boards"][0].clone()
    }
}
