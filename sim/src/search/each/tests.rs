use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::fabric::{PlantNode, PlantPort, Xbars};
use crate::world::KernelChoice;
use mapper_fabric::generate;

fn each(spec: &str, xbars: Xbars) -> Each {
    Each::of(generate(spec).unwrap(), Setup { xbars, ..Setup::default() }).unwrap()
}

#[test]
fn every_fault_of_every_place_strikes_at_every_moment() {
    let each = each("clos:hosts=2,ports=4", Xbars::Tagged);
    let (moments, frames) = (each.moments(), each.frames() as usize);
    assert!(moments > 5 && frames > 20, "{moments} moments, {frames} frames");
    let counts: Vec<_> = count_kinds(&each.cases()[..each.single()]).into_iter().collect();
    // Two cables, two hosts and an xbar; a cable moves by either end to either free port.
    let moving = each.moving_moments();
    assert!(moving.len() > 1 && moving.len() <= MOVING_MOMENTS && moving.last() == Some(&each.ended_at));
    let expected = [
        ("alias", 2 * moments),
        ("corrupt", 3 * moments),
        ("cut", 8 * moments),
        ("duplicate", 3 * moments),
        ("hostile", 6 * moments),
        ("jitter", 3 * moments),
        ("kill", 8 * moments),
        ("level", 2 * moments),
        ("lose", frames),
        ("lose-tries", frames),
        ("loss", 3 * moments),
        ("lossy", 8 * moments),
        ("move", 8 * 4 * moving.len()),
        ("mtu", 2 * moments),
        ("mute", 8 * moments),
        ("off", 4 * moments),
        ("passes", 2 * moments),
        ("remove", 8 * moments),
        ("rename", 2 * moments),
        ("restart", 2 * moments),
        ("set", 2 * moments),
        ("silence", 8 * moments),
        ("swap", moments),
        ("twin", 6 * moments),
    ];
    assert_eq!(counts, expected);
    let fabric = generate("clos:hosts=2,ports=4").unwrap();
    let signed = Each::of(fabric, Setup { signed: true, ..Setup::default() }).unwrap();
    let rekeyed = count_kinds(&signed.cases()[..signed.single()])["rekey"];
    assert_eq!(rekeyed, 2 * signed.moments(), "hosts that sign change their keys");
}

#[test]
fn a_case_can_be_written_down() {
    let each = each("clos:hosts=2,ports=4", Xbars::Plain);
    let end = |node| PlantPort { node, port: 0 };
    let case = Case {
        fault: Fault::Cut(end(PlantNode::Host(1))),
        at: Instant::from_nanos(12_345_679),
        mended_after: Some(Duration::from_millis(20)),
        then: None,
    };
    assert_eq!(each.fault_file(&case), "at 12345679ns cut h2\nat 32345679ns heal\n");
    let scenario = each.scenario(&case);
    assert_eq!(scenario.healed_at, Instant::from_nanos(32_345_679));
    assert_eq!(each.fault_file(&Case { mended_after: None, ..case }), "at 12345679ns cut h2\n");
    let xbar = |port| PlantPort { node: PlantNode::Xbar(0), port };
    let moved = Fault::Move { from: xbar(2), to: xbar(4) };
    let text = each.fault_file(&Case { fault: moved, ..case });
    let lines: Vec<_> = text.lines().map(|line| line.split_once("ns ").unwrap().1).collect();
    let name = each.plant.name(PlantNode::Xbar(0));
    assert_eq!(lines, [format!("move {name}:2 to {name}:4"), format!("move {name}:4 to {name}:2")]);
}

#[test]
fn one_frame_is_lost_and_the_run_goes_on_otherwise() {
    let each = each("ring:n=3,hosts=1", Xbars::Mixed);
    for number in [1, each.frames() / 2, each.frames()] {
        let case = Case { fault: Fault::Lose(number), at: Instant::ZERO, mended_after: None, then: None };
        let scenario = each.scenario(&case);
        let mut world = scenario.setup.world(&scenario.fabric).unwrap();
        let end = each.ended_at.since(Instant::ZERO);
        world.run(Until::After(end), each.ended_at).unwrap();
        assert_eq!(world.stats().frames[FabricCount::LostToNoise], 1, "frame {number}");
        scenario.run(None).unwrap();
    }
}

#[test]
fn each_case_is_run_once_and_those_that_fail_are_told_in_order() {
    let mut each = each("clos:hosts=2,ports=4", Xbars::Tagged);
    // Both hosts stay, whatever happens to the xbar.
    let cases = each.cases().iter().enumerate();
    let numbers: Vec<usize> = cases.filter(|(_, case)| case.kind() == "swap").map(|(n, _)| n).collect();
    let run = |each: &Each| {
        let done = AtomicUsize::new(0);
        let tried = each.run(&numbers, || {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.into_inner(), numbers.len());
        tried.failures.into_iter().map(|failure| failure.number).collect::<Vec<_>>()
    };
    assert!(run(&each).is_empty());
    // With noise that never ends, frames are lost though nothing is wrong.
    each.setup.noise.loss = 0.3;
    let failed = run(&each);
    assert!(!failed.is_empty() && failed.is_sorted(), "{failed:?}");
    assert_eq!(run(&each), failed);
}

#[test]
fn what_strikes_the_settled_has_the_time_that_it_takes_to_be_found_and_noise_all_of_it() {
    let fabric = || generate("ring:n=4,hosts=1").unwrap();
    let kernel_choice = KernelChoice::Mixed;
    let nodes = Setup { xbars: Xbars::Tagged, nodes: true, kernels: true, kernel_choice, ..Setup::default() };
    for (setup, kinds) in [(nodes, &["firewall-v4"][..]), (Setup::default(), &["corrupt", "loss", "lossy"])] {
        let each = Each::of(fabric(), setup).unwrap();
        let strikes = |case: &Case| case.at >= each.ended_at && kinds.contains(&case.kind());
        let cases = each.cases().iter().enumerate().filter(|(_, case)| strikes(case));
        let numbers: Vec<usize> = cases.map(|(number, _)| number).collect();
        assert!(!numbers.is_empty(), "{kinds:?}");
        let failures = each.run(&numbers, || ()).failures;
        assert!(failures.is_empty(), "{failures:?}");
    }
}

#[test]
fn users_that_rarely_send_are_not_held_to_have_lost_their_routes() {
    let users = UserSetup { rate: 1.0, partners: PARTNERS, from: None, flows: 1, broadcasts: false };
    let each = Each::of(
        generate("ring:n=3,hosts=1").unwrap(),
        Setup { xbars: Xbars::Plain, users: Some(users), ..Setup::default() },
    );
    let each = each.unwrap();
    // Some of these cases lose a frame, and its pair sends the next one only seconds later.
    let numbers: Vec<usize> = (0..each.single()).step_by(40).collect();
    let failures = each.run(&numbers, || ()).failures;
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn a_fabric_that_never_works_is_refused() {
    let fabric = generate("clos:hosts=2,ports=4").unwrap();
    let setup = Setup { limit: Duration::from_millis(1), ..Setup::default() };
    let error = Each::of(fabric, setup).unwrap_err().to_string();
    assert!(error.starts_with("even without a fault, not all are configured within 1ms: "), "{error}");
}
