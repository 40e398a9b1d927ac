//! Tests of the LSB init script on the interfaces of a network namespace.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{MAPPER, packaging, run};

/// A machine with two interfaces to a fabric, which are cabled to each other, and the script's files.
struct Machine {
    name: String,
    dir: TempDir,
    /// Ends what still runs and deletes the namespace when its standard input closes.
    guard: std::process::Child,
}

impl Machine {
    fn new(defaults: &str) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("mtest-init-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let clean_up = "trap '' INT TERM HUP; cat >/dev/null; \
                        ip netns pids $0 | xargs -r kill -KILL; exec ip netns delete $0";
        let guard = Command::new("bash").args(["-c", clean_up, &name]).stdin(Stdio::piped()).spawn().unwrap();
        let dir = tempfile::tempdir().unwrap();
        // The daemon's user must be able to run the program, which may have been built in somebody's home, so
        // it gets a copy.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        mapper_needs::copy_program(Path::new(MAPPER), &dir.path().join("mapper"));
        fs::write(dir.path().join("defaults"), defaults).unwrap();
        fs::create_dir(dir.path().join("links")).unwrap();
        fs::write(dir.path().join("mapper.toml"), "level = 3\n").unwrap();
        fs::write(dir.path().join("eth2.toml"), "level = 4\n").unwrap();
        let machine = Self { name, dir, guard };
        run(Command::new("ip").args(["netns", "add", &machine.name]));
        for words in ["link add eth1 type veth peer name eth2", "link set eth1 up", "link set eth2 up"] {
            run(Command::new("ip").args(["-n", &machine.name]).args(words.split(' ')));
        }
        machine
    }

    fn script(&self, action: &str) -> Output {
        let dir = self.dir.path();
        let mut script = Command::new("ip");
        script.args(["netns", "exec", &self.name]).arg(packaging().join("mapper.init")).arg(action);
        script.env("MAPPER_DAEMON", dir.join("mapper")).env("MAPPER_DEFAULTS", dir.join("defaults"));
        script.env("MAPPER_ACM_DIR", dir.join("acm")).env("MAPPER_LINK_DIR", dir.join("links"));
        script.env("MAPPER_CONFIG", dir).env("MAPPER_RUN_DIR", self.run_dir()).output().unwrap()
    }

    /// Runs the script, which must end with this status, and returns what it prints.
    fn expect(&self, action: &str, status: i32) -> String {
        let output = self.script(action);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(status), "{action}: {said}");
        said
    }

    fn run_dir(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    fn pid(&self, unit: u8) -> String {
        fs::read_to_string(self.run_dir().join(format!("pid.{unit}"))).unwrap().trim().to_owned()
    }

    fn boards(&self) -> serde_json::Value {
        let mut ask = Command::new(MAPPER);
        ask.args(["board-info", "--wait", "60", "--format", "json", "--run-dir"]).arg(self.run_dir());
        let output = ask.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["boards"].clone()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ended = self.guard.wait();
    }
}

#[test]
fn the_script_is_one_that_a_shell_and_insserv_understand() {
    let script = packaging().join("mapper.init");
    run(Command::new("sh").arg("-n").arg(&script));
    let text = fs::read_to_string(&script).unwrap();
    for key in
        ["Provides", "Required-Start", "Required-Stop", "Default-Start", "Default-Stop", "Short-Description"]
    {
        assert!(text.contains(&format!("\n# {key}:")), "{key}");
    }
}

#[test]
fn an_agent_an_interface_is_started_shown_and_stopped() {
    if !(mapper_needs::root() && mapper_needs::programs(&["ip", "setpriv"])) {
        return;
    }
    let machine = Machine::new("INTERFACES='eth1 eth2'\nMAPPER_USER=nobody\n");
    machine.expect("status", 3);
    machine.expect("nonsense", 2);
    machine.expect("start", 0);
    let boards = machine.boards();
    assert_eq!((&boards[0]["interface"], &boards[1]["interface"]), (&"eth1".into(), &"eth2".into()));
    assert_eq!((&boards[0]["level"], &boards[1]["level"]), (&3.into(), &4.into()));

    // The agents have the privilege to open interfaces (CAP_NET_RAW), and no other.
    let status = fs::read_to_string(format!("/proc/{}/status", machine.pid(0))).unwrap();
    for line in [
        "CapEff:\t0000000000002000",
        "CapPrm:\t0000000000002000",
        "CapAmb:\t0000000000000000",
        "NoNewPrivs:\t1",
    ] {
        assert!(status.contains(line), "{line}: {status}");
    }
    assert!(!status.contains("\nUid:\t0\t"), "{status}");

    let said = machine.expect("status", 0);
    assert!(said.contains(&format!("unit 1 on eth2 runs, process {}", machine.pid(1))), "{said}");
    let first = machine.pid(0);
    machine.expect("start", 0);
    machine.expect("force-reload", 0);
    assert_eq!(machine.pid(0), first, "one that runs is left alone");
    machine.expect("restart", 0);
    assert_ne!(machine.pid(0), first);

    run(Command::new("kill").args(["-KILL", &machine.pid(0)]));
    machine.expect("status", 1);
    machine.expect("stop", 0);
    machine.expect("status", 3);
    machine.expect("stop", 0);
    let left = |entry: std::fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut left: Vec<_> =
        fs::read_dir(machine.run_dir()).unwrap().map(|entry| left(entry.unwrap())).collect();
    left.retain(|name| name.starts_with("pid."));
    assert_eq!(left, [""; 0]);
}

#[test]
fn the_acm_service_is_started_if_that_is_asked_for() {
    if !(mapper_needs::root() && mapper_needs::programs(&["ip", "setpriv"])) {
        return;
    }
    let machine = Machine::new("INTERFACES='eth1 eth2'\nACM=yes\nMAPPER_USER=nobody\n");
    machine.expect("start", 0);
    let said = machine.expect("status", 0);
    assert!(said.contains("the ACM service runs, process "), "{said}");
    machine.boards();
    // Programs find it where they look, and it knows the agents.
    let socket = machine.dir.path().join("links/ibacm.sock");
    let endpoints = || {
        let asked = Command::new(MAPPER).args(["acm", "query", "-e", "-S"]).arg(&socket).output().unwrap();
        String::from_utf8(asked.stdout).unwrap()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while endpoints().matches(",mapper,").count() < 2 {
        assert!(Instant::now() < deadline, "{}", endpoints());
        std::thread::sleep(Duration::from_millis(50));
    }
    let process = fs::read_to_string(machine.run_dir().join("pid.acm")).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", process.trim())).unwrap();
    assert!(status.contains("CapPrm:\t0000000000000000") && !status.contains("\nUid:\t0\t"), "{status}");
    machine.expect("reload", 0);
    machine.expect("stop", 0);
    assert_eq!(fs::read_dir(machine.dir.path().join("links")).unwrap().count(), 0);
    assert!(machine.expect("status", 3).contains("the ACM service does not run"));
}

#[test]
fn with_no_interface_listed_nothing_is_started() {
    let script = packaging().join("mapper.init");
    let dir = tempfile::tempdir().unwrap();
    let mut start = Command::new("sh");
    start.arg(script).arg("start").env("MAPPER_DAEMON", MAPPER).env("MAPPER_RUN_DIR", dir.path());
    let said = run(start.env("MAPPER_DEFAULTS", packaging().join("mapper.default")));
    assert!(said.contains("no interface is listed in"), "{said}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
