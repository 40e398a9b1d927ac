//! Tests that `ibdmchk` finds every path and no credit loop in the tables that switches hold, which an agent wrote there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use mapper_formats as formats;
use mapper_proto::map::Fabric;

use crate::managed::{Running, bring_up, links, wait_for};
use crate::peers::{Simulation, are_there, text};

/// An end of a cable, as `ibnetdiscover -p` lists it: kind, LID, port and GUID of the node.
type End<'a> = [&'a str; 4];

/// The cables in such a list, each as often as it has ends at switches or hosts.
fn cables(list: &str) -> Vec<(End<'_>, End<'_>)> {
    let cable = |line| {
        let words: Vec<&str> = str::split_ascii_whitespace(line).collect();
        match words[..] {
            [a, b, c, d, _, _, "-", e, f, g, h, ..] => Some(([a, b, c, d], [e, f, g, h])),
            _ => None,
        }
    };
    list.lines().filter_map(cable).collect()
}

/// Writes the subnet in the format of OpenSM's list of it.
fn write_subnet(simulation: &Simulation, cables: &[(End<'_>, End<'_>)]) {
    let port_of = |end: &End<'_>| end[2].parse::<u8>().unwrap();
    let mut ports: BTreeMap<&str, u8> = BTreeMap::new();
    for end in cables.iter().flat_map(|(from, to)| [from, to]) {
        let most = ports.entry(end[3]).or_default();
        *most = port_of(end).max(*most);
    }
    let shown = |end: &End<'_>| {
        let [kind, lid, _, guid] = end;
        let digits = guid.trim_start_matches("0x");
        let (lid, port) = (lid.parse::<u16>().unwrap(), port_of(end));
        format!(
            "{{ {kind} Ports:{:02X} SystemGUID:{digits} NodeGUID:{digits} PortGUID:{digits} VenID:00000000 DevID:0000 \
             Rev:00000000 {{{digits}}} LID:{lid:04X} PN:{port:02X} }}",
            ports[guid]
        )
    };
    let mut text = String::new();
    for (from, to) in cables {
        writeln!(text, "{} {} PHY=4x LOG=ACT SPD=2.5", shown(from), shown(to)).unwrap();
    }
    simulation.write("opensm-subnet.lst", &text);
    simulation.write("opensm.mcfdbs", "");
}

/// Writes the tables that `ibroute` reads out of the switches in the format of OpenSM's dump of them. It asks from this host:
/// from a leaf whose cable to a spine is cut, no way up and down leads to that spine's own LID, though ways lead to all hosts.
fn write_tables(simulation: &Simulation, at: &str, cables: &[(End<'_>, End<'_>)]) {
    let ends = cables.iter().flat_map(|(from, to)| [from, to]);
    let switches: BTreeMap<&str, &str> =
        ends.filter(|end| end[0] == "SW").map(|&[_, lid, _, guid]| (guid, lid)).collect();
    let mut text = String::new();
    for (guid, lid) in switches {
        writeln!(text, "dump_ucast_routes: Switch {guid}\nLID    : Port : Hops : Optimal").unwrap();
        let mut ibroute = simulation.command("ibroute");
        let read = ibroute.args(["-t", "5000", "-n", lid]).env("SIM_HOST", at).output().unwrap();
        assert!(read.status.success(), "{read:?}");
        for line in String::from_utf8_lossy(&read.stdout).lines() {
            let mut words = line.split_ascii_whitespace();
            if let (Some(lid), Some(port)) =
                (words.next().filter(|word| word.starts_with("0x")), words.next())
            {
                writeln!(text, "{lid} : {port} : 00   : yes").unwrap();
            }
        }
        text.push('\n');
    }
    simulation.write("opensm.fdbs", &text);
}

/// Writes the service level of each pair of hosts, as the subnet's administration tells it, in the format of OpenSM's dump of them.
fn write_levels(simulation: &Simulation, cables: &[(End<'_>, End<'_>)]) -> PathBuf {
    let ends = cables.iter().flat_map(|(from, to)| [from, to]);
    let hosts: BTreeMap<&str, &str> =
        ends.filter(|end| end[0] == "CA").map(|&[_, lid, _, guid]| (guid, lid)).collect();
    let mut text = String::new();
    for (guid, from) in &hosts {
        for to in hosts.values().filter(|to| to != &from) {
            let answer = simulation.run("saquery", &["-p", "--src-to-dst", &format!("{from}:{to}")]);
            let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
            let level = answer.lines().find_map(|line| line.trim().strip_prefix("sl.."));
            let level = level.unwrap_or_else(|| panic!("no level from {from} to {to}: {answer}"));
            let level = level.trim_start_matches('.');
            let hex = level.strip_prefix("0x").map(|digits| u8::from_str_radix(digits, 16));
            let level = hex.unwrap_or_else(|| level.parse()).unwrap();
            writeln!(text, "{guid} {to} {level}").unwrap();
        }
    }
    simulation.write("levels", &text)
}

/// Writes the lanes of all service levels that `smpquery` reads out of the switches, a line for each port in and each port out.
fn write_lanes(simulation: &Simulation, cables: &[(End<'_>, End<'_>)]) -> PathBuf {
    let ends = cables.iter().flat_map(|(from, to)| [from, to]);
    let mut text = String::new();
    for [_, lid, port, guid] in ends.filter(|end| end[0] == "SW") {
        let told = simulation.run("smpquery", &["-t", "5000", "sl2vl", lid, port]);
        for line in String::from_utf8_lossy(&told.stdout).lines() {
            let Some((ports, lanes)) = line.split_once(": |") else { continue };
            let Some(into) = ports.strip_prefix("ports: in ").and_then(|rest| rest.split(',').next()) else {
                continue;
            };
            let lanes: Vec<u8> = lanes.split('|').filter_map(|lane| lane.trim().parse().ok()).collect();
            let pairs: Vec<String> =
                lanes.chunks(2).map(|pair| format!("0x{:x}{:x}", pair[0], pair[1])).collect();
            writeln!(text, "{guid} {} {port} {}", into.trim(), pairs.join(" ")).unwrap();
        }
    }
    simulation.write("lanes", &text)
}

/// Fails unless `ibdmchk` finds a path for each pair of hosts, and no credit loop.
fn assert_judged(simulation: &Simulation, fabric: &Fabric, what: &str) {
    let (hosts, last) = (fabric.hosts.len(), &fabric.hosts[fabric.hosts.len() - 1].name);
    let list = simulation.list_of_ports();
    let cables = cables(&list);
    write_subnet(simulation, &cables);
    write_tables(simulation, last, &cables);
    let said = simulation.ibdmchk(&[]);
    let paths = format!("-I- Scanned:{} CA to CA paths", hosts * (hosts - 1));
    assert!(said.contains(&paths), "{what}: expected `{paths}`:\n{said}");
    assert!(said.contains("-I- no credit loops found") && !said.contains("-E-"), "{what}: {said}");
}

/// Has an agent bring a fabric up, cuts a cable between xbars, and has it healed; `ibdmchk` judges both.
fn judge(spec: &str, more: &[&str]) {
    if !are_there() {
        return;
    }
    let fabric = formats::resolve(spec).unwrap();
    let mut simulation = Simulation::with_console(&fabric);
    let hosts = fabric.hosts.len();
    assert_eq!(bring_up(&simulation, more) as usize, hosts);
    assert_judged(&simulation, &fabric, "brought up");
    let end = fabric.map.cables[0].a;
    simulation.console(&format!("Unlink \"{}\"[{}]", fabric.xbars[end.xbar as usize].name, end.port));
    let left = fabric.map.cables.len() - 1;
    wait_for("the cable is cut", || simulation.found().map.cables.len() == left);
    assert_eq!(bring_up(&simulation, more) as usize, hosts);
    assert_judged(&simulation, &fabric, "after a cut");
}

#[test]
fn ibdmchk_finds_every_path_and_no_credit_loop_in_a_fat_tree_of_648_hosts() {
    judge("clos:hosts=648,ports=36", &[]);
}

#[test]
fn ibdmchk_finds_every_path_and_no_credit_loop_in_a_torus() {
    judge("torus:x=6,y=5,z=5,hosts=1", &["--max-layers", "1"]);
}

#[test]
fn ibdmchk_finds_every_path_and_no_credit_loop_in_a_random_fabric() {
    judge("random:xbars=16,ports=12,hosts=48,links=40,seed=3", &["--max-layers", "1"]);
}

#[test]
fn ibdmchk_finds_every_path_and_no_credit_loop_in_a_cluster_with_service_adapters() {
    judge("cluster:leaves=6,spines=4,hosts=40,service=every", &[]);
}

#[test]
fn ibdmchk_finds_no_credit_loop_by_the_levels_and_lanes_of_a_torus_in_layers() {
    if !are_there() || !mapper_needs::programs(&["saquery", "smpquery"]) {
        return;
    }
    let fabric = formats::resolve("torus:x=5,y=3,hosts=1").unwrap();
    let simulation = Simulation::with_console(&fabric);
    let ends = 2 * (fabric.map.cables.len() + fabric.hosts.len());
    let layers = ["--engine", "dfsssp", "--max-layers", "4"];
    let _agent = Running::agent(&simulation, &fabric.hosts[0].name, &layers);
    wait_for("all links are active", || links(&simulation) == (ends, 0));
    wait_for("paths are answered", || {
        let answer = simulation.run("saquery", &["-p", "--src-to-dst", "1:2"]);
        String::from_utf8_lossy(&answer.stdout).contains("PathRecord dump")
    });
    let list = simulation.list_of_ports();
    let cables = cables(&list);
    write_subnet(&simulation, &cables);
    write_tables(&simulation, &fabric.hosts[1].name, &cables);
    let alone = simulation.ibdmchk(&[]);
    assert!(!alone.contains("-I- no credit loops found"), "in one layer there are some: {alone}");
    let (levels, lanes) = (write_levels(&simulation, &cables), write_lanes(&simulation, &cables));
    let said = simulation.ibdmchk(&["-c", text(&levels), "-d", text(&lanes)]);
    assert!(said.contains("-I- no credit loops found") && !said.contains("-E-"), "{said}");
}
