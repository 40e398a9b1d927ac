//! Frames of different lengths, on cables that do not all carry the longest.

use super::*;

#[test]
fn the_longest_frame_of_the_tap_is_sent_and_one_that_does_not_fit_the_link_is_not() {
    let map = map("ring:n=4,hosts=1");
    let (own, other) = (map.hosts[0].mac, map.hosts[1].mac);
    let mut path = data_path(&map, 0);
    let mtu = tap_mtu(LINK_MTU, 11).unwrap() as usize;
    let mut longest = frame(own, other, 1);
    longest.resize(14 + mtu, 0);
    let (route, data) = outbound(&mut path, NOW, &longest).remove(0);
    let spare = LINK_MTU as usize - route.len() - data.len();
    longest.resize(longest.len() + spare, 0);
    assert_eq!(outbound(&mut path, NOW, &longest).len(), 1);
    longest.push(0);
    assert_eq!(outbound(&mut path, NOW, &longest).len(), 0);
    assert_eq!(path.status().dropped[DataDropKind::TooLong], 1);
}

#[test]
fn frames_are_as_long_as_the_link_carries_now_and_the_kernel_is_told_if_that_is_less() {
    let map = map("ring:n=4,hosts=1");
    let (own, other) = (map.hosts[0].mac, map.hosts[1].mac);
    let mut path = data_path(&map, 0);
    let mut long = frame(own, other, 1);
    let (route, data) = outbound(&mut path, NOW, &long).remove(0);
    long.resize(long.len() + 4000 - route.len() - data.len(), 0);
    assert_eq!(outbound(&mut path, NOW, &long), []);
    path.set_link_mtu(4000);
    assert_eq!(outbound(&mut path, NOW, &long).len(), 1);
    path.set_link_mtu(3999);
    assert_eq!(outbound(&mut path, NOW, &long), []);
    let answer = path.take_answer().unwrap();
    let mtu = u16::from_be_bytes([answer[14 + 20 + 6], answer[14 + 20 + 7]]);
    assert_eq!(usize::from(mtu), long.len() - 1 - 14);
    assert_eq!(path.status().dropped[DataDropKind::TooLong], 2);
}

/// A ring of four hosts in which both cables from the second host's xbar carry frames of at most `mtu` bytes.
fn ring_with_a_small_host(mtu: u32) -> Map {
    let mut map = map("ring:n=4,hosts=1");
    let home = map.hosts[1].at.unwrap();
    let ends = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    let mtu = LinkMtu::of_ports(ends.filter(|end| end.xbar == home.xbar).map(|end| (end.port, mtu)));
    map.frame_sizes = FrameSizes { longest: LINK_MTU as u16, less: vec![(map.hosts[1].mac, mtu)] };
    map
}

#[test]
fn a_frame_that_is_too_long_for_all_ways_is_counted_and_the_kernel_told_what_gets_through() {
    let map = ring_with_a_small_host(1300);
    let (own, other) = (map.hosts[0].mac, map.hosts[1].mac);
    let mut path = data_path(&map, 0);
    let mut longest = frame(own, other, 1);
    let (route, data) = outbound(&mut path, NOW, &longest).remove(0);
    longest.resize(longest.len() + 1300 - route.len() - data.len(), 0);
    assert_eq!(outbound(&mut path, NOW, &longest).len(), 1);
    assert_eq!(path.take_answer(), None);
    longest.push(0);
    assert_eq!(outbound(&mut path, NOW, &longest), []);
    assert_eq!(path.status().dropped[DataDropKind::TooLongForCable], 1);
    let answer = path.take_answer().unwrap();
    let mtu = u16::from_be_bytes([answer[14 + 20 + 6], answer[14 + 20 + 7]]);
    assert_eq!((&answer[..6], usize::from(mtu)), (&own.0[..], longest.len() - 1 - 14));
    assert_eq!(path.take_answer(), None, "the kernel is told once");
    // Other hosts are reached as before, and the copies of a broadcast that are missing are counted.
    longest[..6].copy_from_slice(&map.hosts[3].mac.0);
    assert_eq!(outbound(&mut path, NOW, &longest).len(), 1);
    longest[..6].fill(0xff);
    assert_eq!(outbound(&mut path, NOW, &longest).len(), 2);
    assert_eq!(path.status().dropped[DataDropKind::TooLongForCable], 2);
    assert_eq!(path.take_answer(), None, "a broadcast is not answered");
    // A new map says that the MTU has been raised; it counts once a table of that map is in use.
    let mut mended = map.clone();
    mended.version.counter += 1;
    mended.frame_sizes = FrameSizes::default();
    path.take_map(NOW, &mended);
    longest[..6].copy_from_slice(&other.0);
    assert_eq!(outbound(&mut path, NOW, &longest), [], "the MTU in the map of the table in use counts");
    path.install(table(&mended, 0));
    assert_eq!(outbound(&mut path, NOW, &longest).len(), 1);
}

#[test]
fn flows_keep_off_a_cable_of_shorter_frames_while_another_leads_there() {
    let mut map = map("clos:hosts=32,ports=8");
    let (own, other) = (map.hosts[0].mac, map.hosts[31].mac);
    let home = map.hosts[31].at.unwrap().xbar;
    let mut ends = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    let small = ends.find(|end| end.xbar == home && end.port > 0).unwrap();
    let mtu = LinkMtu::of_ports([(small.port, 1300)]);
    map.frame_sizes = FrameSizes { longest: LINK_MTU as u16, less: vec![(other, mtu)] };
    let narrow = map.narrow_ports();
    let (narrow, wide): (Vec<_>, Vec<_>) =
        table(&map, 0).paths_to(31).partition(|path| path.hops.iter().any(|hop| narrow.contains_key(hop)));
    assert_eq!((narrow.len(), wide.len()), (1, 3));
    let mut path = data_path(&map, 0);
    let mut routes_of_all_flows = || -> BTreeSet<_> {
        (0..400).map(|flow| route_of(&mut path, NOW, &frame(own, other, flow))).collect()
    };
    assert_eq!(routes_of_all_flows(), wide.iter().map(|path| path.way.there.as_bytes().to_vec()).collect());
    // Frames take a cable that carries less rather than one that is dead.
    wide.iter().for_each(|dead| path.avoid(NOW, dead.hops[0]));
    assert_eq!(route_of(&mut path, NOW, &frame(own, other, 1)), narrow[0].way.there.as_bytes());
}

#[test]
fn no_path_is_taken_to_carry_longer_frames_than_any_host_of_the_map_has() {
    let map = ring_with_a_small_host(1300);
    let other = map.hosts[2].mac;
    let mut path = data_path(&map, 0);
    let longest = |path: &mut DataPath| {
        path.use_paths_to(NOW, other);
        let in_use = path.paths_in_use(NOW, 8).into_iter().filter(|it| it.to == other);
        in_use.map(|it| it.longest_bytes).max()
    };
    assert_eq!(longest(&mut path), Some(LINK_MTU as usize));
    // All interfaces were set to carry less since this host's agent started, so no cable carries less than others.
    let mut less = map.clone();
    less.version.counter += 1;
    less.frame_sizes = FrameSizes { longest: 1300, less: Vec::new() };
    path.take_map(NOW, &less);
    path.install(table(&less, 0));
    assert_eq!(longest(&mut path), Some(1300));
}

#[test]
fn frames_through_the_own_crossbar_are_as_long_as_the_port_carries_that_they_leave_by() {
    let map = map("ring:n=4,hosts=1");
    let (own, other) = (map.hosts[0].mac, map.hosts[1].mac);
    let mut path = data_path(&map, 0);
    let first_port = path.destinations.as_ref().unwrap().table().paths_to(1).next().unwrap().hops[0].port;
    // Another port of the crossbar carries less, so the link as a whole does.
    path.set_link_mtu(1300);
    let mut long = frame(own, other, 1);
    long.resize(1400, 0);
    assert_eq!(outbound(&mut path, NOW, &long), []);
    path.set_own_ports([(first_port, 1500)].into());
    assert_eq!(outbound(&mut path, NOW, &long).len(), 1);
    long.resize(1500, 0);
    assert_eq!(outbound(&mut path, NOW, &long), [], "with a route it is longer");
    assert_eq!(path.status().dropped[DataDropKind::TooLong], 2);
}
