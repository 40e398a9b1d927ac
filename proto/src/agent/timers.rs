//! What wakes an agent: its timers, and the deadlines of all that waits for an answer.

use super::cause::Cause;
use super::machine::Agent;
use super::requests::Expired;
use super::status::Purpose;
use super::verify::Cycle;
use crate::Instant;
use crate::wire::AgentState;

/// What wakes the agent, beside requests and probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// Ask the parent for its map version.
    Query,
    /// Begin the next cycle of verification.
    Verify,
    /// Begin to map (again).
    Map,
    /// The pause imposed by a mapper ends.
    PauseEnd,
    /// Look whether another host still has this agent's address.
    Twin,
    /// No longer wait for a piece of the map, or for routes.
    Patience,
}

impl Timer {
    pub(super) const COUNT: usize = Self::ALL.len();
    /// All timers. Of those that are due at one moment an earlier one fires first.
    const ALL: [Self; 6] = [Self::PauseEnd, Self::Map, Self::Query, Self::Verify, Self::Twin, Self::Patience];
}

impl Agent {
    /// Acts on what falls due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.note_time(now);
        self.note_lateness(now);
        while let Some(expired) = self.requests.expired(now, self.longest_wait(now)) {
            match expired {
                Expired::Again(id, request) => {
                    self.sent.count(Purpose::Retry);
                    self.send_scout(id, request.way, request.reason);
                }
                Expired::GivenUp(request) => self.unanswered(now, &request),
            }
        }
        for timer in Timer::ALL {
            if self.timers[timer as usize].is_some_and(|due| due <= now) {
                self.timers[timer as usize] = None;
                self.fire(now, timer);
            }
        }
        self.expire_checks(now);
        self.expire_doubts(now);
        self.expire_probes(now);
        self.check_paths(now);
        self.pump(now);
    }

    /// Takes in how late this is called. An exploration that is under way learns it, too.
    fn note_lateness(&mut self, now: Instant) {
        let Some(due) = self.poll_timeout().filter(|due| *due < now) else { return };
        self.answers.note(now, now.since(due));
        if let Some(mapping) = self.mapping.as_mut() {
            mapping.learn_lateness(now, &self.answers);
        }
    }

    fn fire(&mut self, now: Instant, timer: Timer) {
        match timer {
            Timer::Query => self.query_parent(now),
            Timer::Verify => self.begin_cycle(now),
            Timer::Map if self.state == AgentState::Starting => self.map_again(now, Cause::Start),
            Timer::Map => self.begin_mapping(now),
            Timer::PauseEnd => self.end_pause(now),
            Timer::Twin => self.look_for_twin(now),
            Timer::Patience => self.lose_patience(now),
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called; `None` for never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let probes =
            self.mapping.as_ref().filter(|_| !self.pause.is_on()).and_then(|mapping| mapping.deadline());
        let checks =
            self.cycle.as_ref().and_then(Cycle::deadline).into_iter().chain(self.doubts.probes.deadline());
        let timers = self.timers.iter().copied().flatten();
        let paths = self.liveness.deadline();
        timers.chain(probes).chain(checks).chain(self.requests.deadline()).chain(paths).min()
    }

    pub(super) const fn set_timer(&mut self, timer: Timer, due: Instant) {
        self.timers[timer as usize] = Some(due);
    }

    pub(super) const fn stop_timer(&mut self, timer: Timer) {
        self.timers[timer as usize] = None;
    }
}
