//! Tests that ibsim takes our files for fabrics, and that we can read what `ibnetdiscover` finds there.

use mapper_formats as formats;
use mapper_proto::map::{Fabric, PortRef};

use crate::peers::{Simulation, are_there};

/// What is cabled to what. Names, ports and GUIDs may be another's.
fn shape(fabric: &Fabric) -> (usize, usize, Vec<String>) {
    let xbar = |index: u32| fabric.xbars[index as usize].description.clone();
    let hosts = fabric.map.hosts.iter().zip(&fabric.hosts);
    let hosts = hosts.filter_map(|(host, label)| {
        let at = host.at?;
        Some(format!("{} - {}:{}", label.description, xbar(at.xbar), at.port))
    });
    let cables = fabric.map.cables.iter().map(|cable| {
        let end = |end: PortRef| format!("{}:{}", xbar(end.xbar), end.port);
        let mut ends = [end(cable.a), end(cable.b)];
        ends.sort_unstable();
        ends.join(" - ")
    });
    let mut all: Vec<_> = hosts.chain(cables).collect();
    all.sort_unstable();
    (fabric.map.hosts.len(), fabric.map.xbars.len(), all)
}

#[test]
fn ibsim_simulates_what_we_write_and_ibnetdiscover_finds_it() {
    if !are_there() {
        return;
    }
    let fabric = formats::resolve("now:subclusters=1").unwrap();
    let back = Simulation::start(&fabric).found();
    assert_eq!(shape(&back), shape(&fabric));
    let macs = |fabric: &Fabric| {
        let mut macs: Vec<_> = fabric.map.hosts.iter().map(|host| host.mac).collect();
        macs.sort_unstable();
        macs
    };
    assert_eq!(macs(&back), macs(&fabric), "GUIDs are as written");
}

#[test]
fn lists_of_opensm_and_of_ibnetdiscover_tell_of_the_same_fabric() {
    if !are_there() {
        return;
    }
    let simulation = Simulation::start(&formats::resolve("now:subclusters=1").unwrap());
    simulation.opensm(&["-R", "minhop"]);
    let found = simulation.found();
    assert!(found.link_speeds.values().all(|speed| speed.to_string() == "4xSDR"), "ibsim's cables");
    let by_opensm = formats::parse("opensm-subnet.lst", &simulation.read("opensm-subnet.lst")).unwrap();
    let by_ports = formats::parse("ibnetdiscover -p", &simulation.list_of_ports()).unwrap();
    for listed in [&by_opensm, &by_ports] {
        assert_eq!(shape(listed), shape(&found));
        assert_eq!(listed.link_speeds.len(), found.link_speeds.len());
        let lids = |fabric: &Fabric| {
            let hosts = fabric.hosts.iter().map(|label| (label.description.clone(), label.lid));
            let xbars = fabric.xbars.iter().map(|label| (label.description.clone(), label.lid));
            let mut lids: Vec<_> = hosts.chain(xbars).collect();
            lids.sort_unstable();
            lids
        };
        assert_eq!(lids(listed), lids(&found));
    }
}
