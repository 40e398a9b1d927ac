//! Tests of cables that are held for dead: whether they carry frames again.
//!
//! No user's frame goes over such a cable, so something else must show that it lives: a probe that
//! crosses it, turns behind it and comes home, in a data frame as long as those that were lost. The
//! driver says which cables are to be tested, again and again while they are, and hears of those that
//! answered so many times in a row as it asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::event::Event;
use super::super::machine::Agent;
use super::super::settings::Settings;
use super::LivenessCount;
use crate::map::{MapVersion, PortRef};
use crate::wire::{Data, Message, Probe, ProbeKind, RoundTrip, Route};
use crate::{Instant, Mac};

/// The time between two tests of a cable, unless paths are checked less often; the first two may follow each
/// other faster.
const INTERVAL: Duration = Duration::from_millis(100);
/// How long a cable is tested after the driver last asked for it.
const FORGET_AFTER: Duration = Duration::from_millis(1500);
/// Most cables tested at once.
const LIMIT: usize = 256;

/// How a cable that is held for dead is tested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CableTest {
    /// The route to the cable, over it, and the same way back: the test turns behind the cable.
    pub route: Route,
    /// How many of its elements are left where it turns, the turning one included.
    pub left: u8,
    /// The host that frames over the cable would go to, for the header of the test.
    pub to: Mac,
    /// How long the test is, its route and all; as short as can be if it does not need so much.
    pub frame_bytes: usize,
    /// How many answers in a row show that the cable lives.
    pub answers: u32,
}

/// A cable under test.
#[derive(Debug)]
struct Tested {
    test: CableTest,
    /// When it was last said to be tested.
    repeated_at: Instant,
    due_at: Instant,
    /// The test that is not answered yet.
    waits_for: Option<u32>,
    /// How many tests in a row were answered.
    answers: u32,
    /// Whether the last test was answered, as the driver knows.
    told: Option<bool>,
}

impl Tested {
    /// The time from the test that is due now to the next. A cable is proved dead when its first test is not
    /// answered. Some other ways take turns that are safe only once the cable is proved dead, and where there
    /// are no others, users' traffic rests until then. So the first answer is not waited for longer than that
    /// to a check of a path.
    fn interval(&self, settings: &Settings) -> Duration {
        let of_paths = settings.liveness_interval;
        let is_first = self.told.is_none() && self.waits_for.is_none();
        if is_first && !of_paths.is_zero() { of_paths } else { INTERVAL.max(of_paths) }
    }

    /// Notes whether a test was answered. Returns whether the driver has yet to hear of it.
    fn note(&mut self, answered: bool) -> bool {
        self.told.replace(answered) != Some(answered)
    }
}

/// An answer to a test.
struct Answered {
    version: MapVersion,
    at: PortRef,
    /// Whether the test before it was not answered, or there was none.
    is_news: bool,
    /// Whether it was the last of the answers that show that the cable lives.
    is_alive: bool,
}

/// All cables under test, by the map that the port is of.
#[derive(Debug, Default)]
pub(super) struct CableTests(BTreeMap<(MapVersion, PortRef), Tested>);

impl CableTests {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.values().map(|tested| tested.due_at).min()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Ends the test that has come home or that a host answered. `None` if there is no such test.
    fn answered(&mut self, id: u32) -> Option<Answered> {
        let (&(version, at), tested) = self.0.iter_mut().find(|(_, tested)| tested.waits_for == Some(id))?;
        tested.waits_for = None;
        tested.answers += 1;
        let (is_news, is_alive) = (tested.note(true), tested.answers >= tested.test.answers);
        if is_alive {
            self.0.remove(&(version, at));
        }
        Some(Answered { version, at, is_news, is_alive })
    }

    /// A cable whose next test is due.
    fn next_due(&mut self, now: Instant, settings: &Settings) -> Option<(MapVersion, PortRef, &mut Tested)> {
        self.0.retain(|_, tested| now.since(tested.repeated_at) < FORGET_AFTER);
        let (&(version, at), tested) = self.0.iter_mut().find(|(_, tested)| tested.due_at <= now)?;
        tested.due_at = now + tested.interval(settings);
        Some((version, at, tested))
    }
}

impl Agent {
    /// Says that the cable at a port of this map is held for dead and is to be tested until it lives
    /// ([`Event::CableUp`]). To be repeated every few hundred milliseconds; after 1.5 s it is
    /// forgotten. Of more than 256 cables the first are tested.
    pub fn test_cable(&mut self, now: Instant, version: MapVersion, at: PortRef, test: CableTest) {
        let tests = &mut self.liveness.cables.0;
        if tests.len() >= LIMIT && !tests.contains_key(&(version, at)) {
            return;
        }
        let fresh = Tested {
            test: test.clone(),
            repeated_at: now,
            due_at: now,
            waits_for: None,
            answers: 0,
            told: None,
        };
        let tested = tests.entry((version, at)).or_insert(fresh);
        tested.repeated_at = now;
        if tested.test != test {
            (tested.test, tested.answers, tested.waits_for) = (test, 0, None);
        }
    }

    /// Sends the tests that fall due.
    pub(super) fn test_cables(&mut self, now: Instant) {
        loop {
            let id = self.new_probe_id();
            let Some((version, at, tested)) = self.liveness.cables.next_due(now, &self.settings) else {
                return;
            };
            let unanswered = tested.waits_for.replace(id).is_some();
            let CableTest { route, left, to, frame_bytes, .. } = tested.test.clone();
            if unanswered {
                tested.answers = 0;
            }
            if unanswered && tested.note(false) {
                self.event(Event::CableAsked { version, at, answered: false });
            }
            self.liveness.counts.count(LivenessCount::ChecksSent);
            let way_there = route.elements().take(route.hops().saturating_sub(usize::from(left))).collect();
            let probe = Probe { id, kind: ProbeKind::Loopback, left, info: self.info(), way_there };
            // The test goes there and back the same way, so its route is its own way back.
            // That the cable is dead is known: a notice about the test says nothing new.
            let _quiet = self.transmit_as_data(
                Data::QUIET,
                RoundTrip { there: route.clone(), back: route },
                to,
                &Message::Probe(probe),
                frame_bytes,
            );
        }
    }

    /// A probe came home, or a host answered it. False if it was not sent to test a cable.
    pub(in super::super) fn cable_test_answered(&mut self, id: u32) -> bool {
        let Some(answer) = self.liveness.cables.answered(id) else { return false };
        let Answered { version, at, is_news, is_alive } = answer;
        if is_news {
            self.event(Event::CableAsked { version, at, answered: true });
        }
        if is_alive {
            self.event(Event::CableUp { version, at });
        }
        true
    }
}
