//! Agents that are told to leave their routes in the kernel when they end tell each other when they need no more answers.
//! An agent that has tried all its ways to a host asks that host a last question, which says so. It does not end itself
//! before all other hosts have asked theirs.

use std::net::Ipv4Addr;
use std::time::Duration;

use mapper_proto::{Instant, Mac};

use super::KernelPath;
use super::destination::KernelDestination;
use super::prober::Ends;
use super::way::Way;

/// How long an answer to the last question is waited for.
const ANSWER_WITHIN: Duration = Duration::from_millis(200);
/// How often the last question is asked at most. A host that answers none of them has ended, or answers nobody.
const MOST_TRIES: u8 = 10;

/// What this host and another have told each other about their last questions.
#[derive(Debug)]
pub(super) struct Farewell {
    /// Whether the other host has asked its last question, so that it needs no more answers of this one.
    is_heard: bool,
    /// Whether the other host has answered the last question of this one.
    is_answered: bool,
    /// How often this host has asked its last question.
    tries: u8,
    /// The nonce with which the last question was asked the latest time.
    nonce: Option<u64>,
    /// When the last question is to be asked again if no answer came.
    again_at: Instant,
}

impl Default for Farewell {
    fn default() -> Self {
        Self { is_heard: false, is_answered: false, tries: 0, nonce: None, again_at: Instant::ZERO }
    }
}

impl Farewell {
    /// Whether neither of the two hosts waits for the other any more.
    const fn is_over(&self) -> bool {
        self.is_heard && (self.is_answered || self.tries >= MOST_TRIES)
    }

    /// When the last question is to be asked next; `None` if it was answered, or asked often enough.
    fn due_at(&self) -> Option<Instant> {
        (!self.is_answered && self.tries < MOST_TRIES).then_some(self.again_at)
    }
}

impl KernelDestination {
    /// Whether all ways to this host were tried, and some of them take packets. Probes of IPv4 come from `v4_probes_from`.
    fn is_settled(&self, v4_probes_from: Option<Ipv4Addr>) -> bool {
        let is_tried = |way: &Way| way.is_proved() || way.is_refuted();
        self.is_carried() && self.ways.iter().all(is_tried) && !self.awaits_v4(v4_probes_from)
    }
}

impl KernelPath {
    /// If agents are to end, asks the last question of all hosts to which all ways were tried.
    pub(super) fn say_farewells(&mut self, now: Instant) {
        if !self.is_holding() {
            return;
        }
        let Self { destinations, prober, own, v4_probes_from, .. } = self;
        let is_due = |it: &KernelDestination| {
            it.is_settled(*v4_probes_from) && it.farewell.due_at().is_some_and(|at| at <= now)
        };
        for (&mac, destination) in destinations.iter_mut().filter(|(_, it)| is_due(it)) {
            let ends = own.source_of_probes().zip(destination.target());
            let nonce = ends
                .zip(destination.ways_in_use().next())
                .map(|((own, other), way)| prober.ask_last(now, (mac, way), Ends { own, other, v4: None }));
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
        let settled = self.destinations.values().filter(|it| it.is_settled(self.v4_probes_from));
        settled.filter_map(|it| it.farewell.due_at()).min()
    }

    /// Takes in that another host needs no more answers of this one. Returns whether that host is known.
    pub(crate) fn hear_farewell(&mut self, mac: Mac) -> bool {
        let destination = self.destinations.get_mut(&mac);
        destination.map(|it| it.farewell.is_heard = true).is_some()
    }

    /// Whether an answer with this nonce is that to the last question to a host. If so, that question is done with.
    pub(super) fn is_farewell_answered(&mut self, mac: Mac, nonce: u64) -> bool {
        let farewell = self.destinations.get_mut(&mac).map(|it| &mut it.farewell);
        let Some(farewell) = farewell.filter(|it| it.nonce == Some(nonce)) else {
            return false;
        };
        farewell.is_answered = true;
        true
    }

    /// Whether some host to which packets are sent may still need this one, because it has not asked its last question
    /// yet, or has not answered that of this host.
    pub(crate) fn is_needed(&self) -> bool {
        self.is_holding() && self.destinations.values().any(|it| it.is_carried() && !it.farewell.is_over())
    }
}
