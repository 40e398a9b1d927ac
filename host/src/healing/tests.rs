//! What a host does about dead cables, event by event.

use mapper_proto::map::{Cable, Host, Map, Xbar, host_type};
use mapper_proto::wire::{Element, Route};
use mapper_proto::{Mac, Tally};

use super::*;

mod lossy;

const VERSION: MapVersion = MapVersion { mac: Mac([2, 0, 0, 0, 0, 1]), counter: 7 };

/// The host at xbar 0.
const OWN: Mac = Mac([2, 0, 0, 0, 0, 0]);

fn port(xbar: u32, port: u8) -> PortRef {
    PortRef { xbar, port }
}

fn at_ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A ring of four xbars with the tags 10 to 13, a host at port 1 of each. Port 2 leads to port 3 of
/// the next.
fn ring() -> Arc<Map> {
    let xbar = |xbar: u64| Xbar { ports: 4, tag: Some(10 + xbar), ports_known: true };
    let host = |xbar| Host {
        mac: Mac::from_position(xbar),
        level: 1,
        host_type: host_type::ETHERNET,
        at: Some(port(xbar, 1)),
    };
    Arc::new(Map {
        version: VERSION,
        hosts: (0..4).map(host).collect(),
        xbars: (0..4).map(xbar).collect(),
        cables: (0..4).map(|xbar| Cable::new(port(xbar, 2), port((xbar + 1) % 4, 3))).collect(),
        ..Map::default()
    })
}

struct Story {
    healing: Healing,
    now: Instant,
    /// The tests that the last poll asked for.
    tests: Vec<(PortRef, CableTest)>,
}

fn basis(map: &Map) -> Arc<Basis> {
    Arc::new(Basis::new(Arc::new(map.clone())).unwrap())
}

impl Story {
    fn new() -> Self {
        let mut healing = Healing::new();
        healing.map_installed(Instant::ZERO, basis(&ring()), OWN);
        Self { healing, now: Instant::ZERO, tests: Vec::new() }
    }

    /// Polls until there is nothing left. Returns whether to repair, and what to tell the agent.
    fn poll(&mut self) -> (bool, Vec<(PortRef, CableCause)>) {
        let (mut repair, mut told) = (false, Vec::new());
        self.tests.clear();
        while let Some(action) = self.healing.poll(self.now) {
            match action {
                Action::Repair { version } => {
                    assert_eq!(version, VERSION);
                    assert!(told.is_empty(), "routes first");
                    assert!(!std::mem::replace(&mut repair, true), "one poll asks for one repair");
                }
                Action::TellAgent { at, cause, .. } => told.push((at, cause)),
                Action::Test { version, at, test } => {
                    assert_eq!(version, VERSION);
                    self.tests.push((at, test));
                }
            }
        }
        (repair, told)
    }

    fn dead(&self) -> Vec<PortRef> {
        self.healing.dead().avoided.into_iter().collect()
    }

    fn pass_ms(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
    }
}

#[test]
fn two_silent_cables_of_an_xbar_have_all_of_it_left_until_tests_are_answered() {
    // A second cable leads from xbar 0 to xbar 1, and a third one from there to xbar 2.
    let mut map = Map::clone(&ring());
    for xbar in &mut map.xbars[..2] {
        xbar.ports = 6;
    }
    map.cables.push(Cable::new(port(0, 4), port(1, 4)));
    map.sort_canonical();
    let mut story = Story::new();
    story.healing.map_installed(Instant::ZERO, basis(&map), OWN);
    let silent = |story: &mut Story, path, at| {
        story.healing.path_down(story.now, PathId(path), &[at, port(1, 2)], (1, 64));
    };
    silent(&mut story, 1, port(0, 2));
    assert_eq!(story.poll(), (true, vec![(port(0, 2), CableCause::Silence)]));
    assert_eq!(story.dead(), [port(0, 2)]);
    silent(&mut story, 2, port(0, 4));
    assert_eq!(
        story.poll(),
        (true, vec![(port(0, 4), CableCause::Silence)]),
        "nobody is told of a suspicion"
    );
    assert_eq!(story.dead(), [port(0, 2), port(0, 4), port(1, 2)]);
    assert!(story.tests.iter().any(|(at, _)| *at == port(1, 2)), "it is tested");
    story.healing.cable_up(VERSION, port(1, 2));
    assert_eq!(story.poll(), (true, vec![]));
    assert_eq!(story.dead(), [port(0, 2), port(0, 4)], "the xbar lives");
    silent(&mut story, 3, port(0, 4));
    assert_eq!(story.poll(), (false, vec![]), "another path over a silent cable says nothing new");
    assert_eq!(story.dead(), [port(0, 2), port(0, 4)]);
}

#[test]
fn a_suspected_cable_that_is_silent_itself_is_told_as_any_other() {
    let mut story = Story::new();
    let mut map = Map::clone(&ring());
    map.xbars[0].ports = 6;
    map.xbars[1].ports = 6;
    map.cables.push(Cable::new(port(0, 4), port(1, 4)));
    map.sort_canonical();
    story.healing.map_installed(Instant::ZERO, basis(&map), OWN);
    for (path, at) in [(1, port(0, 2)), (2, port(0, 4))] {
        story.healing.path_down(story.now, PathId(path), &[at, port(1, 2)], (1, 64));
    }
    story.poll();
    story.healing.path_down(story.now, PathId(3), &[port(0, 2), port(1, 2)], (2, 64));
    assert_eq!(story.poll(), (false, vec![(port(1, 2), CableCause::Silence)]));
    story.healing.cable_up(VERSION, port(1, 2));
    story.poll();
    assert_eq!(story.dead(), [port(0, 2), port(0, 4)]);
}

#[test]
fn lost_carrier_is_healed_at_once_told_once_and_over_when_it_is_back() {
    let mut story = Story::new();
    // Port 3 of xbar 1 is the other end of port 2 of xbar 0.
    story.healing.carrier(story.now, 11, 3, false);
    assert_eq!(story.poll(), (true, vec![(port(0, 2), CableCause::Carrier)]));
    assert_eq!(story.dead(), [port(0, 2)]);
    story.healing.carrier(story.now, 11, 3, false);
    assert_eq!(story.poll(), (false, vec![]), "once");
    story.pass_ms(3_600_000);
    assert_eq!(story.healing.poll_timeout(), None);
    assert_eq!(story.poll(), (false, vec![]), "lost carrier does not expire");
    story.healing.carrier(story.now, 11, 3, true);
    assert_eq!(story.poll(), (true, vec![]));
    assert_eq!(story.dead(), []);
    let counts = [HealingCount::Repairs, HealingCount::CarrierLosses, HealingCount::CameBack];
    assert_eq!(counts.map(|kind| story.healing.counts()[kind]), [2, 1, 1]);
}

#[test]
fn what_is_dead_stays_so_however_long_no_map_comes_and_is_tested_until_it_answers() {
    let mut story = Story::new();
    story.healing.notice(story.now, 12, 2);
    let hops = [port(0, 2), port(1, 1)];
    story.healing.path_down(story.now, PathId(1), &hops, (1, 900));
    let told = vec![(port(2, 2), CableCause::Notice), (port(0, 2), CableCause::Silence)];
    assert_eq!(story.poll(), (true, told));
    for _ in 0..9_000 {
        let tested: Vec<_> =
            story.tests.iter().map(|(at, test)| (*at, test.frame_bytes, test.answers)).collect();
        assert_eq!(tested, [(port(0, 2), 900, 3), (port(2, 2), 0, 3)]);
        story.now = story.healing.poll_timeout().unwrap();
        assert_eq!(story.poll(), (false, vec![]), "an hour of silence changes nothing");
    }
    assert!(story.now > at_ms(3_500_000));
    story.healing.cable_up(MapVersion { counter: 8, ..VERSION }, port(0, 2));
    assert_eq!(story.poll(), (false, vec![]), "the port is one of another map");
    story.healing.cable_up(VERSION, port(0, 2));
    assert_eq!(story.poll(), (true, vec![]));
    // The other dead cable runs from port 2 of xbar 2 to this port.
    story.healing.cable_up(VERSION, port(3, 3));
    assert_eq!(story.poll(), (true, vec![]));
    assert_eq!((story.dead(), story.healing.poll_timeout()), (vec![], None));
    assert_eq!(story.healing.counts()[HealingCount::CameBack], 2);
}

#[test]
fn a_test_crosses_the_cable_over_live_ones_and_turns_behind_it() {
    let mut story = Story::new();
    story.healing.notice(story.now, 10, 2);
    story.poll();
    let forward = |delta| Element::Relative(delta);
    // The frame enters xbar 0 by port 1, leaves by port 2, turns, and comes back.
    let expected = Route::from_iter([forward(1), forward(0), forward(-1)]);
    assert_eq!((&story.tests[0].1.route, story.tests[0].1.left), (&expected, 2));
    // The next cable of the ring is reached the other way round: out by port 3 of xbar 0 to port 2 of xbar 3,
    // and so on to xbar 2.
    story.healing.notice(story.now, 11, 2);
    story.poll();
    let elements = [2, 1, 1, 0, -1, -1, -2];
    let expected: Route = elements.into_iter().map(forward).collect();
    assert_eq!((&story.tests[1].1.route, story.tests[1].1.left), (&expected, 4));
    // A third dead cable cuts off the xbars between.
    story.healing.notice(story.now, 12, 2);
    story.poll();
    let tested: Vec<_> = story.tests.iter().map(|(at, _)| *at).collect();
    assert_eq!(tested, [port(0, 2), port(2, 2)]);
}

#[test]
fn a_cable_that_only_the_mappers_frames_pass_is_named_and_outlives_a_map_that_lists_it() {
    let mut story = Story::new();
    let hops = [port(0, 2), port(1, 1)];
    story.healing.path_down(story.now, PathId(1), &hops, (1, 900));
    story.healing.cable_cleared(VERSION, port(0, 2));
    let why = |story: &Story| story.healing.dead_cables().map(|cable| cable.cause).collect::<Vec<_>>();
    assert_eq!(why(&story), [CableCause::UsersOnly]);
    story.healing.map_installed(story.now, basis(&ring()), OWN);
    assert_eq!(story.poll(), (true, vec![]));
    assert_eq!((story.dead(), why(&story)), (vec![port(0, 2)], vec![CableCause::UsersOnly]));
    assert_eq!(story.tests[0].1.frame_bytes, 900);
}

#[test]
fn carrier_at_the_own_end_ends_a_notice_of_the_other() {
    let mut story = Story::new();
    story.healing.notice(story.now, 12, 2);
    story.healing.carrier(story.now, 13, 3, true);
    assert!(!story.poll().0);
    assert_eq!(story.dead(), []);
}

#[test]
fn a_silent_path_blames_the_cable_behind_the_last_xbar_that_answers() {
    let mut story = Story::new();
    let hops = [port(0, 2), port(1, 2), port(2, 1)];
    story.healing.path_down(story.now, PathId(1), &hops, (2, 0));
    story.healing.path_down(story.now, PathId(2), &hops, (2, 0));
    assert_eq!(story.poll(), (true, vec![(port(1, 2), CableCause::Silence)]));
    story.healing.path_up(PathId(1));
    assert_eq!(story.poll(), (false, vec![]), "the other is still silent");
    story.healing.path_up(PathId(2));
    assert_eq!(story.poll(), (true, vec![]));
    assert_eq!(story.healing.counts()[HealingCount::CameBack], 1);
}

#[test]
fn a_cable_that_fails_silently_again_and_again_must_answer_more_and_more_tests() {
    let mut story = Story::new();
    let hops = [port(0, 2), port(1, 1)];
    let mut answers = Vec::new();
    for _ in 0..7 {
        story.healing.path_down(story.now, PathId(1), &hops, (1, 0));
        assert_eq!(story.poll(), (true, vec![(port(0, 2), CableCause::Silence)]));
        answers.push(story.tests[0].1.answers);
        story.healing.cable_up(VERSION, port(0, 2));
        assert_eq!(story.poll(), (true, vec![]));
    }
    assert_eq!(answers, [3, 6, 12, 24, 48, 48, 48]);
    story.healing.map_installed(story.now, basis(&ring()), OWN);
    story.healing.path_down(story.now, PathId(1), &hops, (1, 0));
    story.poll();
    assert_eq!(story.tests[0].1.answers, 3);
}

#[test]
fn a_silent_host_is_told_and_shown_and_tested_but_not_routed_around() {
    let mut story = Story::new();
    story.healing.path_down(story.now, PathId(1), &[port(0, 2), port(1, 1)], (2, 0));
    assert_eq!(story.poll(), (false, vec![(port(1, 1), CableCause::Silence)]));
    assert_eq!((story.dead(), story.healing.dead_cables().count()), (vec![], 1));
    assert_eq!((story.tests[0].0, story.tests[0].1.to), (port(1, 1), Mac::from_position(1)));
    // A cable whose crossbar says that there is no carrier is dead for certain.
    story.healing.notice(story.now, 11, 1);
    assert_eq!(story.poll(), (true, vec![(port(1, 1), CableCause::Notice)]));
}

#[test]
fn a_silent_cable_is_proved_dead_by_no_answer_and_no_longer_by_the_first() {
    let mut story = Story::new();
    let at = port(0, 2);
    let proved = |story: &Story| !story.healing.dead().proved.is_empty();
    story.healing.path_down(story.now, PathId(1), &[at, port(1, 1)], (1, 0));
    assert!(story.poll().0);
    assert!(!proved(&story));
    story.healing.cable_asked(VERSION, at, false);
    assert!(proved(&story));
    assert!(story.poll().0, "it opens turns now");
    story.healing.cable_asked(VERSION, at, true);
    assert!(!proved(&story));
    assert!(story.poll().0, "routes are computed without them at once");
    assert_eq!(story.dead(), [at], "but users' frames wait for more answers");
    // A report about a cable of another map says nothing about this one.
    story.healing.cable_asked(MapVersion::NONE, at, false);
    assert!(!proved(&story));
}

#[test]
fn what_becomes_certain_is_told_again() {
    let mut story = Story::new();
    story.healing.path_down(story.now, PathId(1), &[port(0, 2), port(1, 1)], (1, 0));
    assert_eq!(story.poll(), (true, vec![(port(0, 2), CableCause::Silence)]));
    assert_eq!(story.healing.dead().proved, [].into());
    story.healing.notice(story.now, 10, 2);
    assert_eq!(
        story.poll(),
        (true, vec![(port(0, 2), CableCause::Notice)]),
        "what is proved dead opens turns"
    );
    assert_eq!(story.healing.dead().proved, [port(0, 2)].into());
    story.healing.carrier(story.now, 10, 2, false);
    assert_eq!(story.poll(), (false, vec![]), "it was certain before");
    let cables: Vec<_> = story.healing.dead_cables().collect();
    assert_eq!(cables, [DeadCable { at: port(0, 2), since: Instant::ZERO, cause: CableCause::Carrier }]);
    story.pass_ms(5_000);
    assert_eq!(story.poll(), (false, vec![]), "carrier is still lost");
}

#[test]
fn a_new_map_ends_all_but_lost_carrier_of_cables_that_it_lists() {
    let mut story = Story::new();
    story.healing.carrier(story.now, 10, 2, false);
    story.healing.notice(story.now, 11, 2);
    story.healing.path_down(story.now, PathId(1), &[port(2, 2), port(3, 1)], (1, 0));
    story.poll();
    assert_eq!(story.dead(), [port(0, 2), port(1, 2), port(2, 2)]);
    // The routes of a new map are put to use that were computed before the carrier was lost.
    story.healing.map_installed(story.now, basis(&ring()), OWN);
    assert_eq!(story.poll(), (true, vec![(port(0, 2), CableCause::Carrier)]));
    assert_eq!(story.dead(), [port(0, 2)]);
    let mut map = Map::clone(&ring());
    map.cables.retain(|cable| cable.a != port(0, 2));
    story.healing.map_installed(story.now, basis(&map), OWN);
    assert_eq!(story.poll(), (false, vec![]));
    assert_eq!(story.dead(), []);
}

#[test]
fn flapping_carrier_is_followed_each_time() {
    let mut story = Story::new();
    for flaps in 1..=50 {
        story.healing.carrier(story.now, 10, 2, false);
        assert_eq!(story.poll(), (true, vec![(port(0, 2), CableCause::Carrier)]));
        story.healing.carrier(story.now, 10, 2, true);
        assert_eq!(story.poll(), (true, vec![]));
        assert_eq!(story.healing.counts()[HealingCount::CameBack], flaps);
    }
    // The carrier went and came back before the host was asked for routes, so only the agent hears of it.
    story.healing.carrier(story.now, 10, 2, false);
    story.healing.carrier(story.now, 10, 2, true);
    assert_eq!(story.poll(), (false, vec![(port(0, 2), CableCause::Carrier)]));
}

#[test]
fn what_is_no_cable_of_the_map_is_ignored_and_counted() {
    let mut story = Story::new();
    story.healing.notice(story.now, 99, 2);
    story.healing.notice(story.now, 10, 4);
    story.healing.path_down(story.now, PathId(1), &[port(0, 2)], (0, 0));
    story.healing.path_down(story.now, PathId(1), &[port(0, 2)], (2, 0));
    story.healing.path_down(story.now, PathId(1), &[port(9, 2)], (1, 0));
    story.healing.path_up(PathId(77));
    assert_eq!(story.poll(), (false, vec![]));
    assert_eq!(*story.healing.counts(), Tally::from_iter([(HealingCount::Ignored, 5)]));
    assert_eq!(story.healing.dead_cables().count(), 0);
}

#[test]
fn nothing_is_done_before_there_is_a_map_but_carrier_is_remembered() {
    let mut healing = Healing::new();
    healing.notice(Instant::ZERO, 10, 2);
    healing.carrier(Instant::ZERO, 10, 2, false);
    assert_eq!(healing.poll(Instant::ZERO), None);
    healing.map_installed(at_ms(1), basis(&ring()), OWN);
    assert_eq!(healing.poll(at_ms(1)), Some(Action::Repair { version: VERSION }));
}

#[test]
fn a_flood_of_notices_stays_bounded() {
    let mut healing = Healing::new();
    let map = Map {
        xbars: (0..1_000).map(|tag| Xbar { ports: 4, tag: Some(tag), ports_known: true }).collect(),
        cables: (0..999).map(|xbar| Cable::new(port(xbar, 1), port(xbar + 1, 2))).collect(),
        ..Map::default()
    };
    healing.map_installed(Instant::ZERO, basis(&map), OWN);
    for tag in 0..999 {
        healing.notice(Instant::ZERO, tag, 1);
        healing.carrier(Instant::ZERO, tag, 1, false);
    }
    assert_eq!(healing.dead().avoided.len(), LIMIT);
    assert_eq!(healing.counts()[HealingCount::Overload], 999 - LIMIT as u64);
    assert!(healing.to_tell.len() <= LIMIT && healing.no_carrier.len() <= LIMIT);
}
