//! Tests that our tables equal OpenSM's with its options, too.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mapper_formats::{self as formats, guid_files};
use mapper_proto::map::Fabric;
use mapper_routing::Subnet;
use mapper_routing::engines::{Engine, Settings};

use crate::dumps::{assert_same, entries, of_tables};
use crate::exact::{exact, served};
use crate::peers::{Simulation, are_there, text};

/// An option whose value is a file: OpenSM's name of the option, the text of the file, and the setting of
/// ours.
struct File {
    option: &'static str,
    text: String,
    set: fn(&mut Settings, &PathBuf, &Subnet),
}

/// Options whose values are no files.
#[derive(Default)]
struct More {
    lmc: u8,
    connect_roots: bool,
    port_shifting: bool,
}

/// Routes a fabric with options by an engine and by OpenSM's of that name.
fn compare(engine: Engine, spec: &str, files: impl Fn(&Subnet) -> Vec<File>, more: &More) {
    compare_on(engine, (spec, &formats::resolve(spec).unwrap()), files, more);
}

/// As [`compare`], on a given fabric, which failures call `name`.
fn compare_on(
    engine: Engine,
    (name, fabric): (&str, &Fabric),
    files: impl Fn(&Subnet) -> Vec<File>,
    more: &More,
) {
    if !are_there() {
        return;
    }
    let simulation = Simulation::start(fabric);
    let files = files(&Subnet::new(fabric, None).unwrap());
    let paths: Vec<PathBuf> = files.iter().map(|file| simulation.write(file.option, &file.text)).collect();
    let lmc = more.lmc.to_string();
    let mut arguments = vec!["-R", engine.name(), "-l", &lmc];
    for (file, path) in files.iter().zip(&paths) {
        arguments.extend([file.option, text(path)]);
    }
    arguments.extend(more.connect_roots.then_some("--connect_roots"));
    arguments.extend(more.port_shifting.then_some("--port-shifting"));
    let log = simulation.opensm(&arguments);
    assert_eq!(served(&log), engine.name());
    let found = simulation.found();
    let systems = |fabric: &Fabric| -> BTreeSet<Option<u64>> {
        fabric.xbars.iter().map(|label| label.system_guid).collect()
    };
    assert!(systems(fabric).len() <= 1 || systems(fabric) == systems(&found), "OpenSM sees the same systems");
    let subnet = Subnet::new(&found, Some(more.lmc)).unwrap();
    let (connect_roots, port_shifting) = (more.connect_roots, more.port_shifting);
    let mut settings = Settings { connect_roots, port_shifting, ..exact() };
    for (file, path) in files.iter().zip(&paths) {
        (file.set)(&mut settings, path, &subnet);
    }
    let ours = engine.compute(&subnet, &settings).unwrap();
    let theirs = entries(&simulation.read("opensm-lfts.dump"));
    assert_same(&of_tables(&subnet, &ours.tables), &theirs, &format!("{engine} on {name}"));
}

/// What a file lists, of which nothing may have been passed over.
fn all<T>(listed: Result<formats::Loaded<T>, formats::FormatError>) -> T {
    let listed = listed.unwrap();
    assert!(listed.notes.is_empty(), "{:?}", listed.notes);
    listed.found
}

/// The GUID of a host's port. ibsim counts the GUIDs of ports up from that of their node.
fn port_guid(subnet: &Subnet, host: u32) -> u64 {
    subnet.host_guids[host as usize] + 1
}

fn nothing(_: &Subnet) -> Vec<File> {
    Vec::new()
}

fn roots(xbars: &[u32]) -> impl Fn(&Subnet) -> Vec<File> {
    move |subnet| {
        let lines = xbars.iter().map(|&xbar| format!("{:#x}\n", subnet.xbar_guids[xbar as usize]));
        vec![File {
            option: "-a",
            text: lines.collect(),
            set: |settings, path, subnet| settings.roots = Some(all(guid_files::roots(path, subnet))),
        }]
    }
}

const TREE: &str = "xgft:h=2;m=5,6;w=1,4";
const GRID: &str = "mesh:x=4,y=3,hosts=2,ports=12";

#[test]
fn roots_by_name() {
    compare(Engine::Updn, "hypercube:d=3,hosts=2", roots(&[5]), &More::default());
    compare(
        Engine::Updn,
        "random:xbars=14,ports=12,hosts=40,links=26,seed=5",
        roots(&[3, 9]),
        &More::default(),
    );
}

#[test]
fn roots_that_are_connected() {
    let more = More { connect_roots: true, ..More::default() };
    compare(Engine::Updn, TREE, nothing, &more);
    compare(Engine::Updn, GRID, roots(&[0, 11]), &more);
    compare(Engine::Dnup, "xgft:h=3;m=3,3,4;w=1,2,3", nothing, &more);
}

#[test]
fn several_lids() {
    for lmc in [1, 2] {
        let more = More { lmc, ..More::default() };
        compare(Engine::Minhop, TREE, nothing, &more);
        compare(Engine::Minhop, "random:xbars=10,ports=16,hosts=30,links=40,seed=2", nothing, &more);
        compare(Engine::Dor, GRID, nothing, &more);
    }
}

#[test]
fn several_lids_where_systems_have_several_switches() {
    for (spec, spines, size) in [(TREE, 4, 2), ("xgft:h=2;m=4,6;w=1,6", 6, 3)] {
        let mut fabric = formats::resolve(spec).unwrap();
        let (leaves, xbars) = (fabric.xbars.len() - spines, (0..).zip(&mut fabric.xbars));
        for (place, label) in xbars {
            // A leaf is a system of its own.
            let system = if place < leaves { place } else { leaves + (place - leaves) / size };
            label.system_guid = Some(0x0500_0000_0000_0000 + system as u64);
        }
        for lmc in [1, 2] {
            let more = More { lmc, ..More::default() };
            compare_on(Engine::Minhop, (spec, &fabric), nothing, &more);
            compare_on(Engine::Updn, (spec, &fabric), nothing, &more);
        }
    }
}

#[test]
fn shifted_ports() {
    for lmc in [0, 2] {
        compare(Engine::Minhop, TREE, nothing, &More { lmc, port_shifting: true, ..More::default() });
    }
}

#[test]
fn destinations_in_a_given_order() {
    let files = |subnet: &Subnet| {
        let hosts = [17, 3, 22, 4].map(|host| port_guid(subnet, host));
        let guids = hosts.into_iter().chain([subnet.xbar_guids[7]]);
        vec![File {
            option: "-X",
            text: guids.map(|guid| format!("{guid:#x}\n")).collect(),
            set: |settings, path, subnet| settings.order_first = all(guid_files::routing_order(path, subnet)),
        }]
    };
    compare(Engine::Minhop, TREE, files, &More::default());
}

#[test]
fn ports_in_a_given_order() {
    let files = |subnet: &Subnet| {
        let lines = subnet.xbar_guids.iter().zip(0..).filter(|(_, xbar)| xbar % 3 != 2);
        vec![File {
            option: "-O",
            text: lines.map(|(guid, _)| format!("{guid:#x} 6 2 4\n")).collect(),
            set: |settings, path, subnet| settings.port_order = all(guid_files::port_order(path, subnet)),
        }]
    };
    compare(Engine::Dor, GRID, files, &More::default());
    compare(Engine::Minhop, GRID, files, &More { lmc: 1, ..More::default() });
}

#[test]
fn ports_that_do_not_count_and_weights() {
    let files = |subnet: &Subnet| {
        let [first, second] = [subnet.xbar_guids[0], subnet.xbar_guids[1]];
        vec![
            File {
                option: "-i",
                text: format!("{first:#x} 6\n{second:#x} 8\n"),
                set: |settings, path, subnet| {
                    settings.uncounted_ports = all(guid_files::uncounted_ports(path, subnet));
                },
            },
            File {
                option: "-w",
                text: format!("{first:#x} 7 3\n{second:#x} 6 2\n"),
                set: |settings, path, subnet| {
                    settings.hop_weights = all(guid_files::hop_weights(path, subnet));
                },
            },
        ]
    };
    compare(Engine::Minhop, TREE, files, &More::default());
}

#[test]
fn ids_instead_of_guids() {
    let files = |subnet: &Subnet| {
        let mut files = roots(&[4])(subnet);
        let ids = subnet.xbar_guids.iter().zip([9, 4, 7, 30, 2, 8]);
        files.push(File {
            option: "-m",
            text: ids.map(|(guid, id)| format!("{guid:#x} {id}\n")).collect(),
            set: |settings, path, subnet| settings.ids = all(guid_files::ids(path, subnet)),
        });
        files
    };
    compare(Engine::Updn, "torus:x=3,y=3,hosts=2,ports=8", files, &More::default());
}
