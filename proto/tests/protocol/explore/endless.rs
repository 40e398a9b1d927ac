//! Exploration where a stranger at a port answers as crossbars without end.

use std::time::Duration;

use mapper_proto::Mac;
use mapper_proto::explore::ExploreSettings;
use mapper_proto::map::{Map, is_isomorphic};

use super::fabrics::{self, Builder};
use super::oracle::{Endless, OracleFabric, Run, explore, settings};

/// As far as agents explore.
fn deep() -> ExploreSettings {
    ExploreSettings { max_hops: ExploreSettings::MAX_HOPS, ..settings(8) }
}

fn proving() -> ExploreSettings {
    ExploreSettings { prove_tags: true, ..deep() }
}

/// The host that is the stranger: the last of the fabric.
fn beset(map: &Map, endless: Endless) -> OracleFabric {
    let mut fabric = OracleFabric::new(map, 0);
    let stranger = map.hosts.len() - 1;
    fabric.mute.insert(map.hosts[stranger].mac);
    fabric.endless.insert(stranger, endless);
    fabric
}

/// All but the stranger is mapped, whole; and nothing that the stranger made up.
#[track_caller]
fn maps_the_rest(map: &Map, endless: Endless, settings: &ExploreSettings, why: &str) -> Run {
    maps_the_rest_of(&mut beset(map, endless), settings, why)
}

/// All but the stranger of this fabric is mapped, whole; and nothing that the stranger made up.
#[track_caller]
fn maps_the_rest_of(fabric: &mut OracleFabric, settings: &ExploreSettings, why: &str) -> Run {
    let run = explore(fabric, 0, settings);
    let found = run.map.as_ref().unwrap_or_else(|error| panic!("{why}: {error}"));
    found.check().unwrap_or_else(|defect| panic!("{why}: {defect}"));
    is_isomorphic(found, &fabric.knowable(0)).unwrap_or_else(|defect| panic!("{why}: {defect}"));
    run
}

const SHAPES: [(Option<u8>, &str); 2] = [(Some(254), "254 tagged ports"), (Some(3), "3 tagged ports")];

#[test]
fn what_answers_without_end_is_left_out() {
    let fabrics = [
        ("tagged clos", fabrics::clos2(8, 8, true)),
        ("tagged torus", fabrics::torus(4, 4, 5, true, true)),
        ("fat tree", fabrics::clos3(4, 4, |_| true)),
    ];
    for (name, map) in &fabrics {
        for (ports, shape) in SHAPES {
            for slow_by in [Duration::ZERO, Duration::from_micros(850)] {
                let endless = Endless { ports, answering: u8::MAX, slow_by, until: Duration::MAX };
                for settings in [deep(), proving()] {
                    let why =
                        format!("{name}, {shape}, slow by {slow_by:?}, proofs: {}", settings.prove_tags);
                    let run = maps_the_rest(map, endless, &settings, &why);
                    // A time-out is a millisecond here: 256 of them is what parts may keep it waiting,
                    // and half as long after each time that one was left out.
                    assert!(run.took < Duration::from_millis(1200), "{why}: {:?}", run.took);
                    assert!(run.most_load < 400_000, "{why}: {}", run.most_load);
                    let told = run.map.unwrap().contested;
                    assert!(told.len() == 1 && told[0].mac == Mac::NOBODY, "{why}: {told:?}");
                    assert_eq!(run.left_out.len(), 1, "{why}: {:?}", run.left_out);
                    assert_eq!(run.left_out[0].place.at, told[0].at, "{why}");
                }
            }
        }
    }
}

#[test]
fn a_stranger_that_answers_late_has_nobody_else_waited_for_longer() {
    let map = fabrics::clos2(8, 8, true);
    // Most of what it shows is silent, and costs nothing but waiting.
    let of = |slow_by| Endless { ports: Some(254), answering: 1, slow_by, until: Duration::MAX };
    let prompt = maps_the_rest(&map, of(Duration::ZERO), &proving(), "prompt").took;
    let late = maps_the_rest(&map, of(Duration::from_micros(1900)), &proving(), "late").took;
    assert!(late < prompt * 2, "{late:?} where it answers late, {prompt:?} where it does not");
}

#[test]
fn what_falls_silent_ends_early() {
    let map = fabrics::clos2(8, 8, true);
    for (ports, shape) in SHAPES {
        for until in [2, 10, 50].map(Duration::from_millis) {
            let endless = Endless { ports, answering: u8::MAX, slow_by: Duration::from_micros(200), until };
            let why = format!("{shape}, until {until:?}");
            let run = maps_the_rest(&map, endless, &proving(), &why);
            // All tries of the questions that wait, and of whether it is still there.
            assert!(run.took < until + Duration::from_millis(30), "{why}: {:?}", run.took);
        }
    }
}

#[test]
fn a_port_whose_far_end_fell_silent_says_nothing_of_how_wide_a_plain_xbar_is() {
    // Ports count from 1 here. The stranger is at the first of the plain xbar's eight, and a tagged xbar at the last.
    let mut b = Builder::default();
    let (plain, tagged) = (b.xbar(8, false), b.xbar(8, true));
    b.cable((plain, 8), (tagged, 1));
    for at in [(plain, 3), (plain, 5), (tagged, 2), (plain, 1)] {
        b.host(Some(at));
    }
    let settings = ExploreSettings { plain_ports: 8, ..proving() };
    let until = Duration::from_millis(4);
    for (ports, shape) in SHAPES {
        let endless = Endless { ports, answering: u8::MAX, slow_by: Duration::from_micros(200), until };
        let mut fabric = beset(&b.map, endless);
        fabric.first_port = 1;
        let run = maps_the_rest_of(&mut fabric, &settings, shape);
        let found = run.map.unwrap();
        assert!(!found.xbars[0].ports_known, "{shape}: no port in use is the first");
        assert_eq!(found.hosts.iter().filter_map(|host| host.at).map(|at| at.port).min(), Some(0), "{shape}");
    }
}

#[test]
fn what_fell_silent_and_answers_again_and_again_is_told_as_what_answers_without_end_is() {
    let map = fabrics::clos2(8, 8, true);
    let telling = ExploreSettings { tell_silent_parts: true, ..proving() };
    for (ports, shape) in SHAPES {
        let endless = Endless {
            ports,
            answering: u8::MAX,
            slow_by: Duration::from_micros(200),
            until: Duration::from_millis(10),
        };
        assert_eq!(maps_the_rest(&map, endless, &proving(), shape).left_out, []);
        let run = maps_the_rest(&map, endless, &telling, shape);
        let told = run.map.unwrap().contested;
        assert!(told.len() == 1 && told[0].mac == Mac::NOBODY, "{shape}: {told:?}");
        let [part] = run.left_out[..] else { panic!("{shape}: {:?}", run.left_out) };
        assert!(part.fell_silent && part.place.at == told[0].at, "{shape}: {part:?}");
        // A few crossbars whose cable was pulled while they were asked are not worth a word.
        let few = Endless {
            ports,
            answering: u8::MAX,
            slow_by: Duration::from_micros(200),
            until: Duration::from_micros(900),
        };
        assert_eq!(maps_the_rest(&map, few, &telling, shape).left_out, [], "{shape}");
    }
}

#[test]
fn a_stranger_beside_parts_without_hosts_does_not_hide_them() {
    // A spare pod: tagged, without a host that runs, behind the same top as the stranger's.
    for ports in [Some(254), Some(3)] {
        let mut map = fabrics::clos3(6, 6, |_| true);
        let spare: Vec<usize> = (9..18).collect();
        let mute: Vec<Mac> = spare.iter().map(|&host| map.hosts[host].mac).collect();
        let top = 0;
        map.xbars[top].ports = 7;
        let mut b = Builder { map };
        b.host(Some((top as u32, 6)));
        let endless = Endless { ports, answering: u8::MAX, slow_by: Duration::ZERO, until: Duration::MAX };
        let mut fabric = beset(&b.map, endless);
        fabric.mute.extend(mute);
        let run = explore(&mut fabric, 0, &proving());
        let found = run.map.unwrap();
        let counts = (found.hosts.len(), found.xbars.len(), found.cables.len());
        is_isomorphic(&found, &fabric.knowable(0))
            .unwrap_or_else(|why| panic!("{why}: {counts:?}, {:?}", run.left_out));
        assert_eq!(run.left_out.len(), 1);
    }
}

#[test]
fn honest_parts_without_hosts_are_mapped_whole() {
    // The only host is at the first of 2,500 xbars.
    let torus = fabrics::torus(50, 50, 5, true, false);
    let mut chain = Builder::default();
    for i in 0..60 {
        let xbar = chain.xbar(4, true);
        if i > 0 {
            chain.cable((i - 1, 2), (xbar, 1));
        }
    }
    chain.host(Some((0, 0)));
    chain.host(Some((59, 3)));
    let tree = fabrics::clos3(24, 24, |_| true);
    for (name, map) in [("torus", torus), ("chain", chain.map), ("fat tree of 3,456 hosts", tree)] {
        for prove_tags in [false, true] {
            let settings = ExploreSettings { prove_tags, max_hops: 62, ..settings(8) };
            let mut fabric = OracleFabric::new(&map, 0);
            let run = explore(&mut fabric, 0, &settings);
            let found = run.map.unwrap();
            assert!(run.left_out.is_empty(), "{name}: {:?}", run.left_out);
            assert_eq!((found.xbars.len(), found.hosts.len()), (map.xbars.len(), map.hosts.len()), "{name}");
            assert_eq!(found.cables.len(), map.cables.len(), "{name}");
        }
    }
}
