use proptest::prelude::*;

use super::*;
use crate::Mac;
use crate::map::Xbar;
use crate::map::random::draws;

fn port(xbar: u32, port: u8) -> PortRef {
    PortRef { xbar, port }
}

fn host(position: u32, at: Option<PortRef>) -> Host {
    Host { mac: Mac::from_position(position), level: 1, host_type: host_type::ETHERNET, at }
}

/// Xbars in a row, `cables` cables between neighbours.
fn row(xbars: u32, cables: u8, hosts: Vec<Host>) -> Map {
    let between = |x: u32| (0..cables).map(move |n| Cable::new(port(x, 10 + n), port(x + 1, 20 + n)));
    Map {
        hosts,
        xbars: vec![Xbar { ports: 32, tag: None, ports_known: true }; xbars as usize],
        cables: (0..xbars - 1).flat_map(between).collect(),
        ..Map::default()
    }
}

#[test]
fn what_hangs_on_one_cable_without_hosts_is_no_part_of_the_core() {
    let ends = row(4, 1, vec![host(2, Some(port(1, 1))), host(1, Some(port(2, 1)))]);
    let core = ends.reachable_core();
    assert_eq!((core.xbars, core.hosts), (vec![1, 2], vec![0, 1]));
    assert_eq!(core.map.hosts[1].at, Some(port(1, 1)));
    assert_eq!(core.map.cables, [Cable::new(port(0, 10), port(1, 20))]);
    let doubled = row(4, 2, vec![host(2, Some(port(1, 1)))]);
    assert_eq!(doubled.reachable_core().map, doubled);
    assert_eq!(row(4, 2, vec![]).reachable_core().map, Map::default());
}

#[test]
fn a_component_is_all_that_cables_connect() {
    let mut map = row(4, 1, vec![host(3, Some(port(0, 1))), host(2, Some(port(3, 1))), host(1, None)]);
    map.cables.remove(1);
    assert_eq!(map.component_of(0).xbars, [0, 1]);
    let other = map.component_of(1);
    assert_eq!((other.xbars, other.hosts), (vec![2, 3], vec![1]));
    assert_eq!(other.map.check(), Ok(()));
    assert_eq!(map.component_of(2).hosts, [2], "a host whose cable was cut");
    assert_eq!(map.component_of(3), Part::default());
    let face_to_face = Map { hosts: vec![host(2, None), host(1, None)], ..Map::default() };
    assert_eq!(face_to_face.component_of(1).map, face_to_face);
}

/// Xbars connected to this one, the cables marked in `cut` left out.
fn connected_to(map: &Map, start: u32, cut: Option<usize>) -> Vec<bool> {
    let mut reached = vec![false; map.xbars.len()];
    reached[start as usize] = true;
    for _ in 0..map.xbars.len() {
        for (_, cable) in map.cables.iter().enumerate().filter(|&(nth, _)| Some(nth) != cut) {
            let (a, b) = (cable.a.xbar as usize, cable.b.xbar as usize);
            let either = reached[a] || reached[b];
            (reached[a], reached[b]) = (either, either);
        }
    }
    reached
}

proptest! {
    #[test]
    fn the_core_is_what_is_connected_to_a_host_whatever_cable_is_cut(draw in draws()) {
        let map = draw.map();
        let near_host = |xbar: u32, cut| {
            let reached = connected_to(&map, xbar, cut);
            map.hosts.iter().filter_map(|host| host.at).any(|at| reached[at.xbar as usize])
        };
        let expected: Vec<u32> = (0..map.xbars.len() as u32)
            .filter(|&xbar| (0..=map.cables.len()).all(|cut| near_host(xbar, Some(cut))))
            .collect();
        let core = map.reachable_core();
        prop_assert_eq!(&core.xbars, &expected);
        prop_assert_eq!(core.hosts.len(), map.hosts.len());
        prop_assert_eq!(core.map.check(), Ok(()));
        prop_assert_eq!(&core.map.reachable_core().map, &core.map);
    }

    #[test]
    fn components_are_those_of_following_cables(draw in draws()) {
        let map = draw.map();
        for (index, host) in map.hosts.iter().enumerate() {
            let part = map.component_of(index);
            prop_assert!(part.hosts.contains(&(index as u32)));
            prop_assert_eq!(part.map.check(), Ok(()));
            if let Some(at) = host.at {
                let reached = connected_to(&map, at.xbar, None);
                let expected: Vec<u32> = (0..).zip(reached).filter(|(_, r)| *r).map(|(x, _)| x).collect();
                prop_assert_eq!(part.xbars, expected);
            }
        }
    }
}
