//! Rounds of echoes, and what comes back.

use super::*;
use mapper_proto::agent::Settings;

const ENDS: (Ipv6Addr, Ipv6Addr) =
    (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));

fn plan(ways: usize, rounds: u16) -> Plan {
    let way = EchoWay::Kernels { port: 1, segments: Vec::new(), ends: ENDS, hop_limit: None };
    let (interval, patience) = (Duration::from_millis(10), Duration::from_millis(25));
    Plan { echoes: vec![(way, 0); ways], train: 1, rounds, interval, patience }
}

fn soundings() -> (Soundings, Agent) {
    let mut soundings = Soundings::new();
    soundings.use_kernel(1);
    (soundings, Agent::new(Settings::new(Mac::from_position(1)), 1, Instant::ZERO))
}

#[test]
fn what_came_back_has_a_time_and_what_did_not_has_none() {
    let (mut soundings, mut agent) = soundings();
    soundings.begin(Instant::ZERO, 7, plan(2, 3)).unwrap();
    let mut sent = 0;
    while let Some(now) = soundings.poll_timeout() {
        soundings.handle_timeout(now, &mut agent);
        while let Some(probe) = soundings.poll_probe() {
            // The third of all echoes gets lost, and each of the others takes a millisecond.
            sent += 1;
            if sent != 3 {
                soundings.answered(now + Duration::from_millis(1), probe.nonce, None);
                soundings.answered(now + Duration::from_millis(2), probe.nonce, None);
            }
        }
    }
    let took = Some(Back { took: Duration::from_millis(1), arrived_ns: None, ended_at: None });
    assert_eq!(soundings.poll_done(), Some((7, vec![vec![took, None, took], vec![took; 3]])));
    assert_eq!((soundings.poll_done(), sent), (None, 6));
    assert!(soundings.running.is_empty() && soundings.awaited.is_empty() && soundings.deadlines.is_empty());
}

#[test]
fn a_kernel_at_which_a_hop_limit_ends_is_asked_until_it_says_so() {
    let (mut soundings, mut agent) = soundings();
    let limited = |hop_limit| EchoWay::Kernels { port: 1, segments: Vec::new(), ends: ENDS, hop_limit };
    let echoes = [Some(1), Some(2), None].map(|limit| (limited(limit), 0)).to_vec();
    soundings.begin(Instant::ZERO, 7, Plan { echoes, ..plan(0, 3) }).unwrap();
    let mut limits = Vec::new();
    while let Some(now) = soundings.poll_timeout() {
        soundings.handle_timeout(now, &mut agent);
        while let Some(probe) = soundings.poll_probe() {
            limits.push(probe.hop_limit);
            let soon = now + Duration::from_millis(1);
            // The first answers the second question only. Of what has no limit nobody says that it ended.
            if probe.hop_limit != 1 || limits.len() > 3 {
                soundings.ended(soon, probe.nonce, ENDS.1);
            }
        }
    }
    assert_eq!(limits, [1, 2, HOP_LIMIT, 1, HOP_LIMIT, HOP_LIMIT]);
    let ended = Some(Back { took: Duration::from_millis(1), arrived_ns: None, ended_at: Some(ENDS.1) });
    let expected = vec![vec![None, ended], vec![ended], vec![None; 3]];
    assert_eq!(soundings.poll_done(), Some((7, expected)));
    assert!(soundings.running.is_empty() && soundings.awaited.is_empty() && soundings.deadlines.is_empty());
}

#[test]
fn a_train_goes_at_once_and_says_when_each_of_it_arrived() {
    let (mut soundings, mut agent) = soundings();
    soundings.begin(Instant::ZERO, 7, Plan { train: 3, ..plan(2, 2) }).unwrap();
    let mut sent_at = Vec::new();
    while let Some(now) = soundings.poll_timeout() {
        soundings.handle_timeout(now, &mut agent);
        while let Some(probe) = soundings.poll_probe() {
            sent_at.push(now);
            soundings.answered(now + Duration::from_millis(1), probe.nonce, Some(sent_at.len() as u64));
        }
    }
    assert!(sent_at.chunk_by(|a, b| a == b).map(<[Instant]>::len).eq([3; 4]), "{sent_at:?}");
    let (_, sounded) = soundings.poll_done().unwrap();
    let arrived = |way: usize| sounded[way].iter().map(|back| back.unwrap().arrived_ns.unwrap());
    assert!(arrived(0).eq([1, 2, 3, 7, 8, 9]) && arrived(1).eq([4, 5, 6, 10, 11, 12]), "{sounded:?}");
}

#[test]
fn soundings_are_bounded_and_one_of_nothing_ends_at_once() {
    let (mut soundings, _agent) = soundings();
    assert_eq!(soundings.begin(Instant::ZERO, 1, plan(MOST_ECHOES, 2)), Err(SoundingRefused::TooMany));
    for number in 0..MOST_AT_ONCE as u32 {
        soundings.begin(Instant::ZERO, number, plan(1, 1)).unwrap();
    }
    assert_eq!(soundings.begin(Instant::ZERO, 9, plan(1, 1)), Err(SoundingRefused::Busy));
    let mut idle = Soundings::new();
    idle.begin(Instant::ZERO, 1, plan(0, 5)).unwrap();
    assert_eq!(idle.poll_done(), Some((1, Vec::new())));
}

#[test]
fn without_a_kernel_nothing_goes_through_kernels() {
    let mut soundings = Soundings::new();
    let mut agent = Agent::new(Settings::new(Mac::from_position(1)), 1, Instant::ZERO);
    soundings.begin(Instant::ZERO, 1, plan(1, 1)).unwrap();
    soundings.handle_timeout(Instant::ZERO, &mut agent);
    assert_eq!(soundings.poll_done(), Some((1, vec![vec![None]])));
    assert_eq!(soundings.poll_probe(), None);
}
