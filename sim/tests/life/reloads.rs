//! Hosts whose settings change while they run, as those of daemons that read their configuration again.

use std::time::Duration;

use mapper_fabric::generate;
use mapper_proto::Instant;
use mapper_sim::fabric::Xbars;
use mapper_sim::setup::{FaultFile, Setup, UserSetup};
use mapper_sim::world::{Until, World};

/// Four leaves and two spines, with eight hosts whose users send all the while. `changes` are the settings
/// that change.
fn clos(changes: &str) -> World {
    let users = UserSetup { rate: 100.0, partners: 3, from: None, flows: 2, broadcasts: false };
    let setup = Setup {
        xbars: Xbars::Tagged,
        users: Some(users),
        faults: FaultFile { name: "changes".to_owned(), text: changes.to_owned() },
        ..Setup::default()
    };
    let mut world = setup.world(&generate("clos:hosts=8,ports=4").unwrap()).unwrap();
    world.watch_routes();
    world
}

fn run_to(world: &mut World, ms: u64) {
    let time = Duration::from_millis(ms);
    world.run(Until::After(time), Instant::ZERO + time).unwrap();
    world.check_traffic().unwrap();
    world.check_routes_watched().unwrap();
    assert_eq!(world.take_circles(), []);
}

/// How many routes the first host has to the last one.
fn routes_of_first(world: &World) -> usize {
    let table = world.table(0).unwrap();
    let last = table.host(world.mac(7)).unwrap();
    table.paths_to(last).count()
}

#[test]
fn a_host_whose_level_rises_leads_by_a_new_agent_and_no_users_frame_is_lost_meanwhile() {
    let mut world = clos("at 1s level h1 3\n");
    run_to(&mut world, 990);
    assert_eq!(world.verdict().leaders[0].host, 7);
    run_to(&mut world, 4000);
    let verdict = world.verdict();
    assert!(verdict.configured && verdict.map_matches_fabric, "{}", verdict.why_not);
    assert_eq!(verdict.leaders[0].host, 0);
    let traffic = world.traffic().unwrap();
    assert_eq!((traffic.lost, traffic.duplicated), (0, 0));
}

#[test]
fn a_host_that_is_set_to_fewer_routes_computes_them_anew_and_no_users_frame_is_lost_meanwhile() {
    let mut world = clos("at 1s passes h1 1\n");
    run_to(&mut world, 990);
    let (before, version) = (routes_of_first(&world), world.table(0).unwrap().version());
    run_to(&mut world, 2000);
    assert!(before > 1 && routes_of_first(&world) == 1, "{before} and {}", routes_of_first(&world));
    assert_eq!(world.table(0).unwrap().version(), version, "of the same map");
    let traffic = world.traffic().unwrap();
    assert_eq!((traffic.lost, traffic.duplicated), (0, 0));
}

#[test]
fn a_host_that_does_not_run_starts_as_it_was_set_meanwhile() {
    let mut world = clos("at 1s kill h1\nat 2s level h1 3\nat 2s passes h1 1\nat 3s restart h1\n");
    run_to(&mut world, 6000);
    let verdict = world.verdict();
    assert!(verdict.configured && verdict.map_matches_fabric, "{}", verdict.why_not);
    assert_eq!((verdict.leaders[0].host, routes_of_first(&world)), (0, 1));
}

#[test]
fn a_mapper_that_is_set_to_other_rules_maps_again_and_the_others_obey_its_map() {
    let mut world =
        clos("at 0ms set h2 non-clos true\nat 1s set h8 non-clos true\nat 1s set h1 max-hops 23\n");
    run_to(&mut world, 990);
    let before = world.map(0).unwrap();
    assert!(!before.rules.non_clos && before.rules.differ == [world.mac(1)], "{:?}", before.rules);
    let time = Duration::from_secs(4);
    world.run(Until::After(time), Instant::ZERO + time).unwrap();
    let after = world.map(0).unwrap();
    assert!(after.rules.non_clos && after.rules.differ.len() == 6, "{:?}", after.rules);
    assert_eq!((after.version.mac, world.verdict().leaders[0].host), (world.mac(7), 7));
    assert_ne!(after.version, before.version);
}

#[test]
fn a_host_that_is_renamed_is_known_by_its_new_name() {
    let mut world = clos("at 1s rename h1 7\nat 2s restart h1\n");
    run_to(&mut world, 999);
    world.check_announced_names().unwrap();
    run_to(&mut world, 1000);
    world.check_announced_names().unwrap_err();
    for ms in [1900, 6000] {
        run_to(&mut world, ms);
        world.check_announced_names().unwrap();
        let known = world.directory(5).unwrap().name_of(world.mac(0)).unwrap();
        assert_eq!(known.as_str(), "renamed-7");
    }
}
