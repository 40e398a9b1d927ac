//! Tests that ibsim takes our files for fabrics, and that we can read what `ibnetdiscover` finds there.

use mapper::formats;
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
