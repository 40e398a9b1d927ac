//! Exploration where a stranger at a port stamps probes with a tag that is not its own.

use mapper_proto::Mac;
use mapper_proto::explore::{ExploreOutcome, ExploreSettings, Explorer, RequestKind};
use mapper_proto::map::{Cable, Map, PortRef, Xbar, is_isomorphic};
use mapper_proto::wire::{ProbeKind, Stamp};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fabrics::{self, Builder, Kinds};
use super::oracle::{Forger, OracleFabric, drive_with, explore, own_host, settings};

/// What a stranger does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lie {
    /// It shows the tag of the xbar that it is cabled to.
    OwnXbar,
    /// It shows the tag of any xbar.
    AnyXbar,
    /// It shows a tag of its own.
    NewTag,
}

const LIES: [Lie; 3] = [Lie::OwnXbar, Lie::AnyXbar, Lie::NewTag];

fn proving(ports: u8) -> ExploreSettings {
    ExploreSettings { prove_tags: true, ..settings(ports) }
}

/// The fabric with a phantom xbar at the stranger's port.
fn with_phantom(real: &Map, at: PortRef, stamp: Stamp, port: u8) -> Map {
    let mut map = real.clone();
    let xbar = map.xbars.len() as u32;
    map.xbars.push(Xbar { ports: stamp.ports, tag: Some(stamp.tag), ports_known: true });
    map.cables.push(Cable::new(at, PortRef { xbar, port }));
    map
}

/// Two crossbars behind one with the host that explores.
fn two_behind_one() -> Map {
    let mut fabric = Builder::default();
    let [near, left, right] = [fabric.xbar(8, true), fabric.xbar(8, true), fabric.xbar(8, true)];
    fabric.host(Some((near, 1)));
    fabric.cable((near, 2), (left, 2));
    fabric.cable((near, 5), (right, 5));
    fabric.map
}

/// The stamp of the crossbar `xbar` of a map on a frame that came in by the port `arrival`.
fn stamp_of(map: &Map, xbar: u32, arrival: u8) -> Stamp {
    let xbar = map.xbars[xbar as usize];
    Stamp { tag: xbar.tag.unwrap(), ports: xbar.ports, arrival, carriers: [arrival].into_iter().collect() }
}

/// Explores [`two_behind_one`], where `show` says what one of the xbars stamps its frames with: the first time, the second
/// and so on. It is given the right stamp.
fn explore_with(map: &Map, xbar: usize, mut show: impl FnMut(u8, Stamp) -> Stamp) -> Map {
    let mut fabric = OracleFabric::new(map, 0);
    let explorer = Explorer::new(&proving(8), own_host(&fabric, 0), 1);
    let mut times = 0;
    let run = drive_with(&mut fabric, 0, &proving(8), explorer, |_, truth| match truth {
        Some(ExploreOutcome::Returned { stamp: Some(stamp) }) if Some(stamp.tag) == map.xbars[xbar].tag => {
            times += 1;
            Some(ExploreOutcome::Returned { stamp: Some(show(times, stamp)) })
        }
        truth => truth,
    });
    run.map.unwrap()
}

#[test]
fn a_cable_that_is_moved_while_its_proof_is_asked_is_found_where_it_is() {
    let map = two_behind_one();
    // When it was first asked, the cable led to a second port of the other xbar.
    let found = explore_with(&map, 2, |times, stamp| if times == 1 { stamp_of(&map, 1, 5) } else { stamp });
    is_isomorphic(&found, &map).unwrap();
}

#[test]
fn a_crossbar_that_is_moved_after_it_was_first_seen_is_found_where_it_is() {
    let map = two_behind_one();
    // When it was first asked, the cable to one xbar led to the other, whose own cable was not plugged in yet.
    let found = explore_with(&map, 1, |times, stamp| if times == 1 { stamp_of(&map, 2, 3) } else { stamp });
    is_isomorphic(&found, &map).unwrap();
}

#[test]
fn a_stranger_that_shows_another_stamp_each_time_makes_the_exploration_begin_anew_once() {
    let map = two_behind_one();
    let found = explore_with(&map, 2, |times, _| stamp_of(&map, 1, times));
    assert_eq!(found.xbars.len(), 2, "the one with the host, and the other that can be believed: {found:?}");
    assert_eq!(found.contested.len(), 1, "{found:?}");
}

/// The fabric without a host.
fn without(map: &Map, host: usize) -> Map {
    let mut map = map.clone();
    map.hosts.remove(host);
    map
}

fn lies_do_no_harm(kinds: Kinds, lie: Lie, mirrors: bool, seeds: u64) {
    let mut tried = 0;
    for seed in 0..seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let map = fabrics::random(&mut rng, kinds, 0, 8);
        if map.hosts.len() < 2 {
            continue;
        }
        let liar = map.hosts.len() - 1;
        let at = map.hosts[liar].at.unwrap();
        let tagged: Vec<Xbar> = map.xbars.iter().copied().filter(|xbar| xbar.tag.is_some()).collect();
        let new = Xbar { ports: rng.random_range(1..=16), tag: Some(77), ports_known: true };
        let claimed = match lie {
            Lie::OwnXbar if map.xbars[at.xbar as usize].tag.is_some() => map.xbars[at.xbar as usize],
            Lie::AnyXbar if !tagged.is_empty() => tagged[rng.random_range(0..tagged.len())],
            _ => new,
        };
        let stamp = Stamp {
            tag: claimed.tag.unwrap(),
            ports: if rng.random_bool(0.9) { claimed.ports } else { 3 },
            arrival: rng.random_range(0..claimed.ports),
            carriers: [rng.random(); 32].into(),
        };
        // A dead end without hosts differs in nothing from a phantom, and leads nowhere.
        let is_dead_end = |is_it: &dyn Fn(u32) -> bool| {
            let hosts = map.hosts[..liar].iter().filter(|host| is_it(host.at.unwrap().xbar)).count();
            let cables = map.cables.iter().filter(|cable| is_it(cable.a.xbar) != is_it(cable.b.xbar)).count();
            hosts == 0 && cables <= 1
        };
        let shows_tag = |xbar: u32| map.xbars[xbar as usize].tag == claimed.tag;
        if lie != Lie::NewTag && (is_dead_end(&shows_tag) || is_dead_end(&|xbar| xbar == at.xbar)) {
            continue;
        }
        tried += 1;
        let mut fabric = OracleFabric::new(&map, 0);
        fabric.mute.insert(map.hosts[liar].mac);
        fabric.forgers.insert(liar, Forger { stamp, mirrors });
        let real = fabric.knowable(0);
        let case = format!("{kinds:?} {lie:?} mirrors {mirrors} seed {seed} {stamp:?} at {at:?}");
        let found =
            explore(&mut fabric, 0, &proving(8)).map.unwrap_or_else(|error| panic!("{case}: {error}"));
        found.check().unwrap_or_else(|defect| panic!("{case}: {defect}"));
        let phantom = OracleFabric::new(&with_phantom(&without(&map, liar), at, stamp, stamp.arrival), 0);
        let phantom = phantom.knowable(0);
        // A stranger that shows the very port that it is cabled to is a plug that throws frames back.
        let mut looped = without(&map, liar);
        looped.cables.push(Cable::new(at, at));
        let looped = OracleFabric::new(&looped, 0).knowable(0);
        let same = [&real, &phantom, &looped].iter().any(|map| is_isomorphic(&found, map).is_ok());
        assert!(
            same,
            "{case}: {:?}",
            [&real, &phantom, &looped].map(|map| is_isomorphic(&found, map).map_err(|e| e.to_string()))
        );
        let nobody = found.contested.iter().filter(|contested| contested.mac == Mac::NOBODY).count();
        assert!(nobody <= 1, "{case}: {:?}", found.contested);
    }
    assert!(tried > seeds / 4, "{tried} fabrics of {seeds}");
}

#[test]
fn a_stranger_that_shows_a_tag_does_not_change_the_map() {
    for lie in LIES {
        lies_do_no_harm(Kinds::Tagged, lie, false, 1000);
    }
}

#[test]
fn a_stranger_that_shows_a_tag_among_plain_xbars_does_not_change_the_map() {
    for lie in LIES {
        lies_do_no_harm(Kinds::Mixed, lie, false, 1000);
    }
}

#[test]
fn proofs_change_nothing_where_nobody_lies() {
    for kinds in [Kinds::Tagged, Kinds::Mixed, Kinds::Plain] {
        let (mut asked, mut proving_asked) = (0, 0);
        for seed in 0..300 {
            let map = fabrics::random(&mut ChaCha8Rng::seed_from_u64(seed), kinds, 0, 8);
            let mut fabric = OracleFabric::new(&map, 0);
            let real = fabric.knowable(0);
            let trusting = explore(&mut fabric, 0, &settings(8));
            let found = explore(&mut fabric, 0, &proving(8));
            let map = found.map.unwrap_or_else(|error| panic!("{kinds:?} seed {seed}: {error}"));
            is_isomorphic(&map, &real).unwrap_or_else(|why| panic!("{kinds:?} seed {seed}: {why}"));
            assert_eq!(map.contested, [], "{kinds:?} seed {seed}");
            asked += trusting.cost.total();
            proving_asked += found.cost.total();
        }
        println!("{kinds:?}: {asked} frames, {proving_asked} with proofs");
        assert!(proving_asked * 2 < asked * 3, "{kinds:?}: {asked} frames, {proving_asked} with proofs");
    }
}

#[test]
fn a_stranger_that_also_throws_frames_back_does_not_change_the_map() {
    for lie in LIES {
        lies_do_no_harm(Kinds::Tagged, lie, true, 1000);
    }
}

#[test]
fn the_own_xbar_met_through_a_loop_is_known_again_whatever_compares_get_lost() {
    for (tagged, hosts) in [(0, 2), (0, 1), (1, 2), (4, 2)] {
        let mut builder = Builder::default();
        let xbars = [0, 1, 2].map(|xbar| builder.xbar(8, tagged >> xbar & 1 == 1));
        for host in 0..hosts {
            builder.host(Some((xbars[0], 3 + host)));
        }
        builder.cable((xbars[0], 0), (xbars[1], 7));
        builder.cable((xbars[1], 6), (xbars[2], 6));
        builder.cable((xbars[2], 0), (xbars[2], 1));
        for lost in 0..=6 {
            let mut fabric = OracleFabric::new(&builder.map, 0);
            let settings = proving(16);
            let explorer = Explorer::new(&settings, own_host(&fabric, 0), 9);
            let mut left = lost;
            let run = drive_with(&mut fabric, 0, &settings, explorer, |request, outcome| {
                let is_compare = matches!(request.kind, RequestKind::Probe { kind: ProbeKind::Compare, .. });
                let is_lost = is_compare && outcome.is_some() && left > 0;
                left -= u32::from(is_lost);
                outcome.filter(|_| !is_lost)
            });
            let Ok(found) = run.map else { continue };
            // Several in a row can keep a cable from being found, but no xbar is there twice.
            let is_twice = found.xbars.len() > builder.map.xbars.len();
            assert!(!is_twice, "{tagged} {hosts} {lost}: {found:?}");
        }
    }
}
