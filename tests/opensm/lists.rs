//! ftree with a list of compute nodes or of I/O nodes and no roots, beside OpenSM's.

use std::collections::BTreeSet;

use mapper_formats::{self as formats, lfts};
use mapper_routing::engines::{Engine, Proof, Settings, select};
use mapper_routing::{Quality, Subnet, TableRoutes, Tables};

use crate::exact::served;
use crate::peers::{Simulation, are_there, text};

/// Full trees of two and of three ranks.
const TREES: [&str; 3] = ["xgft:h=2;m=4,6;w=1,4", "xgft:h=2;m=6,4;w=1,3", "xgft:h=3;m=3,3,4;w=1,3,3"];

/// Which hosts a list names, by the number of the host's leaf, its place there, and how many leaves there are.
type Pattern = (&'static str, fn(u32, u32, u32) -> bool);

const PATTERNS: [Pattern; 8] = [
    ("all but those of the last two leaves", |leaf, _, leaves| leaf + 2 < leaves),
    ("those of the first leaf and of the last", |leaf, _, leaves| leaf == 0 || leaf + 1 == leaves),
    ("those of every other leaf", |leaf, _, _| leaf % 2 == 0),
    ("the first of each leaf", |_, place, _| place == 0),
    ("all but the first of each leaf", |_, place, _| place > 0),
    ("all but the first of the first leaf", |leaf, place, _| leaf + place > 0),
    ("all", |_, _, _| true),
    ("one", |leaf, place, _| leaf + place == 0),
];

#[derive(Clone, Copy, Debug)]
enum List {
    Compute,
    Io,
}

/// Has both serve a tree with a list, and compares the busiest cable and the bandwidth that all hosts get; the latter
/// as closely as a sample of matchings tells it: in a full tree two tables that are balanced alike differ by chance.
fn at_least_as_good(spec: &str, list: List, (what, names): Pattern) {
    let simulation = Simulation::start(&formats::resolve(spec).unwrap());
    simulation.opensm(&["-R", "minhop"]);
    let subnet = Subnet::new(&simulation.found(), None).unwrap();
    let leaves: Vec<u32> =
        (0..subnet.topology.xbar_count() as u32).filter(|&xbar| subnet.is_leaf(xbar)).collect();
    let mut named = BTreeSet::new();
    for (leaf, &xbar) in (0..).zip(&leaves) {
        let hosts = (0..).zip(subnet.topology.hosts_of(xbar));
        named.extend(
            hosts.filter(|&(place, _)| names(leaf, place, leaves.len() as u32)).map(|(_, &host)| host),
        );
    }
    let lines: String =
        named.iter().map(|&host| format!("{:#x}\n", subnet.host_port_guids[host as usize])).collect();
    let file = simulation.write("list", &lines);
    let option = match list {
        List::Compute => "-u",
        List::Io => "-G",
    };
    let log = simulation.opensm(&["-R", "ftree", option, text(&file)]);
    let measured = |tables: &Tables| Quality::measure(&TableRoutes::new(&subnet, tables), 1);
    let theirs = (served(&log) == "ftree").then(|| {
        let dump = simulation.file("opensm-lfts.dump");
        measured(&lfts::read(&dump, &simulation.found(), &subnet).unwrap().found)
    });
    let settings = match list {
        List::Compute => Settings { compute_nodes: Some(named), ..Settings::default() },
        List::Io => Settings { io_nodes: named, ..Settings::default() },
    };
    let ours =
        measured(&select(&subnet, &[Engine::Ftree], &settings, Proof::Required).unwrap().routing.tables);
    let Some(theirs) = theirs else { return };
    let figures = |quality: &Quality| (quality.edge_forwarding_index, quality.effective_bisection);
    let said =
        format!("{spec}, {list:?} {what}: {:.3?} theirs, {:.3?} ours", figures(&theirs), figures(&ours));
    assert!(ours.edge_forwarding_index <= theirs.edge_forwarding_index, "{said}");
    let error = ours.effective_bisection_error.hypot(theirs.effective_bisection_error);
    let least = theirs.effective_bisection - 3.0 * error;
    assert!(ours.effective_bisection >= least, "{said}");
}

#[test]
fn a_full_tree_is_served_as_well_whatever_a_list_names() {
    if !are_there() {
        return;
    }
    for spec in TREES {
        for pattern in PATTERNS {
            at_least_as_good(spec, List::Compute, pattern);
            at_least_as_good(spec, List::Io, pattern);
        }
    }
}
