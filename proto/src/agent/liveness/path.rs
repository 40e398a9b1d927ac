//! One watched path: when to check it, and what silence means.

use std::collections::VecDeque;
use std::time::Duration;

use super::PathUse;
use super::losses::Losses;
use crate::{Instant, Mac};

/// Most ids of checks that one path keeps until they are answered.
const IDS_LIMIT: usize = 64;

/// Every fourth check is as long as the longest frame. The others are short, as they cost less.
const LONG_EVERY: u32 = 4;

/// How often paths are checked, and how patient the checks are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pace {
    /// Time between two checks of a path that answers, before jitter.
    pub(super) interval: Duration,
    /// How many intervals without an answer mean that the path is down.
    pub(super) misses: u32,
}

impl Pace {
    /// How long a path may be silent.
    pub(super) fn patience(self) -> Duration {
        self.interval * self.misses
    }

    /// How soon a check that is not answered is repeated.
    fn repeat(self) -> Duration {
        self.interval / 4
    }
}

/// What is known of a path: see [`super`] for the diagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Its last check was answered, or may still be.
    Up,
    /// A check was not answered in good time.
    Doubted,
    /// The path was silent for too long.
    Down,
}

/// What a path wants done as its time has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// Send a check.
    Check,
    /// Send a check, and a loopback probe to each xbar of the route.
    CheckAndProbes,
    /// Say that the path is down; the next check follows in its time.
    Down,
}

/// A watched path.
#[derive(Debug)]
pub(super) struct Path {
    /// The path, as it was last said to be in use.
    pub(super) used: PathUse,
    /// How long checks are now, the route and all; 0 for as short as can be.
    pub(super) check_bytes: usize,
    /// When it was last said to be in use.
    pub(super) repeated_at: Instant,
    /// When [`Self::fire`] wants to be called.
    pub(super) due_at: Instant,
    /// How many xbars of its route, from the first, answered probes since it is doubted.
    pub(super) reached: usize,
    /// What was sent and not answered, oldest first.
    pub(super) under_way: VecDeque<(Instant, u32)>,
    /// The token of the check that was answered last, until a notice named it. A crossbar remembers the check, and may say
    /// before the next one that it could not pass it on any more.
    pub(super) answered_token: Option<u64>,
    state: State,
    /// How many xbars answered when the driver was told that it is down; `None` if it was not, or was told since that it is up.
    told_down: Option<usize>,
    /// The host that answered first: another one shows that the path leads elsewhere now.
    peer: Option<Mac>,
    /// When it last answered, or began to be watched.
    heard_at: Instant,
    /// When the host at its end last answered; `None` for never.
    pub(super) answered_at: Option<Instant>,
    /// When the next check of a path that answers is sent.
    next_check_at: Instant,
    probed_at: Instant,
    /// Checks sent since it last answered.
    unanswered: u32,
    /// Counts checks up to the next long one.
    turn: u32,
    /// Checks answered in a row since it is down.
    answered: u32,
    /// What became of its latest short checks, and of its latest long ones.
    losses: [Losses; 2],
}

impl Path {
    /// A path to be checked for the first time at `first_check_at`.
    pub(super) fn new(now: Instant, used: PathUse, first_check_at: Instant) -> Self {
        Self {
            used,
            check_bytes: 0,
            repeated_at: now,
            due_at: first_check_at,
            reached: 0,
            under_way: VecDeque::new(),
            answered_token: None,
            state: State::Up,
            told_down: None,
            peer: None,
            heard_at: first_check_at,
            answered_at: None,
            next_check_at: first_check_at,
            probed_at: first_check_at,
            unanswered: 0,
            turn: 0,
            answered: 0,
            losses: Default::default(),
        }
    }

    /// Whether the check that was begun last repeats none before it.
    pub(super) const fn is_first_check(&self) -> bool {
        self.unanswered == 1 && self.told_down.is_none()
    }

    /// What to do, as `due_at` has come; `jittered` is the wait until the check after this one.
    pub(super) fn fire(&mut self, now: Instant, pace: Pace, jittered: Duration) -> Due {
        let late = now.since(self.due_at);
        if late > pace.repeat() {
            // An agent that was called too late could not hear answers meanwhile, so that time does not count
            // as silence.
            self.heard_at = (self.heard_at + late).min(now);
        }
        if self.unanswered == 0 || (self.state == State::Down && self.answered == 0) {
            let wait = if self.state == State::Down { jittered } else { pace.repeat() };
            return self.check(now, now + wait, jittered);
        }
        if self.state != State::Doubted {
            // Where it breaks now may be elsewhere than where it did before, if it was down and has answered since.
            self.state = State::Doubted;
            (self.reached, self.probed_at) = (0, self.heard_at);
            self.answered = 0;
        }
        let silent = now.since(self.heard_at);
        if silent >= pace.patience() && self.unanswered >= pace.misses {
            (self.state, self.answered) = (State::Down, 0);
            // A path over a cable that loses frames falls silent again and again at one place, which is no news.
            if self.told_down.replace(self.reached) == Some(self.reached) {
                return self.check(now, now + jittered, jittered);
            }
            self.due_at = now + jittered;
            return Due::Down;
        }
        let verdict_at = (self.heard_at + pace.patience()).max(now + pace.repeat() / 2);
        self.check(now, verdict_at.min(now + pace.repeat()), jittered);
        if now.since(self.probed_at) < pace.interval {
            return Due::Check;
        }
        self.probed_at = now;
        Due::CheckAndProbes
    }

    fn check(&mut self, now: Instant, due_at: Instant, jittered: Duration) -> Due {
        if self.unanswered == 0 && self.told_down.is_none() {
            self.turn = (self.turn + 1) % LONG_EVERY;
            self.check_bytes = if self.turn == 0 { self.used.longest_bytes } else { 0 };
        } else if self.used.longest_bytes > 0 {
            // Where cables carry less than before, users send shorter frames by now, and only those matter.
            self.check_bytes = self.check_bytes.min(self.used.longest_bytes);
        }
        self.unanswered = self.unanswered.saturating_add(1);
        self.next_check_at = now + jittered;
        self.due_at = due_at;
        Due::Check
    }

    /// Has the check that is to be sent be no longer than this host's interface carries, which may be less than when frames
    /// last took the path.
    pub(super) fn shorten_check(&mut self, most_bytes: usize) {
        self.check_bytes = self.check_bytes.min(most_bytes);
    }

    /// Takes in that this host answered a check. `None` if it is not the host that the path led to, else
    /// whether the path is up again.
    pub(super) fn hear(&mut self, now: Instant, from: Mac, pace: Pace) -> Option<bool> {
        if *self.peer.get_or_insert(from) != from {
            return None;
        }
        self.heard_at = now;
        self.answered_at = Some(now);
        self.unanswered = 0;
        self.due_at = self.next_check_at;
        if self.told_down.is_none() {
            self.state = State::Up;
            return Some(false);
        }
        self.answered += 1;
        let up = self.answered >= pace.misses;
        self.state = if up { State::Up } else { State::Down };
        self.told_down = self.told_down.filter(|_| !up);
        Some(up)
    }

    /// Takes in what became of a check of this length that repeats none before it. Returns the length if so many such ones got
    /// lost that the path is worth a closer look.
    pub(super) fn loses_by(&mut self, bytes: usize, is_lost: bool) -> Option<usize> {
        self.losses[usize::from(bytes > 0)].note(is_lost).then_some(bytes)
    }

    /// Notes what was sent. Returns the ids that are forgotten for it, as they are old or too many.
    pub(super) fn note_sent(&mut self, now: Instant, id: u32, pace: Pace) -> Option<u32> {
        self.under_way.push_back((now, id));
        let (sent_at, oldest) = *self.under_way.front()?;
        let forget = now.since(sent_at) > 2 * pace.patience() || self.under_way.len() > IDS_LIMIT;
        forget.then(|| self.under_way.pop_front()).flatten().map(|_| oldest)
    }

    /// What is known of the path.
    pub(super) const fn state(&self) -> State {
        self.state
    }
}
