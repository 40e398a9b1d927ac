//! Tests of I/O nodes with the engine ftree, whose routes may need as many steps the wrong way as OpenSM's.

use mapper_formats::{self as formats, lfts};
use mapper_proto::Mac;
use mapper_proto::map::{Fabric, PortRef};
use mapper_routing::engines::{Engine, Proof, Settings, select};
use mapper_routing::tables::Layers;
use mapper_routing::{ProofRules, Subnet, prove_tables};

use crate::exact::served;
use crate::peers::{Simulation, are_there, text};

/// The roots of [`tree`].
const ROOTS: std::ops::Range<usize> = 15..19;
/// The xbars of [`tree`] that have I/O nodes: three roots, which no way up and then down joins, and an xbar
/// of the middle rank.
const IO_AT: [u32; 4] = [15, 16, 17, 9];

/// A tree of three ranks with I/O nodes above its leaves, which are listed after the other hosts. Its leaves have two hosts
/// each: beside three, single hosts above them would count as service adapters, which are joined without such steps.
fn tree() -> Fabric {
    let mut fabric = formats::resolve("xgft:h=3;m=2,3,3;w=1,2,2;ports=12").unwrap();
    for (xbar, place) in IO_AT.into_iter().zip(0..) {
        let (mut host, mut label) = (fabric.map.hosts[0], fabric.hosts[0].clone());
        // ibsim counts a host's ports up from its GUID.
        let guid = 0x200_0000_0100 + 4 * place;
        host.mac = Mac::from_u64(guid);
        host.at = Some(PortRef { xbar, port: 12 });
        label.name = format!("io{}", place + 1);
        (label.guid, label.port_guid) = (Some(guid), Some(guid));
        fabric.map.hosts.push(host);
        fabric.hosts.push(label);
    }
    fabric
}

#[test]
fn as_many_steps_the_wrong_way_serve_as_with_opensm() {
    if !are_there() {
        return;
    }
    let fabric = tree();
    let simulation = Simulation::start(&fabric);
    let roots = Subnet::new(&fabric, None).unwrap().xbar_guids[ROOTS].to_vec();
    let hosts = fabric.hosts[fabric.hosts.len() - IO_AT.len()..].iter();
    let io_ports: Vec<u64> = hosts.map(|label| label.guid.unwrap() + 1).collect();
    let lines = |guids: &[u64]| guids.iter().map(|guid| format!("{guid:#x}\n")).collect::<String>();
    let root_file = simulation.write("roots", &lines(&roots));
    let io_file = simulation.write("io", &lines(&io_ports));
    let mut served_with = Vec::new();
    for max_reverse_hops in 0..=3 {
        let most = max_reverse_hops.to_string();
        let files = ["-R", "ftree", "-a", text(&root_file), "-G", text(&io_file), "-H", &most];
        assert_eq!(served(&simulation.opensm(&files)), "ftree");
        let found = simulation.found();
        let subnet = Subnet::new(&found, None).unwrap();
        let theirs = lfts::read(&simulation.file("opensm-lfts.dump"), &found, &subnet).unwrap().found;
        let rules = ProofRules { max_hops: Settings::MAX_HOPS, xbar_destinations: false };
        let theirs = prove_tables(&subnet, &theirs, &Layers::single(), &rules);
        let settings = Settings {
            roots: Some(roots.iter().map(|&guid| subnet.xbar_by_guid(guid).unwrap()).collect()),
            io_nodes: io_ports.iter().map(|&guid| subnet.host_by_guid(guid).unwrap()).collect(),
            max_reverse_hops,
            ..Settings::default()
        };
        let ours = select(&subnet, &[Engine::Ftree], &settings, Proof::Required);
        assert_eq!(ours.is_ok(), theirs.reachable, "{most} steps: {theirs}; {ours:?}");
        if let Ok(ours) = ours {
            // OpenSM's steps the wrong way close circles of channels here, while ours are proved to close
            // none. So only the lengths are compared.
            assert_eq!(ours.proof.max_hops, theirs.max_hops, "{most} steps");
            served_with.push(max_reverse_hops);
        }
    }
    assert_eq!(served_with, [2, 3]);
}
