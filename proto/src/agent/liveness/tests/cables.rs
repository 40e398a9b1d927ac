//! Cables that were taken for dead are asked until they answer.

use super::*;

#[test]
fn no_test_of_a_cable_is_longer_than_the_own_interface_carries() {
    let (version, at) = (MapVersion { mac: Mac::from_position(1), counter: 1 }, PortRef { xbar: 0, port: 2 });
    let mut pair = Pair::new(1, |_, transmit| link_bytes(transmit) <= 600);
    pair.watcher.set_mtu(pair.now, crate::map::LinkMtu { bytes: 600, ports: PortSet::NONE });
    let (route, to) = (route(&[1, 0, -1]), Mac::from_position(2));
    let test = CableTest { route, left: 2, to, frame_bytes: LONGEST, answers: 3, may_repeat: true };
    for round in 1..=3 {
        pair.watcher.test_cable(pair.now, version, at, test.clone());
        pair.run_quietly_to(ms(300 * round));
    }
    let happened: Vec<&Event> = pair.events.iter().map(|(_, event)| event).collect();
    let is_silent = |event: &&Event| matches!(event, Event::CableAsked { answered: false, .. });
    assert!(!happened.iter().any(is_silent), "{happened:?}");
    assert!(happened.contains(&&Event::CableUp { version, at }), "{happened:?}");
}

#[test]
fn a_cable_lives_when_it_answers_so_many_tests_in_a_row() {
    let (version, at) = (MapVersion { mac: Mac::from_position(1), counter: 1 }, PortRef { xbar: 0, port: 2 });
    let mut lost = 0;
    // Dead at first, then every third test is lost, then none.
    let mut pair = Pair::new(1, move |now, transmit| {
        assert!(is_probe(&transmit.frame) && link_bytes(transmit) == LONGEST);
        lost += u32::from(now >= ms(1000));
        now >= ms(2000) || (now >= ms(1000) && lost % 3 != 0)
    });
    let (route, to) = (route(&[1, 0, -1]), Mac::from_position(2));
    let test = CableTest { route, left: 2, to, frame_bytes: LONGEST, answers: 3, may_repeat: true };
    for round in 1..=10 {
        pair.watcher.test_cable(pair.now, version, at, test.clone());
        pair.run_quietly_to(ms(300 * round));
    }
    let (asked, up): (Vec<_>, Vec<_>) =
        pair.events.iter().partition(|(_, event)| matches!(event, Event::CableAsked { .. }));
    let [(up_at, event), ..] = up[..] else { panic!("nothing") };
    assert_eq!(*event, Event::CableUp { version, at });
    assert!((ms(2000)..ms(2500)).contains(up_at), "{up_at:?}");
    // Until then each change is told, and told once.
    let asked: Vec<_> = asked.into_iter().filter(|(at, _)| at <= up_at).collect();
    let expected = |answered| Event::CableAsked { version, at, answered };
    assert_eq!(asked[0].1, expected(false));
    for pair in asked.windows(2) {
        assert_ne!(pair[0].1, pair[1].1);
    }
    assert!(asked[1].0 >= ms(1000) && asked[1].1 == expected(true), "{asked:?}");
    pair.run_quietly_to(ms(6000));
    assert_eq!((pair.watcher.load(), pair.watcher.poll_timeout()), (0, None), "forgotten when not repeated");
}

#[test]
fn a_cable_that_answers_no_test_is_proved_dead_as_soon_as_a_path_may_be_doubted() {
    let (version, at) = (MapVersion { mac: Mac::from_position(1), counter: 1 }, PortRef { xbar: 0, port: 2 });
    let mut pair = Pair::new(1, |_, _| false);
    let (route, to) = (route(&[1, 0, -1]), Mac::from_position(2));
    let test = CableTest { route, left: 2, to, frame_bytes: LONGEST, answers: 3, may_repeat: true };
    pair.watcher.test_cable(pair.now, version, at, test);
    pair.run_quietly_to(ms(1000));
    let proved_at = ms(0) + settings(1).liveness_interval;
    assert_eq!(pair.events, [(proved_at, Event::CableAsked { version, at, answered: false })]);
}

/// What is told of a live cable under test, if these frames of all that are sent get lost, counted from 1.
fn told_of_live_cable(lost: impl Fn(u32) -> bool + 'static) -> Vec<(Instant, Event)> {
    let (version, at) = (MapVersion { mac: Mac::from_position(1), counter: 1 }, PortRef { xbar: 0, port: 2 });
    let mut sent = 0;
    let mut pair = Pair::new(1, move |_, _| {
        sent += 1;
        !lost(sent)
    });
    let (route, to) = (route(&[1, 0, -1]), Mac::from_position(2));
    let test = CableTest { route, left: 2, to, frame_bytes: LONGEST, answers: 30, may_repeat: true };
    pair.watcher.test_cable(pair.now, version, at, test);
    pair.run_quietly_to(ms(1000));
    pair.events
}

#[test]
fn no_cable_is_proved_dead_as_a_few_frames_get_lost() {
    for first in 1..8 {
        for lost in 0..8 {
            let events = told_of_live_cable(move |frame| (first..first + lost).contains(&frame));
            let [(told_at, Event::CableAsked { answered: true, .. })] = events[..] else {
                panic!("{lost} from {first}: {events:?}")
            };
            assert!(told_at < ms(0) + settings(1).liveness_interval, "{told_at:?}");
        }
    }
}

#[test]
fn a_live_cable_that_was_taken_for_dead_answers_soon_though_tests_get_lost() {
    // The eight frames of the first test get lost, and three after it.
    let events = told_of_live_cable(|frame| frame <= 8 + 3);
    let [
        (dead_at, Event::CableAsked { answered: false, .. }),
        (live_at, Event::CableAsked { answered: true, .. }),
    ] = events[..]
    else {
        panic!("{events:?}")
    };
    assert!(live_at.since(dead_at) < Duration::from_millis(250), "from {dead_at:?} to {live_at:?}");
}

#[test]
fn a_test_that_has_one_frame_is_lost_with_it() {
    let (version, at) = (MapVersion { mac: Mac::from_position(1), counter: 1 }, PortRef { xbar: 0, port: 2 });
    let mut sent = 0;
    let mut pair = Pair::new(1, move |_, _| {
        sent += 1;
        sent == 1 || sent > 2
    });
    let (route, to) = (route(&[1, 0, -1]), Mac::from_position(2));
    let test = CableTest { route, left: 2, to, frame_bytes: 0, answers: 5, may_repeat: false };
    for round in 1..=5 {
        pair.watcher.test_cable(pair.now, version, at, test.clone());
        pair.run_quietly_to(ms(300 * round));
    }
    let told: Vec<_> = pair.events.iter().map(|(_, event)| event.clone()).collect();
    let asked = |answered| Event::CableAsked { version, at, answered };
    let up = Event::CableUp { version, at };
    assert_eq!(told[..4], [asked(true), asked(false), asked(true), up]);
}

#[test]
fn a_live_cable_that_loses_most_frames_and_was_taken_for_dead_answers_soon() {
    // Of each eight frames the last comes back, and none of the first eight.
    let events = told_of_live_cable(|frame| frame <= 8 || !frame.is_multiple_of(8));
    let [(dead_at, Event::CableAsked { answered: false, .. }), (live_at, _), ..] = events[..] else {
        panic!("{events:?}")
    };
    assert!(live_at.since(dead_at) < Duration::from_millis(60), "from {dead_at:?} to {live_at:?}");
}
