//! Exploration where frames get lost, agents lie and the fabric changes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use mapper_proto::Mac;
use mapper_proto::explore::{ExploreError, ExploreOutcome, ExploreSettings, Explorer, Met, RequestKind};
use mapper_proto::map::{Host, Map, PortRef, is_isomorphic};
use mapper_proto::wire::{Element, ProbeKind, Stamp};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fabrics::{self, Kinds};
use super::oracle::{OracleFabric, drive, drive_with, explore, own_host, settings};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OracleEnd {
    Host(Mac),
    Port(PortRef),
}

fn ends(map: &Map) -> BTreeMap<PortRef, OracleEnd> {
    let cables = map.cables.iter().flat_map(|c| [(c.a, OracleEnd::Port(c.b)), (c.b, OracleEnd::Port(c.a))]);
    let hosts = map.hosts.iter().filter_map(|host| Some((host.at?, OracleEnd::Host(host.mac))));
    cables.chain(hosts).collect()
}

/// Whether all that `found` says is so in `real`, which may have more: the walk from `own` through
/// both never differs, and no real xbar is found twice.
fn says_only_what_is_so(found: &Map, real: &Map, own: Mac) -> Result<(), String> {
    let place = |map: &Map| map.hosts.iter().find(|host| host.mac == own).and_then(|host| host.at);
    let (Some(a), Some(b)) = (place(found), place(real)) else {
        return if place(found).is_none() { Ok(()) } else { Err("the own host is nowhere".into()) };
    };
    let (found_ends, real_ends) = (ends(found), ends(real));
    let mut twins: BTreeMap<u32, (u32, i16)> = BTreeMap::new();
    let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
    let mut walk = VecDeque::from([(a, b)]);
    while let Some((a, b)) = walk.pop_front() {
        let twin = (b.xbar, i16::from(b.port) - i16::from(a.port));
        if let Some(&known) = twins.get(&a.xbar) {
            if known != twin {
                return Err(format!("{a:?} is {twin:?} and {known:?}"));
            }
            continue;
        }
        if let Some(other) = taken.insert(b.xbar, a.xbar) {
            return Err(format!("{} and {other} are both {}", a.xbar, b.xbar));
        }
        twins.insert(a.xbar, twin);
        for (&at, &end) in
            found_ends.range(PortRef { xbar: a.xbar, port: 0 }..=PortRef { xbar: a.xbar, port: 255 })
        {
            let port = u8::try_from(i16::from(at.port) + twin.1).map_err(|_| format!("{at:?} cannot be"))?;
            match (end, real_ends.get(&PortRef { xbar: twin.0, port })) {
                (OracleEnd::Host(x), Some(&OracleEnd::Host(y))) if x == y => {}
                (OracleEnd::Port(x), Some(&OracleEnd::Port(y))) => walk.push_back((x, y)),
                (end, real) => return Err(format!("{at:?} leads to {end:?}, not {real:?}")),
            }
        }
    }
    if twins.len() == found.xbars.len() { Ok(()) } else { Err("the map does not hang together".into()) }
}

#[test]
fn loss_makes_a_map_poorer_at_worst() {
    let (mut exact, mut poorer, mut contradictions) = (0, 0, 0);
    for seed in 0..500 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let map = match seed % 5 {
            0 => fabrics::now(),
            1 => fabrics::clos2(8, 8, seed % 2 == 0),
            2 => fabrics::random(&mut rng, Kinds::Mixed, 0, 8),
            3 => fabrics::random(&mut rng, Kinds::Tagged, 0, 8),
            _ => fabrics::random(&mut rng, Kinds::Plain, 0, 8),
        };
        let mut fabric = OracleFabric::new(&map, 0);
        fabric.loss = 0.05;
        fabric.rng = rng;
        let real = fabric.knowable(0);
        match explore(&mut fabric, 0, &settings(8)).map {
            Ok(found) if is_isomorphic(&found, &real).is_ok() => exact += 1,
            Ok(found) => {
                poorer += 1;
                let own = map.hosts[0].mac;
                says_only_what_is_so(&found, &real, own).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
            }
            Err(ExploreError::Contradiction(_)) => contradictions += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(
        exact >= 490 && contradictions == 0,
        "exact {exact}, poorer {poorer}, contradictions {contradictions}"
    );
}

#[test]
fn lies_end_in_a_map_or_an_error() {
    for seed in 0..400 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let map =
            fabrics::random(&mut rng, [Kinds::Plain, Kinds::Tagged, Kinds::Mixed][seed as usize % 3], 0, 8);
        let mut fabric = OracleFabric::new(&map, 0);
        let settings = settings(8);
        let explorer = Explorer::new(&settings, own_host(&fabric, 0), seed);
        let rate = [0.002, 0.05, 0.3][rng.random_range(0..3)];
        let _ = drive_with(&mut fabric, 0, &settings, explorer, |_, truth| {
            if !rng.random_bool(rate) {
                return truth;
            }
            match rng.random_range(0..5) {
                0 => None,
                1 => Some(ExploreOutcome::OwnHost),
                2 => Some(ExploreOutcome::Returned { stamp: None }),
                3 => Some(ExploreOutcome::Host(Met::from(Host {
                    mac: Mac::from_position(rng.random_range(0..20)),
                    level: rng.random(),
                    host_type: rng.random(),
                    at: Some(PortRef { xbar: rng.random(), port: rng.random() }),
                }))),
                _ => Some(ExploreOutcome::Returned {
                    stamp: Some(Stamp {
                        tag: rng.random_range(0..4),
                        ports: rng.random(),
                        arrival: rng.random(),
                        carriers: [rng.random(); 32].into(),
                    }),
                }),
            }
        });
    }
}

#[test]
fn xbars_whose_stamps_come_late_are_not_taken_for_plain() {
    for prove_tags in [false, true] {
        for map in [fabrics::clos2(4, 8, true), fabrics::now()] {
            let mut fabric = OracleFabric::new(&map, 0);
            fabric.slow_stamps_by = Duration::from_micros(1500);
            let settings = ExploreSettings { prove_tags, ..settings(8) };
            let run = explore(&mut fabric, 0, &settings);
            is_isomorphic(&run.map.unwrap(), &fabric.knowable(0)).unwrap();
        }
    }
}

#[test]
fn hosts_whose_answers_come_late_are_in_the_map() {
    // Each answer comes when its own try has timed out, and before the last try has.
    for (prove_tags, greet_hosts) in [(false, false), (true, false), (true, true)] {
        for map in [fabrics::clos2(4, 8, true), fabrics::clos2(4, 8, false), fabrics::now()] {
            let mut fabric = OracleFabric::new(&map, 0);
            let settings = ExploreSettings { prove_tags, greet_hosts, ..settings(8) };
            fabric.slow_hosts_by = settings.probe_timeout * 5 / 2;
            let run = explore(&mut fabric, 0, &settings);
            is_isomorphic(&run.map.unwrap(), &fabric.knowable(0)).unwrap();
        }
    }
}

#[test]
fn a_fabric_without_end_is_left_out() {
    // A host that turns every probe back makes believe that behind it is xbar after xbar.
    let map = fabrics::clos2(2, 4, false);
    let mut fabric = OracleFabric::new(&map, 0);
    let settings = ExploreSettings { prove_tags: true, ..settings(4) };
    let explorer = Explorer::new(&settings, own_host(&fabric, 0), 1);
    let run = drive_with(&mut fabric, 0, &settings, explorer, |request, truth| {
        let loops = matches!(request.kind, RequestKind::Probe { kind: ProbeKind::Loopback, .. });
        let deep = request.route.hops() >= 3 && request.route.elements().next() == Some(Element::Relative(1));
        if loops && deep { Some(ExploreOutcome::Returned { stamp: None }) } else { truth }
    });
    let map = run.map.unwrap();
    assert_eq!(map.hosts.len(), 3, "those before it");
    assert!(map.contested.iter().any(|contested| contested.mac == Mac::NOBODY), "{:?}", map.contested);
}

#[test]
fn what_nothing_waits_for_changes_nothing() {
    let map = fabrics::clos2(4, 8, false);
    let mut fabric = OracleFabric::new(&map, 0);
    let settings = settings(8);
    let mut explorer = Explorer::new(&settings, own_host(&fabric, 0), 3);
    let now = mapper_proto::Instant::ZERO;
    let first = explorer.poll_probe(now).unwrap();
    assert!(!explorer.handle_outcome(now, first.id.wrapping_add(77), ExploreOutcome::OwnHost));
    assert!(explorer.handle_outcome(now, first.id, ExploreOutcome::Returned { stamp: None }));
    assert!(!explorer.handle_outcome(now, first.id, ExploreOutcome::Returned { stamp: None }));
    assert_eq!(explorer.cost().unexpected, 3, "the forged, the duplicate and the identify without a stamp");
    let run = drive(
        &mut fabric,
        0,
        &settings,
        Explorer::new(&settings, own_host(&OracleFabric::new(&map, 0), 0), 3),
    );
    is_isomorphic(&run.map.unwrap(), &map).unwrap();
}

#[test]
fn one_seed_gives_one_exploration() {
    let run = || {
        let mut fabric = OracleFabric::new(&fabrics::now(), 0);
        fabric.loss = 0.05;
        let mut trace = Vec::new();
        let explorer = Explorer::new(&settings(8), own_host(&fabric, 0), 5);
        let run = drive_with(&mut fabric, 0, &settings(8), explorer, |request, outcome| {
            trace.push(request.clone());
            outcome
        });
        (trace, run.map.unwrap())
    };
    assert_eq!(run(), run());
}
