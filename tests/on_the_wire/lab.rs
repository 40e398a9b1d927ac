//! A lab of network namespaces, which is taken down however the test ends.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde_json::Value;

use crate::MAPPER;

/// Longer than any step of these tests takes on a busy machine. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Repeats `attempt` until it has a result, and returns that.
pub(crate) fn wait_for<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        assert!(Instant::now() < deadline, "not reached: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sets a flag when it is dropped, also by a panic, so that no thread waits for ever.
pub(crate) struct RaiseOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A fabric of network namespaces, made by `scripts/lab`.
pub(crate) struct Lab {
    name: String,
    /// A process that takes the lab down when its standard input closes. That happens when this is dropped,
    /// or when the test process ends in any way.
    guard: Child,
}

impl Lab {
    pub(crate) fn up(topology: &str, options: &[&str]) -> Self {
        Self::up_with(topology, options, &[])
    }

    /// A lab whose nodes have these variables in their environment.
    pub(crate) fn up_with(topology: &str, options: &[&str], variables: &[(&str, &Path)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let guard = Command::new("bash")
            .args(["-c", "trap '' INT TERM HUP; cat >/dev/null; exec scripts/lab down"])
            .current_dir(root())
            .env("LAB_NAME", &name)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let lab = Self { name, guard };
        let up = lab.command(&[&["up", topology], options].concat()).envs(variables.iter().copied()).output();
        let up = up.unwrap();
        assert!(up.status.success(), "scripts/lab up: {}", String::from_utf8_lossy(&up.stderr));
        lab
    }

    /// Runs `scripts/lab`, which must succeed, and returns what it prints.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "scripts/lab {arguments:?}: {}\n{errors}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn try_run(&self, arguments: &[&str]) -> std::process::Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("scripts/lab");
        command.args(arguments).current_dir(root()).env("LAB_NAME", &self.name).env("MAPPER", MAPPER);
        command
    }

    /// The boards of all hosts, by `mapper board-info`.
    pub(crate) fn boards(&self, options: &[&str]) -> Vec<Value> {
        let text = self.run(&[&["boards", "--format", "json"], options].concat());
        let info: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(info["schema"], "mapper.board-info/1");
        info["boards"].as_array().unwrap().clone()
    }

    /// Asks the boards again and again until `reached` holds of them.
    pub(crate) fn wait_until(&self, what: &str, reached: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let boards = self.boards(&[]);
            if reached(&boards) {
                return boards;
            }
            assert!(Instant::now() < deadline, "not reached: {what}\n{boards:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until `hosts` agents answer, all of them with the same complete map of so many hosts and of
    /// `cables` cables between xbars.
    pub(crate) fn wait_for_network(&self, what: &str, hosts: u64, cables: u64) -> Vec<Value> {
        let boards = self.wait_until(what, |boards| {
            let live: Vec<_> = boards.iter().filter(|board| board["mac"].is_string()).collect();
            live.len() as u64 == hosts
                && live.iter().all(|board| {
                    board["network_configured"] == true
                        && (&board["hosts"], &board["cables"]) == (&hosts.into(), &cables.into())
                        && board["map_version"] == live[0]["map_version"]
                })
        });
        boards.into_iter().filter(|board| board["mac"].is_string()).collect()
    }

    /// Waits until all hosts except `without` reach each other over IP.
    pub(crate) fn wait_for_pings(&self, what: &str, without: &[&str]) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = self.try_run(&["ping-all"]);
            let text = String::from_utf8(output.stdout).unwrap();
            let counts = |line: &&str| {
                let words: Vec<_> = line.split(' ').collect();
                words[1] == "cannot" && !without.contains(&words[0]) && !without.contains(&words[3])
            };
            if text.contains(" pairs of hosts ") && text.lines().find(counts).is_none() {
                return;
            }
            assert!(Instant::now() < deadline, "not reached: {what}\n{text}");
        }
    }

    /// The network namespace of a node.
    pub(crate) fn namespace(&self, node: &str) -> String {
        format!("mlab-{}-{node}", self.name)
    }

    /// Runs `ip` in the namespace of a node, with these words as arguments.
    pub(crate) fn ip(&self, node: &str, words: &str) {
        let output =
            Command::new("ip").args(["-n", &self.namespace(node)]).args(words.split(' ')).output().unwrap();
        assert!(output.status.success(), "{node}: {words}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// The process id of a node.
    pub(crate) fn pid(&self, node: &str) -> Pid {
        let text = std::fs::read_to_string(self.dir().join("pid").join(node)).unwrap();
        Pid::from_raw(text.trim().parse().unwrap()).unwrap()
    }

    /// What a node has logged.
    pub(crate) fn log(&self, node: &str) -> String {
        std::fs::read_to_string(self.dir().join("log").join(node)).unwrap()
    }

    /// Ends the agent of a host, and waits until it has ended.
    pub(crate) fn stop_agent(&self, host: &str) {
        let pid_file = self.dir().join("pid").join(host);
        let pid = std::fs::read_to_string(&pid_file).unwrap();
        self.run(&["exec", host, "kill", pid.trim()]);
        let deadline = Instant::now() + PATIENCE;
        while Path::new("/proc").join(pid.trim()).exists() {
            assert!(Instant::now() < deadline, "the agent of {host} does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The network namespaces of this lab.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let prefix = format!("mlab-{}-", self.name);
        let names = text.lines().filter_map(|line| line.split(' ').next());
        names.filter(|line| line.starts_with(&prefix)).map(str::to_owned).collect()
    }

    /// The directory of the lab's files.
    pub(crate) fn dir(&self) -> PathBuf {
        Path::new("/run/mapper-lab").join(&self.name)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let taken_down = self.guard.wait();
        if !std::thread::panicking() {
            assert!(taken_down.unwrap().success(), "the lab was not taken down");
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
