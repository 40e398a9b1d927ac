//! The fabrics on which our tables are compared with OpenSM's.

use std::collections::BTreeSet;

use mapper_formats as formats;
use mapper_proto::map::{Cable, Fabric, PortRef};

/// The fabrics that every engine is tried on, by name.
pub(crate) fn all() -> Vec<(&'static str, Fabric)> {
    let spec = |spec| (spec, formats::resolve(spec).unwrap());
    vec![
        spec("clos:hosts=32,ports=8"),
        spec("xgft:h=3;m=3,3,4;w=1,2,3"),
        spec("hypercube:d=3,hosts=2"),
        spec("mesh:x=4,y=3"),
        spec("random:xbars=14,ports=12,hosts=40,links=26,seed=5"),
        ("two cables for each", doubled("torus:x=3,y=3,hosts=2,ports=16")),
        ("cables missing", thinned("xgft:h=3;m=3,3,4;w=1,2,3", 7)),
        ("GUIDs at random", scrambled("xgft:h=2;m=6,5;w=1,4")),
    ]
}

/// A fabric with a second cable beside each one.
fn doubled(spec: &str) -> Fabric {
    let mut fabric = formats::resolve(spec).unwrap();
    let map = &mut fabric.map;
    let mut taken: BTreeSet<PortRef> = map.cables.iter().flat_map(|cable| [cable.a, cable.b]).collect();
    taken.extend(map.hosts.iter().filter_map(|host| host.at));
    let mut free = |xbar| {
        let port = (1..).map(|port| PortRef { xbar, port }).find(|port| !taken.contains(port)).unwrap();
        taken.insert(port);
        port
    };
    let more: Vec<_> =
        map.cables.iter().map(|cable| Cable::new(free(cable.a.xbar), free(cable.b.xbar))).collect();
    map.cables.extend(more);
    map.cables.sort_unstable();
    fabric
}

/// A fabric without one of each `every` cables.
fn thinned(spec: &str, every: usize) -> Fabric {
    let mut fabric = formats::resolve(spec).unwrap();
    let mut place = 0;
    fabric.map.cables.retain(|_| {
        place += 1;
        place % every != 0
    });
    fabric
}

/// A fabric whose GUIDs are in no order and differ in all bytes.
fn scrambled(spec: &str) -> Fabric {
    let mut fabric = formats::resolve(spec).unwrap();
    // Multiples of 2^64 divided by the golden ratio are in no order. They are made even, since ibsim counts
    // the GUIDs of a host's ports up from that of the host.
    let mut guids = (1..).map(|place: u64| place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 4 << 1);
    for (xbar, label) in fabric.map.xbars.iter_mut().zip(&mut fabric.xbars) {
        label.guid = guids.next();
        label.system_guid = None;
        xbar.tag = label.guid;
    }
    for label in &mut fabric.hosts {
        label.guid = guids.next();
        label.port_guid = label.guid;
    }
    fabric
}
