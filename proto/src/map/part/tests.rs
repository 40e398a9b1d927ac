use proptest::prelude::*;

use super::*;
use crate::Mac;
use crate::map::random::draws;
use crate::map::{Xbar, host_type};

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
}
