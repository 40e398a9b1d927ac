//! Tests that programs that ask the ACM service of a machine are told the paths of a subnet: by an agent that is master, by one
//! that stands by, and by one beside OpenSM. rdma-core's `ib_acme` asks, and `saquery` judges.

use std::process::{Child, Command, Stdio};

use mapper_formats as formats;

use crate::managed::{Running, opensm, wait_for};
use crate::peers::{Simulation, are_there};

/// The service of the machine on which all agents of a simulation run. It ends when this is dropped.
struct Service(Child);

impl Service {
    fn start(simulation: &Simulation) -> Self {
        let mut serve = Command::new(env!("CARGO_BIN_EXE_mapper"));
        serve.args(["acm", "serve", "--run-dir"]).arg(simulation.file("run"));
        serve.arg("--socket").arg(simulation.file("acm"));
        Self(serve.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only if the service has ended by itself.
        let _ended = (self.0.kill(), self.0.wait());
    }
}

/// What `ib_acme` is told, which is verified, too; `None` if it is told nothing.
fn told(simulation: &Simulation, words: &[&str]) -> Option<String> {
    let output = Command::new("ib_acme").args(words).arg("-v").arg("-S").arg(simulation.file("acm")).output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success() && text.contains("SA verification: success")).then_some(text)
}

/// A number that `ib_acme` or `saquery` prints.
fn number<'a>(printed: &'a str, name: &str) -> u32 {
    let of_name = |line: &'a str| line.trim().strip_prefix(name).filter(|rest| rest.starts_with(['.', ':']));
    let line = printed.lines().find_map(of_name);
    let line = line.unwrap_or_else(|| panic!("no {name} in {printed}"));
    let text = line.trim_start_matches(['.', ':', ' ']).split(' ').next().unwrap();
    let hex = text.strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16));
    hex.unwrap_or_else(|| text.parse()).unwrap()
}

/// The LIDs, the level, the MTU and the rate that a program printed of a path; of the codes of MTU and rate both tools print
/// the number.
fn path(printed: &str, names: [&str; 5]) -> [u32; 5] {
    names.map(|name| number(printed, name))
}

/// Fails unless `ib_acme` is told of a path from one host to another what `saquery` is told of it.
fn assert_judged(simulation: &Simulation, from: &str, to: &str) {
    let printed = told(simulation, &["-f", "n", "-s", from, "-d", to]);
    let printed = printed.unwrap_or_else(|| panic!("no path from {from} to {to}"));
    let ours = path(&printed, ["slid", "dlid", "sl", "mtu", "rate"]);
    let [slid, dlid] = [ours[0].to_string(), ours[1].to_string()];
    let output = simulation
        .command("saquery")
        .args(["-p", "--slid", &slid, "--dlid", &dlid])
        .env("SIM_HOST", "h4")
        .output()
        .unwrap();
    let judged = String::from_utf8_lossy(&output.stdout).into_owned();
    // The selector of MTU and rate is in the upper two bits of the byte that is printed.
    let names = ["slid", "dlid", "sl", "mtu", "rate"];
    let theirs = path(&judged, names);
    let of_code = |number: u32| number & 0x3f;
    assert_eq!(ours[..3], theirs[..3], "{printed}\n{judged}");
    assert_eq!([ours[3], ours[4]], [of_code(theirs[3]), of_code(theirs[4])], "{printed}\n{judged}");
    // Questions by LID and by GID get the same path.
    let gid = printed.lines().find_map(|line| line.trim().strip_prefix("dgid: ")).unwrap();
    for words in [["-f", "l", "-s", &slid, "-d", &dlid], ["-f", "g", "-s", from, "-d", gid]] {
        let words = if words[1] == "g" { [&words[..2], &words[4..]].concat() } else { words.to_vec() };
        let again = told(simulation, &words).unwrap_or_else(|| panic!("no path for {words:?}"));
        assert_eq!(path(&again, names)[1..], ours[1..], "{again}");
    }
}

#[test]
fn ib_acme_is_told_the_paths_of_a_subnet_by_its_master_and_by_an_agent_that_stands_by() {
    if !are_there() || !mapper_needs::programs(&["ib_acme", "saquery"]) {
        return;
    }
    let fabric = formats::resolve("torus:x=3,y=3,z=3,hosts=1").unwrap();
    let mut simulation = Simulation::with_console(&fabric);
    let layers = ["--engine", "dfsssp", "--max-layers", "4"];
    let _master = Running::agent(&simulation, "h1", &[&["--level", "2"], &layers[..]].concat());
    let _service = Service::start(&simulation);
    let standby = ["--level", "1", "--unit", "1"];
    let _standby = Running::agent(&simulation, "h2", &[&standby[..], &layers[..]].concat());
    for from in ["h1", "h2"] {
        wait_for("the first path is told", || {
            told(&simulation, &["-f", "n", "-s", from, "-d", "h27"]).is_some()
        });
        for to in ["h2", "h5", "h14", "h27"] {
            assert_judged(&simulation, from, to);
        }
        assert_eq!(told(&simulation, &["-f", "n", "-s", from, "-d", "nobody"]), None);
    }
    simulation.console("Unlink \"h14\"[1]");
    for from in ["h1", "h2"] {
        wait_for("a host that is cut off has no path", || {
            told(&simulation, &["-f", "n", "-s", from, "-d", "h14"]).is_none()
        });
    }
    simulation.console("ReLink \"h14\"[1]");
    for from in ["h1", "h2"] {
        wait_for("it has one again", || told(&simulation, &["-f", "n", "-s", from, "-d", "h14"]).is_some());
        assert_judged(&simulation, from, "h14");
    }
}

#[test]
fn ib_acme_is_told_the_paths_of_a_subnet_that_opensm_manages() {
    if !are_there() || !mapper_needs::programs(&["ib_acme", "saquery"]) {
        return;
    }
    let fabric = formats::resolve("clos:hosts=8,ports=4").unwrap();
    let simulation = Simulation::start(&fabric);
    let _opensm = opensm(&simulation, "h1", "5");
    let _service = Service::start(&simulation);
    let _ours = Running::agent(&simulation, "h2", &["--level", "0"]);
    wait_for("the first path is told", || told(&simulation, &["-f", "n", "-s", "h2", "-d", "h8"]).is_some());
    for to in ["h2", "h3", "h8"] {
        assert_judged(&simulation, "h2", to);
    }
}
