//! Exploration of fabrics whose structure is known.

mod endless;
mod fabrics;
mod faults;
mod forged;
mod incremental;
mod moved;
mod oracle;
mod twins;

use std::time::Duration;

use fabrics::{Builder, Kinds};
use mapper_proto::map::{Map, is_isomorphic};
use oracle::{OracleFabric, Run, explore, settings};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Explores from the first host and requires all that can be known.
fn explore_all(map: &Map, plain_ports: u8) -> Run {
    let mut fabric = OracleFabric::new(map, 0);
    let run = explore(&mut fabric, 0, &settings(plain_ports));
    let found = run.map.as_ref().expect("a quiet fabric has no contradictions");
    is_isomorphic(found, &fabric.knowable(0)).unwrap_or_else(|why| panic!("{why}\n{found:?}\n{map:?}"));
    run
}

#[test]
fn a_host_alone() {
    let mut b = Builder::default();
    b.host(None);
    let run = explore_all(&b.map, 8);
    assert_eq!(run.map.unwrap().hosts.len(), 1);
}

#[test]
fn two_hosts_face_to_face() {
    let mut b = Builder::default();
    b.host(None);
    b.host(None);
    let map = explore_all(&b.map, 8).map.unwrap();
    assert_eq!((map.hosts.len(), map.xbars.len()), (2, 0));
    assert!(map.hosts[0].rank() > map.hosts[1].rank());
}

#[test]
fn clos_fabrics_are_found() {
    for tagged in [false, true] {
        explore_all(&fabrics::clos2(8, 8, tagged), 8);
        explore_all(&fabrics::clos3(4, 4, |_| tagged), 4);
        explore_all(&fabrics::torus(4, 4, 5, tagged, true), 5);
        explore_all(&fabrics::torus(4, 4, 5, tagged, false), 5);
    }
    explore_all(&fabrics::now(), 8);
    explore_all(&fabrics::clos3(8, 8, |xbar| xbar % 3 == 0), 8);
}

#[test]
fn random_fabrics_are_found() {
    for seed in 0..1500 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let kinds = [Kinds::Plain, Kinds::Tagged, Kinds::Mixed][seed as usize % 3];
        let first_port = rng.random_range(0..=1);
        let most_ports = [4, 6, 8, 16][rng.random_range(0..4)];
        let mut map = fabrics::random(&mut rng, kinds, first_port, most_ports);
        if rng.random_bool(0.3) {
            // Large parts of such a fabric have no hosts.
            map.hosts.truncate(rng.random_range(1..=2));
        }
        let mut fabric = OracleFabric::new(&map, first_port);
        for host in &map.hosts[1..] {
            if rng.random_bool(0.2) {
                fabric.mute.insert(host.mac);
            }
        }
        let mut settings = settings(rng.random_range(most_ports..=most_ports + 8));
        settings.probe_window = [1, 4, 64][rng.random_range(0..3)];
        settings.prove_tags = rng.random_bool(0.5);
        settings.greet_hosts = rng.random_bool(0.3);
        settings.tell_silent_parts = rng.random_bool(0.3);
        fabric.hop = Duration::from_micros([0, 20][rng.random_range(0..2)]);
        let run = explore(&mut fabric, 0, &settings);
        let found = run.map.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let real = fabric.knowable(0);
        is_isomorphic(&found, &real).unwrap_or_else(|why| panic!("seed {seed}: {why}\n{found:?}\n{real:?}"));
        assert_eq!(found.contested, real.contested, "seed {seed}");
    }
}

#[test]
fn xbars_of_many_ports_are_addressed_by_absolute_ports() {
    for seed in 0..60 {
        let mut rng = ChaCha8Rng::seed_from_u64(1000 + seed);
        let mut map = fabrics::random(&mut rng, Kinds::Mixed, 0, 16);
        // Tagged xbars grow, and their cables go far apart.
        let stretch = |at: mapper_proto::map::PortRef| {
            let tagged = map.xbars[at.xbar as usize].tag.is_some();
            mapper_proto::map::PortRef { port: if tagged { at.port * 15 } else { at.port }, ..at }
        };
        let hosts: Vec<_> = map.hosts.iter().map(|host| host.at.map(stretch)).collect();
        let cables: Vec<_> =
            map.cables.iter().map(|c| mapper_proto::map::Cable::new(stretch(c.a), stretch(c.b))).collect();
        for (host, at) in map.hosts.iter_mut().zip(hosts) {
            host.at = at;
        }
        map.cables = cables;
        for xbar in map.xbars.iter_mut().filter(|xbar| xbar.tag.is_some()) {
            xbar.ports = 240;
        }
        let mut fabric = OracleFabric::new(&map, 0);
        let found = explore(&mut fabric, 0, &settings(16)).map.unwrap();
        is_isomorphic(&found, &fabric.knowable(0)).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

#[test]
fn ways_end_at_the_hop_limit() {
    for tagged in [false, true] {
        let mut b = Builder::default();
        for i in 0..6 {
            let xbar = b.xbar(4, tagged);
            b.host(Some((xbar, 0)));
            if i > 0 {
                b.cable((i - 1, 2), (i, 1));
            }
        }
        let mut fabric = OracleFabric::new(&b.map, 0);
        let mut settings = settings(4);
        settings.max_hops = 4;
        let map = explore(&mut fabric, 0, &settings).map.unwrap();
        assert_eq!(map.hosts.len(), 4, "hosts behind four xbars");
        settings.max_hops = 6;
        let map = explore(&mut fabric, 0, &settings).map.unwrap();
        is_isomorphic(&map, &b.map).unwrap();
    }
}

#[test]
fn parts_without_hosts_cost_a_bounded_number_of_probes() {
    // All alike and no host to tell them: 64 xbars, 128 cables.
    let run = explore_all(&fabrics::torus(8, 8, 8, false, false), 8);
    assert!(run.cost.total() < 20 * 64 * 8, "{:?}", run.cost);
}

#[test]
fn costs_stay_as_low_as_they_are() {
    let run = explore_all(&fabrics::now(), 8);
    assert!(run.cost.total() <= 4 * 320, "{:?}", run.cost);
    assert!(run.took < std::time::Duration::from_millis(100), "{:?}", run.took);
    let run = explore_all(&fabrics::clos2(16, 16, true), 16);
    assert!(run.cost.total() <= 384, "{:?}", run.cost);
}

#[test]
fn port_numbers_are_known_when_the_ports_in_use_span_the_xbar() {
    let mut b = Builder::default();
    let (full, part) = (b.xbar(4, false), b.xbar(4, false));
    b.host(Some((full, 0)));
    b.host(Some((full, 3)));
    b.host(Some((part, 1)));
    b.cable((full, 1), (part, 2));
    let map = explore_all(&b.map, 4).map.unwrap();
    let known: Vec<bool> = map.xbars.iter().map(|xbar| xbar.ports_known).collect();
    assert_eq!(known, [true, false]);
    assert_eq!(map.cables.len(), 1);
    assert_eq!((map.cables[0].a.port, map.cables[0].b.port), (1, 1));
}
