//! What is told of measured ways.

use super::*;
use mapper_proto::Mac;
use mapper_proto::wire::RoundTrip;

/// A way of this many crossbars, of which the first is in this machine, and a host.
fn way(by: &'static str, crossbars: usize) -> WayAsked {
    let hop = |at: usize| {
        let is_host = at == crossbars;
        let turn = (!is_host).then_some(at);
        let echo = EchoWay::Agents { way: RoundTrip::default(), to: Mac::from_position(1), turn };
        Hop {
            name: if is_host { "node9".to_owned() } else { format!("crossbar {at}") },
            leaves_by: (!is_host).then(|| "port 1".to_owned()),
            echo: (at > 0).then_some(echo),
        }
    };
    let hops = (0..=crossbars).map(hop).collect();
    WayAsked { by, in_use: true, hops, longest_bytes: 1500, forks_at: None }
}

fn back(ms: u64) -> Option<Back> {
    Some(Back { took: Duration::from_millis(ms), arrived_ns: None, ended_at: None })
}

fn asked(ways: Vec<WayAsked>, measure: Measure) -> SoundingAsked {
    let to = SoundedHost { mac: "02:00:00:00:00:01".to_owned(), name: "node9".to_owned() };
    SoundingAsked { to, ways, measure, called: BTreeMap::new() }
}

fn trace(by: &'static str, answers: [bool; 3]) -> TracedWay {
    trace_of_size(0, by, answers)
}

fn trace_of_size(frame_bytes: u16, by: &'static str, answers: [bool; 3]) -> TracedWay {
    let asked = asked(vec![way(by, 3)], Measure::Trace { frame_bytes });
    assert_eq!(asked.plan().echoes.len(), 3);
    let took = |answers| vec![back(2).filter(|_| answers); 3];
    let answer = asked.answer(&answers.map(took).to_vec()).unwrap();
    let Answered::Measured(Traced { mut ways, .. }) = serde_json::from_slice(&answer).unwrap() else {
        panic!("it is measured")
    };
    ways.remove(0)
}

#[test]
fn frames_are_as_long_as_was_asked_with_all_headers_but_that_of_ethernet() {
    let kernels = |segments: usize| {
        let segments = vec![Ipv6Addr::LOCALHOST; segments];
        let ends = (Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
        Some(EchoWay::Kernels { port: 1, segments, ends, hop_limit: None })
    };
    for (echo, expected) in [
        (way("agents", 0).hops.remove(0).echo, None),
        (kernels(0), Some(9000)),
        (kernels(1), Some(8960)),
        (kernels(3), Some(8920)),
    ] {
        let hop = Hop { name: String::new(), leaves_by: None, echo };
        let ways = vec![WayAsked { hops: vec![hop], ..way("srv6", 0) }];
        let plan = asked(ways, Measure::Trace { frame_bytes: 9000 }).plan();
        assert_eq!(plan.echoes.first().map(|(_, bytes)| *bytes), expected);
    }
}

#[test]
fn the_crossbars_of_a_way_are_told_up_to_the_first_at_which_it_forks() {
    let measured = |forks_at: Option<usize>| {
        let mut way = WayAsked { forks_at, ..way("routes", 3) };
        // Beyond a fork kernels choose the port, so it is not known.
        way.hops.iter_mut().skip(forks_at.unwrap_or(usize::MAX)).for_each(|hop| hop.leaves_by = None);
        let mut asked =
            asked(vec![way], Measure::Ping { count: 1, interval: Duration::ZERO, frame_bytes: 0 });
        assert_eq!(asked.plan().echoes.len(), 1, "the host alone is asked");
        let answer = asked.answer(&vec![vec![back(2)]]).unwrap();
        let Answered::Measured(Pinged { ways: pinged, .. }) = serde_json::from_slice(&answer).unwrap() else {
            panic!("it is measured")
        };
        asked.measure = Measure::Bandwidth { trains: 1, packets: 2 };
        let answer = asked.answer(&vec![vec![back(2)]]).unwrap();
        let Answered::Measured(Bandwidths { ways, .. }) = serde_json::from_slice(&answer).unwrap() else {
            panic!("it is measured")
        };
        assert_eq!(
            (&pinged[0].via, &pinged[0].forks_at_crossbar),
            (&ways[0].via, &ways[0].forks_at_crossbar)
        );
        (pinged[0].via.join("; "), pinged[0].forks_at_crossbar.clone())
    };
    let whole = "crossbar 0, port 1; crossbar 1, port 1; crossbar 2, port 1";
    assert_eq!(measured(None), (whole.to_owned(), None));
    assert_eq!(measured(Some(1)), ("crossbar 0, port 1".to_owned(), Some("crossbar 1".to_owned())));
    assert_eq!(measured(Some(0)), (String::new(), Some("crossbar 0".to_owned())));
}

#[test]
fn the_first_that_does_not_answer_is_named_with_the_port_that_leads_there() {
    let whole = trace("agents", [true; 3]);
    assert_eq!((whole.stops_at, whole.verdict.as_str()), (None, "all answer"));
    assert_eq!((whole.hops[0].sent, whole.hops[1].rtt_ms), (0, Some(2.0)));
    let first = trace("agents", [false; 3]);
    assert_eq!(first.stops_at, Some(1));
    assert!(
        first.verdict.contains("crossbar 1 is the first") && first.verdict.contains("crossbar 0, port 1")
    );
    let second = trace("srv6", [true, false, false]);
    assert_eq!(second.stops_at, Some(2));
    assert!(second.verdict.contains("its kernel does not send packets on"), "{}", second.verdict);
    let host = trace("srv6", [true, true, false]);
    assert_eq!(host.stops_at, Some(3));
    assert!(host.verdict.contains("firewall there"), "{}", host.verdict);
    assert_eq!(trace_of_size(9000, "srv6", [true; 3]).verdict, "all answer");
    let long = trace_of_size(9000, "srv6", [true, false, false]);
    assert!(long.verdict.contains("these frames had 9000 bytes"), "{}", long.verdict);
}

#[test]
fn one_that_is_silent_before_others_that_answer_is_passed_all_the_same() {
    assert_eq!(trace("agents", [false, true, true]).stops_at, None);
    assert_eq!(trace("agents", [false, true, false]).stops_at, Some(3));
}

/// The address of the kernel that is called `crossbar 1`, 2 and so on.
fn ip(of: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, of)
}

/// A trace by tables over three crossbars, of which the last two and the host answered so.
fn by_tables(backs: &[Vec<Option<Back>>; 3], forks_at: Option<usize>) -> TracedWay {
    let way = WayAsked { forks_at, ..way("routes", 3) };
    let called = [1, 2, 7].map(|of| (ip(of), format!("crossbar {of}"))).into();
    let asked = SoundingAsked { called, ..asked(vec![way], Measure::Trace { frame_bytes: 0 }) };
    let answer = asked.answer(&backs.to_vec()).unwrap();
    let Answered::Measured(Traced { mut ways, .. }) = serde_json::from_slice(&answer).unwrap() else {
        panic!("it is measured")
    };
    ways.remove(0)
}

/// An echo whose hop limit ended at a kernel.
fn ended(of: u16) -> Option<Back> {
    Some(Back { took: Duration::from_millis(1), arrived_ns: None, ended_at: Some(ip(of)) })
}

#[test]
fn where_crossbars_go_by_the_destination_the_first_kernel_that_does_not_answer_is_named() {
    let whole = by_tables(&[vec![None, ended(1)], vec![ended(2)], vec![back(2); 3]], None);
    assert_eq!((whole.stops_at, whole.verdict.as_str()), (None, "all answer"));
    assert_eq!((whole.hops[1].sent, whole.hops[1].received), (2, 1));
    assert_eq!((whole.hops[1].answered_by, whole.hops[3].answered_by), (Some(ip(1)), None));
    let silent = vec![None; 3];
    let broken = by_tables(&[vec![ended(1)], silent.clone(), silent.clone()], None);
    assert_eq!(broken.stops_at, Some(2));
    let words = "crossbar 2 is the first that does not answer: the cable from crossbar 1, port 1 is dead";
    assert!(broken.verdict.starts_with(words), "{}", broken.verdict);
    let host = by_tables(&[vec![ended(1)], vec![ended(2)], silent.clone()], None);
    assert!(host.verdict.starts_with("node9 is the first that does not answer"), "{}", host.verdict);
    // Kernels need not answer for themselves, or do so too seldom.
    let quiet = by_tables(&[silent.clone(), silent, vec![back(2); 3]], None);
    assert_eq!(quiet.stops_at, None);
    assert!(quiet.verdict.starts_with("the host answers"), "{}", quiet.verdict);
}

#[test]
fn a_way_by_tables_is_the_one_that_was_walked() {
    let silent = vec![None; 3];
    let forked = by_tables(&[vec![ended(7)], silent.clone(), silent], Some(0));
    assert_eq!((forked.hops[1].name.as_str(), &forked.hops[1].leaves_by), ("crossbar 7", &None));
    assert!(forked.verdict.starts_with("crossbar 2, or another as near, is the first"), "{}", forked.verdict);
    assert!(forked.verdict.contains("the cable from crossbar 7 is dead"), "{}", forked.verdict);
    let told = by_tables(&[vec![ended(9)], vec![ended(2)], vec![back(2); 3]], None);
    assert_eq!(told.hops[1].name, "crossbar 1 (as fd00::9)", "nobody tells whose address that is");
    // The host is nearer than the tables say.
    let short = by_tables(&[vec![ended(1)], vec![back(2)], vec![back(2); 3]], Some(2));
    let names: Vec<_> = short.hops.iter().map(|hop| hop.name.as_str()).collect();
    assert_eq!((names.as_slice(), short.forks_at), (&["crossbar 0", "crossbar 1", "node9"][..], None));
}

#[test]
fn round_trips_are_summed_up_and_what_got_lost_is_counted() {
    let measure = Measure::Ping { count: 4, interval: Duration::ZERO, frame_bytes: 0 };
    let asked = asked(vec![way("agents", 3), way("srv6", 2)], measure);
    assert_eq!((asked.plan().echoes.len(), asked.plan().rounds), (2, 4));
    let took = |ms: u64| back(ms).filter(|_| ms > 0);
    let answer = asked.answer(&vec![[5, 1, 0, 2].map(took).to_vec(), vec![None; 4]]).unwrap();
    let Answered::Measured(Pinged { ways, .. }) = serde_json::from_slice(&answer).unwrap() else {
        panic!("it is measured")
    };
    let first = &ways[0];
    assert_eq!((first.sent, first.received, first.loss), (4, 3, Some(0.25)));
    assert_eq!((first.min_ms, first.median_ms, first.max_ms), (Some(1.0), Some(2.0), Some(5.0)));
    assert_eq!((ways[1].received, ways[1].loss, ways[1].median_ms), (0, Some(1.0), None));
    assert_eq!(ways[1].via, ["crossbar 0, port 1", "crossbar 1, port 1"]);
}
