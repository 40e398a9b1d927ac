//! Tests that hosts are answered by our agent as by OpenSM, which the clients of InfiniBand judge.

use mapper_formats as formats;
use mapper_proto::map::Fabric;

use crate::managed::{Running, opensm, opensm_with, wait_for};
use crate::peers::{Simulation, are_there};

/// What a program that runs at a host prints.
fn told(simulation: &Simulation, program: &str, arguments: &[&str]) -> String {
    let output = simulation.command(program).args(arguments).env("SIM_HOST", "h4").output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn fabric() -> Fabric {
    formats::resolve("clos:hosts=8,ports=4").unwrap()
}

fn wait_for_answers(simulation: &Simulation) {
    // A manager that is not master, or whose subnet is not up yet, tells no path.
    wait_for("hosts are answered", || {
        told(simulation, "saquery", &["-p", "--src-to-dst", "1:2"]).contains("PathRecord dump")
    });
}

/// Questions whose answers fit a datagram, as ibsim carries no others.
const QUESTIONS: [&[&str]; 7] = [
    &["-p", "--src-to-dst", "1:9"],
    &["-p", "--slid", "4", "--dlid", "9"],
    &["NR", "5"],
    &["PIR", "3/1"],
    &["LR", "4"],
    &["SR"],
    &["-g"],
];

fn answers(simulation: &Simulation) -> Vec<String> {
    wait_for_answers(simulation);
    QUESTIONS.iter().map(|question| without_local_port(&told(simulation, "saquery", question))).collect()
}

/// An answer without the port by which a question came in: it depends on the way by which a sweep found the port, and
/// that on which of several switches answered first.
fn without_local_port(answer: &str) -> String {
    let lines = answer.lines().filter(|line| !line.trim_start().starts_with("LocalPort"));
    lines.map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn hosts_are_told_of_paths_nodes_ports_and_groups_as_by_opensm() {
    if !are_there() || !mapper_needs::programs(&["saquery"]) {
        return;
    }
    let fabric = fabric();
    let simulation = Simulation::start(&fabric);
    let theirs = {
        let _opensm = opensm(&simulation, "h1", "1");
        answers(&simulation)
    };
    // LIDs stay when another manager takes over.
    let _ours = Running::agent(&simulation, "h2", &[]);
    wait_for("the agent is master", || {
        told(&simulation, "sminfo", &["-t", "5000"]).contains("priority 1 state 3")
    });
    let ours = answers(&simulation);
    for (question, (ours, theirs)) in QUESTIONS.iter().zip(ours.iter().zip(&theirs)) {
        assert_eq!(ours, theirs, "{question:?}");
    }
}

/// Questions for what ports and switches hold, of a switch with a LID.
fn questions_of_tables(switch: u16) -> Vec<Vec<String>> {
    let of_switch = ["GIR {}/0", "SWIR {}", "SL2VL {}/1/2", "SL2VL {}/0/1", "VLAR {}/1/1", "VLAR {}/2/3"];
    let of_host = ["GIR 1/0", "SL2VL 1", "VLAR 1/1/1", "VLAR 1/1/3", "--smkey 1 PKTR 1/1/0", "PKTR 1/1/0"];
    let of_switch = of_switch.iter().chain(&["--smkey 1 PKTR {}/1/0", "--smkey 1 PKTR {}/0/0"]);
    let of_switch = of_switch.map(|question| question.replace("{}", &switch.to_string()));
    let all = of_switch.chain(of_host.map(str::to_owned));
    all.map(|question| question.split(' ').map(str::to_owned).collect()).collect()
}

#[test]
fn what_ports_hold_is_told_as_by_opensm_and_tables_are_told_as_switches_hold_them() {
    if !are_there() || !mapper_needs::programs(&["saquery"]) {
        return;
    }
    let simulation = Simulation::start(&fabric());
    let ask = |question: &[String]| {
        told(&simulation, "saquery", &question.iter().map(String::as_str).collect::<Vec<_>>())
    };
    // OpenSM writes other lanes than ports begin with.
    let opensm = opensm_with(&simulation, "h1", "1", "qos TRUE\n");
    wait_for_answers(&simulation);
    let switch = simulation.found().xbars[0].lid.unwrap();
    let questions = questions_of_tables(switch);
    let theirs: Vec<String> = questions.iter().map(|question| ask(question)).collect();
    drop(opensm);
    let _ours = Running::agent(&simulation, "h2", &[]);
    wait_for("the agent is master", || {
        told(&simulation, "sminfo", &["-t", "5000"]).contains("priority 1 state 3")
    });
    wait_for_answers(&simulation);
    for (question, theirs) in questions.iter().zip(&theirs) {
        assert_eq!(&ask(question), theirs, "{question:?}");
        // Who has not the managers' key is told of no partitions.
        assert_eq!(theirs.contains("dump"), question[0] != "PKTR", "{question:?}: {theirs}");
    }
    let switch = switch.to_string();
    let routes = told(&simulation, "ibroute", &["-t", "5000", "-n", &switch]);
    let numbers = |line: &str| -> Option<(u32, u32)> {
        let (lid, port) = line.trim().strip_prefix("0x")?.split_once(' ')?;
        Some((u32::from_str_radix(lid, 16).ok()?, port.trim().split(' ').next()?.parse().ok()?))
    };
    let table = told(&simulation, "saquery", &["LFTR", &format!("{switch}/0")]);
    let lines: Vec<&str> = table.lines().collect();
    let mut entries = 0;
    for (lid, port) in routes.lines().filter_map(numbers) {
        assert!(lines.contains(&format!("\t\t{lid}\t{port}").as_str()), "{lid} {port}: {table}");
        entries += 1;
    }
    assert!(entries >= 8, "{routes}");
    // Its multicast table leads IPoIB's broadcast by some of its ports.
    let groups = told(&simulation, "saquery", &["MFTR", &format!("{switch}/0/0")]);
    assert!(groups.contains("MFT Record dump"), "{groups}");
}

#[test]
fn opensms_own_test_of_groups_finds_what_the_specification_demands() {
    if !are_there() || !mapper_needs::programs(&["saquery", "osmtest"]) {
        return;
    }
    // An answer that ibsim has no room for is lost, and osmtest, which has no time-outs there, waits for it for ever.
    let ends = |told: &String| told.contains("Status of MC Records in SA DB during the test flow");
    let run = |_| {
        let simulation = Simulation::start(&fabric());
        let _ours = Running::agent(&simulation, "h1", &[]);
        wait_for_answers(&simulation);
        told(&simulation, "timeout", &["20", "osmtest", "-f", "m", "-V"])
    };
    let told = (0..5).map(run).find(ends);
    let told = told.expect("one of five runs comes to its end");
    // Refusals are errors in its log even where it demands them (0224), and at the end it misses groups that it made and
    // does not take away itself (02FE, 0152), with OpenSM as well.
    let is_wrong = |line: &&str| {
        line.contains(" -> osmt_")
            && line.contains("ERR ")
            && !["ERR 0224", "ERR 02FE", "ERR 0152"].iter().any(|usual| line.contains(usual))
    };
    assert_eq!(told.lines().find(is_wrong), None);
}
