//! The pair of agents that these tests run on: one watches paths to the other.

use super::*;

/// A path that carries frames of 1,000 bytes.
pub(super) fn used(deltas: &[i8]) -> PathUse {
    let back: Vec<i8> = deltas.iter().rev().map(|delta| -delta).collect();
    let to = Mac::from_position(2);
    PathUse { way: RoundTrip { there: route(deltas), back: route(&back) }, to, longest_bytes: LONGEST }
}

pub(super) const LONGEST: usize = 1000;

/// The message in a data frame; all that liveness sends is in one.
pub(super) fn carried(frame: &[u8]) -> Message {
    assert!(Data::is_check(frame));
    let frame = Frame::parse(frame).unwrap();
    Message::decode(Data::carried_in(&frame).unwrap()).unwrap().0
}

pub(super) fn is_probe(frame: &[u8]) -> bool {
    Data::is_check(frame) && matches!(carried(frame), Message::Probe(_))
}

/// All that a frame takes of a link.
pub(super) fn link_bytes(transmit: &Transmit) -> usize {
    transmit.route.as_bytes().len() + transmit.frame.len()
}

/// Whether a frame arrives that is sent now.
pub(super) type Carries = Box<dyn FnMut(Instant, &Transmit) -> bool>;

/// An agent that watches paths, and the host at their ends.
pub(super) struct Pair {
    pub(super) watcher: Agent,
    pub(super) far: Agent,
    pub(super) now: Instant,
    /// Frames on their way, and when they arrive: to the far host (`true`), or to the watcher.
    flying: VecDeque<(Instant, bool, Vec<u8>)>,
    pub(super) events: Vec<(Instant, Event)>,
    pub(super) carries: Carries,
    /// Bytes of frames that came to the far host, and that it sent.
    asked_bytes: usize,
    answered_bytes: usize,
    /// What a host without a proved session may be asked for once, in bytes.
    unproved_bytes: usize,
}

impl Pair {
    pub(super) fn new(seed: u64, carries: impl FnMut(Instant, &Transmit) -> bool + 'static) -> Self {
        Self::with_keys(None, seed, carries)
    }

    /// Level 0: neither ever maps.
    pub(super) fn with_keys(
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

    pub(super) fn watch(&mut self, path: u32, deltas: &[i8]) {
        self.watcher.watch_path(self.now, PathId(path), used(deltas));
    }

    /// Runs until `end`, path 0 in use all the while.
    pub(super) fn run_to(&mut self, end: Instant, deltas: &[i8]) {
        while self.now < end {
            self.watch(0, deltas);
            let next = (self.now + Duration::from_millis(300)).min(end);
            self.run_quietly_to(next);
        }
    }

    pub(super) fn run_quietly_to(&mut self, end: Instant) {
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

    pub(super) fn count(&self, kind: LivenessCount) -> u64 {
        self.watcher.status().liveness[kind]
    }

    /// How many paths are watched, and how many are not for want of room.
    pub(super) fn watched(&self) -> (u64, u64) {
        (self.count(LivenessCount::Watched), self.count(LivenessCount::Unwatched))
    }
}

pub(super) fn settings(position: u32) -> Settings {
    Settings::new(Mac::from_position(position))
}
