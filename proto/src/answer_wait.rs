//! How long an answer is waited for before it counts as missing.

use std::time::Duration;

use crate::Instant;

/// How late things happen lately on this machine and on those that answer it, and how long an answer is waited for because
/// of that.
///
/// Where machines have more to do than they can, agents wait for a processor, and so do their answers. Whoever took
/// these agents for gone would call for a new map, and with it for more work of all: it would never end. So answers are waited
/// for several times as long as the latest ones took (RFC 6298 has TCP wait in the same way), and as this agent itself
/// was called too late.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerWait {
    /// How late something was, and when.
    latest: (Duration, Instant),
}

impl AnswerWait {
    /// How many times as long as the latest answer took others are waited for.
    const FACTOR: u32 = 4;
    /// The most that the set wait is multiplied by.
    pub(crate) const MOST: u32 = 8;
    /// The latest that anything is taken to be: a machine that was suspended for a night is not short of time.
    const LATEST: Duration = Duration::from_secs(1);
    /// How long it takes until half of the lateness is forgotten.
    const HALF_LIFE: Duration = Duration::from_millis(500);

    /// Nothing was late so far.
    pub(crate) const fn new() -> Self {
        Self { latest: (Duration::ZERO, Instant::ZERO) }
    }

    /// How late things are taken to be now.
    fn lateness(&self, now: Instant) -> Duration {
        let (took, at) = self.latest;
        let halvings = now.since(at).as_nanos() / Self::HALF_LIFE.as_nanos();
        took / 1_u32.checked_shl(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or(u32::MAX)
    }

    /// Takes in that an answer took so long, or that this agent was called so late.
    pub(crate) fn note(&mut self, now: Instant, took: Duration) {
        let took = took.min(Self::LATEST);
        if took >= self.lateness(now) {
            self.latest = (took, now);
        }
    }

    /// Takes in all that another one knows, as of now: while maps follow each other, lateness is not forgotten. Machines with more
    /// agents than they have time for settle by that.
    pub(crate) fn merge(&mut self, now: Instant, other: &Self) {
        self.note(now, other.lateness(now));
    }

    /// How long an answer is waited for now, where the settings say `set`.
    pub(crate) fn wait(&self, now: Instant, set: Duration) -> Duration {
        set.max((self.lateness(now) * Self::FACTOR).min(set * Self::MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: Duration = Duration::from_millis(10);

    #[test]
    fn answers_in_good_time_leave_the_wait_as_it_is_set() {
        let mut answers = AnswerWait::new();
        let now = Instant::ZERO + Duration::from_secs(9);
        assert_eq!(answers.wait(now, SET), SET);
        answers.note(now, SET / AnswerWait::FACTOR);
        assert_eq!(answers.wait(now, SET), SET);
    }

    #[test]
    fn late_answers_lengthen_the_wait_up_to_a_bound_and_are_forgotten() {
        let mut answers = AnswerWait::new();
        let now = Instant::ZERO + Duration::from_secs(9);
        answers.note(now, SET);
        answers.note(now, SET / 2);
        assert_eq!(answers.wait(now, SET), SET * AnswerWait::FACTOR, "the latest answer counts");
        assert_eq!(answers.wait(now + AnswerWait::HALF_LIFE, SET), SET * AnswerWait::FACTOR / 2);
        answers.note(now, Duration::from_secs(3600));
        assert_eq!(answers.wait(now, SET), SET * AnswerWait::MOST);
        assert_eq!(answers.wait(now + AnswerWait::HALF_LIFE * 10, SET), SET);
        assert_eq!(answers.wait(now + Duration::from_secs(1 << 40), SET), SET);
    }
}
