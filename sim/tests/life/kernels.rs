//! Users' packets through the kernels of nodes.

use std::time::Duration;

use mapper_fabric::generate;
use mapper_host::EndOnceMapped;
use mapper_host::kernel_path::V4_LEFT_WITHIN;
use mapper_proto::Instant;
use mapper_sim::fabric::{PlantNode, Xbars};
use mapper_sim::setup::{FaultFile, Setup, UserSetup};
use mapper_sim::world::{CircleCause, KernelChoice, Until, World};

/// Four nodes in a ring, whose users send through kernels. `faults` are the faults that strike.
fn ring(faults: &str) -> World {
    ring_by(KernelChoice::Auto, faults)
}

/// The same ring with hosts that have this setting.
fn ring_by(kernel_choice: KernelChoice, faults: &str) -> World {
    nodes("ring:n=4,hosts=1", kernel_choice, faults)
}

/// The nodes of a fabric, set so, whose users send through kernels.
fn nodes(fabric: &str, kernel_choice: KernelChoice, faults: &str) -> World {
    let users = UserSetup { rate: 100.0, partners: 3, from: None, flows: 2, broadcasts: false };
    let setup = Setup {
        // All four kernels know compressed segments.
        seed: 3,
        xbars: Xbars::Tagged,
        nodes: true,
        kernels: true,
        kernel_choice,
        users: Some(users),
        faults: FaultFile { name: "faults".to_owned(), text: faults.to_owned() },
        ..Setup::default()
    };
    let mut world = setup.world(&generate(fabric).unwrap()).unwrap();
    world.watch_routes();
    world
}

/// Runs up to this moment, and checks what must hold of users' packets at all times.
fn run_watched(world: &mut World, ms: u64) {
    let time = Duration::from_millis(ms);
    world.run(Until::After(time), Instant::ZERO + time).unwrap();
    world.check_traffic().unwrap();
}

/// Does the same as [`run_watched`], and checks that the routes in force close no circle meanwhile.
fn run_to(world: &mut World, ms: u64) {
    run_watched(world, ms);
    assert_eq!(world.take_circles(), []);
}

#[test]
fn packets_go_through_the_kernels_once_their_ways_are_proved() {
    let mut world = ring("");
    run_to(&mut world, 2000);
    let before = (world.stats().by_kernel, world.traffic().unwrap());
    run_to(&mut world, 4000);
    let after = (world.stats().by_kernel, world.traffic().unwrap());
    assert_eq!((after.1.lost, after.1.duplicated, after.1.reordered), (0, 0, 0));
    let (by_kernel, delivered) = (after.0 - before.0, after.1.delivered - before.1.delivered);
    assert!(before.0 > 0 && by_kernel > delivered / 2, "{by_kernel} of {delivered}");
}

#[test]
fn a_kernel_that_forwards_nothing_is_left_and_comes_back() {
    let mut world = ring("at 4s firewall h1\nat 14s open h1\n");
    run_to(&mut world, 11_000);
    let lost = world.traffic().unwrap().lost;
    assert!(lost > 0, "packets went that way");
    run_to(&mut world, 14_000);
    assert_eq!(
        world.traffic().unwrap().lost,
        lost,
        "the others go around it, and to it by its tap interface"
    );
}

#[test]
fn a_kernel_that_drops_ipv4_alone_is_left_by_packets_of_it_and_comes_back() {
    for choice in [KernelChoice::Auto, KernelChoice::Routes] {
        let mut world = ring_by(choice, "at 4s firewall-v4 h1\nat 14s open h1\n");
        run_to(&mut world, 11_000);
        let (lost, by_kernel) = (world.traffic().unwrap().lost, world.stats().by_kernel);
        assert!(lost > 0, "{choice:?}: packets went that way");
        let gap = gap_behind_the_first_fault(&mut world);
        assert!(gap <= V4_LEFT_WITHIN, "{choice:?}: users heard nothing of each other for {gap:?}");
        run_to(&mut world, 14_000);
        assert_eq!(
            world.traffic().unwrap().lost,
            lost,
            "{choice:?}: they go around it, and to it by its tap"
        );
        let meanwhile = world.stats().by_kernel - by_kernel;
        run_to(&mut world, 44_000);
        let before = world.stats().by_kernel;
        run_to(&mut world, 47_000);
        let again = world.stats().by_kernel - before;
        assert!(
            meanwhile > 0 && again > meanwhile,
            "{choice:?}: {meanwhile} in three seconds, later {again}"
        );
        assert_eq!(world.traffic().unwrap().lost, lost, "{choice:?}");
    }
}

#[test]
fn a_kernel_that_somebody_emptied_is_filled_again() {
    let mut world = ring("at 2s flush h1\n");
    run_to(&mut world, 6000);
    let (lost, by_kernel) = (world.traffic().unwrap().lost, world.stats().by_kernel);
    run_to(&mut world, 8000);
    assert_eq!(world.traffic().unwrap().lost, lost);
    assert!(world.stats().by_kernel > by_kernel);
}

#[test]
fn a_cut_cable_is_left_by_packets_too() {
    let mut world = ring("at 2s cut xbar1:1\n");
    run_to(&mut world, 1900);
    assert_eq!(world.traffic().unwrap().lost, 0);
    run_to(&mut world, 5000);
    let lost = world.traffic().unwrap().lost;
    run_to(&mut world, 8000);
    assert_eq!(world.traffic().unwrap().lost, lost, "all was well again three seconds after the cut");
}

#[test]
fn packets_go_by_destination_where_hosts_are_set_so_and_around_a_cut_cable_by_the_tables_of_the_next_map() {
    let mut world = ring_by(KernelChoice::Routes, "at 4s cut xbar1:1\n");
    run_to(&mut world, 2000);
    let before = (world.stats().by_kernel, world.traffic().unwrap().delivered);
    run_to(&mut world, 3900);
    let after = (world.stats().by_kernel, world.traffic().unwrap());
    assert_eq!((after.1.lost, after.1.reordered), (0, 0));
    let (by_kernel, delivered) = (after.0 - before.0, after.1.delivered - before.1);
    assert!(by_kernel > delivered / 2, "{by_kernel} of {delivered}");
    run_to(&mut world, 6000);
    let (by_kernel, lost) = (world.stats().by_kernel, world.traffic().unwrap().lost);
    run_to(&mut world, 8000);
    assert_eq!(world.traffic().unwrap().lost, lost, "all was well again two seconds after the cut");
    assert!(world.stats().by_kernel > by_kernel, "and packets go through kernels again");
}

#[test]
fn tables_by_destination_that_the_next_map_has_too_stay_in_use_while_maps_change() {
    let mut world = ring_by(KernelChoice::Routes, "at 4s cut xbar1:1\n");
    run_to(&mut world, 4000);
    let before = (world.stats().by_kernel, world.traffic().unwrap().delivered);
    run_to(&mut world, 4100);
    let delivered = world.traffic().unwrap().delivered - before.1;
    let by_tap = delivered - (world.stats().by_kernel - before.0);
    assert!(delivered > 30 && 10 * by_tap < delivered, "{by_tap} of {delivered} went by the tap interface");
}

/// The longest time that users heard nothing of each other behind the first fault.
fn gap_behind_the_first_fault(world: &mut World) -> Duration {
    world.traffic().unwrap().faults[0].longest_gap
}

#[test]
fn a_node_whose_address_another_takes_says_that_it_forwards_nothing_and_is_left_at_once() {
    // All ways between the two others lead through nodes that have one address.
    for (twin, of) in [(2, 4), (4, 2)] {
        let mut world = ring_by(KernelChoice::Routes, &format!("at 4s twin h{twin} of h{of}\n"));
        run_watched(&mut world, 4000);
        assert!(world.stats().by_kernel > 0);
        run_watched(&mut world, 9000);
        let gap = gap_behind_the_first_fault(&mut world);
        assert!(gap < Duration::from_millis(100), "users heard nothing of each other for {gap:?}");
    }
}

#[test]
fn a_node_whose_agent_is_cut_off_from_its_crossbar_says_so_once_it_is_alone_and_is_left_at_once() {
    let mut world = ring_by(KernelChoice::Routes, "at 4s silence xbar4:3\n");
    run_watched(&mut world, 10_000);
    assert_eq!(world.verdict().parts, 2);
    let gap = gap_behind_the_first_fault(&mut world);
    assert!(gap < Duration::from_millis(100), "users heard nothing of each other for {gap:?}");
}

#[test]
fn no_packet_by_destination_is_longer_than_the_cables_carry_that_it_may_take() {
    // Ways across the cube fork behind their first cable, and only some of them lead through the narrow node.
    for narrow in [2, 4] {
        let wide = (1..=8).filter(|&host| host != narrow).map(|host| format!("at 0ms mtu h{host} 2000\n"));
        let mut world = nodes("hypercube:d=3,hosts=1", KernelChoice::Routes, &wide.collect::<String>());
        run_to(&mut world, 6000);
        assert!(world.stats().by_kernel > 0);
        assert_eq!(world.traffic().unwrap().lost, 0, "node {narrow} is narrow");
    }
}

#[test]
fn a_leader_that_starts_again_takes_over_from_its_kernel_which_has_carried_the_packets_of_others_meanwhile() {
    // The kernel of the leader's machine goes on while no daemon runs there.
    let mut world = ring("at 2s kill h4\nat 2600ms restart h4\n");
    run_to(&mut world, 1990);
    let leader = world.verdict().leaders[0].host;
    assert_eq!(world.plant().name(PlantNode::Host(leader)), "h4");
    // The kernel holds routes of the map before, which may close a circle with the routes of the next one.
    for ms in [2590, 6000] {
        let by_kernel = world.stats().by_kernel;
        run_watched(&mut world, ms);
        assert!(world.take_circles().iter().all(|circle| circle.cause == CircleCause::Maps));
        assert!(world.stats().by_kernel > by_kernel, "kernels go on");
    }
    let verdict = world.verdict();
    assert_eq!((verdict.configured, verdict.leaders[0].host), (true, leader), "{}", verdict.why_not);
    let (before, by_kernel) = (world.traffic().unwrap().delivered, world.stats().by_kernel);
    run_to(&mut world, 8000);
    let after = world.traffic().unwrap();
    assert_eq!((after.lost, after.duplicated, after.reordered), (0, 0, 0));
    assert!(world.stats().by_kernel - by_kernel > (after.delivered - before) / 2);
}

#[test]
fn the_crossbar_of_a_node_ends_with_its_agent_and_its_kernel_goes_on() {
    let mut world = ring("at 2s kill h1\nat 3s restart h1\nat 4s mute h1\nat 5s restart h1\n");
    for (ms, xbars) in [(1990, 4), (2990, 3), (3990, 4), (4990, 3), (5990, 4)] {
        run_to(&mut world, ms);
        let verdict = world.verdict();
        assert!(verdict.configured && verdict.map_matches_fabric, "{ms} ms: {}", verdict.why_not);
        assert_eq!(world.map(3).unwrap().xbars.len(), xbars, "{ms} ms");
    }
    // Packets go on through the kernel of the node, whose crossbar takes frames no more.
    let gap = gap_behind_the_first_fault(&mut world);
    assert!(gap < Duration::from_millis(100), "users heard nothing of each other for {gap:?}");
}

#[test]
fn agents_that_map_once_end_when_kernels_carry_all_without_them() {
    let is_over = |world: &World| (0..4).all(|host| world.map(host).is_none());
    for choice in [KernelChoice::Auto, KernelChoice::Routes] {
        // At the latter moment all have heard that all have the map, which they hear once only.
        for (told_at_ms, keeps_kernel_routes) in [(20, true), (1000, true), (20, false)] {
            let mut world = ring_by(choice, "");
            run_to(&mut world, told_at_ms);
            let until = Instant::ZERO + Duration::from_secs(60);
            world.end_once_mapped(EndOnceMapped { until, keeps_kernel_routes });
            let mut ms = told_at_ms;
            while !is_over(&world) {
                ms += 100;
                assert!(ms < 40_000, "{choice:?} from {told_at_ms} ms on: some agent has not ended");
                run_to(&mut world, ms);
            }
            let carried = world.check_packets_without_agents();
            assert_eq!(
                carried.is_ok(),
                keeps_kernel_routes,
                "{choice:?} from {told_at_ms} ms on: {carried:?}"
            );
        }
    }
}

#[test]
fn the_interfaces_of_all_users_have_the_mtu_that_all_cables_carry() {
    let wide: String = (1..=4).map(|host| format!("at 0ms mtu h{host} 2000\n")).collect();
    let mut world = ring(&format!("{wide}at 2s mtu h2 1500\nat 4s mtu h2 2000\n"));
    run_to(&mut world, 1000);
    let widest = world.tap_mtu(0).unwrap();
    for (ms, less) in [(1900, 0), (3900, 500), (6000, 0)] {
        run_to(&mut world, ms);
        world.check_tap_mtus().unwrap();
        let now = [0, 1, 2, 3].map(|host| world.tap_mtu(host).unwrap());
        assert_eq!(now, [widest - less; 4], "{ms} ms");
    }
}
