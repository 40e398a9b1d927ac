//! What routes leave out of a map.

use mapper_fabric::generate;
use mapper_proto::map::{Host, Xbar};

use super::*;

/// The map of a ring of so many tagged xbars with a host each.
fn ring(xbars: u64) -> Map {
    let mut map = generate(&format!("ring:n={xbars},hosts=1")).unwrap().map;
    (70..).zip(&mut map.xbars).for_each(|(tag, xbar)| xbar.tag = Some(tag));
    map.sort_canonical();
    map
}

/// The port that holds this cable of the map.
fn port_of(map: &Map, cable: usize) -> TaggedPort {
    map.tagged(map.cables[cable].a).unwrap()
}

#[test]
fn a_cable_is_left_out_unless_routes_are_too_long_without_it() {
    // The ends of a line of eleven are as far apart as agents go unless they are told.
    for (xbars, can) in [(5, true), (11, true), (12, false)] {
        let whole = ring(xbars);
        let port = port_of(&whole, 1);
        let lossy = whole.cables_in(&[port]);
        let basis = Basis::new(Arc::new(whole.clone())).unwrap();
        let expected = if can { vec![port] } else { Vec::new() };
        assert_eq!(basis.ports_to_leave_out(vec![port]), expected, "{xbars}");
        // A mapper that has just explored may have made such a map all the same, and then all use the cable.
        let cable = lossy[0];
        let shown = Basis::new(Arc::new(Map { lossy, ..whole })).unwrap();
        assert_eq!(shown.topology().far(cable.a) == Far::Nothing, can, "{xbars}");
        assert_eq!(shown.ports_to_leave_out(vec![port]), expected, "{xbars}");
    }
}

#[test]
fn one_more_cable_that_routes_need_does_not_bring_back_the_first() {
    // Two rings, of five and of twelve, that share an xbar: two cables of seventeen may be left out.
    let (mut map, other) = (ring(5), ring(12));
    let first = map.xbars.len() as u32;
    let moved =
        |at: PortRef| PortRef { xbar: if at.xbar == 0 { 0 } else { first + at.xbar - 1 }, port: at.port };
    let shared = |at: PortRef| if at.xbar == 0 { PortRef { xbar: 0, port: at.port + 8 } } else { moved(at) };
    map.xbars[0].ports = 16;
    map.xbars
        .extend(other.xbars[1..].iter().map(|xbar| Xbar { tag: xbar.tag.map(|tag| tag + 100), ..*xbar }));
    map.hosts.extend(other.hosts.iter().filter_map(|host| {
        let at = host.at.filter(|at| at.xbar > 0).map(moved)?;
        Some(Host { mac: Mac::from_position(100 + at.xbar), at: Some(at), ..*host })
    }));
    map.cables.extend(other.cables.iter().map(|cable| Cable::new(shared(cable.a), shared(cable.b))));
    map.sort_canonical();
    let in_small = port_of(&map, 0);
    let far_side = map.cables.iter().position(|cable| cable.a.xbar > first).unwrap();
    let in_large = port_of(&map, far_side);
    assert_eq!(map.cables_in(&[in_small, in_large]).len(), 2);
    let basis = Basis::new(Arc::new(map)).unwrap();
    let both = basis.ports_to_leave_out(vec![in_small, in_large]);
    assert_eq!(both, [in_small], "without both, routes along the large ring are too long");
}
