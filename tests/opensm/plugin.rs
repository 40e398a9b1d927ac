//! OpenSM with mapper's plugin, on fabrics that ibsim simulates: what OpenSM and others make of its tables.
//!
//! The plugin is built here, as a plain build leaves it out: that needs libopensm-dev and libibumad-dev.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mapper_formats as formats;
use mapper_opensm::{Request, receive, send};
use mapper_proto::map::Fabric;
use mapper_routing::Subnet;

use crate::built::Built;
use crate::peers::{self, Simulation, text};

/// Whether all is there that these tests need.
fn can_run() -> bool {
    peers::are_there()
        && mapper_needs::programs(&["dump_fts", "saquery", "smpquery"])
        && mapper_needs::file("/usr/include/infiniband/opensm/osm_event_plugin.h")
}

/// An OpenSM that goes on sweeping. It ends when this goes.
struct OpenSm<'a> {
    simulation: &'a mut Simulation,
    process: Child,
}

impl<'a> OpenSm<'a> {
    /// Starts one with these plugin options and lines of configuration, and waits until the subnet is up.
    fn start(simulation: &'a mut Simulation, options: &str, more: &str) -> Self {
        let library = simulation.file("libmapper.so");
        std::fs::copy(&Built::get().plugin, &library).unwrap();
        let worker = &Built::get().engine;
        let worker =
            if options.contains("worker=") { String::new() } else { format!(";worker={}", text(worker)) };
        let configuration = format!(
            "event_plugin_name mapper\nevent_plugin_options {options}{worker}\nmax_op_vls 5\n\
             force_log_flush TRUE\n{more}\n"
        );
        let file = simulation.write("opensm.conf", &configuration);
        let mut command = simulation.command("opensm");
        let process = command
            .args(["--config", text(&file), "-e", "-f", "opensm.log", "-D", "0x47", "-t", "5000", "-n", "64"])
            .env("LD_LIBRARY_PATH", library.parent().unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut opensm = Self { simulation, process };
        opensm.wait_for("SUBNET UP", 1);
        opensm
    }

    fn log(&self) -> String {
        self.simulation.read("opensm.log")
    }

    /// Waits until a text is in the log `times` times, each time on a line that OpenSM itself writes.
    fn wait_for(&mut self, what: &str, times: usize) {
        self.wait_until(&format!("`{what}`, {times} times"), |log| count_of(log, what) >= times);
    }

    /// Waits until the log is as wanted.
    fn wait_until(&mut self, what: &str, is_there: impl Fn(&str) -> bool) {
        let end = Instant::now() + Duration::from_secs(300);
        loop {
            let log = self.log();
            if is_there(&log) {
                return;
            }
            assert!(self.process.try_wait().unwrap().is_none(), "OpenSM ended:\n{log}");
            assert!(Instant::now() < end, "no {what} in:\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Types a line on the simulator's console, and has OpenSM look at everything anew until its tables stay as they
    /// are. Gives how many entries the plugin changed.
    fn after(&mut self, console: &str) -> usize {
        let start = self.log().len();
        // The simulator reads its console between any two packets, so what is typed before the sweep counts in it.
        self.simulation.console(console);
        loop {
            // The simulator also sends traps, for which OpenSM sweeps by itself. A sweep that was under way already may
            // have read the subnet before the console changed it: only one that begins from here on shows what it is now.
            let asked = self.log().len();
            let process = rustix::process::Pid::from_child(&self.process);
            rustix::process::kill_process(process, rustix::process::Signal::HUP).unwrap();
            self.wait_until("a whole sweep", |log| {
                let begins = log[asked..].find(SWEEP_BEGINS);
                begins.is_some_and(|begins| count_of(&log[asked + begins..], "SUBNET UP") > 0)
            });
            let log = self.log();
            let changes: Vec<usize> = log[start..].lines().filter_map(changed_entries).collect();
            let newest = log[asked..]
                .find(SWEEP_BEGINS)
                .and_then(|begins| log[asked + begins..].lines().filter_map(changed_entries).next_back());
            if newest == Some(0) {
                return changes.iter().sum();
            }
        }
    }

    /// `mapper check` proves the tables that are in the switches. `more` are further arguments of it.
    fn assert_proved(&self, more: &[&str]) -> (Fabric, Subnet) {
        let found = self.simulation.run("ibnetdiscover", &["-o", "64"]).stdout;
        let tables = self.simulation.run("dump_fts", &[]).stdout;
        std::fs::write(self.simulation.file("found.net"), &found).unwrap();
        std::fs::write(self.simulation.file("found.lfts"), &tables).unwrap();
        let mut check = Command::new(env!("CARGO_BIN_EXE_mapper"));
        check.args(["check", "found.net", "--lfts", "found.lfts"]).args(more);
        let output = check.current_dir(self.simulation.file("")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let fabric = formats::parse("found.net", &String::from_utf8_lossy(&found)).unwrap();
        let subnet = Subnet::new(&fabric, None).unwrap();
        (fabric, subnet)
    }

    /// The service level that OpenSM's subnet administration gives for the path from one LID to another.
    fn level(&self, from: u32, to: u32) -> u8 {
        // One path a query: the simulator loses what does not fit into one datagram.
        let output = self.simulation.run("saquery", &["--src-to-dst", &format!("{from}:{to}")]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let value = |name: &str| {
            let line = said.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(".."));
            line.unwrap_or_else(|| panic!("no {name}: {said}")).trim_start_matches('.').to_owned()
        };
        assert_eq!((value("slid"), value("dlid")), (from.to_string(), to.to_string()), "{said}");
        u8::from_str_radix(value("sl").trim_start_matches("0x"), 16).unwrap()
    }
}

impl Drop for OpenSm<'_> {
    fn drop(&mut self) {
        // This fails only if OpenSM has ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What OpenSM writes when it begins to look at the whole subnet.
const SWEEP_BEGINS: &str = "INITIATING HEAVY SWEEP";

/// How many lines of its own OpenSM logged that contain a text. It repeats some in a frame of stars.
fn count_of(log: &str, what: &str) -> usize {
    log.lines().filter(|line| line.contains("] 0x") && line.contains(what)).count()
}

/// How many entries a line of the log says that the plugin changed.
fn changed_entries(line: &str) -> Option<usize> {
    line.split_once(" entries differ from those in force")?.0.rsplit(' ').next()?.parse().ok()
}

fn simulation(spec: &str) -> Simulation {
    Simulation::with_console(&formats::resolve(spec).unwrap())
}

/// The first LID of a host.
fn lid_of(subnet: &Subnet, host: u32) -> u32 {
    subnet.destinations.lid(subnet.destinations.slots_of_host(host).start)
}

/// `ibdmchk` finds all paths between hosts and no credit loop, with the service levels of this file.
fn assert_ibdmchk(opensm: &OpenSm<'_>, hosts: usize, levels: Option<&Path>) {
    let arguments: Vec<&str> = levels.iter().flat_map(|file| ["-c", text(file)]).collect();
    let said = opensm.simulation.ibdmchk(&arguments);
    let paths = format!("-I- Scanned:{} CA to CA paths", hosts * (hosts - 1));
    assert!(said.contains(&paths), "expected `{paths}`:\n{said}");
    assert!(said.contains("-I- no credit loops found"), "{said}");
}

#[test]
fn a_tree_gets_proved_tables_and_keeps_most_of_them_through_faults() {
    if !can_run() {
        return;
    }
    let mut simulation = simulation("clos:hosts=32,ports=8");
    let mut opensm = OpenSm::start(&mut simulation, "engines=minhop", "routing_engine mapper");
    assert!(
        opensm.log().contains("mapper: minhop serves, 1 layer: every pair has a route"),
        "{}",
        opensm.log()
    );
    assert!(opensm.log().contains("mapper tables configured on all switches"));
    let (fabric, subnet) = opensm.assert_proved(&[]);
    assert_ibdmchk(&opensm, 32, None);
    let (first, last) = (lid_of(&subnet, 0), lid_of(&subnet, 31));
    assert!(opensm.simulation.trace(first, last) && opensm.simulation.trace(last, first));

    assert_eq!(opensm.after(""), 0);
    let entries = subnet.topology.xbar_count() * subnet.destinations.slot_count();
    let name = |xbar: u32| format!("\"{}\"", fabric.xbars[xbar as usize].description);
    for cable in [fabric.map.cables[0], fabric.map.cables[7]] {
        let end = format!("{}[{}]", name(cable.a.xbar), cable.a.port);
        let changed = opensm.after(&format!("Unlink {end}"));
        assert!(changed > 0 && changed < entries / 8, "{changed} of {entries}");
        let (cut, _) = opensm.assert_proved(&[]);
        assert_eq!(cut.map.cables.len(), fabric.map.cables.len() - 1);

        let changed = opensm.after(&format!("ReLink {end}"));
        assert!(changed < entries / 8, "{changed} of {entries}");
        opensm.assert_proved(&[]);
    }

    let spine = (0..subnet.topology.xbar_count() as u32).find(|&xbar| !subnet.is_leaf(xbar)).unwrap();
    opensm.after(&format!("Unlink {}", name(spine)));
    let (fewer, _) = opensm.assert_proved(&[]);
    assert_eq!(fewer.map.xbars.len(), fabric.map.xbars.len() - 1);
    opensm.after(&format!("ReLink {}", name(spine)));
    let (mended, _) = opensm.assert_proved(&[]);
    assert_eq!(mended.map.cables.len(), fabric.map.cables.len());
    assert_ibdmchk(&opensm, 32, None);
}

#[test]
fn layers_become_service_levels_and_lanes() {
    if !can_run() {
        return;
    }
    let mut simulation = simulation("ring:n=6,hosts=1");
    let opensm = OpenSm::start(&mut simulation, "engines=lash", "routing_engine mapper\nqos TRUE");
    assert!(opensm.log().contains("mapper: lash serves, 2 layers"), "{}", opensm.log());
    let fabric = opensm.simulation.found();
    let subnet = Subnet::new(&fabric, None).unwrap();
    let (mut ours, mut theirs) = (String::new(), String::new());
    let mut in_use = BTreeSet::new();
    for (from, to) in (0..6).flat_map(|from| (0..6).map(move |to| (from, to))).filter(|(from, to)| from != to)
    {
        let (guid, from_lid, to_lid) =
            (subnet.host_guids[from as usize], lid_of(&subnet, from), lid_of(&subnet, to));
        let level = opensm.level(from_lid, to_lid);
        in_use.insert(level);
        writeln!(ours, "{from_lid:#06x} {to_lid:#06x} {level}").unwrap();
        writeln!(theirs, "{guid:#018x} {to_lid} {level}").unwrap();
    }
    assert_eq!(in_use, BTreeSet::from([0, 1]));
    let ours = opensm.simulation.write("found.sls", &ours);
    opensm.assert_proved(&["--sls", text(&ours)]);
    let theirs = opensm.simulation.write("levels", &theirs);
    assert_ibdmchk(&opensm, 6, Some(&theirs));
    let lid = subnet.destinations.lid(subnet.destinations.slot_of_xbar(0)).to_string();
    let lanes = opensm.simulation.run("smpquery", &["sl2vl", &lid, "1"]);
    let lanes = String::from_utf8_lossy(&lanes.stdout).into_owned();
    assert!(lanes.contains("| 0| 1|15|15|15|15|15|15|15|15|15|15|15|15|15|15|"), "{lanes}");
}

#[test]
fn what_is_not_proved_is_left_to_the_next_engine_and_its_circle_is_named() {
    if !can_run() {
        return;
    }
    let mut simulation = simulation("ring:n=6,hosts=1");
    let opensm = OpenSm::start(&mut simulation, "engines=minhop,lash", "routing_engine mapper,dnup");
    let log = opensm.log();
    assert!(
        log.contains("mapper: minhop does not serve: layer 0 can deadlock: frames wait in a circle"),
        "{log}"
    );
    assert!(log.contains("mapper: lash does not serve: it would serve in 2 layers"), "without QoS: {log}");
    assert!(log.contains("no tables are proved: left to OpenSM's next engine"), "{log}");
    assert!(log.contains("dnup tables configured on all switches"), "{log}");
}

#[test]
fn a_worker_that_crashes_or_hangs_or_answers_nonsense_leaves_opensm_alone() {
    if !can_run() {
        return;
    }
    // Only the program that hangs is waited for until its limit.
    for (script, seconds, said) in [
        ("kill -SEGV $$", 600, "mapper: the computation failed, signal: 11"),
        ("exec sleep 600", 1, "mapper: the computation did not end within 1 s and was stopped"),
        (
            "exec head -c 5000 /dev/urandom",
            600,
            "mapper: the answer is of another version of mapper, or cut off",
        ),
        ("printf 'mapper-opensm %s\\n\\001' \"$VERSION\"", 600, "mapper: the answer is malformed"),
    ] {
        let mut simulation = simulation("clos:hosts=16,ports=8");
        let version = env!("CARGO_PKG_VERSION");
        let worker = simulation.file("worker");
        mapper_needs::write_program(&worker, &format!("#!/bin/sh\nVERSION={version}\n{script}\n"));
        let options = format!("seconds={seconds};worker={}", text(&worker));
        let opensm = OpenSm::start(&mut simulation, &options, "routing_engine mapper,updn");
        assert!(opensm.log().contains(said), "{}", opensm.log());
        assert!(opensm.log().contains("updn tables configured on all switches"), "{}", opensm.log());
    }
}

/// What is changed of a subnet.
type Change = fn(&mut Request);

/// Stands between OpenSM and the program that computes: hands over OpenSM's subnet with one thing changed, as nothing that
/// ibsim simulates can be made to look like that.
struct Between {
    worker: PathBuf,
    question: PathBuf,
    answer: PathBuf,
}

impl Between {
    fn new(simulation: &Simulation) -> Self {
        let between = Self {
            worker: simulation.file("between"),
            question: simulation.file("question"),
            answer: simulation.file("answer"),
        };
        let (question, answer) = (text(&between.question), text(&between.answer));
        let script = format!(
            "#!/bin/sh\ncat > {question}.part && mv {question}.part {question}\n\
             while [ ! -e {answer} ]; do sleep 0.02; done\ncat {answer}\n"
        );
        mapper_needs::write_program(&between.worker, &script);
        between
    }

    /// Waits for OpenSM's question, and has it answered with the subnet changed.
    fn answer(&self, change: Change) {
        let end = Instant::now() + Duration::from_secs(300);
        while !self.question.exists() {
            assert!(Instant::now() < end, "OpenSM asks nothing");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut request: Request = receive(&mut File::open(&self.question).unwrap()).unwrap();
        change(&mut request);
        let changed = self.question.with_extension("changed");
        send(&mut File::create(&changed).unwrap(), &request).unwrap();
        let mut engine = Command::new(&Built::get().engine);
        let output = engine.stdin(File::open(&changed).unwrap()).output().unwrap();
        let part = self.answer.with_extension("part");
        std::fs::write(&part, output.stdout).unwrap();
        std::fs::rename(&part, &self.answer).unwrap();
    }
}

#[test]
fn a_subnet_that_cannot_be_read_is_named_in_opensms_log_and_declined() {
    if !can_run() {
        return;
    }
    let changes: [(Change, &str); 3] = [
        (|it| it.switches[1].ports = 0, " has no ports"),
        (
            |it| it.switches[0].links[0].peer = 0x99,
            "of the node with GUID 0x0000000000000099, which is not there",
        ),
        (|it| it.adapters[0].lid = 0, " has LID 0; expected 1 to 49151"),
    ];
    for (change, why) in changes {
        let mut simulation = simulation("clos:hosts=16,ports=8");
        let between = Between::new(&simulation);
        let options = format!("seconds=600;worker={}", text(&between.worker));
        let log = std::thread::scope(|threads| {
            threads.spawn(|| between.answer(change));
            OpenSm::start(&mut simulation, &options, "routing_engine mapper,updn").log()
        });
        let named = log
            .lines()
            .any(|line| line.contains("mapper: the subnet cannot be routed: ") && line.contains(why));
        assert!(named, "no `{why}` in:\n{log}");
        assert!(log.contains("updn tables configured on all switches"), "{log}");
    }
}

#[test]
fn options_that_are_wrong_are_told_and_leave_opensm_its_other_engines() {
    if !can_run() {
        return;
    }
    let mut simulation = simulation("clos:hosts=16,ports=8");
    let opensm = OpenSm::start(&mut simulation, "engine=ftree", "routing_engine mapper,updn");
    let log = opensm.log();
    assert!(log.contains("mapper: event_plugin_options: `engine=ftree"), "{log}");
    assert!(log.contains("updn tables configured on all switches"), "{log}");
}

#[test]
fn hosts_may_have_several_addresses() {
    if !can_run() {
        return;
    }
    let mut simulation = simulation("clos:hosts=16,ports=8");
    let opensm = OpenSm::start(&mut simulation, "engines=updn", "routing_engine mapper\nlmc 2");
    assert!(opensm.log().contains("mapper: updn serves, 1 layer"), "{}", opensm.log());
    opensm.assert_proved(&["--lmc", "2"]);
}

#[test]
fn the_best_engine_serves_3456_hosts_and_keeps_entries_when_a_cable_is_cut() {
    if !can_run() {
        return;
    }
    let mut simulation = simulation("xgft:h=3;m=12,12,24;w=1,12,12");
    let mut opensm = OpenSm::start(&mut simulation, "engines=best", "routing_engine mapper");
    let log = opensm.log();
    assert!(log.contains("mapper: ftree has the best effective bisection of"), "{log}");
    assert!(log.contains("mapper: ftree serves, 1 layer: every pair has a route"), "{log}");
    let (fabric, subnet) = opensm.assert_proved(&[]);
    assert_eq!((fabric.map.hosts.len(), fabric.map.xbars.len()), (3456, 720));

    let entries = subnet.topology.xbar_count() * subnet.destinations.slot_count();
    let end = fabric.map.cables[fabric.map.cables.len() / 2].a;
    let name = &fabric.xbars[end.xbar as usize].description;
    let changed = opensm.after(&format!("Unlink \"{name}\"[{}]", end.port));
    assert!(changed > 0 && changed < entries / 100, "{changed} of {entries}");
    let (cut, _) = opensm.assert_proved(&[]);
    assert_eq!(cut.map.cables.len(), fabric.map.cables.len() - 1);
}
