use mapper_proto::wire::RoundTrip;

use super::super::way::{Course, Leaving};
use super::*;

const START: Instant = Instant::ZERO;
const ENDS: Ends = Ends { own: Ipv6Addr::LOCALHOST, other: Ipv6Addr::LOCALHOST, v4: None };

fn mac(host: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, host])
}

/// A way by the destination that nothing is known of.
fn way(number: u32, place: u32) -> Way {
    let leaving = Leaving { port: 1, interface: 11, link_mtu: 1500 };
    let mut way = Way::new(number, (RoundTrip::default(), Vec::new()), Course::Destination, leaving);
    way.place = place;
    way
}

/// Does all that is due now on the ways to a host. Returns the nonces of the probes that were sent.
fn fire_all(prober: &mut Prober, now: Instant, ways: &mut [Way]) -> Vec<u64> {
    let mut nonces = Vec::new();
    while let Some((mac, number)) = prober.next_due(now, Some(START)) {
        let way = ways.iter_mut().find(|way| way.number == number).unwrap();
        prober.fire(now, mac, (way, FarEnd::default()), Some(ENDS), |_| None);
        nonces.extend(prober.poll().map(|probe| probe.nonce));
    }
    nonces
}

#[test]
fn the_first_ways_to_all_hosts_are_tried_before_the_second_ones() {
    let mut prober = Prober::new(1);
    for host in 0..3 {
        for place in 0..3 {
            prober.schedule(START, mac(host), &way(3 * u32::from(host) + place, place));
        }
    }
    let order: Vec<u32> =
        std::iter::from_fn(|| prober.next_due(START, Some(START))).map(|(_, number)| number).collect();
    assert_eq!(order, [0, 3, 6, 1, 4, 7, 2, 5, 8]);
}

#[test]
fn ways_that_are_proved_do_not_wait_for_first_probes_and_these_wait_for_answers() {
    let mut prober = Prober::new(1);
    let mut ways: Vec<Way> = (0..100).map(|number| way(number, number)).collect();
    ways.iter().for_each(|way| prober.schedule(START, mac(1), way));
    let sent = fire_all(&mut prober, START, &mut ways);
    assert!(sent.len() < 20, "{}", sent.len());

    assert!(ways[0].answered(START, RECHECK_EVERY).0);
    prober.schedule(START, mac(1), &ways[0]);
    assert_eq!(fire_all(&mut prober, START, &mut ways).len(), 1, "the way that is proved");

    sent.iter().for_each(|&nonce| assert!(prober.take(START, nonce).is_some()));
    let more = fire_all(&mut prober, START, &mut ways).len();
    assert!(more > sent.len(), "{more} after {}", sent.len());
    assert!(
        prober.poll_timeout(Some(START)).unwrap() > START,
        "nothing more is due until an answer comes, or none"
    );
}

#[test]
fn the_answer_to_a_probe_that_is_waited_for_longer_counts() {
    let mut prober = Prober::new(1);
    let mut way = way(7, 0);
    let mut now = START;
    let silent = FarEnd { is_used: true, ..FarEnd::default() };
    let _news = way.answered(now, RECHECK_EVERY);
    prober.schedule(now, mac(1), &way);
    let mut sent = Vec::new();
    // At some looks nothing is sent, as the probe before is waited for.
    let mut looks = 0;
    while looks < sent.len() + 2 {
        looks += 1;
        now = prober.poll_timeout(None).unwrap();
        assert_eq!(prober.next_due(now, None), Some((mac(1), 7)));
        assert!(!prober.fire(now, mac(1), (&mut way, silent), Some(ENDS), |_| None));
        sent.extend(prober.poll().map(|probe| probe.nonce));
    }
    let last = *sent.last().unwrap();
    assert_eq!(way.nonce, Some(last));
    assert!(prober.take(now, last).is_some());
    assert!(prober.take(now, sent[0]).is_none(), "it was given up");
}

#[test]
fn the_more_ways_there_are_the_less_often_each_is_tried() {
    let mut prober = Prober::new(1);
    for number in 0..10 {
        prober.schedule(START, mac(1), &way(number, number));
    }
    assert_eq!(prober.recheck_unused_every(), RECHECK_EVERY);
    for number in 10..1000 {
        prober.schedule(START, mac(1), &way(number, number));
    }
    assert_eq!(prober.recheck_unused_every(), 1000 * UNUSED_PAUSE);
}

#[test]
fn ways_that_no_packets_take_are_tried_together() {
    let moments = |seed: u64| -> Vec<Instant> {
        let prober = Prober::new(seed);
        let due: Vec<Instant> = (0..2000).map(|ms| START + Duration::from_millis(ms)).collect();
        let mut tried: Vec<Instant> = due.iter().map(|&due| prober.try_together(due)).collect();
        assert!(due.iter().zip(&tried).all(|(&due, &at)| at >= due && at < due + TOGETHER_EVERY));
        tried.dedup();
        tried
    };
    let (one, other) = (moments(1), moments(2));
    assert!(one.len() <= 5, "{one:?}");
    assert!(one.iter().all(|at| !other.contains(at)), "hosts try theirs at moments of their own");
}

#[test]
fn ways_that_do_not_work_are_left_alone_for_longer_where_there_are_many() {
    /// How long one of `count` ways is left alone at most that are all tried in vain again and again.
    fn longest_pause(count: u32) -> Duration {
        let mut prober = Prober::new(1);
        let mut ways: Vec<Way> = (0..count).map(|number| way(number, number)).collect();
        ways.iter().for_each(|way| prober.schedule(START + Duration::from_secs(100_000), mac(1), way));
        prober.schedule(START, mac(1), &ways[0]);
        let (mut now, mut longest) = (START, Duration::ZERO);
        for _ in 0..50 {
            let next = prober.poll_timeout(Some(START)).unwrap();
            longest = longest.max(next.since(now));
            now = next;
            fire_all(&mut prober, now, &mut ways);
        }
        longest
    }
    assert_eq!(longest_pause(2), Duration::from_secs(32));
    assert_eq!(longest_pause(1000), 999 * REFUTED_PAUSE, "a pause for each of the other ways");
}
