//! Whenever a cable's end is pulled out and plugged into another port, some agent notices.

use std::time::Duration;

use mapper_fabric::generate;
use mapper_proto::Instant;
use mapper_proto::map::{Cable, Fabric, Host, Map, PortRef, is_isomorphic};
use mapper_sim::fabric::{Plant, PlantNode, Xbars};
use mapper_sim::setup::{FaultFile, Setup};
use mapper_sim::world::Until;

use crate::lab::{Lab, Plan, ms};

/// When the cable is moved. All hosts are configured by then.
const MOVED_MS: u64 = 3000;
/// When some agent must have noticed: three cycles of verification and all tries of a check later.
const NOTICED_MS: u64 = 7500;

/// An end of a cable and the free port that it is moved to.
#[derive(Clone, Copy, Debug)]
struct Move {
    from: PortRef,
    to: PortRef,
}

/// All single moves of a cable's end at an xbar.
fn moves(fabric: &Fabric) -> Vec<Move> {
    let map = &fabric.map;
    let plant = Plant::new(fabric, Xbars::Plain, 1).unwrap();
    let port = |end: mapper_sim::fabric::PlantPort| match end.node {
        PlantNode::Xbar(xbar) => Some(PortRef { xbar, port: end.port }),
        PlantNode::Host(_) => None,
    };
    let free: Vec<_> = plant.ends().filter(|&end| !plant.is_plugged(end)).filter_map(port).collect();
    let cables = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    let used = cables.chain(map.hosts.iter().filter_map(|host| host.at));
    used.flat_map(|from| free.iter().map(move |&to| Move { from, to })).collect()
}

/// All exchanges of two cables' ends at xbars, each by way of a free port.
fn exchanges(fabric: &Fabric) -> Vec<Vec<Move>> {
    let single = moves(fabric);
    let (spare, mut used) = (single[0].to, single.iter().map(|step| step.from).collect::<Vec<_>>());
    used.dedup();
    let pairs = used.iter().enumerate().flat_map(|(i, &a)| used[..i].iter().map(move |&b| (a, b)));
    let exchange = |(a, b)| [(a, spare), (b, a), (spare, b)].map(|(from, to)| Move { from, to }).to_vec();
    pairs.map(exchange).collect()
}

/// The fabric after some moves.
fn moved(fabric: &Fabric, steps: &[Move]) -> Fabric {
    let mut fabric = fabric.clone();
    let place = |at: PortRef| steps.iter().fold(at, |at, step| if at == step.from { step.to } else { at });
    let map = &mut fabric.map;
    map.cables = map.cables.iter().map(|cable| Cable::new(place(cable.a), place(cable.b))).collect();
    map.hosts = map.hosts.iter().map(|&host| Host { at: host.at.map(place), ..host }).collect();
    fabric
}

/// What happened after a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Outcome {
    /// Whether some agent found its map invalid.
    noticed: bool,
    /// Whether all agents agreed on the right map by 30 s.
    settled: bool,
}

fn make(spec: &str, kinds: Xbars, steps: &[Move]) -> Outcome {
    let plan = Plan::new(spec, kinds);
    let fabric = &plan.fabric;
    let name = |at: PortRef| format!("{}:{}", fabric.xbars[at.xbar as usize].name, at.port);
    let line = |step: &Move| format!("at {MOVED_MS}ms move {} to {}\n", name(step.from), name(step.to));
    let faults: String = steps.iter().map(line).collect();
    let mut lab: Lab = plan.faults(&faults).start();
    lab.agree_at(ms(MOVED_MS - 1));
    lab.run_to(ms(NOTICED_MS));
    let since = ms(MOVED_MS);
    let noticed = lab.count("invalid", since) + lab.count("mapping", since) > 0;
    lab.world.run(Until::Configured, Instant::ZERO + Duration::from_secs(30)).unwrap();
    let verdict = lab.world.verdict();
    Outcome { noticed, settled: verdict.configured && verdict.map_matches_fabric }
}

/// Makes every change of a fabric in turn, each in a new world. Returns how many of them change what a map
/// can show.
#[track_caller]
fn all_are_noticed(spec: &str, kinds: Xbars, changes: impl Fn(&Fabric) -> Vec<Vec<Move>>) -> usize {
    let fabric = generate(spec).unwrap();
    let plain = |mut map: Map| {
        map.xbars.iter_mut().for_each(|xbar| (xbar.tag, xbar.ports_known) = (None, false));
        map
    };
    let before = plain(fabric.map.clone());
    let (mut count, mut unnoticed, mut unsettled) = (0, Vec::new(), Vec::new());
    for steps in changes(&fabric) {
        let outcome = make(spec, kinds, &steps);
        // Ports of plain xbars are known up to an offset only, so moving all cables of an xbar changes
        // nothing.
        let is_change =
            kinds != Xbars::Plain || is_isomorphic(&before, &plain(moved(&fabric, &steps).map)).is_err();
        count += usize::from(is_change);
        if is_change && !outcome.noticed {
            unnoticed.push(steps.clone());
        }
        if !outcome.settled {
            unsettled.push(steps);
        }
    }
    assert!(unnoticed.is_empty(), "{spec}: {} of {count}: {unnoticed:?}", unnoticed.len());
    assert!(unsettled.is_empty(), "{spec}: {} of {count}: {unsettled:?}", unsettled.len());
    count
}

fn one_by_one(fabric: &Fabric) -> Vec<Vec<Move>> {
    moves(fabric).into_iter().map(|step| vec![step]).collect()
}

#[test]
fn a_move_between_plain_xbars_of_which_some_have_no_hosts() {
    let specs = [
        "xgft:h=2;m=1,3;w=1,2;ports=8",
        "xgft:h=2;m=1,2;w=1,3;ports=8",
        "xgft:h=2;m=1,3;w=1,3;ports=6",
        "xgft:h=2;m=2,3;w=1,1;ports=6",
        "xgft:h=2;m=1,5;w=1,2;ports=6",
    ];
    let changes: usize = specs.map(|spec| all_are_noticed(spec, Xbars::Plain, one_by_one)).iter().sum();
    assert!(changes >= 576, "{changes}");
}

#[test]
fn a_move_between_xbars_of_which_half_are_plain() {
    all_are_noticed("xgft:h=2;m=1,3;w=1,2;ports=8", Xbars::Mixed, one_by_one);
}

#[test]
fn a_move_in_a_ring_of_plain_xbars() {
    all_are_noticed("ring:n=3,hosts=1,ports=5", Xbars::Plain, one_by_one);
}

#[test]
fn two_cables_that_are_exchanged() {
    for spec in ["xgft:h=2;m=1,3;w=1,2;ports=8", "xgft:h=2;m=1,3;w=1,3;ports=7", "ring:n=4,hosts=1,ports=5"] {
        all_are_noticed(spec, Xbars::Plain, exchanges);
    }
}

#[test]
fn a_host_alone_on_a_plain_xbar_notices_that_it_is_cut_off() {
    // The host is alone from the start, or the last one that is left.
    for faults in ["at 0ms remove h2\nat 3s cut h1", "at 3s remove h2\nat 10s cut h1"] {
        let mut lab = Plan::new("clos:hosts=2,ports=8", Xbars::Plain).faults(faults).start();
        lab.settle_by(Instant::ZERO + Duration::from_secs(20));
        let status = lab.status("h1");
        assert_eq!((status.hosts, status.xbars), (1, 0), "{status:?}");
    }
}

#[test]
fn a_plain_xbar_whose_own_ports_are_cabled_is_found_to_be_one_though_frames_were_lost() {
    // The cable between two xbars joins two ports of the first one from the start. What comes by it looks like another xbar of
    // the same kind, and where the proof that it is the same one got lost, nothing else is wrong with a map of two.
    let fabric = generate("mesh:x=2,y=1,hosts=1,ports=8").unwrap();
    for seed in 0..400 {
        let faults = "at 0ms move n1-0:2 to n0-0:2\nloss 20% until 300ms\n";
        let faults = FaultFile { name: "faults".to_owned(), text: faults.to_owned() };
        let setup = Setup { seed, signed: true, xbars: Xbars::Plain, faults, ..Setup::default() };
        let mut world = setup.world(&fabric).unwrap();
        world.run(Until::After(Duration::from_secs(3)), ms(3000)).unwrap();
        let verdict = world.verdict();
        assert!(verdict.map_matches_fabric, "seed {seed}: {}", verdict.why_not);
    }
}
