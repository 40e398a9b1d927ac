//! When ways are tried, found and lost.

use mapper_fib::segments::Element;

use super::*;

const LONG: Due = Due::Probe { full_length: true, turns: false };
const SHORT: Due = Due::Probe { full_length: false, turns: false };

fn way() -> Way {
    way_of(1500)
}

/// A way whose cables carry frames of this length, by what their ends say.
fn way_of(link_mtu: u32) -> Way {
    let elements = vec![Element::FirstPort(1), Element::Port(2)];
    let course = Course::Segments { elements, packing: Packing::Compressed };
    let leaving = Leaving { port: 1, interface: 2, link_mtu };
    Way::new(3, (RoundTrip::default(), Vec::new()), course, leaving)
}

/// Fires, and says that a probe is under way if one is to be sent.
fn fire(way: &mut Way, now: &mut Instant) -> Due {
    fire_or_turn(way, now, false)
}

fn fire_or_turn(way: &mut Way, now: &mut Instant, may_turn: bool) -> Due {
    fire_at(way, now, FarEnd { may_turn, ..FarEnd::default() })
}

fn fire_at(way: &mut Way, now: &mut Instant, end: FarEnd) -> Due {
    let (due, next) = way.fire(*now, end);
    assert!(next > *now);
    *now = next;
    if matches!(due, Due::Probe { .. }) {
        way.nonce = Some(7);
    }
    due
}

/// Fires at a used way, whose host's agent is heard at all moments behind `heard_from`, until the way is lost. Returns how
/// often a short probe was sent, and when the way was lost.
fn fire_until_lost(way: &mut Way, mut now: Instant, heard_from: Instant) -> (u32, Instant) {
    let mut short = 0;
    loop {
        let heard_at = Some(now).filter(|&now| now > heard_from);
        let fired_at = now;
        match fire_at(way, &mut now, FarEnd { is_used: true, heard_at, ..FarEnd::default() }) {
            Due::Lost => return (short, fired_at),
            due => short += u32::from(due == SHORT),
        }
    }
}

/// Fires until something is done other than waiting for an answer.
fn fire_through(way: &mut Way, now: &mut Instant, end: FarEnd) -> Due {
    std::iter::repeat_with(|| fire_at(way, now, end)).find(|&due| due != Due::Wait).unwrap()
}

#[test]
fn a_way_is_proved_by_an_answer_and_lost_after_four_seconds_without_one() {
    let (mut way, mut now) = (way(), Instant::ZERO);
    assert_eq!(fire(&mut way, &mut now), LONG);
    assert!(!way.is_proved());
    let (news, next) = way.answered(now, RECHECK_EVERY);
    assert!(news && way.is_proved() && next > now + Duration::from_secs(1));
    assert_eq!(fire(&mut way, &mut now), SHORT);
    assert!(!way.answered(now, RECHECK_EVERY).0, "that the way still works is no news");
    let since = now;
    assert_eq!(fire(&mut way, &mut now), SHORT);
    while now < since + UNANSWERED_FOR {
        assert!(way.is_proved());
        assert_eq!(fire(&mut way, &mut now), SHORT);
    }
    assert_eq!(fire(&mut way, &mut now), Due::Lost);
    assert!(!way.is_proved() && way.is_refuted());
    assert_eq!(fire(&mut way, &mut now), LONG);
    assert!(way.answered(now, RECHECK_EVERY).0 && way.is_proved());
}

#[test]
fn a_way_in_use_is_kept_for_a_minute_if_its_host_is_listened_for_and_neither_agent_nor_probes_are_heard() {
    for is_listened_for in [true, false] {
        let (mut way, mut now) = (way(), Instant::ZERO);
        fire(&mut way, &mut now);
        way.answered(now, RECHECK_EVERY);
        let since = now;
        let silent = FarEnd { is_used: true, is_listened_for, ..FarEnd::default() };
        let kept_for = if is_listened_for { SILENT_FOR } else { UNANSWERED_FOR };
        fire_through(&mut way, &mut now, silent);
        fire_through(&mut way, &mut now, silent);
        // Packets of a connection come less and less often if none is answered.
        while now < since + kept_for {
            assert!(way.is_proved());
            fire_through(&mut way, &mut now, FarEnd { is_used: false, ..silent });
        }
        fire_through(&mut way, &mut now, silent);
        assert!(!way.is_proved());
    }
}

#[test]
fn a_way_is_kept_for_a_minute_only_if_its_host_was_listened_for_in_vain() {
    let (mut way, mut now) = (way(), Instant::ZERO);
    fire(&mut way, &mut now);
    way.answered(now, RECHECK_EVERY);
    let since = now;
    let used = FarEnd { is_used: true, is_listened_for: true, ..FarEnd::default() };
    fire_through(&mut way, &mut now, used);
    fire_through(&mut way, &mut now, used);
    // The agent is heard while packets are sent, so it has not crashed. Then nobody sends any more, and nobody listens for it.
    let heard_at = Some(now);
    fire_through(&mut way, &mut now, FarEnd { heard_at, ..used });
    while now < since + UNANSWERED_FOR + RECHECK_WITHIN {
        fire_through(&mut way, &mut now, FarEnd { heard_at, ..FarEnd::default() });
    }
    assert!(!way.is_proved());
}

#[test]
fn a_way_in_use_is_left_soon_if_the_agent_at_its_end_answers_all_else() {
    let (mut way, mut now) = (way(), Instant::ZERO);
    fire(&mut way, &mut now);
    way.answered(now, RECHECK_EVERY);
    let since = now;
    let end = |heard_at: Instant| FarEnd { is_used: true, heard_at: Some(heard_at), ..FarEnd::default() };
    // An agent that was heard before the probes and not since may have crashed.
    for _ in 0..10 {
        assert_eq!(fire_through(&mut way, &mut now, end(since)), SHORT);
    }
    way.answered(now, RECHECK_EVERY);
    let since = now;
    while way.is_proved() {
        let heard_at = now;
        fire_at(&mut way, &mut now, end(heard_at));
    }
    assert!(now.since(since) < 6 * USED_WITHIN + RETRY_AFTER + USED_WITHIN, "{:?}", now.since(since));
}

#[test]
fn a_way_in_use_whose_host_was_silent_is_tried_often_as_soon_as_its_agent_is_heard_again() {
    let end = |heard_at: Instant| FarEnd { is_used: true, heard_at: Some(heard_at), ..FarEnd::default() };
    for silent_looks in MISSES_OF_USED.into()..=25_u32 {
        let (mut way, mut now) = (way(), Instant::ZERO);
        fire(&mut way, &mut now);
        way.answered(now, RECHECK_EVERY);
        let silent_since = now;
        for _ in 0..silent_looks {
            fire_at(&mut way, &mut now, end(silent_since));
        }
        // The agent is heard from now on, or from any moment since the look before.
        let heard_since = now;
        let (quick, lost_at) = fire_until_lost(&mut way, now, silent_since);
        let left_after = lost_at.since(heard_since);
        assert!(left_after <= USED_LEFT_AFTER, "{left_after:?} after {silent_looks} looks");
        assert!(
            quick >= u32::from(MISSES_OF_USED) - 1,
            "an agent that has just started again may answer late"
        );
    }
}

#[test]
fn an_agent_that_is_heard_again_after_many_seconds_is_asked_before_its_way_is_left() {
    let (mut way, mut now) = (way(), Instant::ZERO);
    fire(&mut way, &mut now);
    way.answered(now, RECHECK_EVERY);
    let silent_since = now;
    let end = |heard_at, may_turn| FarEnd {
        is_used: true,
        heard_at: Some(heard_at),
        may_turn,
        ..FarEnd::default()
    };
    while now.since(silent_since) < 2 * UNANSWERED_FOR {
        fire_at(&mut way, &mut now, end(silent_since, true));
    }
    let heard_at = now;
    let asked = std::iter::repeat_with(|| fire_at(&mut way, &mut now, end(heard_at, false)));
    assert_eq!(asked.take(2).find(|&due| due != Due::Wait), Some(SHORT));
    assert!(way.is_proved());
}

#[test]
fn a_way_that_comes_into_use_while_a_probe_is_waited_for_is_left_in_time() {
    for (used_at_ms, heard_after_ms) in
        [0, 100, 250].into_iter().flat_map(|at| (0..4).map(move |n| (at, 100 * n)))
    {
        let (mut way, mut now) = (way(), Instant::ZERO);
        fire(&mut way, &mut now);
        way.answered(now, RECHECK_EVERY);
        let sent_at = now;
        assert_eq!(fire(&mut way, &mut now), SHORT);
        let used_at = sent_at + Duration::from_millis(used_at_ms);
        let heard_from = used_at + Duration::from_millis(heard_after_ms);
        let hastened = used_at + Duration::from_millis(200);
        let (_, lost_at) = fire_until_lost(&mut way, hastened, heard_from);
        let left_after = lost_at.since(heard_from);
        let most = Duration::from_millis(200) + USED_LEFT_AFTER;
        assert!(
            left_after <= most,
            "{left_after:?}: heard {heard_after_ms} ms after it was used at {used_at_ms} ms"
        );
    }
}

#[test]
fn a_way_is_kept_for_longer_while_a_dead_cable_may_be_a_crashed_agent() {
    let (mut way, mut now) = (way(), Instant::ZERO);
    fire(&mut way, &mut now);
    way.answered(now, RECHECK_EVERY);
    let since = now;
    while now.since(since) < 2 * UNANSWERED_FOR {
        fire_or_turn(&mut way, &mut now, true);
        assert!(way.is_proved());
    }
    // The host answered too long ago.
    fire(&mut way, &mut now);
    assert!(!way.is_proved());
}

#[test]
fn of_a_host_that_answered_before_probes_turn_at_the_last_crossbar_until_it_answers_again() {
    let turning = |full_length| Due::Probe { full_length, turns: true };
    let (mut way, mut now) = (way(), Instant::ZERO);
    // The host's agent may have crashed, so the first probe turns before it. If its crossbar is of a kind at
    // which probes cannot turn, the next one is answered by the host.
    for expected in [turning(true), LONG, turning(true)] {
        assert_eq!(fire_or_turn(&mut way, &mut now, true), expected);
    }
    assert!(way.answered(now, RECHECK_EVERY).0 && way.is_proved());
    for expected in [SHORT, turning(false), SHORT, turning(false)] {
        assert_eq!(fire_or_turn(&mut way, &mut now, true), expected);
    }
    // While the agent is away, every other probe turns and proves the way, so the way is not lost.
    for _ in 0..20 {
        assert!(!way.answered(now, RECHECK_EVERY).0);
        // Now and then probes are as long as the longest packet.
        let due = fire_or_turn(&mut way, &mut now, true);
        assert!(due == SHORT || due == LONG, "{due:?}");
        assert_eq!(fire_or_turn(&mut way, &mut now, true), turning(due == LONG));
    }
}

#[test]
fn a_way_that_is_not_obeyed_compressed_is_tried_in_full_and_then_left_alone_longer_and_longer() {
    let (mut way, mut now) = (way(), Instant::ZERO);
    for _ in 0..MISSES {
        assert_eq!(fire(&mut way, &mut now), LONG);
        assert_eq!(way.mtu(), 1460);
    }
    for _ in 0..MISSES {
        assert_eq!(fire(&mut way, &mut now), LONG);
        assert_eq!(way.mtu(), 1420, "three segments stand in a routing header");
    }
    let mut pauses = Vec::new();
    for _ in 0..9 {
        let before = now;
        assert_eq!(fire(&mut way, &mut now), Due::Left);
        assert!(way.is_refuted() && !way.is_proved());
        pauses.push(now.since(before));
        for _ in 0..2 * MISSES {
            assert_eq!(fire(&mut way, &mut now), LONG);
        }
    }
    assert!(pauses.is_sorted() && pauses[0] == RETRY_AFTER && pauses[8] == Duration::from_secs(32));
    assert!(way.answered(now, RECHECK_EVERY).0 && way.mtu() == 1420);
}

#[test]
fn a_way_in_full_segments_is_tried_in_compressed_ones_now_and_then() {
    let (mut way, mut now) = (way(), Instant::ZERO);
    for _ in 0..2 * MISSES {
        fire(&mut way, &mut now);
    }
    assert!(way.answered(now, RECHECK_EVERY).0 && way.segments_of_probe().unwrap().len() == 3);
    let mut trials = 0;
    for _ in 0..3 * TRY_COMPRESSED_EVERY {
        let due = fire(&mut way, &mut now);
        if way.segments_of_probe().unwrap().len() == 1 {
            // The compressed probe gets lost, which says nothing of the way as packets take it.
            trials += 1;
            assert_eq!(due, LONG);
            assert!(matches!(fire(&mut way, &mut now), Due::Probe { .. }));
            assert_eq!(way.segments_of_probe().unwrap().len(), 3);
        }
        assert!(way.is_proved() && !way.answered(now, RECHECK_EVERY).0);
    }
    assert!(trials > 1);
    while way.segments_of_probe().unwrap().len() > 1 {
        fire(&mut way, &mut now);
        if way.segments_of_probe().unwrap().len() > 1 {
            way.answered(now, RECHECK_EVERY);
        }
    }
    assert!(way.answered(now, RECHECK_EVERY).0 && way.mtu() == 1460, "it is news that packets may be longer");
}

#[test]
fn a_way_that_carries_only_short_packets_any_more_is_lost() {
    let (mut way, mut now) = (way(), Instant::ZERO);
    assert_eq!(fire(&mut way, &mut now), LONG);
    way.answered(now, RECHECK_EVERY);
    // Short probes are answered, long ones are not.
    for _ in 0..100 {
        let end = FarEnd { is_used: true, heard_at: Some(now + Duration::from_secs(1)), ..FarEnd::default() };
        match fire_at(&mut way, &mut now, end) {
            SHORT => drop(way.answered(now, RECHECK_EVERY)),
            Due::Lost => return,
            due => assert_eq!(due, LONG),
        }
    }
    panic!("it is proved still");
}

#[test]
fn a_way_in_use_that_stops_working_is_lost_in_time_even_when_compressed_elements_were_to_be_tried() {
    let every = Duration::from_millis(200);
    for answers in 0..2 * TRY_COMPRESSED_EVERY {
        let (mut way, mut now) = (way(), Instant::ZERO);
        for _ in 0..2 * MISSES {
            fire(&mut way, &mut now);
        }
        let used = |now: Instant| FarEnd {
            is_used: true,
            heard_at: Some(now + Duration::from_secs(1)),
            ..FarEnd::default()
        };
        let mut answered_at = now;
        let mut next = way.answered(now, every).1;
        for _ in 0..answers {
            next = way.fire(next, used(next)).1;
            way.nonce = Some(7);
            if way.segments_of_probe().unwrap().len() > 1 {
                answered_at = next;
                next = way.answered(next, every).1;
            }
        }
        let mut lost_at = next;
        while way.is_proved() {
            lost_at = next;
            next = way.fire(next, used(next)).1;
            way.nonce = Some(7);
        }
        let lasted = lost_at.since(answered_at);
        assert!(lasted <= every * 5 / 4 + USED_LEFT_AFTER, "{lasted:?} after {answers} answers");
    }
}

#[test]
fn a_way_that_packets_begin_to_take_is_left_in_time_whatever_was_under_way() {
    for sent_before in
        [None, Some(Duration::from_millis(1)), Some(Duration::from_millis(99)), Some(Duration::from_secs(3))]
    {
        let (mut way, mut now) = (way(), Instant::ZERO);
        way.answered(now, RECHECK_EVERY);
        if let Some(before) = sent_before {
            assert_eq!(fire(&mut way, &mut now), SHORT);
            now = way.probed_at + before;
        }
        // Packets are counted some time after the first has taken the way.
        let (since, counted_at) = (now, now + Duration::from_millis(100));
        let tried_at = way.used_from(since).max(counted_at);
        let (_, lost_at) = fire_until_lost(&mut way, tried_at, Instant::ZERO);
        assert!(
            lost_at <= since + crate::kernel_path::WAY_LEFT_WITHIN,
            "{sent_before:?}: {:?}",
            lost_at.since(since)
        );
    }
}

#[test]
fn a_way_along_which_long_packets_are_lost_carries_those_of_ordinary_links_and_longer_ones_are_tried_now_and_then()
 {
    let (mut way, mut now) = (way_of(9000), Instant::ZERO);
    // With compressed segments and with full ones, long probes are in vain.
    for _ in 0..2 * MISSES {
        assert_eq!(fire(&mut way, &mut now), LONG);
        assert_eq!(way.mtu_to_show(48), 9000 - 48.max(9000 - way.mtu()));
    }
    assert_eq!(fire(&mut way, &mut now), LONG);
    assert_eq!((way.shortened_to(), way.mtu_to_show(0)), (Some(1500), way.mtu()));
    assert!(!way.is_refuted() && way.mtu() < 1500);
    let (news, next) = way.answered(now, RECHECK_EVERY);
    assert!(news && way.is_proved());
    now = next;
    // An answer to a short probe is followed by a long one at once, whose loss says nothing of the way.
    assert_eq!(fire(&mut way, &mut now), SHORT);
    let (news, next) = way.answered(now, RECHECK_EVERY);
    assert!(!news && next == now);
    assert_eq!(fire(&mut way, &mut now), LONG);
    assert!(way.mtu_to_show(0) > 1500);
    assert_eq!(fire(&mut way, &mut now), SHORT);
    assert!(way.is_proved() && way.shortened_to() == Some(1500));
    // Once such a probe is answered, packets are as long.
    let mut tries = 0;
    while way.shortened_to().is_some() {
        (_, now) = way.answered(now, RECHECK_EVERY);
        let _due = fire(&mut way, &mut now);
        tries += 1;
        assert!(tries < 10 && way.is_proved());
    }
    assert!(way.mtu() > 8900);
}

#[test]
fn a_way_along_which_nothing_passes_is_refuted_whatever_its_cables_carry() {
    let (mut way, mut now) = (way_of(9000), Instant::ZERO);
    let probes = std::iter::repeat_with(|| fire(&mut way, &mut now)).take_while(|&due| due == LONG).count();
    assert_eq!(probes, 3 * usize::from(MISSES));
    assert!(way.is_refuted());
    // The next try begins with long probes again.
    assert_eq!(fire(&mut way, &mut now), LONG);
    assert_eq!(way.shortened_to(), None);
}
