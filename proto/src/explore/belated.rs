//! Answers that come when their probe has timed out.
//!
//! On a busy machine some answers take longer than a probe waits. An xbar whose stamps came late while loopback
//! probes of it came back in time would be taken for plain, and the map would hold only until verification met
//! its name. A map without the hosts whose agents wait for a processor would hold only until they are heard. A belated
//! answer is as good as any: the probe went the same way. Only in large parts without hosts
//! it counts for nothing, as these are asked last and given up after a while: who answers without end, and
//! late, must not make that while longer.

use std::collections::VecDeque;

use super::request::{Ask, Job, Pending};
use super::{ExploreError, ExploreOutcome, Explorer};
use crate::Instant;

/// The last questions that timed out.
#[derive(Debug, Default)]
pub(super) struct Belated(VecDeque<TimedOut>);

#[derive(Debug, Clone, Copy)]
pub(super) struct TimedOut {
    id: u32,
    job: Job,
    sent_at: Instant,
}

impl Belated {
    /// The most that are remembered.
    const MOST: usize = 1024;

    /// Remembers a question that timed out, if a belated answer to it counts.
    pub(super) fn push(&mut self, id: u32, &Pending { job, sent_at, .. }: &Pending) {
        if matches!(job, Job::Identify(_) | Job::Port(..)) {
            if self.0.len() >= Self::MOST {
                self.0.pop_front();
            }
            self.0.push_back(TimedOut { id, job, sent_at });
        }
    }

    /// The question with this id, once.
    fn take(&mut self, id: u32) -> Option<TimedOut> {
        let at = self.0.iter().position(|known| known.id == id)?;
        self.0.remove(at)
    }
}

impl Explorer {
    /// Takes in what came of a request that timed out. Returns whether it counts.
    pub(super) fn handle_belated(&mut self, now: Instant, id: u32, outcome: ExploreOutcome) -> bool {
        let Some(timed_out) = self.belated.take(id).filter(|_| !self.finished) else { return false };
        let TimedOut { job, sent_at, .. } = timed_out;
        // The part may have become a large one since it was asked.
        if self.xbar_of_job(&job).is_some_and(|node| self.known.xbar(node).late) {
            return false;
        }
        self.time_answer(now, sent_at);
        let Some(worked) = self.answered_late(&job, outcome) else { return false };
        self.settle(worked, false);
        self.look_at_parts(now);
        true
    }

    /// Works in an answer that came late. `None` if it counts for nothing.
    fn answered_late(&mut self, job: &Job, outcome: ExploreOutcome) -> Option<Result<(), ExploreError>> {
        Some(match (*job, outcome) {
            (Job::Port(at, Ask::Identify), ExploreOutcome::Returned { stamp: Some(stamp) }) => {
                self.stamped(at, &stamp)
            }
            (Job::Identify(node), ExploreOutcome::Returned { stamp: Some(stamp) }) => {
                self.named(node, &stamp)
            }
            (Job::Port(at, ask), ExploreOutcome::Host(met)) => self.host_answered(at, ask, met),
            _ => return None,
        })
    }
}
