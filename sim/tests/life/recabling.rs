//! A cable's end is pulled out and plugged into a free port: somebody notices, wherever that is.

use std::time::Duration;

use mapper_proto::Instant;
use mapper_proto::map::{Cable, Fabric, Host, PortRef, is_isomorphic};
use mapper_sim::fabric::{Node, Plant, Xbars};
use mapper_sim::topology::generate;
use mapper_sim::world::Until;

use crate::lab::{Lab, Plan, ms};

/// All is configured by then, and the cable is moved.
const MOVED_MS: u64 = 3000;
/// Three cycles of verification, and all tries of a check.
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
    let port = |end: mapper_sim::fabric::End| match end.node {
        Node::Xbar(xbar) => Some(PortRef { xbar, port: end.port }),
        Node::Host(_) => None,
    };
    let free: Vec<_> = plant.ends().filter(|&end| !plant.is_plugged(end)).filter_map(port).collect();
    let cables = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    let used = cables.chain(map.hosts.iter().filter_map(|host| host.at));
    used.flat_map(|from| free.iter().map(move |&to| Move { from, to })).collect()
}

/// The fabric after a move.
fn moved(fabric: &Fabric, Move { from, to }: Move) -> Fabric {
    let mut fabric = fabric.clone();
    let place = |at: PortRef| if at == from { to } else { at };
    let map = &mut fabric.map;
    map.cables = map.cables.iter().map(|cable| Cable::new(place(cable.a), place(cable.b))).collect();
    map.hosts = map.hosts.iter().map(|&host| Host { at: host.at.map(place), ..host }).collect();
    fabric
}

/// What came of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Outcome {
    /// Some agent no longer believed its map.
    noticed: bool,
    /// All agents agreed on the right map within 30 s.
    settled: bool,
}

fn make(spec: &str, kinds: Xbars, Move { from, to }: Move) -> Outcome {
    let plan = Plan::new(spec, kinds);
    let fabric = &plan.fabric;
    let name = |at: PortRef| format!("{}:{}", fabric.xbars[at.xbar as usize].name, at.port);
    let faults = format!("at {MOVED_MS}ms move {} to {}", name(from), name(to));
    let mut lab: Lab = plan.faults(&faults).start();
    lab.agree_at(ms(MOVED_MS - 1));
    lab.run_to(ms(NOTICED_MS));
    let since = ms(MOVED_MS);
    let noticed = lab.count("invalid", since) + lab.count("mapping", since) > 0;
    lab.world.run(Until::Configured, Instant::ZERO + Duration::from_secs(30)).unwrap();
    let verdict = lab.world.verdict();
    Outcome { noticed, settled: verdict.configured && verdict.map_matches_fabric }
}

/// Makes every move of every fabric. How many changed the fabric.
#[track_caller]
fn all_are_noticed(specs: &[&str], kinds: Xbars) -> usize {
    let (mut changes, mut unnoticed, mut unsettled) = (0, Vec::new(), Vec::new());
    for &spec in specs {
        let fabric = generate(spec).unwrap();
        for step in moves(&fabric) {
            let outcome = make(spec, kinds, step);
            // Plain xbars are known up to an offset: to move all that an xbar has changes nothing.
            let differs = |map| is_isomorphic(map, &moved(&fabric, step).map).is_err();
            let anonymous = |mut map: mapper_proto::map::Map| {
                map.xbars.iter_mut().for_each(|xbar| (xbar.tag, xbar.ports_known) = (None, false));
                map
            };
            let changes_it = kinds != Xbars::Plain || differs(&anonymous(fabric.map.clone()));
            changes += usize::from(changes_it);
            if changes_it && !outcome.noticed {
                unnoticed.push((spec, step));
            }
            if !outcome.settled {
                unsettled.push((spec, step));
            }
        }
    }
    let (missed, stuck) = (unnoticed.len(), unsettled.len());
    assert!(unnoticed.is_empty(), "{missed} of {changes} moves: {unnoticed:?}");
    assert!(unsettled.is_empty(), "{stuck} of {changes} moves: {unsettled:?}");
    changes
}

#[test]
fn a_move_between_plain_xbars_of_which_some_have_no_hosts() {
    let specs = [
        "xgft:h=2;m=1,3;w=1,2;ports=8",
        "xgft:h=2;m=1,2;w=1,2;ports=6",
        "xgft:h=2;m=2,3;w=1,1;ports=6",
        "xgft:h=2;m=1,4;w=1,2;ports=5",
    ];
    let changes = all_are_noticed(&specs, Xbars::Plain);
    assert!(changes >= 576, "{changes}");
}

#[test]
fn a_move_between_xbars_of_which_half_are_plain() {
    all_are_noticed(&["xgft:h=2;m=1,3;w=1,2;ports=8"], Xbars::Mixed);
}

#[test]
fn a_move_in_a_ring_of_plain_xbars() {
    all_are_noticed(&["ring:n=3,hosts=1,ports=5"], Xbars::Plain);
}

#[test]
fn a_host_alone_on_a_plain_xbar_notices_that_it_is_cut_off() {
    // Alone from the start, or the last that is left.
    for faults in ["at 0ms remove h2\nat 3s cut h1", "at 3s remove h2\nat 10s cut h1"] {
        let mut lab = Plan::new("clos:hosts=2,ports=8", Xbars::Plain).faults(faults).start();
        lab.settle_by(Instant::ZERO + Duration::from_secs(20));
        let status = lab.status("h1");
        assert_eq!((status.hosts, status.xbars), (1, 0), "{status:?}");
    }
}
