//! Tests of the names in refusals: nodes are called by their descriptions.

use mapper_formats::{self as formats, FileFormat};
use mapper_proto::map::{Cable, Fabric, PortRef};

use crate::route::command::{Folder, error, json};

/// A fabric whose xbars and hosts have descriptions.
fn described(spec: &str) -> Fabric {
    let mut fabric = formats::resolve(spec).unwrap();
    let xbars = (1..).zip(&mut fabric.xbars);
    xbars.for_each(|(n, label)| label.description = format!("rack {n}"));
    let hosts = (1..).zip(&mut fabric.hosts);
    hosts.for_each(|(n, label)| label.description = format!("node {n}"));
    fabric
}

fn write(folder: &Folder, name: &str, fabric: &Fabric) -> String {
    folder.write(name, &formats::write(fabric, FileFormat::Json))
}

#[test]
fn what_is_no_torus_is_told_by_the_cable_between_two_racks() {
    let folder = Folder::new();
    let mut fabric = described("mesh:x=4,y=4,hosts=1,ports=8");
    let end = |xbar| PortRef { xbar, port: 8 };
    fabric.map.cables.push(Cable::new(end(0), end(10)));
    let spec = write(&folder, "chord.json", &fabric);
    let why = error(&["route", &spec, "--engine", "torus", "--no-fallback"]);
    assert!(why.contains("the cable from rack 1 port 8 to rack 11 port 8 does not fit"), "{why}");
    let report = json(0, &["route", &spec, "--engine", "torus,lash"]);
    assert!(report["tried"].to_string().contains("from rack 1 port 8 to rack 11 port 8"), "{report}");
}

#[test]
fn two_nodes_with_one_lid_are_called_by_their_descriptions() {
    let folder = Folder::new();
    let mut fabric = described("ring:n=3");
    fabric.hosts[1].lid = Some(7);
    fabric.xbars[2].lid = Some(7);
    let spec = write(&folder, "lids.json", &fabric);
    let why = error(&["route", &spec, "--engine", "minhop"]);
    assert!(why.contains("node 2 and rack 3 both have LID 7"), "{why}");
}

#[test]
fn a_port_that_no_table_can_name_is_called_by_its_rack() {
    let folder = Folder::new();
    let mut fabric = described("ring:n=3");
    fabric.map.xbars[1].ports = 255;
    fabric.map.hosts[1].at = Some(PortRef { xbar: 1, port: 255 });
    let why = error(&["route", &write(&folder, "port.json", &fabric), "--engine", "minhop"]);
    assert!(why.contains("rack 2 port 255 is in use"), "{why}");
}

#[test]
fn a_cache_that_is_not_used_says_which_rack_is_to_blame() {
    let folder = Folder::new();
    let fabric = described("xgft:h=2;m=4,6;w=1,4");
    let cache = folder.path("cache");
    let why_not = |fabric: &Fabric| {
        let spec = write(&folder, "fabric.json", fabric);
        let report = json(0, &["route", &spec, "--engine", "ftree", "--cache", &cache]);
        report["cache"]["why_not"].as_str().unwrap_or("used").to_owned()
    };
    why_not(&fabric);
    assert_eq!(why_not(&fabric), "used");
    // The last xbar, which is a spine, is taken out.
    let mut less = fabric.clone();
    let last = less.map.xbars.len() as u32 - 1;
    less.map.xbars.pop();
    less.xbars.pop();
    less.map.cables.retain(|cable| cable.a.xbar != last && cable.b.xbar != last);
    assert_eq!(why_not(&less), format!("rack {} is gone, which is no leaf", last + 1));
    assert_eq!(why_not(&fabric), format!("rack {} is new", last + 1));
    let mut other = fabric.clone();
    other.map.hosts[2].at = None;
    other.map.xbars[0].ports += 1;
    let (was, is) = (fabric.map.xbars[0].ports, other.map.xbars[0].ports);
    assert_eq!(why_not(&other), format!("rack 1 had {was} ports and has {is}"));
    let cable = other.map.cables.remove(0);
    let gone = format!("the cable in rack {} port {} is gone", cable.a.xbar + 1, cable.a.port);
    let why = why_not(&other);
    assert!(why.starts_with(&gone), "{why}");
}
