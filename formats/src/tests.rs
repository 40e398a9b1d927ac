//! Tests of all formats together: what must survive a file, and what must be refused.

mod cables;
mod reading;
mod refusals;
mod round_trips;

use mapper_proto::Mac;
use mapper_proto::map::PortRef;

use super::*;

const SPECS: [&str; 9] = [
    "clos:hosts=8,ports=4",
    "clos:hosts=3,ports=8",
    "xgft:h=3;m=2,2,3;w=1,2,2",
    "torus:x=3,y=3,hosts=2",
    "mesh:x=2,y=2,z=2",
    "hypercube:d=3",
    "dragonfly:a=2,p=2,h=2",
    "now:subclusters=2",
    "ring:n=5,hosts=1",
];

fn generated(spec: &str) -> Fabric {
    mapper_fabric::generate(spec).unwrap()
}

fn read(text: &str) -> Result<Fabric, String> {
    parse("file", text).map_err(|error| error.to_string())
}

/// Names and ports of all cables, hosts' included, each xbar's ports moved.
fn wiring(fabric: &Fabric, shifts: &[i16]) -> Vec<(String, String)> {
    let end = |end: PortRef| {
        format!(
            "{}:{}",
            fabric.xbars[end.xbar as usize].name,
            i16::from(end.port) + shifts[end.xbar as usize]
        )
    };
    let hosts = fabric.map.hosts.iter().zip(&fabric.hosts);
    let hosts = hosts.map(|(host, label)| (label.name.clone(), host.at.map_or_else(String::new, end)));
    hosts.chain(fabric.map.cables.iter().map(|cable| (end(cable.a), end(cable.b)))).collect()
}

fn as_is(fabric: &Fabric) -> Vec<(String, String)> {
    wiring(fabric, &vec![0; fabric.xbars.len()])
}

fn macs(fabric: &Fabric) -> Vec<Mac> {
    fabric.map.hosts.iter().map(|host| host.mac).collect()
}

#[test]
fn ports_move_where_a_format_needs_it() {
    let counts_from_1 = generated("clos:hosts=8,ports=4");
    assert_eq!((port_shifts(&counts_from_1, 1), port_shifts(&counts_from_1, 0)), (vec![0; 6], vec![-1; 6]));
    // Ports 1 to 3 of 8 are in use, so they may count from 0 or from 1.
    let open = generated("torus:x=3,hosts=1,ports=8");
    assert_eq!((port_shifts(&open, 1), port_shifts(&open, 0)), (vec![0; 3], vec![0; 3]));
    // One xbar counts from 0 among others that count from 1, as in a map of a mixed fabric.
    let mut mixed = counts_from_1;
    mixed.map.hosts[..2].iter_mut().filter_map(|host| host.at.as_mut()).for_each(|at| at.port -= 1);
    for cable in mixed.map.cables.iter_mut().filter(|cable| cable.a.xbar == 0) {
        cable.a.port -= 1;
    }
    assert_eq!(
        (port_shifts(&mixed, 1), port_shifts(&mixed, 0)),
        (vec![1, 0, 0, 0, 0, 0], vec![0, -1, -1, -1, -1, -1])
    );
}

#[test]
fn an_argument_is_a_file_or_a_spec() {
    assert_eq!(resolve("ring:n=5").unwrap(), generated("ring:n=5"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring");
    std::fs::write(&path, write(&generated("ring:n=4"), FileFormat::Json)).unwrap();
    assert_eq!(resolve(path.to_str().unwrap()).unwrap(), generated("ring:n=4"));
    for (argument, error) in [
        ("ring:m=5", "ring: there is no key `m`"),
        ("rung", "`rung` is neither a file nor a generator spec"),
        ("no/such.map", "cannot read no/such.map"),
    ] {
        let message = resolve(argument).unwrap_err().to_string();
        assert!(message.contains(error), "{argument}: {message}");
    }
}
