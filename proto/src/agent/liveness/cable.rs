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

/// The time between two tests of a cable, unless paths are checked less often; the first ones may follow each
/// other faster.
const INTERVAL: Duration = Duration::from_millis(100);
/// How many frames a test has that decides whether a cable is proved dead, as long as none is answered. Frames get
/// lost for other reasons than dead cables, too: of a cable that loses most of them, there and back, one of so many comes back
/// nearly always.
const FRAMES_OF_PROOF: u32 = 8;
/// So many tests that follow one without an answer have as many frames.
const DECISIVE_SILENCES: u32 = 4;
/// With more cables under test than these, each test has one frame: lost frames alone do not make so many silent, and
/// many hosts may test the same ones.
const REPEATED_FOR: usize = 16;
/// How many tests in a row that are not answered make the time to the next longer.
const MOST_SILENCES: u32 = 8;
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
    /// Whether a test may have several frames, any of which may be answered. Not where it is to be found whether the cable
    /// loses some.
    pub may_repeat: bool,
}

/// A cable under test.
#[derive(Debug)]
struct Tested {
    test: CableTest,
    /// When it was last said to be tested.
    repeated_at: Instant,
    /// When the next frame is sent.
    due_at: Instant,
    /// When the test under way ends.
    ends_at: Instant,
    /// The frames of the test under way, none of which was answered. Empty if there is none.
    waits_for: Vec<u32>,
    /// How many tests in a row were answered.
    answers: u32,
    /// How many tests in a row were not answered, up to as many as still matter.
    silences: u32,
    /// Whether the last test was answered, as the driver knows.
    told: Option<bool>,
}

impl Tested {
    fn new(now: Instant, test: CableTest) -> Self {
        Self {
            test,
            repeated_at: now,
            due_at: now,
            ends_at: now,
            waits_for: Vec::new(),
            answers: 0,
            silences: 0,
            told: None,
        }
    }

    /// The time from a test to the next.
    ///
    /// A cable is proved dead when its first test is not answered. Some other ways take turns that are safe
    /// only once the cable is proved dead, and where there are no others, users' traffic rests until then. So
    /// the first test lasts no longer than the time between two checks of a path. If the cable lives and all
    /// frames of the test got lost, those turns are not safe, and this should be known soon: the next tests
    /// follow quickly at first.
    fn interval(&self, settings: &Settings) -> Duration {
        let (of_paths, longest) = (settings.liveness_interval, INTERVAL.max(settings.liveness_interval));
        if of_paths.is_zero() || self.told == Some(true) {
            return longest;
        }
        (of_paths * (1 << self.silences)).min(longest)
    }

    /// Begins the next frame to send, which has this number. Returns whether the driver has yet to hear that the last
    /// test was not answered.
    fn begin_frame(&mut self, now: Instant, id: u32, (settings, may_repeat): (&Settings, bool)) -> bool {
        let is_repeated = !self.waits_for.is_empty() && now < self.ends_at;
        let is_silent = !self.waits_for.is_empty() && !is_repeated;
        if !self.waits_for.is_empty() {
            self.answers = 0;
        }
        if is_silent {
            self.silences = (self.silences + 1).min(MOST_SILENCES);
        }
        let is_news = is_silent && self.note(false);
        let interval = self.interval(settings);
        if !is_repeated {
            self.waits_for.clear();
            self.ends_at = now + interval;
        }
        self.waits_for.push(id);
        // Soon after a test without an answer, too: turns may be open that close with the first answer.
        let is_decisive = self.told != Some(false) || self.silences <= DECISIVE_SILENCES;
        let repeats = may_repeat
            && self.test.may_repeat
            && is_decisive
            && self.waits_for.len() < FRAMES_OF_PROOF as usize;
        self.due_at = if repeats { self.ends_at.min(now + interval / FRAMES_OF_PROOF) } else { self.ends_at };
        is_news
    }

    /// Takes in that the test under way was answered. Returns whether the driver has yet to hear of it.
    fn take_answer(&mut self) -> bool {
        self.waits_for.clear();
        self.due_at = self.ends_at;
        (self.answers, self.silences) = (self.answers + 1, 0);
        self.note(true)
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
        let (&(version, at), tested) =
            self.0.iter_mut().find(|(_, tested)| tested.waits_for.contains(&id))?;
        let (is_news, is_alive) = (tested.take_answer(), tested.answers >= tested.test.answers);
        if is_alive {
            self.0.remove(&(version, at));
        }
        Some(Answered { version, at, is_news, is_alive })
    }

    /// A cable that a frame is due for.
    fn next_due(&mut self, now: Instant) -> Option<(MapVersion, PortRef, &mut Tested)> {
        self.0.retain(|_, tested| now.since(tested.repeated_at) < FORGET_AFTER);
        let (&(version, at), tested) = self.0.iter_mut().find(|(_, tested)| tested.due_at <= now)?;
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
        let tested = tests.entry((version, at)).or_insert_with(|| Tested::new(now, test.clone()));
        tested.repeated_at = now;
        if tested.test.may_repeat != test.may_repeat {
            // Tests of another kind prove something else, so the first one's end is told again.
            (tested.told, tested.silences, tested.due_at) = (None, 0, now);
        }
        if tested.test != test {
            (tested.test, tested.answers) = (test, 0);
            tested.waits_for.clear();
        }
    }

    /// Sends the tests that fall due.
    pub(super) fn test_cables(&mut self, now: Instant) {
        loop {
            let id = self.new_probe_id();
            let may_repeat = self.liveness.cables.len() <= REPEATED_FOR;
            let Some((version, at, tested)) = self.liveness.cables.next_due(now) else { return };
            let is_silent = tested.begin_frame(now, id, (&self.settings, may_repeat));
            let CableTest { route, left, to, frame_bytes, .. } = tested.test.clone();
            // A frame longer than the own interface carries would tell nothing of the cable.
            let frame_bytes = self.longest_along(&route).map_or(frame_bytes, |most| frame_bytes.min(most));
            if is_silent {
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
