//! Two agents at the ends of one cable, with keys and without.

use std::time::Duration;

use mapper_proto::agent::{Agent, Event, FrameDrop, Purpose, Settings, Status};
use mapper_proto::wire::{
    AgentState, Answer, Element, Info, Key, KeyRing, Message, Probe, ProbeKind, Reason, Reply, RoundTrip,
    Route, SECRET_BYTES, Scout, Seal,
};
use mapper_proto::{Instant, Mac};
use proptest::prelude::*;

fn key(id: u32) -> Key {
    Key::new(id, [id as u8; SECRET_BYTES])
}

fn ring(ids: &[u32], salt: u64) -> Option<KeyRing> {
    (!ids.is_empty()).then(|| KeyRing::new(ids.iter().map(|&id| key(id)).collect(), salt).unwrap())
}

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// The agents, the clock, and all frames that arrived, by receiver.
struct Pair {
    agents: [Agent; 2],
    now: Instant,
    heard: Vec<(usize, Vec<u8>)>,
    /// How often each frame arrives.
    copies: usize,
    /// Whether nothing arrives that answers, or asks for an answer: no agent learns that the other is there.
    keeps_apart: bool,
}

fn agent(nth: usize, keys: Option<KeyRing>, now: Instant) -> Agent {
    let settings = Settings { keys, ..Settings::new(Mac::from_position(nth as u32)) };
    Agent::new(settings, 1, now)
}

impl Pair {
    fn new(keys: [Option<KeyRing>; 2]) -> Self {
        let [a, b] = keys;
        let agents = [agent(0, a, Instant::ZERO), agent(1, b, Instant::ZERO)];
        Self { agents, now: Instant::ZERO, heard: Vec::new(), copies: 1, keeps_apart: false }
    }

    fn alike(ids: &[u32], salt: u64) -> Self {
        Self::new([ring(ids, salt), ring(ids, salt ^ 0x55)])
    }

    /// Carries all that wants to be sent to the other end, and routes new maps.
    fn exchange(&mut self) {
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for from in 0..2 {
                while let Some(event) = self.agents[from].poll_event() {
                    if let Event::MapInstalled { map, neighbours } = event {
                        let routes = neighbours.into_iter().map(|mac| (mac, Route::new())).collect();
                        self.agents[from].handle_routes(self.now, map.version, routes);
                    }
                }
                while let Some(sent) = self.agents[from].poll_transmit() {
                    quiet = false;
                    if self.keeps_apart && proves(&sent.frame) {
                        continue;
                    }
                    let payload = [sent.route.as_bytes(), &sent.frame].concat();
                    for _ in 0..self.copies {
                        self.agents[1 - from].handle_frame(self.now, &payload);
                    }
                    self.heard.push((1 - from, payload));
                }
            }
        }
    }

    fn run_to(&mut self, end: Instant) {
        loop {
            self.exchange();
            let next = self.agents.iter().filter_map(Agent::poll_timeout).min();
            let Some(at) = next.filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            for agent in &mut self.agents {
                if agent.poll_timeout().is_some_and(|due| due <= self.now) {
                    agent.handle_timeout(self.now);
                }
            }
        }
        self.now = self.now.max(end);
    }

    fn status(&self) -> [Status; 2] {
        [self.agents[0].status(), self.agents[1].status()]
    }

    fn agree(&self) -> bool {
        let [a, b] = self.status();
        let configured = |s: &Status| s.state == AgentState::Configured && s.network_complete;
        configured(&a) && configured(&b) && a.version == b.version
    }
}

/// Whether a session may be proved by this frame, or by the answer to it.
fn proves(frame: &[u8]) -> bool {
    match Message::decode(frame).unwrap().0 {
        Message::Reply(_) => true,
        Message::Scout(Scout { reason, .. }) => reason == Reason::Hello,
        Message::Probe(_) => false,
    }
}

/// Frames that were dropped for their keys, tags or age.
fn disbelieved(status: &Status) -> u64 {
    let d = status.dropped;
    d[FrameDrop::UnexpectedTag]
        + d[FrameDrop::NoTag]
        + d[FrameDrop::UnknownKey]
        + d[FrameDrop::BadTag]
        + d[FrameDrop::Replayed]
        + d[FrameDrop::RateLimited]
}

#[test]
fn agents_with_one_key_agree_as_fast_as_those_without() {
    for ids in [&[][..], &[5], &[5, 6]] {
        let mut pair = Pair::alike(ids, 1);
        pair.run_to(ms(100));
        assert!(pair.agree(), "{ids:?}: {:?}", pair.status());
        assert_eq!(pair.status().map(|status| disbelieved(&status)), [0, 0], "{ids:?}");
    }
}

#[test]
fn who_has_another_key_or_none_is_not_believed_and_counted_as_such() {
    let other_secret = KeyRing::new(vec![Key::new(5, [99; SECRET_BYTES])], 7);
    for (keys, counters) in [
        ([ring(&[5], 1), None], ["no_tag", "unexpected_tag"]),
        ([ring(&[5], 1), ring(&[6], 2)], ["unknown_key", "unknown_key"]),
        ([ring(&[5], 1), other_secret.ok()], ["bad_tag", "bad_tag"]),
    ] {
        let mut pair = Pair::new(keys);
        pair.run_to(ms(3000));
        for (status, counter) in pair.status().into_iter().zip(counters) {
            let d = status.dropped;
            let count = match counter {
                "no_tag" => d[FrameDrop::NoTag],
                "unexpected_tag" => d[FrameDrop::UnexpectedTag],
                "unknown_key" => d[FrameDrop::UnknownKey],
                _ => d[FrameDrop::BadTag],
            };
            assert!(count > 0 && count == d.total(), "{counter}: {d:?}");
            assert_eq!(
                status.sent[Purpose::Reply] + status.sent[Purpose::Hello] + status.sent[Purpose::Piece],
                0,
                "nothing is answered"
            );
            assert_ne!(status.state, AgentState::Configured);
        }
    }
}

#[test]
fn keys_are_changed_one_agent_after_the_other_and_nothing_is_lost() {
    let mut pair = Pair::alike(&[1], 1);
    pair.run_to(ms(500));
    assert!(pair.agree());
    let version = pair.status()[0].version;
    let steps = [(0, [1, 2]), (1, [1, 2]), (0, [2, 1]), (1, [2, 1])];
    for (nth, (agent, ids)) in steps.into_iter().enumerate() {
        pair.agents[agent].set_keys(ring(&ids, 77));
        pair.run_to(ms(500 + 2500 * (nth as u64 + 1)));
    }
    for agent in 0..2 {
        pair.agents[agent].set_keys(ring(&[2], 78));
    }
    pair.run_to(ms(15_000));
    assert!(pair.agree());
    for status in pair.status() {
        assert_eq!((status.version, disbelieved(&status)), (version, 0));
    }
}

#[test]
fn an_agent_that_restarts_is_believed_again() {
    let mut pair = Pair::alike(&[1], 1);
    pair.run_to(ms(500));
    for restarted in [0, 1, 0] {
        pair.agents[restarted] = agent(restarted, ring(&[1], 1000 + pair.now.as_nanos()), pair.now);
        let end = pair.now + Duration::from_secs(20);
        pair.run_to(end);
        assert!(pair.agree(), "{:?}", pair.status());
    }
}

#[test]
fn agents_whose_addresses_others_had_for_a_while_hear_each_other_again() {
    // Each asks for the other's session, and gets no answer.
    let mut pair = Pair::alike(&[1], 1);
    pair.keeps_apart = true;
    pair.run_to(ms(100));
    // Then a second host with the address of the other one answers, so that the session looks over.
    let mut twins = Pair::alike(&[1], 2);
    std::mem::swap(&mut pair.agents[1], &mut twins.agents[1]);
    pair.keeps_apart = false;
    twins.now = pair.now;
    for with_twin in [&mut pair, &mut twins] {
        with_twin.run_to(ms(5000));
        assert!(with_twin.agree(), "{:?}", with_twin.status());
    }
    std::mem::swap(&mut pair.agents[1], &mut twins.agents[1]);
    pair.run_to(ms(20_000));
    assert!(pair.agree(), "{:?}", pair.status());
}

#[test]
fn copies_are_dropped() {
    let mut pair = Pair::alike(&[1], 1);
    pair.copies = 3;
    pair.run_to(ms(5000));
    assert!(pair.agree());
    for status in pair.status() {
        let d = status.dropped;
        assert!(d[FrameDrop::Replayed] > 0, "{d:?}");
        assert_eq!(d.total(), d[FrameDrop::Replayed] + d[FrameDrop::Unexpected], "{d:?}");
    }
}

#[test]
fn a_recording_of_an_earlier_run_does_nothing_after_all_have_restarted() {
    let mut before = Pair::alike(&[1], 1);
    before.run_to(ms(30_000));
    assert!(before.agree() && before.heard.len() > 200);

    // Seeds, settings and moments are the same: only the salt differs, as it must.
    let mut pair = Pair::alike(&[1], 2);
    pair.run_to(ms(500));
    assert!(pair.agree());
    let sent_before: u64 = pair.status().iter().map(|s| s.sent[Purpose::Hello]).sum();
    for (to, payload) in &before.heard {
        for receiver in [*to, 1 - *to] {
            pair.agents[receiver].handle_frame(pair.now, payload);
        }
        pair.exchange();
        pair.now = pair.now + Duration::from_micros(10);
    }
    let versions = pair.status().map(|status| status.version);
    pair.run_to(ms(5000));
    assert!(pair.agree());
    assert_eq!(pair.status().map(|status| status.version), versions, "no new map was called for");
    let hellos: u64 = pair.status().iter().map(|s| s.sent[Purpose::Hello]).sum();
    assert!(hellos - sent_before <= 4, "the old session is asked for once: {}", hellos - sent_before);
}

#[test]
fn a_recording_does_nothing_to_an_agent_whose_peer_is_gone() {
    let mut before = Pair::alike(&[1], 1);
    before.run_to(ms(10_000));
    assert!(before.agree());
    let mut alone = agent(0, ring(&[1], 9), Instant::ZERO);
    let mut now = Instant::ZERO;
    for (to, payload) in &before.heard {
        if *to == 0 {
            alone.handle_frame(now, payload);
        }
        now = now + Duration::from_millis(1);
        alone.handle_timeout(now);
        while alone.poll_transmit().is_some() || alone.poll_event().is_some() {}
        assert!(alone.status().parent.is_none() && alone.status().hosts <= 1, "{:?}", alone.status());
    }
    assert_eq!(alone.status().dropped[FrameDrop::BadTag], 0);
}

/// What a stranger can claim in a request: anything.
fn request() -> impl Strategy<Value = (Message, Route)> {
    let route = || {
        proptest::collection::vec((-31..=31i8).prop_map(Element::Relative), 0..12).prop_map(Route::from_iter)
    };
    let reason = prop_oneof![
        Just(Reason::Mapping),
        Just(Reason::Verify),
        (0..1400u16).prop_map(|answer_bytes| Reason::Alive { answer_bytes }),
        Just(Reason::Hello),
        (0..700u16).prop_map(|room_bytes| Reason::Service {
            service: mapper_proto::wire::ServiceNumber::DIRECTORY,
            room_bytes,
            question: vec![0],
        }),
        Just(Reason::Resume),
        (0..9000u16).prop_map(|max_ms| Reason::Pause { max_ms }),
        "x{0,40}".prop_map(|text| Reason::Printf { text }),
        (0..3u16, 0..2000u16).prop_map(|(piece, room_bytes)| Reason::MapRequest {
            // The version is set to that of the map in force.
            version: mapper_proto::map::MapVersion::NONE,
            piece,
            room_bytes,
        }),
    ];
    let info = Info { session: 7, state: AgentState::Configured, ..Info::default() };
    let scout = (route(), route(), reason).prop_map(move |(back, there, reason)| {
        (Message::Scout(Scout { id: 3, info, way: RoundTrip { there, back }, reason }), Route::new())
    });
    let probe = (route(), route()).prop_map(move |(way_there, back)| {
        let left = Route::from_iter(std::iter::once(Element::Relative(0)).chain(back.elements()));
        let probe = Probe { id: 3, kind: ProbeKind::Loopback, left: left.hops() as u8, info, way_there };
        (Message::Probe(probe), left)
    });
    prop_oneof![3 => scout, 1 => probe]
}

fn from(mac: Mac, mut message: Message, status: &Status) -> Message {
    match &mut message {
        Message::Probe(probe) => probe.info.rank.mac = mac,
        Message::Scout(scout) => {
            scout.info.rank.mac = mac;
            scout.info.version = status.version;
            if let Reason::MapRequest { version, .. } = &mut scout.reason {
                *version = status.version;
            }
        }
        Message::Reply(_) => {}
    }
    message
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_that_is_sent_in_answer_is_longer_than_what_asked(
        (message, left) in request(),
        signed in any::<bool>(),
    ) {
        let ids = if signed { &[1][..] } else { &[] };
        let mut pair = Pair::alike(ids, 1);
        pair.run_to(ms(200));
        prop_assert!(pair.agree());
        let status = pair.agents[0].status();
        // The sender is the agent at the other end, which is no stranger, but in another session.
        let message = from(Mac::from_position(1), message, &status);
        let one = key(1);
        let frame = if signed {
            message.encode_sealed(Seal { key: &one, sequence: 12, answers: 0 })
        } else {
            message.encode()
        };
        let payload = [left.as_bytes(), &frame].concat();
        pair.agents[0].handle_frame(pair.now, &payload);
        let sent: Vec<_> = std::iter::from_fn(|| pair.agents[0].poll_transmit()).collect();
        prop_assert!(sent.len() <= 1, "{:?}", sent);
        for sent in sent {
            let bytes = sent.route.as_bytes().len() + sent.frame.len();
            prop_assert!(bytes <= payload.len(), "{} > {}", bytes, payload.len());
            let reply = Message::decode(&sent.frame).unwrap().0;
            if let (Message::Reply(Reply { answer, .. }), Message::Scout(scout)) = (reply, &message)
                && let (Answer::MapRequest { needs_bytes, bytes, .. }, Reason::MapRequest { room_bytes, .. })
                    = (answer, &scout.reason)
            {
                prop_assert!(bytes.len() <= usize::from(*room_bytes));
                prop_assert_eq!(bytes.is_empty(), needs_bytes > *room_bytes || needs_bytes == 0);
            }
        }
    }
}
