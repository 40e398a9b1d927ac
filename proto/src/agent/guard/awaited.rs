//! Frames of this agent that wait for an answer, by their sequence numbers. An answer names the
//! very frame that it answers, and each frame is answered once: so no recording of an answer is
//! taken for a new one.

use std::collections::VecDeque;
use std::time::Duration;

use crate::Instant;

/// Most frames that wait. The oldest are dropped for more.
const LIMIT: usize = 8192;
/// For how long an answer is taken; longer than the agent itself waits for any.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
struct Entry {
    sequence: u64,
    id: u32,
    sent: Instant,
    answered: bool,
}

/// Frames that wait for an answer, in the order of their sequence numbers.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    entries: VecDeque<Entry>,
}

impl Awaited {
    /// Notes a frame; `sequence` is higher than all before.
    pub(super) fn push(&mut self, now: Instant, sequence: u64, id: u32) {
        let done = |entry: &Entry| entry.answered || now.since(entry.sent) > PATIENCE;
        while self.entries.len() >= LIMIT || self.entries.front().is_some_and(done) {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry { sequence, id, sent: now, answered: false });
    }

    /// Whether the frame with this number waits for an answer, and has this id.
    pub(super) fn waits(&self, now: Instant, sequence: u64, id: u32) -> bool {
        self.find(now, sequence, id).is_some()
    }

    /// Ends the wait of a frame.
    pub(super) fn end(&mut self, now: Instant, sequence: u64, id: u32) {
        if let Some(entry) = self.find(now, sequence, id).and_then(|at| self.entries.get_mut(at)) {
            entry.answered = true;
        }
    }

    fn find(&self, now: Instant, sequence: u64, id: u32) -> Option<usize> {
        let at = self.entries.binary_search_by_key(&sequence, |entry| entry.sequence).ok()?;
        let entry = self.entries.get(at)?;
        (entry.id == id && !entry.answered && now.since(entry.sent) <= PATIENCE).then_some(at)
    }

    /// How many frames are kept.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_answered_once_by_its_own_id_and_in_time() {
        let mut awaited = Awaited::default();
        awaited.push(Instant::ZERO, 5, 50);
        awaited.push(Instant::ZERO, 9, 90);
        let now = Instant::ZERO + PATIENCE;
        assert!(awaited.waits(now, 5, 50) && awaited.waits(now, 9, 90));
        assert!(!awaited.waits(now, 5, 90) && !awaited.waits(now, 6, 50));
        awaited.end(now, 9, 90);
        assert!(!awaited.waits(now, 9, 90) && awaited.waits(now, 5, 50));
        assert!(!awaited.waits(now + Duration::from_nanos(1), 5, 50));
    }

    #[test]
    fn no_more_wait_than_the_limit() {
        let mut awaited = Awaited::default();
        for sequence in 0..2 * LIMIT as u64 {
            awaited.push(Instant::ZERO, sequence, 1);
        }
        assert_eq!(awaited.len(), LIMIT);
        assert!(!awaited.waits(Instant::ZERO, 0, 1) && awaited.waits(Instant::ZERO, LIMIT as u64, 1));
        awaited.push(Instant::ZERO + PATIENCE * 2, u64::MAX, 1);
        assert_eq!(awaited.len(), 1, "what nobody answered in time is forgotten");
    }
}
