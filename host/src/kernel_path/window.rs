//! How many first probes of tries are under way at once.
//!
//! Probes cost every machine on their way something, and nobody knows beforehand how many these can carry: a
//! machine that has one agent answers within a fraction of a millisecond, and a laptop that runs a hundred
//! agents and all kernels between them takes long. So the number is found as TCP finds its window (additive
//! increase and multiplicative decrease, RFC 5681): each answer lets one more probe be under way, and probes
//! that get no answer halve the number.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use mapper_proto::Instant;

/// The least number of probes under way. Where kernels on most ways obey no segments, almost no probe is
/// answered, and still all ways are to be tried within a time that a user would wait.
const LEAST: usize = 4;
/// The greatest number of probes under way.
const MOST: usize = 128;
/// How many probes may be under way at first.
const AT_FIRST: usize = 8;

/// The first probes that are under way, and how many there may be.
#[derive(Debug)]
pub(super) struct Window {
    size: usize,
    /// The nonces of probes that were sent not long ago, in that order.
    sent: VecDeque<(Instant, u64)>,
    /// The nonces of those probes that were not answered yet.
    unanswered: BTreeSet<u64>,
    /// How long an answer is waited for.
    answer_within: Duration,
    /// When the window was last made smaller.
    narrowed_at: Instant,
}

impl Window {
    /// A window for probes to which answers are waited for as long as `answer_within`.
    pub(super) const fn new(answer_within: Duration) -> Self {
        Self {
            size: AT_FIRST,
            sent: VecDeque::new(),
            unanswered: BTreeSet::new(),
            answer_within,
            narrowed_at: Instant::ZERO,
        }
    }

    /// Whether one probe more may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.unanswered.len() < self.size
    }

    /// Takes in that a probe was sent.
    pub(super) fn sent(&mut self, now: Instant, nonce: u64) {
        self.sent.push_back((now, nonce));
        self.unanswered.insert(nonce);
    }

    /// Takes in that a probe was answered, whether it is a first probe or not.
    pub(super) fn answered(&mut self, nonce: u64) {
        if self.unanswered.remove(&nonce) {
            self.size = (self.size + 1).min(MOST);
        }
    }

    /// Gives up the probes that were not answered in time. However many were sent together, the window is halved once.
    pub(super) fn give_up(&mut self, now: Instant) {
        while let Some(&(at, nonce)) = self.sent.front().filter(|(at, _)| now >= *at + self.answer_within) {
            self.sent.pop_front();
            if self.unanswered.remove(&nonce) && at >= self.narrowed_at {
                self.size = (self.size / 2).max(LEAST);
                self.narrowed_at = now;
            }
        }
    }

    /// When there is room at the latest, if nothing is answered until then; `None` if there is room now.
    pub(super) fn room_at(&self) -> Option<Instant> {
        let full = !self.has_room();
        self.sent.front().filter(|_| full).map(|(at, _)| *at + self.answer_within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_millis(60);

    /// Sends as many probes as there is room for, and returns their nonces.
    fn fill(window: &mut Window, now: Instant, next: &mut u64) -> Vec<u64> {
        let mut sent = Vec::new();
        while window.has_room() {
            window.sent(now, *next);
            sent.push(*next);
            *next += 1;
        }
        sent
    }

    #[test]
    fn answers_make_room_for_more_and_silence_for_half() {
        let (mut window, mut next) = (Window::new(WITHIN), 0);
        let mut now = Instant::ZERO + WITHIN;
        let first = fill(&mut window, now, &mut next);
        assert_eq!(first.len(), AT_FIRST);
        first.into_iter().for_each(|nonce| window.answered(nonce));
        let second = fill(&mut window, now, &mut next);
        assert_eq!(second.len(), 2 * AT_FIRST, "one more for each answer");
        assert_eq!(window.room_at(), Some(now + WITHIN));
        now = now + WITHIN;
        window.give_up(now);
        assert_eq!(
            fill(&mut window, now, &mut next).len(),
            AT_FIRST,
            "half, however many were lost together"
        );
    }

    #[test]
    fn the_window_never_closes_and_never_grows_without_bound() {
        let (mut window, mut next) = (Window::new(WITHIN), 0);
        let mut now = Instant::ZERO + WITHIN;
        for _ in 0..10 {
            fill(&mut window, now, &mut next);
            now = now + WITHIN;
            window.give_up(now);
        }
        assert_eq!(fill(&mut window, now, &mut next).len(), LEAST);
        now = now + WITHIN;
        window.give_up(now);
        for _ in 0..2 * MOST {
            let sent = fill(&mut window, now, &mut next);
            sent.into_iter().for_each(|nonce| window.answered(nonce));
        }
        assert_eq!(fill(&mut window, now, &mut next).len(), MOST);
    }

    #[test]
    fn an_answer_that_comes_late_or_twice_counts_for_nothing() {
        let mut window = Window::new(WITHIN);
        window.sent(Instant::ZERO, 1);
        window.give_up(Instant::ZERO + WITHIN);
        window.answered(1);
        window.answered(2);
        assert_eq!(window.size, LEAST);
    }
}
