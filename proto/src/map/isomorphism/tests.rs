use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::map::Cable;
use crate::map::random::{Draw, draws};

fn port(xbar: u32, port: u8) -> PortRef {
    PortRef { xbar, port }
}

fn host(position: u32, at: Option<PortRef>) -> Host {
    Host { mac: Mac::from_position(position), level: 1, host_type: host_type::ETHERNET, at }
}

fn plain(ports: u8) -> Xbar {
    Xbar { ports, tag: None, ports_known: false }
}

/// The map as another mapper may have found it: xbars in another order, plain xbars numbered from
/// elsewhere and with a bound for the port count, hosts and cables in another order.
fn found_otherwise(map: &Map, seed: u64) -> Map {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..map.xbars.len()).collect();
    order.shuffle(&mut rng);
    let mut place = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        place[old] = new as u32;
    }
    let shift: Vec<u8> =
        map.xbars.iter().map(|xbar| if is_off(xbar) { rng.random_range(0..9) } else { 0 }).collect();
    let moved = |p: PortRef| port(place[p.xbar as usize], p.port + shift[p.xbar as usize]);
    let mut found = Map { version: map.version, ..Map::default() };
    found.hosts = map.hosts.iter().map(|host| Host { at: host.at.map(moved), ..*host }).collect();
    found.cables = map.cables.iter().map(|cable| Cable::new(moved(cable.a), moved(cable.b))).collect();
    found.xbars = order.iter().map(|&old| map.xbars[old]).collect();
    for xbar in found.xbars.iter_mut().filter(|xbar| is_off(xbar)) {
        xbar.ports = 16;
    }
    found.hosts.shuffle(&mut rng);
    found.cables.shuffle(&mut rng);
    found
}

fn is_off(xbar: &Xbar) -> bool {
    xbar.tag.is_none() && !xbar.ports_known
}

/// Every way to match the xbars of two maps, tried one after the other.
fn is_isomorphic_by_trying(found: &Map, real: &Map) -> bool {
    fn extend(found: &Map, real: &Map, twins: &mut Vec<u32>) -> bool {
        if twins.len() == found.xbars.len() {
            return agrees(found, real, twins);
        }
        (0..real.xbars.len() as u32).any(|candidate| {
            if twins.contains(&candidate) {
                return false;
            }
            twins.push(candidate);
            let fits = extend(found, real, twins);
            twins.pop();
            fits
        })
    }
    found.xbars.len() == real.xbars.len() && extend(found, real, &mut Vec::new())
}

fn agrees(found: &Map, real: &Map, twins: &[u32]) -> bool {
    let (found_ports, real_ports) = (PortsInUse::new(found), PortsInUse::new(real));
    let mut offsets = Vec::new();
    for (f, &r) in (0..).zip(twins) {
        let (fx, rx) = (found.xbars[f as usize], real.xbars[r as usize]);
        let (f_row, r_row) = (found_ports.of_xbar(f), real_ports.of_xbar(r));
        let first = |row: &[(u8, _)]| row.first().map_or(0, |&(port, _)| i16::from(port));
        let offset = first(r_row) - first(f_row);
        let spans =
            f_row.last().map_or(0, |&(port, _)| i16::from(port) - first(f_row) + 1) == i16::from(fx.ports);
        let exact = fx.tag.is_some() || fx.ports_known;
        let ports_agree = if exact { fx.ports == rx.ports } else { fx.ports >= rx.ports };
        let offset_agrees = offset == 0 || (fx.tag.is_none() && (!exact || spans));
        if fx.tag != rx.tag || !ports_agree || !offset_agrees || f_row.len() != r_row.len() {
            return false;
        }
        offsets.push(offset);
    }
    let moved = |p: PortRef| {
        let shifted = i16::from(p.port) + offsets[p.xbar as usize];
        u8::try_from(shifted).ok().map(|shifted| port(twins[p.xbar as usize], shifted))
    };
    let mut cables: Vec<_> =
        found.cables.iter().filter_map(|c| Some(Cable::new(moved(c.a)?, moved(c.b)?))).collect();
    cables.sort_unstable();
    let mut hosts: Vec<_> = existing(found).map(|(mac, l, t, at)| (mac, l, t, at.map(moved))).collect();
    let mut real_hosts: Vec<_> = existing(real).map(|(mac, l, t, at)| (mac, l, t, at.map(Some))).collect();
    hosts.sort_unstable();
    real_hosts.sort_unstable();
    let mut real_cables = real.cables.clone();
    real_cables.sort_unstable();
    cables == real_cables && hosts == real_hosts
}

fn existing(map: &Map) -> impl Iterator<Item = (Mac, u8, u8, Option<PortRef>)> + '_ {
    let hosts = map.hosts.iter().filter(|host| host.host_type != host_type::PHANTOM);
    hosts.map(|host| (host.mac, host.level, host.host_type, host.at))
}

/// Two hosts at two xbars with a cable between, xbar 1 plain.
fn pair() -> Map {
    Map {
        hosts: vec![host(2, Some(port(0, 1))), host(1, Some(port(1, 4)))],
        xbars: vec![Xbar { ports: 8, tag: Some(7), ports_known: true }, plain(8)],
        cables: vec![Cable::new(port(0, 2), port(1, 5))],
        ..Map::default()
    }
}

fn mismatch(change: impl FnOnce(&mut Map)) -> Result<(), Mismatch> {
    let mut found = pair();
    change(&mut found);
    is_isomorphic(&found, &pair())
}

#[test]
fn what_does_not_matter_is_let_pass() {
    assert_eq!(mismatch(|_| {}), Ok(()));
    assert_eq!(mismatch(|found| found.hosts.reverse()), Ok(()));
    assert_eq!(mismatch(|found| found.xbars[1].ports = 16), Ok(()));
    let phantom = Host { host_type: host_type::PHANTOM, ..host(9, None) };
    assert_eq!(mismatch(|found| found.hosts.push(phantom)), Ok(()));
    let shifted = mismatch(|found| {
        found.hosts[1].at = Some(port(1, 0));
        found.cables[0].b.port = 1;
    });
    assert_eq!(shifted, Ok(()));
}

#[test]
fn what_is_wrong_with_hosts_is_told() {
    let mac = Mac::from_position;
    assert_eq!(mismatch(|found| found.hosts.truncate(1)), Err(Mismatch::HostMissing(mac(1))));
    assert_eq!(mismatch(|found| found.hosts.push(host(3, None))), Err(Mismatch::HostUnknown(mac(3))));
    assert_eq!(mismatch(|found| found.hosts.push(host(1, None))), Err(Mismatch::HostTwice(mac(1))));
    assert_eq!(
        mismatch(|found| found.hosts[0].level = 9),
        Err(Mismatch::Level { mac: mac(2), found: 9, real: 1 })
    );
    assert_eq!(
        mismatch(|found| found.hosts[0].host_type = host_type::GM),
        Err(Mismatch::HostType { mac: mac(2), found: host_type::GM, real: host_type::ETHERNET })
    );
    assert_eq!(mismatch(|found| found.hosts[0].at = None), Err(Mismatch::Place(mac(2))));
}

#[test]
fn what_is_wrong_with_xbars_is_told() {
    assert_eq!(mismatch(|found| found.xbars[0].tag = Some(8)), Err(Mismatch::Tag { found: 0, real: 0 }));
    assert_eq!(
        mismatch(|found| found.xbars[0].ports = 9),
        Err(Mismatch::PortCount { found: 0, found_ports: 9, real_ports: 8 })
    );
    assert_eq!(
        mismatch(|found| found.xbars[1].ports = 7),
        Err(Mismatch::PortCount { found: 1, found_ports: 7, real_ports: 8 })
    );
    assert_eq!(
        mismatch(|found| found.xbars[1] = Xbar { ports_known: true, ..plain(16) }),
        Err(Mismatch::PortCount { found: 1, found_ports: 16, real_ports: 8 })
    );
    assert_eq!(
        mismatch(|found| found.hosts[0].at = Some(port(0, 3))),
        Err(Mismatch::NotKnown { found: 0, offset: -2 })
    );
    assert_eq!(mismatch(|found| found.xbars.push(plain(8))), Err(Mismatch::XbarUnknown(2)));
    let with_more = Map { xbars: [pair().xbars, vec![plain(8)]].concat(), ..pair() };
    assert_eq!(is_isomorphic(&pair(), &with_more), Err(Mismatch::XbarMissing(2)));
    assert_eq!(mismatch(|found| found.xbars.truncate(1)), Err(Mismatch::NoSuchXbar(1)));
}

#[test]
fn known_port_numbers_are_right_or_span_the_xbar() {
    let real = Map {
        hosts: vec![host(1, Some(port(0, 1))), host(2, Some(port(0, 2)))],
        xbars: vec![Xbar { ports: 2, tag: None, ports_known: true }],
        ..Map::default()
    };
    let mut found = real.clone();
    found.hosts[0].at = Some(port(0, 0));
    found.hosts[1].at = Some(port(0, 1));
    assert_eq!(is_isomorphic(&found, &real), Ok(()));
    let more_ports = |map: &Map| {
        let mut map = map.clone();
        map.xbars[0].ports = 3;
        map
    };
    let off = Err(Mismatch::NotKnown { found: 0, offset: 1 });
    assert_eq!(is_isomorphic(&more_ports(&found), &more_ports(&real)), off);
}

#[test]
fn what_is_wrong_with_cables_is_told() {
    let cut = mismatch(|found| found.cables.clear());
    assert_eq!(
        cut.unwrap_err().to_string(),
        "port 2 of crossbar 0 of the found map leads to nothing; it is port 2 of crossbar 0, which leads to \
         port 5 of xbar 1"
    );
    let added = mismatch(|found| found.cables.push(Cable::new(port(1, 0), port(1, 0))));
    assert_eq!(
        added,
        Err(Mismatch::Port {
            found: port(1, 0),
            found_end: FarEnd::Port(port(1, 0)),
            real: port(1, 0),
            real_end: FarEnd::Nothing
        })
    );
    let moved = mismatch(|found| found.cables[0].b.port = 6);
    assert_eq!(moved, Err(Mismatch::Offsets { found: 1, offset: 0, other: -1 }));
    let swapped = mismatch(|found| {
        found.hosts[0].at = Some(port(1, 4));
        found.hosts[1].at = Some(port(0, 1));
    });
    assert!(swapped.is_err());
}

#[test]
fn one_xbar_is_not_two_and_two_are_not_one() {
    let together = Map {
        hosts: vec![host(1, Some(port(0, 1))), host(2, Some(port(0, 2)))],
        xbars: vec![plain(8)],
        ..Map::default()
    };
    let apart = Map {
        hosts: vec![host(1, Some(port(0, 1))), host(2, Some(port(1, 2)))],
        xbars: vec![plain(8); 2],
        ..Map::default()
    };
    assert_eq!(is_isomorphic(&together, &apart), Err(Mismatch::Merged { found: 0, real: 0, other: 1 }));
    assert_eq!(is_isomorphic(&apart, &together), Err(Mismatch::FoundTwice { found: 0, other: 1, real: 0 }));
    let wider = Map { hosts: vec![together.hosts[0], host(2, Some(port(0, 4)))], ..together.clone() };
    assert_eq!(is_isomorphic(&wider, &together), Err(Mismatch::Offsets { found: 0, offset: 0, other: -2 }));
}

#[test]
fn a_symmetric_part_without_hosts_is_matched() {
    let ring = |order: [u32; 4]| Map {
        xbars: vec![plain(8); 4],
        cables: (0..4).map(|n| Cable::new(port(order[n], 1), port(order[(n + 1) % 4], 2))).collect(),
        ..Map::default()
    };
    assert_eq!(is_isomorphic(&ring([0, 1, 2, 3]), &ring([2, 0, 3, 1])), Ok(()));
    let mut two_rings = ring([0, 1, 2, 3]);
    two_rings.cables =
        [(0, 1), (1, 0), (2, 3), (3, 2)].map(|(x, y)| Cable::new(port(x, 1), port(y, 2))).to_vec();
    assert_eq!(is_isomorphic(&two_rings, &ring([0, 1, 2, 3])), Err(Mismatch::XbarUnknown(0)));
    assert_eq!(is_isomorphic(&two_rings, &two_rings), Ok(()));
}

#[test]
fn tags_that_stand_twice_are_no_anchors() {
    let twins = Map { xbars: vec![Xbar { ports: 8, tag: Some(1), ports_known: true }; 2], ..Map::default() };
    assert_eq!(is_isomorphic(&twins, &twins), Ok(()));
}

proptest! {
    #[test]
    fn a_map_is_what_another_mapper_finds(draw in draws(), seed in any::<u64>()) {
        let real = draw.map();
        prop_assert_eq!(is_isomorphic(&found_otherwise(&real, seed), &real), Ok(()));
    }

    #[test]
    fn a_cable_lost_or_added_is_never_missed(draw in draws(), seed in any::<u64>(), nth in any::<prop::sample::Index>()) {
        let real = draw.map();
        let mut found = found_otherwise(&real, seed);
        if found.cables.is_empty() {
            return Ok(());
        }
        found.cables.remove(nth.index(found.cables.len()));
        prop_assert!(is_isomorphic(&found, &real).is_err());
        prop_assert!(is_isomorphic(&real, &found).is_err());
    }

    /// Small maps, often changed a little: the answer is that of trying all ways to match.
    #[test]
    fn the_answer_is_that_of_trying_all_ways(
        seed in any::<u64>(),
        hosts in 0..4usize,
        xbars in 0..5usize,
        cables in 0..6usize,
        change in 0..4u8,
    ) {
        let real = Draw { seed, hosts, xbars, cables, phantoms: 1 }.map();
        let mut found = found_otherwise(&real, seed);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        match change {
            0 => {}
            1 => if let Some(cable) = found.cables.first_mut() {
                cable.a.port = cable.a.port.wrapping_add(1) % 24;
            },
            2 => if found.cables.len() > 1 {
                let (x, y) = (found.cables[0].b, found.cables[1].b);
                (found.cables[0].b, found.cables[1].b) = (y, x);
            },
            _ => if let Some(host) = found.hosts.first_mut() && let Some(at) = &mut host.at {
                at.port = rng.random_range(0..24);
            },
        }
        let ends: Vec<_> = found.cables.iter().flat_map(|c| [c.a, c.b]).collect();
        if found.hosts.iter().filter_map(|host| host.at).any(|at| ends.contains(&at)) {
            return Ok(()); // Two cables in one port: no map.
        }
        let tried = is_isomorphic_by_trying(&found, &real);
        let answer = is_isomorphic(&found, &real);
        prop_assert_eq!(answer.is_ok(), tried, "{:?}", answer);
    }
}
