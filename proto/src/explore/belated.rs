//! Stamps that come when their probe has timed out.
//!
//! On a busy machine some answers take longer than a probe waits. An xbar whose stamps came late while loopback
//! probes of it came back in time would be taken for plain, and the map would hold only until verification met
//! its name. A belated stamp is as good as any: the probe went the same way. Only in large parts without hosts
//! it counts for nothing, as these are asked last and given up after a while: who answers without end, and
//! late, must not make that while longer.

use std::collections::VecDeque;

use super::request::{Ask, Job};
use super::{ExploreError, ExploreOutcome, Explorer};
use crate::Instant;
use crate::wire::Stamp;

/// The last identify probes that timed out: their ids, and what they asked.
#[derive(Debug, Default)]
pub(super) struct Belated(VecDeque<(u32, Job)>);

impl Belated {
    /// The most that are remembered.
    const MOST: usize = 256;

    /// Remembers a question that timed out, if a stamp may still answer it.
    pub(super) fn push(&mut self, id: u32, job: &Job) {
        if matches!(job, Job::Identify(_) | Job::Port(_, Ask::Identify)) {
            if self.0.len() >= Self::MOST {
                self.0.pop_front();
            }
            self.0.push_back((id, *job));
        }
    }

    /// The question with this id, once.
    pub(super) fn take(&mut self, id: u32) -> Option<Job> {
        let at = self.0.iter().position(|&(known, _)| known == id)?;
        self.0.remove(at).map(|(_, job)| job)
    }
}

impl Explorer {
    /// Takes in what came of a request that timed out. Returns whether it counts.
    pub(super) fn handle_belated(&mut self, now: Instant, id: u32, outcome: ExploreOutcome) -> bool {
        let ExploreOutcome::Returned { stamp: Some(stamp) } = outcome else { return false };
        let Some(job) = self.belated.take(id).filter(|_| !self.finished) else { return false };
        // The part may have become a large one since it was asked.
        if self.xbar_of_job(&job).is_some_and(|node| self.known.xbar(node).late) {
            return false;
        }
        let worked = self.stamped_late(&job, &stamp);
        self.settle(worked, false);
        self.look_at_parts(now);
        true
    }

    /// Works in a stamp that came late.
    fn stamped_late(&mut self, job: &Job, stamp: &Stamp) -> Result<(), ExploreError> {
        match *job {
            Job::Port(at, _) => self.stamped(at, stamp),
            Job::Identify(node) => self.named(node, stamp),
            _ => Ok(()),
        }
    }
}
