//! One path against a simple model of it, and an agent that watches paths to another.

use std::collections::VecDeque;
use std::time::Duration;

use super::path::{Due, Pace, Path, State};
use super::{CableTest, LivenessCount, PathId, PathUse};
use crate::agent::{Agent, Event, Settings, Transmit};
use crate::map::{MapVersion, PortRef};
use crate::wire::{Data, Element, Frame, Key, KeyRing, Message, RoundTrip, Route, SECRET_BYTES};
use crate::{Instant, Mac};

const PACE: Pace = Pace { interval: Duration::from_millis(20), misses: 3 };

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn route(deltas: &[i8]) -> Route {
    deltas.iter().map(|&delta| Element::Relative(delta)).collect()
}

/// What becomes of a check, or of the timer before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Answered,
    AnsweredLate,
    Lost,
    /// The timer before it comes 30 ms late, and the check is lost.
    Overslept,
}

const FATES: [Fate; 4] = [Fate::Answered, Fate::AnsweredLate, Fate::Lost, Fate::Overslept];

/// All that a path's state may depend on, kept in the plainest way.
#[derive(Debug)]
struct Model {
    /// Silence that this host was awake for, in milliseconds.
    silent_ms: u64,
    checks: u32,
    down: bool,
    answers: u32,
    /// Whether it has answered since it was last said to be down.
    has_answered: bool,
}

/// Runs one path through these fates, and holds it against the model.
fn run(fates: &[Fate], jittered_ms: u64) {
    let mut path = Path::new(ms(0), PathUse::default(), ms(0));
    let mut model = Model { silent_ms: 0, checks: 0, down: false, answers: 0, has_answered: true };
    let mut now = ms(0);
    let mut late_answer: Option<Instant> = None;
    let peer = Mac::from_position(1);
    let hear = |path: &mut Path, model: &mut Model, now| {
        model.answers += 1;
        let up = model.down && model.answers == PACE.misses;
        assert_eq!(path.hear(now, peer, PACE), Some(up), "{fates:?}: {model:?}");
        model.down &= !up;
        (model.silent_ms, model.checks, model.has_answered) = (0, 0, true);
    };
    for &fate in fates {
        if let Some(at) = late_answer.take_if(|at| *at <= path.due_at) {
            now = now.max(at);
            hear(&mut path, &mut model, now);
        }
        let due_at = path.due_at.max(now);
        model.silent_ms += due_at.since(now).as_millis() as u64;
        now = if fate == Fate::Overslept { due_at + Duration::from_millis(30) } else { due_at };
        if model.down && model.checks > 0 {
            model.answers = 0;
        }
        let must_fall = model.has_answered && model.silent_ms >= 60 && model.checks >= PACE.misses;
        let due = path.fire(now, PACE, Duration::from_millis(jittered_ms));
        // No xbar ever answers here, so what was told once is no news.
        let is_news = must_fall && !model.down;
        assert_eq!(due == Due::Down, is_news, "{fates:?}: {model:?}");
        if must_fall {
            (model.down, model.answers, model.has_answered) = (true, 0, false);
        }
        if !is_news {
            model.checks += 1;
            match fate {
                Fate::Answered => hear(&mut path, &mut model, now),
                Fate::AnsweredLate => late_answer = Some(now + Duration::from_millis(12)),
                Fate::Lost | Fate::Overslept => {}
            }
        }
        let is_waiting = model.has_answered && model.checks > 1;
        assert_eq!(path.state() == State::Down, model.down && !is_waiting, "{fates:?}: {model:?}");
        assert!(path.due_at.since(now) <= PACE.interval, "it is never left alone");
    }
}

#[test]
fn a_path_falls_when_silent_for_the_whole_time_and_never_else() {
    // All lives of seven checks, after a prefix that has brought the path to the brink or below.
    let prefixes: [&[Fate]; 3] = [&[], &[Fate::Lost; 11], &[Fate::Lost; 14]];
    for prefix in prefixes {
        for life in 0..FATES.len().pow(7) {
            let fate = |n: u32| FATES[life / FATES.len().pow(n) % FATES.len()];
            let fates: Vec<_> = prefix.iter().copied().chain((0..7).map(fate)).collect();
            for jittered_ms in [15, 18] {
                run(&fates, jittered_ms);
            }
        }
    }
}

/// A path that carries frames of 1,000 bytes.
fn used(deltas: &[i8]) -> PathUse {
    let back: Vec<i8> = deltas.iter().rev().map(|delta| -delta).collect();
    let to = Mac::from_position(2);
    PathUse { way: RoundTrip { there: route(deltas), back: route(&back) }, to, longest_bytes: LONGEST }
}

const LONGEST: usize = 1000;

/// The message in a data frame; all that liveness sends is in one.
fn carried(frame: &[u8]) -> Message {
    assert!(Data::is_check(frame));
    let frame = Frame::parse(frame).unwrap();
    Message::decode(Data::carried_in(&frame).unwrap()).unwrap().0
}

fn is_probe(frame: &[u8]) -> bool {
    Data::is_check(frame) && matches!(carried(frame), Message::Probe(_))
}

/// All that a frame takes of a link.
fn link_bytes(transmit: &Transmit) -> usize {
    transmit.route.as_bytes().len() + transmit.frame.len()
}

/// Whether a frame arrives that is sent now.
type Carries = Box<dyn FnMut(Instant, &Transmit) -> bool>;

/// An agent that watches paths, and the host at their ends.
struct Pair {
    watcher: Agent,
    far: Agent,
    now: Instant,
    /// Frames on their way, and when they arrive: to the far host (`true`), or to the watcher.
    flying: VecDeque<(Instant, bool, Vec<u8>)>,
    events: Vec<(Instant, Event)>,
    carries: Carries,
    /// Bytes of frames that came to the far host, and that it sent.
    asked_bytes: usize,
    answered_bytes: usize,
    /// What a host without a proved session may be asked for once, in bytes.
    unproved_bytes: usize,
}

impl Pair {
    fn new(seed: u64, carries: impl FnMut(Instant, &Transmit) -> bool + 'static) -> Self {
        Self::with_keys(None, seed, carries)
    }

    /// Level 0: neither ever maps.
    fn with_keys(
        keys: Option<&KeyRing>,
        seed: u64,
        carries: impl FnMut(Instant, &Transmit) -> bool + 'static,
    ) -> Self {
        let agent =
            |n, seed| Agent::new(Settings { level: 0, keys: keys.cloned(), ..settings(n) }, seed, ms(0));
        Self {
            watcher: agent(1, seed),
            far: agent(2, seed),
            now: ms(0),
            flying: VecDeque::new(),
            events: Vec::new(),
            carries: Box::new(carries),
            asked_bytes: 0,
            answered_bytes: 0,
            unproved_bytes: if keys.is_some() { 200 } else { 0 },
        }
    }

    fn watch(&mut self, path: u32, deltas: &[i8]) {
        self.watcher.watch_path(self.now, PathId(path), used(deltas));
    }

    /// Runs until `end`, path 0 in use all the while.
    fn run_to(&mut self, end: Instant, deltas: &[i8]) {
        while self.now < end {
            self.watch(0, deltas);
            let next = (self.now + Duration::from_millis(300)).min(end);
            self.run_quietly_to(next);
        }
    }

    fn run_quietly_to(&mut self, end: Instant) {
        loop {
            self.drain();
            let arrives = self.flying.front().map_or(Instant::FAR, |(at, ..)| *at);
            let wakes = self.watcher.poll_timeout().unwrap_or(Instant::FAR);
            let at = arrives.min(wakes);
            if at > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(at);
            match self.flying.pop_front_if(|(arrives, ..)| *arrives <= at) {
                Some((_, true, payload)) => {
                    self.asked_bytes += payload.len();
                    self.far.handle_frame(self.now, &payload);
                }
                Some((_, false, payload)) => self.watcher.handle_frame(self.now, &payload),
                None => self.watcher.handle_timeout(self.now),
            }
        }
    }

    fn drain(&mut self) {
        let arrives = self.now + Duration::from_micros(200);
        while let Some(transmit) = self.watcher.poll_transmit() {
            if (self.carries)(self.now, &transmit) {
                self.flying.push_back((arrives, !is_probe(&transmit.frame), transmit.frame));
            }
        }
        while let Some(transmit) = self.far.poll_transmit() {
            self.answered_bytes += link_bytes(&transmit);
            // With keys the first question is answered in two parts, and the second needs a proof.
            let asked_bytes = self.asked_bytes + self.unproved_bytes;
            assert!(self.answered_bytes <= asked_bytes, "no answer is longer than what asked");
            self.flying.push_back((arrives, false, transmit.frame));
        }
        while let Some(event) = self.watcher.poll_event() {
            self.events.push((self.now, event));
        }
    }

    fn count(&self, kind: LivenessCount) -> u64 {
        self.watcher.status().liveness[kind]
    }

    /// How many paths are watched, and how many are not for want of room.
    fn watched(&self) -> (u64, u64) {
        (self.count(LivenessCount::Watched), self.count(LivenessCount::Unwatched))
    }
}

fn settings(position: u32) -> Settings {
    Settings::new(Mac::from_position(position))
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
    // One that is named while it is under way is not known any more when its answer has come.
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
    pair.watcher.set_mtu(pair.now, crate::map::LinkMtu { bytes: 600, ports: 0 });
    pair.run_to(ms(1500), &[3, -1, 2]);
    assert!(pair.events.is_empty(), "{:?}", pair.events);
}

#[test]
fn no_test_of_a_cable_is_longer_than_the_own_interface_carries() {
    let (version, at) = (MapVersion { mac: Mac::from_position(1), counter: 1 }, PortRef { xbar: 0, port: 2 });
    let mut pair = Pair::new(1, |_, transmit| link_bytes(transmit) <= 600);
    pair.watcher.set_mtu(pair.now, crate::map::LinkMtu { bytes: 600, ports: 0 });
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
