//! Paths in use are watched, and cables that are said to be dead are checked.

use mapper_fabric::generate;
use mapper_proto::Instant;
use mapper_proto::agent::{CableCause, LivenessCount, PathId, PathUse};
use mapper_proto::wire::{Element, RoundTrip};
use mapper_sim::fabric::{PlantPort, Xbars};
use mapper_sim::setup::{AgentSetup, FaultFile, Setup, UserSetup};
use mapper_sim::world::Until;

use crate::lab::{Happening, Lab, Plan, millis, ms};

/// A ring of xbars with one host each, so that one cable lies between a host and the next.
const RING: &str = "ring:n=4,hosts=1";

/// How often a simulated driver says which paths are in use.
const REPEAT_MS: u64 = 300;

/// The end at the first xbar of its cable to the second xbar, by name and as a port.
fn first_cable(lab: &Lab) -> (String, PlantPort) {
    let map = lab.world.map(0).unwrap();
    let tag = |n| lab.world.plant().tag(n);
    let at = |n| map.xbars.iter().position(|xbar| xbar.tag == tag(n)).unwrap() as u32;
    let (near, far) = (at(0), at(1));
    let ends = map.cables.iter().flat_map(|cable| [(cable.a, cable.b), (cable.b, cable.a)]);
    let (from, _) = ends.into_iter().find(|(a, b)| a.xbar == near && b.xbar == far).unwrap();
    let end = PlantPort { node: lab.world.plant().node("xbar1").unwrap(), port: from.port };
    (lab.world.plant().end_name(end), end)
}

/// Tells the agent of `from` that a path to `to` is in use, as a host with traffic does. The path's number is
/// that of `to`.
fn watch(lab: &mut Lab, from: u32, to: u32) {
    let route = lab.world.table(from).and_then(|table| table.first_to(lab.world.mac(to)));
    let Some(route) = route else { return };
    let mut back: Vec<_> = route
        .elements()
        .map(|element| match element {
            Element::Relative(delta) => Element::Relative(-delta),
            other => panic!("{other:?} in a small fabric"),
        })
        .collect();
    back.reverse();
    let way = RoundTrip { there: route, back: back.into_iter().collect() };
    let used = PathUse { way, to: lab.world.mac(to), longest_bytes: 1000 };
    lab.world.watch_path(from, PathId(to), used);
}

/// Runs until `end` with traffic between these pairs.
pub(crate) fn run_watched(lab: &mut Lab, pairs: &[(u32, u32)], end: Instant) {
    while lab.world.now() < end {
        for &(from, to) in pairs {
            watch(lab, from, to);
        }
        lab.run_to((lab.world.now() + millis(REPEAT_MS)).min(end));
    }
}

fn named(lab: &Lab, what: &str) -> Vec<Happening> {
    lab.happenings().into_iter().filter(|happening| happening.what == what).collect()
}

fn liveness(lab: &Lab, name: &str, kind: LivenessCount) -> u64 {
    lab.status(name).liveness[kind]
}

/// All pairs of hosts next to each other in a ring, in both directions.
fn neighbours(hosts: u32) -> Vec<(u32, u32)> {
    (0..hosts).flat_map(|i| [(i, (i + 1) % hosts), ((i + 1) % hosts, i)]).collect()
}

#[test]
fn a_dead_cable_is_noticed_by_those_who_use_it_within_70_ms() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        for fault in ["silence", "cut"] {
            for after_ms in [0, 7, 13, 19] {
                let cut_at = ms(3300 + after_ms);
                let cable = first_cable(&Lab::configured(Plan::new(RING, Xbars::Tagged))).0;
                let plan =
                    Plan::new(RING, kinds).faults(&format!("at {}ms {fault} {cable}", 3300 + after_ms));
                // Verification is so slow that no new map ends the paths before they are found down.
                let mut lab = plan.agents(|settings| settings.verify_pause = millis(60_000)).start();
                run_watched(&mut lab, &neighbours(4), cut_at + millis(70));
                let down: Vec<_> =
                    named(&lab, "path down").into_iter().map(|h| (h.place, h.detail)).collect();
                let expected = [
                    ("h1".to_owned(), "1 beyond xbar 1 of its route".to_owned()),
                    ("h2".to_owned(), "0 beyond xbar 1 of its route".to_owned()),
                ];
                assert_eq!(down.len(), 2, "{kinds:?} {fault} {after_ms}: {down:?}");
                assert!(expected.iter().all(|path| down.contains(path)), "{down:?}");
                assert_eq!(liveness(&lab, "h1", LivenessCount::Failures), 1);
                assert_eq!(liveness(&lab, "h3", LivenessCount::Failures), 0);
            }
        }
    }
}

#[test]
fn who_sends_seldom_over_a_crossbar_is_told_at_once_when_its_cable_is_cut() {
    // The next check and the next user's frame come up to half a second later.
    let setup = Setup {
        seed: 3,
        xbars: Xbars::Tagged,
        users: Some(UserSetup { rate: 2.0, partners: 2, from: None, flows: 1, broadcasts: false }),
        agents: AgentSetup {
            liveness_interval: millis(500),
            verify_pause: millis(60_000),
            ..AgentSetup::default()
        },
        faults: FaultFile { name: "faults".to_owned(), text: "at 4s cut xbar1:1\n".to_owned() },
        ..Setup::default()
    };
    let mut world = setup.world(&generate(RING).unwrap()).unwrap();
    let mut going_around = |at: Instant| {
        world.run(Until::After(at.since(Instant::ZERO)), at).unwrap();
        (0..4).filter(|&host| world.table(host).is_some_and(|table| !table.is_whole())).count()
    };
    assert_eq!(going_around(ms(3999)), 0);
    assert!(going_around(ms(4001)) >= 2);
}

#[test]
fn a_mended_path_is_up_again() {
    let cable = first_cable(&Lab::configured(Plan::new(RING, Xbars::Tagged))).0;
    let faults = format!("at 3300ms silence {cable}\nat 4s mend {cable}");
    let plan = Plan::new(RING, Xbars::Tagged).faults(&faults);
    let mut lab = plan.agents(|settings| settings.verify_pause = millis(60_000)).start();
    run_watched(&mut lab, &neighbours(4), ms(4100));
    assert_eq!((named(&lab, "path down").len(), named(&lab, "path up").len()), (2, 2));
}

#[test]
fn lost_frames_bring_no_path_down() {
    let plan = Plan::new("clos:hosts=16,ports=8", Xbars::Tagged).faults("at 2s loss 1%");
    // Verification is so slow that the loss does not lead to new maps.
    let mut lab = plan.agents(|settings| settings.verify_pause = millis(600_000)).start();
    lab.run_to(ms(2000));
    let pairs: Vec<_> = (0..16).flat_map(|i| [(i, (i + 5) % 16), (i, (i + 11) % 16)]).collect();
    run_watched(&mut lab, &pairs, ms(62_000));
    assert_eq!(named(&lab, "path down").len(), 0);
    let liveness = lab.status("h1").liveness;
    let [watched, unwatched, failures, checks] = [
        LivenessCount::Watched,
        LivenessCount::Unwatched,
        LivenessCount::Failures,
        LivenessCount::ChecksSent,
    ]
    .map(|kind| liveness[kind]);
    assert_eq!((watched, unwatched, failures), (2, 0, 0));
    assert!((60 * 100..60 * 160).contains(&checks), "{checks}");
    lab.world.check_load(64).unwrap();
}

#[test]
fn a_cable_that_is_said_to_be_dead_and_answers_changes_nothing() {
    for kinds in [Xbars::Tagged, Xbars::Mixed] {
        let mut lab = Lab::configured(Plan::new(RING, kinds));
        let before = lab.agree_at(ms(3300));
        let xbar = |n: u32| lab.world.plant().node(&format!("xbar{n}")).unwrap();
        let ports = (1..=4).flat_map(|n| (1..=3).map(move |port| (n, port)));
        let ends: Vec<_> = ports.map(|(n, port)| PlantPort { node: xbar(n), port }).collect();
        for end in ends.iter().cycle().take(100) {
            (0..4).for_each(|host| lab.world.cable_down(host, *end, CableCause::Silence));
        }
        assert_eq!(lab.agree_at(ms(3700)), before);
        if kinds == Xbars::Tagged {
            assert_eq!(liveness(&lab, "h1", LivenessCount::Cleared), 12, "each cable was checked once");
        }
        // A report about a port without a cable has no effect, however certain its cause is.
        for port in [0, 4, 200] {
            lab.world.cable_down(0, PlantPort { node: ends[0].node, port }, CableCause::Carrier);
        }
        assert_eq!(lab.agree_at(ms(3800)), before);
    }
}

#[test]
fn a_cable_that_is_said_to_be_dead_and_is_leads_to_a_new_map_at_once() {
    for fault in ["silence", "cut"] {
        let (cable, end) = first_cable(&Lab::configured(Plan::new(RING, Xbars::Tagged)));
        let faults = format!("at 3405ms {fault} {cable}");
        let mut lab = Plan::new(RING, Xbars::Tagged).faults(&faults).start();
        let before = lab.agree_at(ms(3400));
        lab.run_to(ms(3406));
        // Hosts at both ends and one far away say that the cable is dead.
        for host in [1, 0, 2] {
            lab.world.cable_down(host, end, CableCause::Silence);
        }
        assert_ne!(lab.agree_at(ms(3506)), before, "{fault}");
    }
}

#[test]
fn a_host_that_is_said_to_be_cut_off_is_checked() {
    let mut lab = Plan::new(RING, Xbars::Tagged).faults("at 3402ms kill h3").start();
    let before = lab.agree_at(ms(3400));
    lab.run_to(ms(3405));
    let map = lab.world.map(0).unwrap();
    let mac = lab.world.mac(2);
    let port = map.hosts.iter().find(|host| host.mac == mac).and_then(|host| host.at).unwrap().port;
    let end = PlantPort { node: lab.world.plant().node("xbar3").unwrap(), port };
    lab.world.cable_down(1, end, CableCause::Silence);
    assert_ne!(lab.agree_at(ms(3500)), before);
}

#[test]
fn a_carrier_that_comes_and_goes_makes_few_maps() {
    let (_, end) = first_cable(&Lab::configured(Plan::new(RING, Xbars::Tagged)));
    let mut lab = Lab::configured(Plan::new(RING, Xbars::Tagged));
    for n in 0..500 {
        lab.run_to(ms(3000 + 20 * n));
        lab.world.cable_down(0, end, CableCause::Carrier);
    }
    let maps = lab.count("mapped", ms(3000));
    assert!((1..=8).contains(&maps), "{maps} maps in 10 s");
}
