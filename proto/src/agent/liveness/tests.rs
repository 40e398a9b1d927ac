//! An agent watches paths to another, and one path is held against a model.

mod cables;
mod pair;
mod path_model;

use std::collections::VecDeque;
use std::time::Duration;

use super::{CableTest, LivenessCount, PathId, PathUse};
use crate::agent::{Agent, Event, Settings, Transmit};
use crate::map::{MapVersion, PortRef};
use crate::wire::{Data, Element, Frame, Key, KeyRing, Message, RoundTrip, Route, SECRET_BYTES};
use crate::{Instant, Mac, PortSet};
use pair::*;

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn route(deltas: &[i8]) -> Route {
    deltas.iter().map(|&delta| Element::Relative(delta)).collect()
}

#[test]
fn a_silent_path_is_down_within_70_ms_of_the_break_and_its_last_xbar_is_named() {
    for break_ms in 1000..1040 {
        for seed in 0..5 {
            let broken = ms(break_ms);
            // Three xbars; the cable behind the second dies.
            let mut pair = Pair::new(seed, move |now, transmit| {
                now < broken || (is_probe(&transmit.frame) && transmit.route.hops() <= 3)
            });
            pair.run_to(ms(1500), &[3, -1, 2]);
            let [(at, event)] = &pair.events[..] else { panic!("{:?}", pair.events) };
            assert!(matches!(event, Event::PathDown { path: PathId(0), reached: 2, .. }));
            assert!((40..70).contains(&at.since(broken).as_millis()), "{:?}", at.since(broken));
            assert_eq!(pair.count(LivenessCount::Failures), 1);
        }
    }
}

#[test]
fn a_path_between_agents_with_keys_that_never_met_is_up() {
    let keys = KeyRing::new(vec![Key::new(1, [7; SECRET_BYTES])], 1).unwrap();
    let mut pair = Pair::with_keys(Some(&keys), 1, |_, _| true);
    pair.run_to(ms(1000), &[3, -1, 2]);
    assert_eq!(pair.events, []);
    assert_eq!(pair.count(LivenessCount::Failures), 0);
    let checks = pair.count(LivenessCount::ChecksSent);
    assert!(checks < 80, "{checks}");
}

#[test]
fn a_path_that_answers_again_is_up_and_one_that_answers_costs_sixty_checks_a_second() {
    let mut pair = Pair::new(1, |now, _| !(ms(1000)..ms(2000)).contains(&now));
    pair.run_to(ms(1000), &[1]);
    let checks = pair.count(LivenessCount::ChecksSent);
    assert!((55..=67).contains(&checks), "{checks}");
    pair.run_to(ms(3000), &[1]);
    let [(_, down), (up_at, up)] = &pair.events[..] else { panic!("{:?}", pair.events) };
    assert!(matches!(down, Event::PathDown { path: PathId(0), reached: 0, .. }));
    assert_eq!(*up, Event::PathUp { path: PathId(0) });
    assert!(up_at.since(ms(2000)) < Duration::from_millis(80), "{up_at:?}");
}

#[test]
fn a_path_that_falls_silent_again_before_it_is_up_is_told_with_the_place_where_it_breaks_now() {
    for seed in 0..20 {
        // The own cable is dead for a while. It carries two checks at most, and then a cable behind the second of three xbars dies.
        let mut pair = Pair::new(seed, |now, transmit| match now {
            now if now < ms(1000) => true,
            now if now < ms(1200) => false,
            now if now < ms(1229) => true,
            _ => is_probe(&transmit.frame) && transmit.route.hops() <= 3,
        });
        pair.run_to(ms(2000), &[3, -1, 2]);
        let [(_, first), (at, second)] = &pair.events[..] else { panic!("{:?}", pair.events) };
        assert!(matches!(first, Event::PathDown { path: PathId(0), reached: 0, .. }), "{first:?}");
        assert!(matches!(second, Event::PathDown { path: PathId(0), reached: 2, .. }), "{second:?}");
        assert!(at.since(ms(1229)) < Duration::from_millis(90), "{at:?}");
        assert_eq!(pair.count(LivenessCount::Failures), 2);
    }
}

#[test]
fn lost_frames_are_no_dead_cable() {
    // Two checks of three are lost.
    let mut n = 0;
    let mut pair = Pair::new(1, move |_, _| {
        n += 1;
        n % 3 == 0
    });
    pair.run_to(ms(60_000), &[1, 2]);
    let loses = |event: &Event| matches!(event, Event::PathLosesFrames { .. });
    assert!(pair.events.iter().all(|(_, event)| loses(event)), "{:?}", pair.events);
    assert!(pair.watcher.load() < 64, "{}", pair.watcher.load());
}

#[test]
fn another_host_at_the_end_of_a_path_is_not_taken_for_the_first() {
    let mut pair = Pair::new(1, |_, _| true);
    pair.run_to(ms(500), &[1]);
    pair.far = Agent::new(Settings { level: 0, ..settings(3) }, 1, ms(500));
    pair.run_to(ms(1000), &[1]);
    assert!(matches!(pair.events[..], [(_, Event::PathDown { .. })]), "{:?}", pair.events);
}

#[test]
fn a_path_out_of_use_is_forgotten_without_a_word() {
    let mut pair = Pair::new(1, |now, _| now < ms(1480));
    pair.watch(0, &[1]);
    pair.run_quietly_to(ms(1499));
    assert_eq!(pair.count(LivenessCount::Watched), 1);
    pair.run_quietly_to(ms(5000));
    assert_eq!(pair.events, []);
    assert_eq!((pair.count(LivenessCount::Watched), pair.watcher.load()), (0, 0));
    assert_eq!(pair.watcher.poll_timeout(), None);
}

#[test]
fn more_paths_than_the_limit_are_counted_and_those_in_use_keep_their_places() {
    let mut pair = Pair::new(1, |_, _| true);
    for round in 0..20 {
        (0..100).for_each(|path| pair.watch(path, &[1]));
        pair.run_quietly_to(ms(300 * (round + 1)));
        assert_eq!(pair.watched(), (64, 36));
    }
    // The watched paths go out of use, and others take their places.
    for round in 20..40 {
        (50..100).for_each(|path| pair.watch(path, &[1]));
        pair.run_quietly_to(ms(300 * (round + 1)));
    }
    assert_eq!(pair.watched(), (50, 0));
    for path in 0..100_000 {
        pair.watch(path, &[2]);
    }
    assert_eq!(pair.watched(), (64, 1024));
    assert_eq!(pair.events, []);
}

#[test]
fn without_an_interval_nothing_is_checked() {
    let mut agent =
        Agent::new(Settings { level: 0, liveness_interval: Duration::ZERO, ..settings(1) }, 1, ms(0));
    agent.watch_path(ms(0), PathId(1), used(&[1]));
    assert_eq!((agent.poll_timeout(), agent.status().liveness[LivenessCount::Watched]), (None, 0));
}

#[test]
fn a_notice_about_the_latest_check_names_its_path_once_whether_it_was_answered_or_not() {
    let tokens = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let record = std::rc::Rc::clone(&tokens);
    let mut pair = Pair::new(1, move |_, transmit| {
        record.borrow_mut().push(Data::decode(&transmit.frame).unwrap().token);
        true
    });
    pair.run_to(ms(100), &[1, 2]);
    let [.., old, newest] = tokens.take()[..] else { panic!("no checks") };
    assert_eq!(pair.watcher.undeliverable_check(old), None);
    assert_eq!(pair.watcher.undeliverable_check(newest ^ 1), None);
    assert_eq!(pair.watcher.undeliverable_check(newest), Some(PathId(0)));
    assert_eq!(pair.watcher.undeliverable_check(newest), None);
    // A check that is named while it is under way is not known any more when its answer has come.
    let sent = |pair: &mut Pair| {
        while tokens.borrow().is_empty() {
            pair.run_to(pair.now + Duration::from_micros(100), &[1, 2]);
        }
        tokens.take()[0]
    };
    let under_way = sent(&mut pair);
    assert_eq!(pair.watcher.undeliverable_check(under_way), Some(PathId(0)));
    pair.run_to(pair.now + Duration::from_millis(1), &[1, 2]);
    assert_eq!(pair.watcher.undeliverable_check(under_way), None);
    // A check that is never answered stays known.
    pair.carries = Box::new({
        let record = std::rc::Rc::clone(&tokens);
        move |_, transmit| {
            record.borrow_mut().push(Data::decode(&transmit.frame).unwrap().token);
            false
        }
    });
    let lost = sent(&mut pair);
    pair.run_to(pair.now + Duration::from_millis(2), &[1, 2]);
    assert_eq!(pair.watcher.undeliverable_check(lost), Some(PathId(0)));
}

#[test]
fn checks_look_like_users_frames_and_one_in_four_is_as_long_as_the_longest() {
    let (mut sent, seen) = (Vec::new(), std::rc::Rc::new(std::cell::RefCell::new(Vec::new())));
    let record = std::rc::Rc::clone(&seen);
    let mut pair = Pair::new(1, move |_, transmit| {
        assert!(Data::is_check(&transmit.frame));
        record.borrow_mut().push(link_bytes(transmit));
        true
    });
    pair.run_to(ms(1000), &[3, -1, 2]);
    sent.append(&mut seen.borrow_mut());
    let long = sent.iter().filter(|&&bytes| bytes == LONGEST).count();
    let short = sent.iter().filter(|&&bytes| bytes < 200).count();
    assert_eq!(long + short, sent.len(), "{sent:?}");
    assert!((sent.len() / 4 - 1..=sent.len() / 4 + 1).contains(&long), "{sent:?}");
}

#[test]
fn what_lets_short_frames_pass_and_not_long_ones_is_found_and_so_is_where() {
    let mut pair = Pair::new(1, |now, transmit| {
        now < ms(1000)
            || link_bytes(transmit) < 500
            || (is_probe(&transmit.frame) && transmit.route.hops() <= 1)
    });
    pair.run_to(ms(1300), &[3, -1, 2]);
    let [(at, event)] = &pair.events[..] else { panic!("{:?}", pair.events) };
    assert_eq!(*event, Event::PathDown { path: PathId(0), reached: 1, frame_bytes: LONGEST });
    assert!(at.since(ms(1000)) < Duration::from_millis(160), "{at:?}");
}

#[test]
fn a_path_that_carries_no_long_frames_is_up_again_once_users_send_none_and_its_silence_is_found() {
    let deltas = [3, -1, 2];
    let mut pair = Pair::new(1, |now, transmit| now < ms(2000) && link_bytes(transmit) < 500);
    pair.run_to(ms(1000), &deltas);
    let states = |pair: &Pair| -> Vec<bool> {
        pair.events.iter().map(|(_, event)| matches!(event, Event::PathUp { .. })).collect()
    };
    assert_eq!(states(&pair), [false]);
    let run_with_shorter_frames_to = |pair: &mut Pair, end: Instant| {
        while pair.now < end {
            let shorter = PathUse { longest_bytes: 400, ..used(&deltas) };
            pair.watcher.watch_path(pair.now, PathId(0), shorter);
            pair.run_quietly_to((pair.now + Duration::from_millis(300)).min(end));
        }
    };
    run_with_shorter_frames_to(&mut pair, ms(2000));
    assert_eq!(states(&pair), [false, true]);
    run_with_shorter_frames_to(&mut pair, ms(2300));
    assert_eq!(states(&pair), [false, true, false]);
}

#[test]
fn no_check_is_longer_than_the_interface_carries() {
    let mut pair = Pair::new(1, |now, transmit| now < ms(500) || link_bytes(transmit) <= 600);
    pair.run_to(ms(500), &[3, -1, 2]);
    pair.watcher.set_mtu(pair.now, crate::map::LinkMtu { bytes: 600, ports: PortSet::NONE });
    pair.run_to(ms(1500), &[3, -1, 2]);
    assert!(pair.events.is_empty(), "{:?}", pair.events);
}

/// What is told of a path in ten seconds if one in `every` frames gets lost that are as long as the longest, or that are not.
fn told_of_losses(every: u32, of_long: bool) -> Vec<(Instant, Event)> {
    let mut sent = 0;
    let mut pair = Pair::new(1, move |_, transmit| {
        let counts = (link_bytes(transmit) >= LONGEST) == of_long;
        sent += u32::from(counts);
        !counts || !sent.is_multiple_of(every)
    });
    pair.run_to(ms(10_000), &[3, -1, 2]);
    pair.events
}

#[test]
fn a_path_that_answers_and_loses_frames_is_told_with_the_length_of_what_gets_lost() {
    for (of_long, bytes) in [(false, 0), (true, LONGEST)] {
        let events = told_of_losses(5, of_long);
        let expected = Event::PathLosesFrames { path: PathId(0), frame_bytes: bytes };
        assert!(events.len() >= 2 && events.iter().all(|(_, event)| *event == expected), "{events:?}");
        // One check in four is long.
        assert!(events[0].0 < ms(if of_long { 6000 } else { 2000 }), "{:?}", events[0]);
    }
}

#[test]
fn a_path_that_loses_a_frame_now_and_then_is_no_news() {
    for of_long in [false, true] {
        assert_eq!(told_of_losses(25, of_long), []);
    }
}
