//! What a host does about cables that lose frames.

use mapper_proto::map::TaggedPort;

use super::*;
use crate::examination::Losing;

fn losing(reached: usize) -> Losing {
    Losing { reached, lost_percent: 20, frame_bytes: 900 }
}

#[test]
fn routes_go_around_a_cable_that_loses_frames_until_it_has_answered_many_tests_in_a_row() {
    let (mut story, basis) = (Story::new(), basis(&ring()));
    let hops = [port(0, 2), port(1, 2), port(2, 1)];
    let found = story.healing.loses_frames(story.now, (&basis, &hops), losing(2));
    assert_eq!(found, Some(port(1, 2)));
    assert_eq!(story.poll(), (true, vec![]), "the agent is not told, as the cable is not dead");
    assert_eq!((story.dead(), story.healing.dead().proved), (vec![port(1, 2)], BTreeSet::new()));
    assert_eq!(story.healing.dead_cables().count(), 0);
    let expected = LossyCable {
        at: port(1, 2),
        since: story.now,
        lost_percent: 20,
        is_avoided: true,
        is_left_out: false,
    };
    assert_eq!(Vec::from_iter(story.healing.lossy_cables()), [expected]);
    assert!(story.healing.goes_around_lossy_only());
    let (at, test) = story.tests.remove(0);
    assert_eq!((at, test.answers, test.may_repeat, test.frame_bytes), (port(1, 2), 64, false, 900));
    // A test without an answer proves nothing: turns that are safe only beside a dead cable stay closed.
    story.healing.cable_asked(VERSION, port(1, 2), false);
    assert_eq!(story.poll(), (false, vec![]));
    assert!(story.healing.dead().proved.is_empty());
    story.healing.cable_up(VERSION, port(1, 2));
    assert_eq!((story.poll(), story.dead()), ((true, vec![]), vec![]));
    assert_eq!(story.healing.lossy_cables().count(), 0);
    // After a relapse, the cable must answer twice as many tests before it is in use again.
    story.healing.loses_frames(story.now, (&basis, &hops), losing(2));
    story.poll();
    assert_eq!(story.tests[0].1.answers, 128);
    let counts = story.healing.counts();
    assert_eq!((counts[HealingCount::LossyCables], counts[HealingCount::CameBack]), (2, 1));
}

#[test]
fn a_cable_that_loses_frames_and_then_falls_silent_is_dead_and_a_new_map_forgets_only_that() {
    let (mut story, basis) = (Story::new(), basis(&ring()));
    let hops = [port(0, 2), port(1, 2)];
    story.healing.loses_frames(story.now, (&basis, &hops), losing(1));
    story.healing.cable_asked(VERSION, port(0, 2), false);
    story.pass_ms(5);
    story.healing.path_down(story.now, PathId(1), &hops, (1, 64));
    assert_eq!(story.poll().1, [(port(0, 2), CableCause::Silence)]);
    assert_eq!(story.healing.lossy_cables().count(), 0, "it is among the dead ones");
    assert!(story.healing.dead().proved.is_empty(), "what was asked before it fell silent proves nothing");
    let test = &story.tests.last().unwrap().1;
    assert_eq!(
        (test.answers, test.may_repeat),
        (ANSWERS, true),
        "it is tested as others that are held for dead"
    );
    story.healing.cable_asked(VERSION, port(0, 2), false);
    story.poll();
    let dead = DeadCable { at: port(0, 2), since: story.now, cause: CableCause::Silence };
    assert_eq!(Vec::from_iter(story.healing.dead_cables()), [dead]);
    assert!(!story.healing.dead().proved.is_empty() && !story.healing.goes_around_lossy_only());
    story.healing.map_installed(story.now, Arc::clone(&basis), OWN);
    assert_eq!(story.healing.dead_cables().count(), 0);
    assert_eq!(story.healing.lossy_cables().map(|cable| cable.at).collect::<Vec<_>>(), [port(0, 2)]);
    assert_eq!((story.dead(), story.healing.dead().proved), (vec![port(0, 2)], BTreeSet::new()));
}

#[test]
fn a_cable_that_loses_frames_and_was_held_for_dead_is_still_one_that_loses_frames_when_it_lives() {
    let (mut story, basis) = (Story::new(), basis(&ring()));
    let hops = [port(0, 2), port(1, 2)];
    story.healing.loses_frames(story.now, (&basis, &hops), losing(1));
    story.healing.path_down(story.now, PathId(1), &hops, (1, 64));
    story.healing.cable_cleared(VERSION, port(0, 2));
    story.healing.cable_up(VERSION, port(0, 2));
    assert_eq!(story.healing.dead_cables().count(), 0);
    assert_eq!(story.healing.lossy_cables().map(|cable| cable.at).collect::<Vec<_>>(), [port(0, 2)]);
    story.pass_ms(200);
    story.poll();
    assert!(!story.tests.last().unwrap().1.may_repeat, "it has to answer many tests in a row");
}

#[test]
fn another_cable_that_loses_frames_is_gone_around_once_the_first_is_well() {
    let (mut story, basis) = (Story::new(), basis(&ring()));
    let hops = [port(0, 2), port(1, 2), port(2, 2)];
    for reached in [1, 2] {
        story.healing.loses_frames(story.now, (&basis, &hops), losing(reached));
    }
    story.healing.cable_up(VERSION, port(0, 2));
    assert_eq!(story.dead(), []);
    story.healing.loses_frames(story.now, (&basis, &hops), losing(2));
    assert_eq!(story.dead(), [port(1, 2)]);
}

#[test]
fn around_one_of_eight_cables_that_lose_frames_routes_go_and_the_others_are_named() {
    let (mut story, basis) = (Story::new(), basis(&ring()));
    let hops = [port(0, 2), port(1, 2), port(2, 2)];
    for reached in [1, 2, 3] {
        story.healing.loses_frames(story.now, (&basis, &hops), losing(reached));
    }
    let is_avoided = |cable: LossyCable| (cable.at, cable.is_avoided);
    let all: Vec<_> = story.healing.lossy_cables().map(is_avoided).collect();
    assert_eq!(all, [(port(0, 2), true), (port(1, 2), false), (port(2, 2), false)]);
    assert_eq!(story.dead(), [port(0, 2)]);
}

#[test]
fn there_is_no_way_around_a_hosts_cable_that_loses_frames_and_it_is_named() {
    let (mut story, basis) = (Story::new(), basis(&ring()));
    let hops = [port(0, 2), port(1, 1)];
    // The cable of the other host, and that of this one.
    for reached in [2, 0] {
        story.healing.loses_frames(story.now, (&basis, &hops), losing(reached));
    }
    let all: Vec<_> = story.healing.lossy_cables().map(|cable| (cable.at, cable.is_avoided)).collect();
    assert_eq!(all, [(port(0, 1), false), (port(1, 1), false)]);
    assert_eq!((story.poll(), story.dead()), ((false, vec![]), vec![]));
    // A frame that the own xbar sends straight back crosses the own cable there and back.
    let (at, CableTest { route, left, to, .. }) = story.tests.remove(0);
    assert_eq!((at, route, left, to), (port(0, 1), Route::from_iter([Element::Relative(0)]), 1, OWN));
    assert_eq!(story.healing.loses_frames(story.now, (&basis, &hops), losing(9)), None);
}

/// The ring's map with another version, and changed in this way.
fn next_map(change: impl FnOnce(&mut Map)) -> Arc<Basis> {
    let mut map = Map { version: MapVersion { counter: 8, ..VERSION }, ..Map::clone(&ring()) };
    change(&mut map);
    basis(&map)
}

#[test]
fn a_cable_that_the_map_leaves_out_is_tested_and_has_to_answer_longer_each_time() {
    let (mut story, first) = (Story::new(), basis(&ring()));
    let hops = [port(0, 2), port(1, 2)];
    let port_of = |tag, port| TaggedPort { tag, port };
    story.healing.loses_frames(story.now, (&first, &hops), losing(1));
    assert_eq!(story.healing.lossy_ports(), [port_of(10, 2)]);
    let without = next_map(|map| map.lossy = vec![map.cables[0]]);
    for answers in [64, 128, 256] {
        story.healing.map_installed(story.now, Arc::clone(&without), OWN);
        let lossy: Vec<_> = story.healing.lossy_cables().collect();
        assert!(lossy.iter().all(|cable| cable.is_left_out) && lossy.len() == 1, "{lossy:?}");
        assert_eq!(story.healing.left_out_by_others().count(), 0);
        let version = without.map().version;
        let test = story.healing.test_of(port(0, 2)).unwrap();
        assert_eq!(test.answers, answers);
        story.healing.cable_up(version, port(0, 2));
        assert_eq!(story.healing.lossy_ports(), []);
        assert_eq!(Vec::from_iter(story.healing.left_out_by_others()), [port(0, 2)]);
        story.healing.map_installed(story.now, Arc::clone(&first), OWN);
        assert_eq!(story.healing.left_out_by_others().count(), 0);
        story.healing.loses_frames(story.now, (&first, &hops), losing(1));
    }
}

#[test]
fn what_an_examination_found_holds_in_the_next_map_if_the_cable_is_where_it_was() {
    let (mut story, examined) = (Story::new(), basis(&ring()));
    let hops = [port(0, 2), port(1, 2)];
    // The xbars stand the other way round, and the cable is there.
    let turned = next_map(|map| {
        map.xbars.reverse();
        let other = |at: PortRef| PortRef { xbar: 3 - at.xbar, ..at };
        map.hosts.iter_mut().for_each(|host| host.at = host.at.map(other));
        map.cables = map.cables.iter().map(|cable| Cable::new(other(cable.a), other(cable.b))).collect();
    });
    story.healing.map_installed(story.now, turned, OWN);
    let found = story.healing.loses_frames(story.now, (&examined, &hops), losing(1));
    assert_eq!(found, Some(port(2, 3)));
    // The cable in that port leads elsewhere; the crossbar has no tag any more; the cable is gone.
    for change in [
        |map: &mut Map| map.cables[0] = Cable::new(port(0, 2), port(1, 4)),
        |map: &mut Map| map.xbars[1].tag = None,
        |map: &mut Map| map.cables.retain(|cable| cable.a != port(0, 2)),
    ] {
        let mut story = Story::new();
        story.healing.map_installed(story.now, next_map(change), OWN);
        assert_eq!(story.healing.loses_frames(story.now, (&examined, &hops), losing(1)), None);
    }
}

#[test]
fn a_cable_that_a_map_missed_is_told_on_and_lossy_again_once_a_map_has_it() {
    let (mut story, first) = (Story::new(), basis(&ring()));
    let hops = [port(0, 2), port(1, 2)];
    story.healing.loses_frames(story.now, (&first, &hops), losing(1));
    let without = next_map(|map| map.cables.retain(|cable| cable.a != port(0, 2)));
    story.healing.map_installed(story.now, without, OWN);
    assert_eq!(story.healing.lossy_cables().count(), 0);
    assert_eq!(story.healing.lossy_ports(), [TaggedPort { tag: 10, port: 2 }]);
    // A cable that was plugged into that port since is not the one that lost frames.
    let moved = next_map(|map| map.cables[0] = Cable::new(port(0, 2), port(1, 4)));
    story.healing.map_installed(story.now, moved, OWN);
    assert_eq!(story.healing.lossy_cables().count(), 0);
    story.healing.map_installed(story.now, Arc::clone(&first), OWN);
    assert_eq!(story.healing.lossy_cables().map(|cable| cable.at).collect::<Vec<_>>(), [port(0, 2)]);
    let without = next_map(|map| map.cables.retain(|cable| cable.a != port(0, 2)));
    story.healing.map_installed(story.now, without, OWN);
    story.pass_ms(60_000);
    story.healing.poll(story.now);
    assert_eq!(story.healing.lossy_ports(), [], "it is gone");
}

#[test]
fn dead_cables_are_known_in_a_map_that_only_shows_others_that_lose_frames() {
    let mut story = Story::new();
    story.healing.path_down(story.now, PathId(1), &[port(0, 2), port(1, 2)], (1, 64));
    assert_eq!(story.poll(), (true, vec![(port(0, 2), CableCause::Silence)]));
    let map = Map { lossy: vec![ring().cables[1]], ..Map::clone(&ring()) };
    story.healing.map_installed(story.now, basis(&map), OWN);
    assert_eq!(story.poll(), (true, vec![(port(0, 2), CableCause::Silence)]), "the agent is told again");
    assert_eq!(story.dead(), [port(0, 2)]);
    // A map that was explored ends what was known of dead cables.
    story.healing.map_installed(story.now, next_map(|map| map.cables.truncate(3)), OWN);
    assert_eq!(story.dead(), []);
}
