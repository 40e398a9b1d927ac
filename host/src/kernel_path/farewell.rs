//! Agents that end one by one, and leave their routes, tell each other when they need no more answers: who has tried all
//! ways to a host asks it a last question, which says so, and stays itself until all others have said it.

use std::time::Duration;

use mapper_proto::{Instant, Mac};

use super::KernelPath;
use super::destination::Destination;
use super::prober::Ends;

/// How long an answer to the last question is waited for.
const ANSWER_WITHIN: Duration = Duration::from_millis(200);
/// How often the last question is asked at most: who answers none has ended, or answers nobody.
const MOST_TRIES: u8 = 10;

/// What is said and heard of the end between this host and another.
#[derive(Debug)]
pub(super) struct Farewell {
    /// Whether the other one needs no more answers of this host.
    is_heard: bool,
    /// Whether the other one has answered the last question of this host.
    is_answered: bool,
    /// How often that was asked.
    tries: u8,
    /// Its nonce when it was asked last.
    nonce: Option<u64>,
    /// When it is to be asked again.
    again_at: Instant,
}

impl Default for Farewell {
    fn default() -> Self {
        Self { is_heard: false, is_answered: false, tries: 0, nonce: None, again_at: Instant::ZERO }
    }
}

impl Farewell {
    /// Whether nobody waits for anything.
    const fn is_over(&self) -> bool {
        self.is_heard && (self.is_answered || self.tries >= MOST_TRIES)
    }

    /// When the last question is to be asked; `None` if that is no use any more.
    fn due_at(&self) -> Option<Instant> {
        (!self.is_answered && self.tries < MOST_TRIES).then_some(self.again_at)
    }
}

impl Destination {
    /// Whether all ways to it are tried, and some of them take packets.
    fn is_settled(&self) -> bool {
        self.is_carried() && self.ways.iter().all(|way| way.is_proved() || way.is_refuted())
    }
}

impl KernelPath {
    /// Asks all hosts the last question whose ways are tried, if agents are to end.
    pub(super) fn say_farewells(&mut self, now: Instant) {
        if !self.is_holding() {
            return;
        }
        let Self { destinations, prober, own, .. } = self;
        let is_due = |it: &Destination| it.is_settled() && it.farewell.due_at().is_some_and(|at| at <= now);
        for (&mac, destination) in destinations.iter_mut().filter(|(_, it)| is_due(it)) {
            let ends = own.source_of_probes().zip(destination.target());
            let nonce = ends
                .zip(destination.ways_in_use().next())
                .map(|((own, other), way)| prober.ask_last(now, (mac, way), Ends { own, other }));
            let farewell = &mut destination.farewell;
            farewell.tries += 1;
            (farewell.nonce, farewell.again_at) = (nonce, now + ANSWER_WITHIN);
        }
    }

    /// When [`Self::say_farewells`] has something to say.
    pub(super) fn farewell_at(&self) -> Option<Instant> {
        if !self.is_holding() {
            return None;
        }
        let settled = self.destinations.values().filter(|it| it.is_settled());
        settled.filter_map(|it| it.farewell.due_at()).min()
    }

    /// Takes in that another host needs no more answers of this one.
    pub(crate) fn hear_farewell(&mut self, mac: Mac) {
        if let Some(destination) = self.destinations.get_mut(&mac) {
            destination.farewell.is_heard = true;
        }
    }

    /// Whether the last question to a host had this nonce. Then it is done with, as this is about its answer.
    pub(super) fn is_farewell_answered(&mut self, mac: Mac, nonce: u64) -> bool {
        let farewell = self.destinations.get_mut(&mac).map(|it| &mut it.farewell);
        let Some(farewell) = farewell.filter(|it| it.nonce == Some(nonce)) else {
            return false;
        };
        farewell.is_answered = true;
        true
    }

    /// Whether hosts that packets are sent to may still need this one: not all of them have said that they do not,
    /// or have answered the same word of this one.
    pub fn is_needed(&self) -> bool {
        self.is_holding() && self.destinations.values().any(|it| it.is_carried() && !it.farewell.is_over())
    }
}
