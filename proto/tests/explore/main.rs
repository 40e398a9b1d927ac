//! Exploration of fabrics whose structure is known.

mod fabrics;
mod oracle;

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
    for seed in 0..600 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let kinds = [Kinds::Plain, Kinds::Tagged, Kinds::Mixed][seed as usize % 3];
        let first_port = rng.random_range(0..=1);
        let map = fabrics::random(&mut rng, kinds, first_port, 16);
        let mut fabric = OracleFabric::new(&map, first_port);
        for host in &map.hosts[1..] {
            if rng.random_bool(0.2) {
                fabric.mute.insert(host.mac);
            }
        }
        let run = explore(&mut fabric, 0, &settings(16));
        let found = run.map.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let real = fabric.knowable(0);
        is_isomorphic(&found, &real).unwrap_or_else(|why| panic!("seed {seed}: {why}\n{found:?}\n{real:?}"));
    }
}
