//! Tests that an agent at a port of InfiniBand shows its subnet: on its board, in metrics, as a map, and to the doctor.

use std::process::{Command, Output};

use mapper_formats as formats;
use mapper_ib::record::{Direction, Recorded};
use mapper_proto::map::Fabric;
use serde_json::Value;

use crate::managed::{Running, opensm_with, wait_for};
use crate::peers::{Simulation, are_there, text};

/// The program, with the simulator for the network and the run directory of its agents.
fn mapper(simulation: &Simulation, arguments: &[&str]) -> Output {
    let run = simulation.file("run");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mapper"));
    command.args(arguments).args(["--run-dir", text(&run)]).env("IBSIM_SOCKNAME", simulation.socket());
    command.output().unwrap()
}

/// The board of an agent, once it is configured.
fn board(simulation: &Simulation, unit: &str) -> Value {
    let arguments = ["board-info", "--unit", unit, "--wait", "60", "--format", "json"];
    let output = mapper(simulation, &arguments);
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["boards"][0].clone()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The checks of the doctor, as name, status and what was found.
fn checks(simulation: &Simulation, interface: &str) -> Vec<(String, String, String)> {
    let answer = mapper(simulation, &["doctor", "--interface", interface, "--format", "json"]);
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let word = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    let all = answer["checks"].as_array().unwrap().iter();
    all.map(|check| (word(check, "name"), word(check, "status"), word(check, "what"))).collect()
}

#[test]
fn agents_show_their_subnet_on_boards_in_metrics_as_a_map_and_to_the_doctor() {
    if !are_there() {
        return;
    }
    let fabric = formats::resolve("clos:hosts=16,ports=8").unwrap();
    let mut simulation = Simulation::with_console(&fabric);
    let unmanaged = checks(&simulation, "ibsim:h1");
    assert!(unmanaged.iter().any(|(name, status, what)| {
        (name.as_str(), status.as_str()) == ("port", "warning") && what.contains("no subnet manager")
    }));
    let metrics = simulation.file("metrics.prom");
    let record = simulation.file("record");
    let files = ["--metrics-file", text(&metrics), "--record", text(&record)];
    let more = [&["--level", "2", "--unit", "3"], &files[..]].concat();
    let _master = Running::agent(&simulation, "h1", &more);
    assert_board_of_a_master(&simulation);
    assert_routes(&simulation);
    assert_record(&simulation.read("record"));
    assert_map(&simulation);
    let _standby = Running::agent(&simulation, "h2", &["--level", "1", "--unit", "4"]);
    assert_two_managers(&simulation);
    assert_what_is_gone_is_named(&mut simulation, &fabric);
    // The file is written every 15 seconds, the first time at the start.
    let text = simulation.read("metrics.prom");
    assert!(text.contains("mapper_subnet_role{interface=\"ibsim:h1\""), "{text}");
}

fn assert_board_of_a_master(simulation: &Simulation) {
    let master = board(simulation, "3");
    assert_eq!(
        [&master["interface"], &master["state"], &master["subnet"]["role"]],
        ["ibsim:h1", "configured", "master"]
    );
    assert_eq!(
        [&master["hosts"], &master["xbars"], &master["cables"]].map(Value::as_u64),
        [16, 6, 16].map(Some)
    );
    assert_eq!(master["leader"], master["mac"]);
    let warnings = master["warnings"].to_string();
    assert!(warnings.contains("all 6 switches have no key of management"), "{warnings}");
    let shown = told(&mapper(simulation, &["board-info", "--unit", "3"]));
    assert!(shown.contains("Network is fully configured.\n  warning: all 6 switches"), "{shown}");
    assert!(shown.contains("\n  master of its subnet; port 0x"), "{shown}");
}

/// The routes lead to each host, over one hop within the leaf and three beyond.
fn assert_routes(simulation: &Simulation) {
    let routes = mapper(simulation, &["board-info", "--unit", "3", "--routes", "--format", "json"]);
    let routes: Value = serde_json::from_slice(&routes.stdout).unwrap();
    let ways = routes["boards"][0]["by_lid"].as_array().unwrap();
    let hops = |way: &Value| way["hops"].as_array().map(Vec::len);
    let near = ways.iter().filter(|way| hops(way) == Some(1)).count();
    let far = ways.iter().filter(|way| hops(way) == Some(3)).count();
    assert_eq!((near, far), (3, 12), "to three hosts of the own leaf, and to those of the others: {ways:?}");
    let shown = told(&mapper(simulation, &["board-info", "--unit", "3", "--routes"]));
    assert!(shown.contains(" at LID ") && shown.contains(", service level 0, by "), "{shown}");
}

/// The record holds what was sent and received, with what answers carry.
fn assert_record(recorded: &str) {
    let lines: Vec<Recorded> = recorded.lines().map(|line| line.parse().unwrap()).collect();
    let counts = [Direction::Sent, Direction::Received]
        .map(|direction| lines.iter().filter(|line| line.direction == direction).count());
    assert!(counts.iter().all(|&count| count > 100), "{counts:?}");
    assert!(recorded.contains(" Set LinearForwardingTable 0x0 along 0,1 (transaction "));
    assert!(recorded.contains(": adapter 0x"), "what answers carry is told");
}

/// The agent's map is what OpenSM's tools find.
fn assert_map(simulation: &Simulation) {
    let held = told(&mapper(simulation, &["topology", "discover", "--unit", "3"]));
    let held = formats::parse("the map of the agent", &held).unwrap();
    let expected = simulation.write("held.net", &formats::write(&held, formats::FileFormat::Ibnetdiscover));
    let found = simulation.write("found.net", &told(&simulation.run("ibnetdiscover", &["-o", "64"])));
    let difference = Command::new(env!("CARGO_BIN_EXE_mapper"))
        .args(["topology", "diff", text(&expected), text(&found)])
        .output()
        .unwrap();
    assert_eq!(told(&difference), "no difference\n");
    let by_lid = |fabric: &Fabric| {
        let mut lids: Vec<_> = fabric.hosts.iter().map(|host| (host.guid, host.lid)).collect();
        lids.sort_unstable();
        lids
    };
    assert_eq!(by_lid(&held), by_lid(&simulation.found()), "with the LIDs that were given");
}

/// Master and standby know of each other, and share the watch over the switches.
fn assert_two_managers(simulation: &Simulation) {
    let master = board(simulation, "3");
    let standby = board(simulation, "4");
    assert_eq!([&standby["subnet"]["role"], &standby["leader"]], [&Value::from("standby"), &master["mac"]]);
    let shown = told(&mapper(simulation, &["board-info", "--unit", "4"]));
    assert!(shown.contains("\n  stands by for h1 (0x"), "{shown}");
    wait_for("the master knows of the other", || {
        let managers = board(simulation, "3")["subnet"]["managers"].clone();
        managers[0]["name"] == "h2" && managers[0]["state"] == "standby"
    });
    wait_for("both look at three of six switches each, by LID through the tables in force", || {
        let [master, standby] = ["3", "4"].map(|unit| board(simulation, unit)["subnet"].clone());
        let shares = [&master["share"], &master["managers"][0]["share"], &standby["share"]];
        shares.map(serde_json::Value::as_u64) == [3; 3].map(Some) && standby["version"] == master["version"]
    });
}

/// Takes out a cable between switches and one of a host. The board and the doctor name them.
fn assert_what_is_gone_is_named(simulation: &mut Simulation, fabric: &Fabric) {
    let (leaf, host) = (fabric.xbars[0].name.clone(), fabric.hosts[5].name.clone());
    simulation.console(&format!("Unlink \"{leaf}\"[5]"));
    simulation.console(&format!("Unlink \"{host}\"[1]"));
    wait_for("what is gone is named", || {
        let board = board(simulation, "3");
        let away = board["unreachable"][0]["why"].to_string();
        board["gone_cables"].as_array().unwrap().len() == 1 && away.contains(&host)
    });
    let found = checks(simulation, "ibsim:h1");
    let statuses = |name: &str| {
        let of_name = found.iter().filter(|(of, _, _)| of == name);
        of_name.map(|(_, status, _)| status.as_str()).collect::<Vec<_>>()
    };
    assert_eq!([statuses("network"), statuses("masters")], [vec!["ok"], vec![]], "{found:?}");
    assert_eq!([statuses("key of management"), statuses("gone")], [["warning"], ["warning"]], "{found:?}");
}

#[test]
fn nodes_that_do_not_answer_are_blamed_by_name_and_a_second_master_is_told_of() {
    if !are_there() {
        return;
    }
    let fabric = formats::resolve("clos:hosts=16,ports=8").unwrap();
    let mut simulation = Simulation::with_console(&fabric);
    let silent = fabric.hosts[7].name.clone();
    simulation.console(&format!("Error \"{silent}\"[1] 100"));
    let _ours = Running::agent_that_waits(&simulation, "h1", "500", &["--level", "14"]);
    wait_for("the silent host is blamed by the port that leads to it", || {
        let blamed = board(&simulation, "0")["subnet"]["blamed"].to_string();
        blamed.contains("what is behind") && blamed.contains("does not answer (NodeInfo)")
    });
    // It takes no notice of managers with another key than its own.
    let _theirs = opensm_with(&simulation, "h2", "1", "sm_key 0x2\n");
    wait_for("both masters are named", || {
        let warnings = board(&simulation, "0")["warnings"].to_string();
        warnings.contains("the subnet has 2 masters: this agent") && warnings.contains("h2 (0x")
    });
    let found = checks(&simulation, "ibsim:h1");
    assert!(found.iter().any(|(name, status, _)| (name.as_str(), status.as_str()) == ("masters", "failed")));
}
