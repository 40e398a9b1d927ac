//! Two hosts with one address: both are left out and named, and the xbars that they are on are not
//! taken for one.

use mapper_proto::explore::{ExploreError, ExploreOutcome, Explorer, Met};
use mapper_proto::map::{Contested, Map, is_isomorphic};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fabrics::{self, Kinds};
use super::oracle::{OracleFabric, drive, drive_with, explore, own_host, settings};

/// A random fabric in which two or three hosts, none of them the first, have one address.
fn with_twins(seed: u64) -> Option<Map> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let kinds = [Kinds::Plain, Kinds::Tagged, Kinds::Mixed][seed as usize % 3];
    let mut map = fabrics::random(&mut rng, kinds, 0, 8);
    let twins = rng.random_range(2..=3).min(map.hosts.len().checked_sub(1)?);
    if twins < 2 {
        return None;
    }
    let mac = map.hosts[1].mac;
    map.hosts[1..=twins].iter_mut().for_each(|host| host.mac = mac);
    Some(map)
}

/// By the xbars' tags, so that numberings can be compared. Plain xbars all look alike.
fn tagged_places(map: &Map) -> Vec<(mapper_proto::Mac, Option<u64>, u8)> {
    let place = |&Contested { mac, at }: &Contested| {
        let tag = map.xbars[at.xbar as usize].tag;
        (mac, tag, if tag.is_some() { at.port } else { 0 })
    };
    let mut places: Vec<_> = map.contested.iter().map(place).collect();
    places.sort_unstable();
    places
}

#[test]
fn twins_are_named_and_left_out_and_everything_else_is_mapped() {
    let mut found = 0;
    for (seed, real) in (0..400).filter_map(|seed| Some((seed, with_twins(seed)?))) {
        let mut fabric = OracleFabric::new(&real, 0);
        let known = fabric.knowable(0);
        let map = explore(&mut fabric, 0, &settings(8)).map.unwrap();
        map.check().unwrap();
        is_isomorphic(&map, &known).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert_eq!(tagged_places(&map), tagged_places(&known), "seed {seed}");
        found += usize::from(!map.contested.is_empty());
    }
    assert!(found > 100, "{found}");
}

#[test]
fn a_twin_where_nobody_looked_means_a_full_exploration() {
    // All but the first of them are new. A port of a plain xbar below those in use has no number in the map
    // before, so no suspect could name it: at least one is on a tagged xbar.
    let is_named = |after: &Map| {
        let mut new = after.hosts.iter().skip(2).filter(|host| host.mac == after.hosts[1].mac);
        new.any(|host| host.at.is_some_and(|at| after.xbars[at.xbar as usize].tag.is_some()))
    };
    let fabrics = (0..400).filter_map(|seed| Some((seed, with_twins(seed).filter(is_named)?)));
    let mut explored = 0;
    for (seed, after) in fabrics {
        explored += 1;
        let mut before = after.clone();
        let twin = before.hosts.remove(2);
        before.hosts.retain(|host| host.mac != twin.mac || host.at == after.hosts[1].at);
        let settings = settings(8);
        let previous = explore(&mut OracleFabric::new(&before, 0), 0, &settings).map.unwrap();
        let mut fabric = OracleFabric::new(&after, 0);
        let suspects: Vec<_> = (0..previous.xbars.len() as u32)
            .flat_map(|xbar| (0..8).map(move |port| mapper_proto::map::PortRef { xbar, port }))
            .filter(|at| previous.hosts.iter().all(|host| host.at != Some(*at)))
            .filter(|at| previous.cables.iter().all(|cable| cable.a != *at && cable.b != *at))
            .collect();
        let sessions = previous.hosts.iter().map(|host| (host.mac, 0)).collect();
        let own = own_host(&fabric, 0);
        let explorer = Explorer::incremental(&settings, own, 9, &previous, &sessions, &suspects);
        let map = drive(&mut fabric, 0, &settings, explorer).map.unwrap();
        let known = fabric.knowable(0);
        is_isomorphic(&map, &known).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert_eq!(tagged_places(&map), tagged_places(&known), "seed {seed}");
    }
    assert!(explored > 50, "{explored}");
}

#[test]
fn a_host_that_restarts_meanwhile_is_not_taken_for_two() {
    let mut restarted = 0;
    for seed in 0..300 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let kinds = [Kinds::Plain, Kinds::Tagged, Kinds::Mixed][seed as usize % 3];
        let real = fabrics::random(&mut rng, kinds, 0, 8);
        let Some(host) = real.hosts.get(1) else { continue };
        let mut fabric = OracleFabric::new(&real, 0);
        let settings = settings(8);
        let explorer = Explorer::new(&settings, own_host(&fabric, 0), seed);
        let after = rng.random_range(1..4);
        let mut answers = 0;
        let run = drive_with(&mut fabric, 0, &settings, explorer, |_, truth| match truth {
            Some(ExploreOutcome::Host(met)) if met.host.mac == host.mac => {
                answers += 1;
                Some(ExploreOutcome::Host(Met { session: u32::from(answers > after), ..met }))
            }
            truth => truth,
        });
        restarted += usize::from(answers > after);
        match run.map {
            Ok(map) => {
                assert_eq!(map.contested, [], "seed {seed}");
                is_isomorphic(&map, &fabric.knowable(0)).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
            }
            Err(error) => assert!(matches!(error, ExploreError::Contradiction(_)), "seed {seed}: {error}"),
        }
    }
    assert!(restarted > 20, "{restarted}");
}
