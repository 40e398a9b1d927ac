//! Tests that an agent at a port of InfiniBand brings a subnet up and keeps it up, and that another takes over. What it did
//! is judged by the tools of InfiniBand.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use mapper_formats as formats;
use mapper_proto::map::Fabric;

use crate::peers::{Simulation, are_there, text};

/// How long a test waits for what it wants to see; only a failing one does so long.
const LIMIT: Duration = Duration::from_secs(120);

/// How long agents wait for an answer, as the simulator answers late under load.
const PATIENT_MS: &str = "3000";

/// The command of an agent at a node, which waits this many milliseconds for an answer.
fn agent(simulation: &Simulation, node: &str, timeout_ms: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mapper"));
    let (lids, run) = (simulation.file("lids"), simulation.file("run"));
    command
        .args(["agent", "--interface", &format!("ibsim:{node}"), "--mad-timeout-ms", timeout_ms])
        .args(["--lid-file", text(&lids), "--run-dir", text(&run), "--watch-interval-ms", "300"])
        .args(more)
        .env("IBSIM_SOCKNAME", simulation.socket());
    command
}

/// An agent or an OpenSM that ends when this is dropped. Of a test that fails, the end of its log is shown.
pub(crate) struct Running {
    process: Child,
    log: PathBuf,
}

impl Running {
    /// Starts a command, whose errors end up in this log, too.
    fn start(mut command: Command, log: PathBuf) -> Self {
        let errors = File::options().create(true).append(true).open(&log).unwrap();
        Self { process: command.stdout(Stdio::null()).stderr(errors).spawn().unwrap(), log }
    }

    /// Starts an agent at a node.
    pub(crate) fn agent(simulation: &Simulation, node: &str, more: &[&str]) -> Self {
        Self::agent_that_waits(simulation, node, PATIENT_MS, more)
    }

    /// Starts an agent at a node, which waits this many milliseconds for an answer.
    pub(crate) fn agent_that_waits(
        simulation: &Simulation,
        node: &str,
        timeout_ms: &str,
        more: &[&str],
    ) -> Self {
        let log = simulation.file(&format!("agent-{node}.log"));
        Self::start(agent(simulation, node, timeout_ms, more), log)
    }

    /// Has it leave as a service manager does.
    fn stop(mut self) {
        let killed = Command::new("kill").arg(self.process.id().to_string()).status().unwrap();
        assert!(killed.success() && self.process.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // This fails only if the process has ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            let log = std::fs::read(&self.log).unwrap_or_default();
            let lines: Vec<_> = log.split(|&byte| byte == b'\n').rev().take(300).collect();
            let end: Vec<_> = lines.into_iter().rev().map(String::from_utf8_lossy).collect();
            eprintln!("the end of {}:\n{}", self.log.display(), end.join("\n"));
        }
    }
}

/// Brings a subnet up once, and returns how many hosts it has.
pub(crate) fn bring_up(simulation: &Simulation, more: &[&str]) -> u64 {
    let once = ["--map-once", "--format", "json"];
    let mut command = agent(simulation, simulation.host(), PATIENT_MS, &[&once[..], more].concat());
    let (told, log) = (simulation.file("once.json"), simulation.file("once.log"));
    command.stdout(File::create(&told).unwrap()).stderr(File::create(&log).unwrap());
    let mut running = Running { process: command.spawn().unwrap(), log };
    let mut status = None;
    wait_for("the agent has brought the subnet up", || {
        status = running.process.try_wait().unwrap();
        status.is_some()
    });
    assert!(status.unwrap().success(), "{status:?}");
    let answer: serde_json::Value = serde_json::from_str(&simulation.read("once.json")).unwrap();
    answer["hosts"].as_u64().unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// How many ends of cables `iblinkinfo` shows as active, and how many as on their way there.
pub(crate) fn links(simulation: &Simulation) -> (usize, usize) {
    let told = words(&simulation.run("iblinkinfo", &["-t", "5000"]));
    let count = |state: &str| told.lines().filter(|line| line.contains(state)).count();
    (count("Active/"), count("Initialize/") + count("Armed/"))
}

/// How many ends of cables a fabric has.
fn ends(fabric: &Fabric) -> usize {
    2 * (fabric.map.cables.len() + fabric.map.hosts.iter().filter(|host| host.at.is_some()).count())
}

pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether the tables of all switches lead from some hosts to others.
pub(crate) fn all_trace(simulation: &Simulation) -> bool {
    let found = simulation.found();
    let lids: Vec<u32> = found.hosts.iter().filter_map(|host| host.lid.map(u32::from)).collect();
    let step = lids.len() / 4 + 1;
    let pairs =
        lids.iter().step_by(step).flat_map(|&from| lids.iter().step_by(step).map(move |&to| (from, to)));
    lids.len() == found.hosts.len()
        && pairs.filter(|(from, to)| from != to).all(|(from, to)| simulation.trace(from, to))
}

/// Proves the tables that `ibroute` reads out of the switches.
pub(crate) fn prove_tables(simulation: &Simulation) {
    let tables: String = simulation
        .found()
        .xbars
        .iter()
        .map(|xbar| {
            let lid = xbar.lid.unwrap().to_string();
            words(&simulation.run("ibroute", &["-t", "5000", &lid]))
        })
        .collect();
    let lfts = simulation.write("read.lfts", &tables);
    let net = simulation.write("read.net", &words(&simulation.run("ibnetdiscover", &["-o", "64"])));
    let check = Command::new(env!("CARGO_BIN_EXE_mapper"))
        .args(["check", text(&net), "--lfts", text(&lfts)])
        .output()
        .unwrap();
    assert!(check.status.success(), "{check:?}");
}

/// The multicast LID of IPoIB's broadcast.
const BROADCAST: &str = "0xc000";

/// Fails unless the multicast tables lead packets of IPoIB's broadcast from any host to all others, and by a tree: `ibtracert`
/// walks them, and `ibroute` shows how many entries there are.
fn prove_broadcast(simulation: &Simulation) {
    let found = simulation.found();
    let entries = |xbar: u16| {
        let range = [BROADCAST, BROADCAST];
        let told = words(
            &simulation.run("ibroute", &[&["-M", "-t", "5000", &xbar.to_string()], &range[..]].concat()),
        );
        let line = told.lines().find_map(|line| line.strip_prefix(BROADCAST));
        line.map_or(0, |line| line.matches('x').count())
    };
    let switches: Vec<usize> = found.xbars.iter().map(|xbar| entries(xbar.lid.unwrap())).collect();
    let leading = switches.iter().filter(|&&entries| entries > 0).count();
    let hosts: Vec<u16> = found.hosts.iter().filter_map(|host| host.lid).collect();
    assert_eq!(switches.iter().sum::<usize>(), hosts.len() + 2 * (leading - 1), "a tree: {switches:?}");
    for pair in hosts.windows(2) {
        let ends = [pair[0].to_string(), pair[1].to_string()];
        let told = words(&simulation.run("ibtracert", &["-t", "5000", "-m", BROADCAST, &ends[0], &ends[1]]));
        assert!(told.lines().any(|line| line.starts_with("To ca")), "{told}");
    }
}

#[test]
fn an_agent_brings_small_fabrics_up() {
    if !are_there() {
        return;
    }
    for (name, fabric) in crate::fabrics::all() {
        let simulation = Simulation::start(&fabric);
        let hosts = bring_up(&simulation, &[]);
        assert_eq!(
            hosts as usize,
            fabric.map.hosts.iter().filter(|host| host.at.is_some()).count(),
            "{name}"
        );
        assert_eq!(links(&simulation), (ends(&fabric), 0), "{name}");
        assert!(all_trace(&simulation), "{name}");
        prove_tables(&simulation);
        prove_broadcast(&simulation);
    }
}

/// Where ibsim keeps the nets that it ships with.
const NETS_OF_IBSIM: &str = "/usr/share/doc/ibsim-utils/net-examples";

#[test]
fn an_agent_brings_the_nets_up_that_ibsim_ships_with() {
    if !are_there() || !mapper_needs::file(NETS_OF_IBSIM) {
        return;
    }
    for (name, hosts) in
        [("net", 2), ("net.1", 2), ("net.2sw2path", 2), ("net.2sw2path4hca", 4), ("net.2sw2path4hca2port", 4)]
    {
        let net = std::fs::read_to_string(format!("{NETS_OF_IBSIM}/{name}")).unwrap();
        let ends = net.lines().filter(|line| line.starts_with('[')).count();
        let simulation = Simulation::of_net(&net, "Hca1", &["-s", "-n"]);
        assert_eq!(bring_up(&simulation, &[]), hosts, "{name}");
        assert_eq!(links(&simulation), (ends, 0), "{name}");
        assert!(all_trace(&simulation), "{name}");
        prove_tables(&simulation);
        prove_broadcast(&simulation);
    }
}

#[test]
fn an_agent_brings_a_torus_in_layers_and_a_fat_tree_of_648_hosts_up() {
    if !are_there() {
        return;
    }
    let cases: [(&str, &[&str]); 2] = [
        ("torus:x=6,y=5,z=5,hosts=1", &["--engine", "torus", "--max-layers", "4"]),
        ("clos:hosts=648,ports=36", &[]),
    ];
    for (spec, more) in cases {
        let fabric = formats::resolve(spec).unwrap();
        let simulation = Simulation::with_console(&fabric);
        bring_up(&simulation, more);
        assert_eq!(links(&simulation), (ends(&fabric), 0), "{spec}");
        assert!(all_trace(&simulation), "{spec}");
    }
}

#[test]
fn cables_that_are_cut_and_mended_are_healed_and_lids_stay() {
    if !are_there() {
        return;
    }
    let fabric = formats::resolve("clos:hosts=16,ports=8").unwrap();
    let mut simulation = Simulation::with_console(&fabric);
    let all = ends(&fabric);
    let running = Running::agent(&simulation, &fabric.hosts[0].name, &[]);
    wait_for("all links are active", || links(&simulation) == (all, 0));
    let kept = simulation.read("lids");
    let (xbar, host) = (fabric.xbars[0].name.clone(), fabric.hosts[5].name.clone());
    simulation.console(&format!("Unlink \"{xbar}\"[5]"));
    simulation.console(&format!("Unlink \"{host}\"[1]"));
    wait_for("two cables are away, and all others lead around", || {
        links(&simulation) == (all - 4, 0) && all_trace(&simulation)
    });
    simulation.console(&format!("ReLink \"{xbar}\"[5]"));
    simulation.console(&format!("ReLink \"{host}\"[1]"));
    wait_for("all links are active again", || links(&simulation) == (all, 0) && all_trace(&simulation));
    prove_tables(&simulation);
    prove_broadcast(&simulation);
    assert_eq!(simulation.read("lids"), kept, "nobody got another LID");
    running.stop();
    // A second agent, elsewhere and without the file, finds all LIDs as they are.
    std::fs::remove_file(simulation.file("lids")).unwrap();
    assert_eq!(bring_up(&simulation, &["--level", "2"]), 16);
    assert_eq!(simulation.read("lids"), kept);
}

/// What the manager of the subnet says of itself to a host.
fn sm_info(simulation: &Simulation) -> String {
    let output = simulation.command("sminfo").args(["-t", "5000"]).env("SIM_HOST", "h4").output().unwrap();
    words(&output)
}

#[test]
fn a_second_agent_takes_over_from_one_that_was_killed() {
    if !are_there() {
        return;
    }
    let fabric = formats::resolve("clos:hosts=32,ports=8").unwrap();
    let simulation = Simulation::with_console(&fabric);
    let first = Running::agent(&simulation, "h1", &["--level", "2"]);
    wait_for("the first is master, and has the subnet up", || {
        sm_info(&simulation).contains("priority 2 state 3") && links(&simulation) == (ends(&fabric), 0)
    });
    let lids = simulation.found().hosts.iter().map(|host| host.lid).collect::<Vec<_>>();
    let _second = Running::agent(&simulation, "h2", &["--level", "1"]);
    // `kill` leaves the first no time to hand over.
    drop(first);
    wait_for("the second is master", || sm_info(&simulation).contains("priority 1 state 3"));
    wait_for("all leads on", || links(&simulation) == (ends(&fabric), 0) && all_trace(&simulation));
    assert_eq!(simulation.found().hosts.iter().map(|host| host.lid).collect::<Vec<_>>(), lids);
}

/// OpenSM as a daemon at a host, with patience; its log is in a file of that name.
pub(crate) fn opensm(simulation: &Simulation, host: &str, priority: &str) -> Running {
    opensm_with(simulation, host, priority, "")
}

/// As [`opensm`], with further lines of its options.
pub(crate) fn opensm_with(simulation: &Simulation, host: &str, priority: &str, more: &str) -> Running {
    let mut command = simulation.command("opensm");
    let log = format!("opensm-{host}.log");
    // It asks each second whether the master lives, so that it need not be told when that leaves.
    let lines = format!("sminfo_polling_timeout 1000\npolling_retry_number 3\n{more}");
    let options = simulation.write("opensm.conf", &lines);
    command
        .args(["-F", text(&options), "-e", "-D", "0x47", "-s", "2", "-t", "5000", "-f", &log, "-p", priority])
        .env("SIM_HOST", host);
    Running::start(command, simulation.file(&log))
}

/// Whether OpenSM at a host has its subnet up and is its master.
fn is_up(simulation: &Simulation, host: &str) -> bool {
    simulation.read(&format!("opensm-{host}.log")).contains("SUBNET UP")
}

#[test]
fn opensm_of_higher_priority_takes_over_and_the_agent_takes_over_from_it_when_it_is_gone() {
    if !are_there() {
        return;
    }
    let fabric = formats::resolve("clos:hosts=16,ports=8").unwrap();
    let simulation = Simulation::with_console(&fabric);
    let _agent = Running::agent(&simulation, "h1", &["--level", "1"]);
    wait_for("the agent is master, and has the subnet up", || {
        sm_info(&simulation).contains("priority 1 state 3") && links(&simulation) == (ends(&fabric), 0)
    });
    let lids = simulation.found().hosts.iter().map(|host| host.lid).collect::<Vec<_>>();
    let theirs = opensm(&simulation, "h2", "14");
    wait_for("OpenSM is master, and has the subnet up", || {
        is_up(&simulation, "h2") && sm_info(&simulation).contains("priority 14 state 3")
    });
    drop(theirs);
    wait_for("the agent is master again", || sm_info(&simulation).contains("priority 1 state 3"));
    wait_for("all leads on", || links(&simulation) == (ends(&fabric), 0) && all_trace(&simulation));
    assert_eq!(simulation.found().hosts.iter().map(|host| host.lid).collect::<Vec<_>>(), lids);
}

#[test]
fn opensm_of_lower_priority_stands_by_and_takes_over_when_the_agent_leaves() {
    if !are_there() {
        return;
    }
    let fabric = formats::resolve("clos:hosts=16,ports=8").unwrap();
    let simulation = Simulation::with_console(&fabric);
    let ours = Running::agent(&simulation, "h1", &["--level", "14"]);
    wait_for("the agent is master", || sm_info(&simulation).contains("priority 14 state 3"));
    let _theirs = opensm(&simulation, "h2", "1");
    wait_for("OpenSM stands by", || simulation.read("opensm-h2.log").contains("Entering STANDBY state"));
    assert!(sm_info(&simulation).contains("priority 14 state 3") && !is_up(&simulation, "h2"));
    ours.stop();
    wait_for("OpenSM is master, and has the subnet up", || {
        is_up(&simulation, "h2") && sm_info(&simulation).contains("priority 1 state 3")
    });
    assert!(links(&simulation) == (ends(&fabric), 0) && all_trace(&simulation));
}
