//! How many first probes of tries are under way at once.
//!
//! Probes cost every machine on their way something, and nobody knows beforehand how many these can carry: a
//! machine that has one agent answers within a fraction of a millisecond, and a laptop that runs a hundred
//! agents and all kernels between them takes long. So the number is found as TCP finds its window (additive
//! increase and multiplicative decrease, RFC 5681): each answer lets one more probe be under way, and probes
//! that get no answer halve the number.
//!
//! So do answers that come late. Where many agents share a machine, probes of all of them wait for the same
//! processors. If only silence made windows smaller, these would grow until answers take as long as they are
//! waited for. That is as long as an agent may be silent before others hold its cables for dead, and agents
//! wait for the same processors. The machine does no more by that, as it is busy already with few probes.
//!
//! One probe after the other of each of a hundred agents is still more than a few processors have time for beside all
//! else. So an agent whose only probe is answered late rests before the next one, longer each time.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use mapper_proto::Instant;

/// The number of probes under way to which silence narrows the window. Where kernels on most ways obey no segments, almost
/// no probe is answered, and still all ways are to be tried within a time that a user would wait.
const LEAST_FOR_SILENCE: usize = 4;
/// The number of probes under way to which late answers narrow the window.
const LEAST: usize = 1;
/// The greatest number of probes under way.
const MOST: usize = 128;
/// How many probes may be under way at first.
const AT_FIRST: usize = 4;
/// An answer that takes this long is late. On cables and through kernels that have time, it takes less than a
/// millisecond.
const LATE_AFTER: Duration = Duration::from_millis(5);
/// The longest rest between two probes where even one alone is answered late.
const LONGEST_REST: Duration = Duration::from_millis(20);

/// The first probes that are under way, and how many there may be.
#[derive(Debug)]
pub(super) struct Window {
    size: usize,
    /// The nonces of probes that were sent not long ago, in that order.
    sent: VecDeque<(Instant, u64)>,
    /// The nonces of those probes that were not answered yet, and when each was sent.
    unanswered: BTreeMap<u64, Instant>,
    /// How long an answer is waited for.
    answer_within: Duration,
    /// When the window was last made smaller.
    narrowed_at: Instant,
    /// How long nothing is sent after an answer.
    rest: Duration,
    /// Until when nothing is sent.
    rests_until: Instant,
}

impl Window {
    /// A window for probes to which answers are waited for as long as `answer_within`.
    pub(super) const fn new(answer_within: Duration) -> Self {
        Self {
            size: AT_FIRST,
            sent: VecDeque::new(),
            unanswered: BTreeMap::new(),
            answer_within,
            narrowed_at: Instant::ZERO,
            rest: Duration::ZERO,
            rests_until: Instant::ZERO,
        }
    }

    /// Whether one probe more may be sent now.
    pub(super) fn has_room(&self, now: Instant) -> bool {
        self.unanswered.len() < self.size && now >= self.rests_until
    }

    /// Takes in that a probe was sent.
    pub(super) fn sent(&mut self, now: Instant, nonce: u64) {
        self.sent.push_back((now, nonce));
        self.unanswered.insert(nonce, now);
    }

    /// Takes in that a probe was answered, whether it is a first probe or not.
    pub(super) fn answered(&mut self, now: Instant, nonce: u64) {
        let Some(sent_at) = self.unanswered.remove(&nonce) else { return };
        let took = now.since(sent_at);
        if took < LATE_AFTER {
            self.rest = if self.rest > took { self.rest / 2 } else { Duration::ZERO };
            self.size = (self.size + usize::from(self.rest.is_zero())).min(MOST);
        } else if self.size > LEAST {
            self.narrow(now, sent_at, LEAST);
        } else {
            self.rest = (self.rest * 2).max(LATE_AFTER).min(LONGEST_REST);
        }
        self.rests_until = now + self.rest;
    }

    /// Gives up the probes that were not answered in time.
    pub(super) fn give_up(&mut self, now: Instant) {
        while let Some(&(at, nonce)) = self.sent.front().filter(|(at, _)| now >= *at + self.answer_within) {
            self.sent.pop_front();
            if self.unanswered.remove(&nonce).is_some() {
                self.narrow(now, at, LEAST_FOR_SILENCE);
            }
        }
    }

    /// Halves the window for the sake of a probe that was sent at this moment, but to no less than `least`. However many
    /// probes were sent together, it is halved once.
    fn narrow(&mut self, now: Instant, sent_at: Instant, least: usize) {
        if sent_at >= self.narrowed_at && self.size > least {
            self.size = (self.size / 2).max(least);
            self.narrowed_at = now;
        }
    }

    /// When there is room at the latest, if nothing is answered until then; `None` if there is room at any time.
    pub(super) fn room_at(&self) -> Option<Instant> {
        let is_full = self.unanswered.len() >= self.size;
        let given_up_at = self.sent.front().filter(|_| is_full).map(|(at, _)| *at + self.answer_within);
        let rest = Some(self.rests_until).filter(|at| *at > Instant::ZERO);
        given_up_at.max(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_millis(60);

    /// Sends as many probes as there is room for, and returns their nonces.
    fn fill(window: &mut Window, now: Instant, next: &mut u64) -> Vec<u64> {
        let mut sent = Vec::new();
        while window.has_room(now) {
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
        first.into_iter().for_each(|nonce| window.answered(now, nonce));
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
        assert_eq!(fill(&mut window, now, &mut next).len(), LEAST_FOR_SILENCE);
        now = now + WITHIN;
        window.give_up(now);
        for _ in 0..2 * MOST {
            let sent = fill(&mut window, now, &mut next);
            sent.into_iter().for_each(|nonce| window.answered(now, nonce));
        }
        assert_eq!(fill(&mut window, now, &mut next).len(), MOST);
    }

    #[test]
    fn an_answer_that_comes_late_or_twice_counts_for_nothing() {
        let mut window = Window::new(WITHIN);
        window.sent(Instant::ZERO, 1);
        window.give_up(Instant::ZERO + WITHIN);
        window.answered(Instant::ZERO + WITHIN, 1);
        window.answered(Instant::ZERO + WITHIN, 2);
        assert_eq!(window.size, LEAST_FOR_SILENCE);
    }

    /// How long it takes at most until the windows fit the machine.
    const SETTLED_AFTER: Duration = Duration::from_millis(200);

    /// What came of agents that try all their ways at one time, and share one machine.
    #[derive(Debug)]
    struct Shared {
        /// How long it took until all ways were tried.
        took: Duration,
        /// The longest time that an answer took, behind the first [`SETTLED_AFTER`].
        longest_wait: Duration,
        /// How many probes were not answered in time.
        given_up: usize,
    }

    /// Has so many agents try so many ways each on a machine that works for `work` on each probe, one after the other.
    fn share_a_machine(agents: usize, ways: usize, work: Duration) -> Shared {
        let mut windows: Vec<Window> = (0..agents).map(|_| Window::new(WITHIN)).collect();
        let (mut left, mut under_way) = (vec![ways; agents], vec![BTreeMap::new(); agents]);
        let mut queue: VecDeque<(usize, u64)> = VecDeque::new();
        let (mut now, mut next) = (Instant::ZERO + WITHIN, 0);
        let began = now;
        let mut shared = Shared { took: Duration::ZERO, longest_wait: Duration::ZERO, given_up: 0 };
        loop {
            for agent in 0..agents {
                windows[agent].give_up(now);
                // A way whose probe got no answer is tried again.
                let before = under_way[agent].len();
                under_way[agent].retain(|_, sent_at| now < *sent_at + WITHIN);
                let given_up = before - under_way[agent].len();
                shared.given_up += given_up;
                left[agent] += given_up;
                while left[agent] > 0 && windows[agent].has_room(now) {
                    windows[agent].sent(now, next);
                    under_way[agent].insert(next, now);
                    queue.push_back((agent, next));
                    (left[agent], next) = (left[agent] - 1, next + 1);
                }
            }
            let Some((agent, nonce)) = queue.pop_front() else {
                let waiting = windows.iter().zip(&left).filter(|(_, left)| **left > 0);
                let Some(room_at) = waiting.filter_map(|(window, _)| window.room_at()).min() else { break };
                now = room_at;
                continue;
            };
            now = now + work;
            windows[agent].answered(now, nonce);
            if let Some(sent_at) = under_way[agent].remove(&nonce)
                && now >= began + SETTLED_AFTER
            {
                shared.longest_wait = shared.longest_wait.max(now.since(sent_at));
            }
        }
        shared.took = now.since(began);
        shared
    }

    #[test]
    fn agents_that_share_a_machine_keep_it_busy_and_wait_for_few_of_their_probes() {
        const WAYS: usize = 100;
        let work = Duration::from_micros(100);
        for agents in [8_usize, 32, 128] {
            let shared = share_a_machine(agents, WAYS, work);
            let all_work = work * (agents * WAYS) as u32;
            assert!(shared.took < all_work * 11 / 10, "{agents} agents, {all_work:?} of work: {shared:?}");
            // Each agent has one probe under way at least.
            let one_each = work * agents as u32;
            assert!(shared.longest_wait < 2 * (one_each + LATE_AFTER), "{agents} agents: {shared:?}");
            assert!(shared.longest_wait < WITHIN / 2, "{agents} agents: {shared:?}");
            assert_eq!(shared.given_up, 0, "{agents} agents: {shared:?}");
        }
    }

    #[test]
    fn late_answers_leave_one_probe_under_way_and_a_rest_behind_it() {
        let (mut window, mut next) = (Window::new(WITHIN), 0);
        let mut now = Instant::ZERO + WITHIN;
        for _ in 0..10 {
            let sent = fill(&mut window, now, &mut next);
            now = now + LATE_AFTER;
            sent.into_iter().for_each(|nonce| window.answered(now, nonce));
            assert!(window.room_at() <= Some(now + LONGEST_REST));
            now = window.room_at().unwrap().max(now);
        }
        assert_eq!(window.rest, LONGEST_REST);
        assert_eq!(fill(&mut window, now, &mut next).len(), LEAST);
        now = now + WITHIN;
        window.give_up(now);
        assert_eq!(fill(&mut window, now, &mut next).len(), LEAST, "silence does not make that more");
    }

    #[test]
    fn answers_in_time_end_the_rests_and_make_room_again() {
        let (mut window, mut next) = (Window::new(WITHIN), 0);
        let mut now = Instant::ZERO + WITHIN;
        window.size = LEAST;
        window.rest = LONGEST_REST;
        for _ in 0..10 {
            let sent = fill(&mut window, now, &mut next);
            now = now + Duration::from_millis(1);
            sent.into_iter().for_each(|nonce| window.answered(now, nonce));
            now = window.room_at().unwrap().max(now);
        }
        assert_eq!(window.rest, Duration::ZERO);
        assert!(fill(&mut window, now, &mut next).len() > AT_FIRST);
    }
}
