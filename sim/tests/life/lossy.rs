//! Cables that lose frames and carry the others.

use std::time::Duration;

use mapper_fabric::generate;
use mapper_proto::Instant;
use mapper_sim::fabric::Xbars;
use mapper_sim::setup::{AgentSetup, FaultFile, Setup, UserSetup};
use mapper_sim::world::{Until, World};

use crate::lab::{Lab, ms};

/// The nodes of a fabric, whose users send to all others. `faults` are the faults that strike.
fn nodes(fabric: &str, kernels: bool, faults: &str) -> World {
    nodes_with(fabric, kernels, faults, false)
}

/// The same with agents that may map incrementally.
fn nodes_with(fabric: &str, kernels: bool, faults: &str, map_incrementally: bool) -> World {
    let users = UserSetup { rate: 100.0, partners: 4, from: None, flows: 2, broadcasts: false };
    let setup = Setup {
        seed: 3,
        xbars: Xbars::Tagged,
        nodes: true,
        kernels,
        users: Some(users),
        agents: AgentSetup { map_incrementally, ..AgentSetup::default() },
        faults: FaultFile { name: "faults".to_owned(), text: faults.to_owned() },
        ..Setup::default()
    };
    setup.world(&generate(fabric).unwrap()).unwrap()
}

fn run_to(world: &mut World, ms: u64) {
    let time = Duration::from_millis(ms);
    world.run(Until::After(time), Instant::ZERO + time).unwrap();
    world.check_traffic().unwrap();
}

/// How many cables each host's map shows as lossy.
fn shown(world: &World, hosts: u32) -> Vec<usize> {
    (0..hosts).filter_map(|host| Some(world.map(host)?.lossy.len())).collect()
}

/// On a ring some of the pairs that send over a cable have no other way in the order of a map that has it.
#[test]
fn all_hosts_of_a_ring_go_around_a_cable_that_loses_frames_until_it_loses_none() {
    for (kernels, cable) in [(false, "xbar1:2"), (false, "xbar2:2"), (true, "xbar2:2")] {
        let mut world =
            nodes("ring:n=5,hosts=1", kernels, &format!("at 3s lossy {cable} 30%\nat 40s mend {cable}"));
        run_to(&mut world, 3000);
        let before = world.traffic().unwrap().lost;
        run_to(&mut world, 9000);
        assert_eq!(shown(&world, 5), [1; 5], "{cable}");
        let (found, version) = (world.traffic().unwrap().lost, world.map(0).unwrap().version);
        assert!(found > before, "{cable}: {found}");
        run_to(&mut world, 40_000);
        assert_eq!(world.map(0).unwrap().version, version, "{cable}: nobody verifies it");
        assert_eq!(world.traffic().unwrap().lost, found, "{cable}");
        world.prove_union().unwrap();
        run_to(&mut world, 60_000);
        assert_eq!(shown(&world, 5), [0; 5], "{cable}");
        assert_eq!(world.traffic().unwrap().lost, found, "{cable}");
        assert!(world.verdict().configured, "{cable}");
    }
}

/// An exploration would miss a cable that loses so many frames every now and then.
#[test]
fn a_cable_that_loses_most_frames_is_in_the_map_and_left_out() {
    for map_incrementally in [false, true] {
        let mut world = nodes_with("ring:n=5,hosts=1", false, "at 3s lossy xbar2:2 50%\n", map_incrementally);
        run_to(&mut world, 20_000);
        let found = world.traffic().unwrap().lost;
        run_to(&mut world, 40_000);
        assert_eq!(shown(&world, 5), [1; 5]);
        assert_eq!(world.traffic().unwrap().lost, found);
        assert!(world.verdict().configured);
    }
}

/// Agents take no longer routes than of eleven xbars unless they are told, and the ends of a line of twelve are farther apart.
#[test]
fn a_cable_without_which_routes_are_too_long_is_used() {
    let mut lab = Lab::around(nodes("ring:n=12,hosts=1", false, "at 3s lossy xbar2:2 30%\n"));
    run_to(&mut lab.world, 20_000);
    assert!(lab.count("cable loses", ms(3000)) > 0, "it was found");
    // What the mapper's frames lose there makes hosts map now and then.
    let mut was_configured = false;
    for at in (20_000..30_000).step_by(100) {
        run_to(&mut lab.world, at);
        assert!(shown(&lab.world, 12).iter().all(|&cables| cables == 0), "no map leaves it out, at {at} ms");
        was_configured |= lab.world.verdict().configured;
    }
    assert!(was_configured);
}

#[test]
fn a_cable_that_loses_frames_is_used_where_no_other_leads_there() {
    let mut world = nodes("mesh:x=3,y=1,hosts=1", false, "at 3s lossy n0-0:1 20%\n");
    run_to(&mut world, 20_000);
    let verdict = world.verdict();
    assert!(verdict.configured, "{}", verdict.why_not);
    assert_eq!(shown(&world, 3), [0; 3], "routes cannot do without it");
    let before = world.traffic().unwrap();
    run_to(&mut world, 30_000);
    let after = world.traffic().unwrap();
    assert!(after.lost > before.lost, "it still loses frames");
    assert!(after.delivered - before.delivered > 4 * (after.lost - before.lost));
}

#[test]
fn who_maps_in_anothers_place_leaves_the_cable_out_from_the_start() {
    // The host with the highest address maps, and its node is gone with it.
    let mut world = nodes("mesh:x=3,y=2,hosts=1", false, "at 3s lossy n0-0:1 30%\nat 12s remove h6\n");
    run_to(&mut world, 11_900);
    assert_eq!(shown(&world, 6), [1; 6]);
    let first = world.map(0).unwrap().version;
    let mut of_another = (11_901..20_000).filter_map(|now| {
        run_to(&mut world, now);
        world.map(0).filter(|map| map.version.mac != first.mac)
    });
    assert_eq!(of_another.next().unwrap().lossy.len(), 1, "its first map");
}
