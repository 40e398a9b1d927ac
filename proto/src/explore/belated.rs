//! Answers that come when their probe has timed out.
//!
//! On a busy machine some answers take longer than a probe waits. An xbar whose stamps came late while loopback
//! probes of it came back in time would be taken for plain, and the map would hold only until verification met
//! its name. A map without the hosts whose agents wait for a processor would hold only until they are heard. A belated
//! stamp or host's answer is as good as any: the probe went the same way. Only in large parts without hosts
//! it counts for nothing, as these are asked last and given up after a while: who answers without end, and
//! late, must not make that while longer. What is asked of a part that is left out is forgotten with all else of it.

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

    /// Forgets the questions that are not to be kept.
    pub(super) fn retain(&mut self, keep: impl Fn(&Job) -> bool) {
        self.0.retain(|timed_out| keep(&timed_out.job));
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
        let Some(worked) = self.answered_late(&job, outcome) else { return false };
        self.time_answer(now, sent_at, outcome);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Mac;
    use crate::explore::ExploreSettings;
    use crate::map::Host;
    use crate::wire::Stamp;

    /// The stamp of an xbar of three ports, all of them with carrier, that is entered by port 0.
    fn stamp(tag: u64) -> ExploreOutcome {
        let stamp = Stamp { tag, ports: 3, arrival: 0, carriers: (0..3).collect() };
        ExploreOutcome::Returned { stamp: Some(stamp) }
    }

    /// The questions about a port, or about the first cable, that are sent now.
    fn questions(explorer: &mut Explorer, now: Instant) -> Vec<(u32, Job)> {
        let mut sent = Vec::new();
        while let Some(request) = explorer.poll_probe(now) {
            sent.push((request.id, explorer.pending[&request.id].job));
        }
        sent
    }

    #[test]
    fn an_answer_of_what_was_left_out_since_counts_for_nothing() {
        let settings = ExploreSettings {
            plain_ports: 8,
            max_hops: 11,
            probe_timeout: Duration::from_millis(1),
            probe_tries: 3,
            probe_window: 64,
            prove_tags: false,
            greet_hosts: false,
            tell_silent_parts: false,
        };
        let own = Host { mac: Mac::from_position(1), level: 0, host_type: 0, at: None };
        let mut explorer = Explorer::new(&settings, own, 7);
        let mut now = Instant::ZERO;
        let first = questions(&mut explorer, now)[0].0;
        assert!(explorer.handle_outcome(now, first, stamp(1)));
        let of_port = |asked: &[(u32, Job)], delta: i16| {
            asked.iter().find(|(_, job)| matches!(job, Job::Port(at, _) if at.delta == delta)).unwrap().0
        };
        let asked = questions(&mut explorer, now);
        assert!(explorer.handle_outcome(now, of_port(&asked, 1), stamp(2)), "there is an xbar behind port 1");
        // What is behind that xbar is silent, but its questions are remembered.
        let silent: Vec<u32> = questions(&mut explorer, now)
            .into_iter()
            .filter(|(_, job)| matches!(job, Job::Port(..)))
            .map(|(id, _)| id)
            .collect();
        let [belated, other] = silent[..] else { panic!("two ports are asked: {silent:?}") };
        now = explorer.poll_timeout().unwrap();
        explorer.handle_timeout(now);
        questions(&mut explorer, now);
        assert!(explorer.handle_belated(now, other, stamp(3)), "as long as it is there, its answers count");
        assert!(explorer.leave_out_heaviest());
        let load = explorer.load();
        assert!(!explorer.handle_belated(now, belated, stamp(4)));
        assert_eq!(explorer.load(), load, "nothing is learned of it");
    }
}
