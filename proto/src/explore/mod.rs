//! Exploration: how a fabric becomes known.
//!
//! [`Explorer`] is a state machine without I/O. It says what to send ([`Explorer::poll_probe`]),
//! is told what came of it ([`Explorer::handle_outcome`], [`Explorer::handle_timeout`]) and in the
//! end hands out a [`Map`]. It goes breadth first and keeps to these ideas:
//!
//! - An answer proves something; silence proves nothing until all tries are used up.
//! - A tagged xbar says who it is and which ports have carrier: those ports are probed, each cable
//!   from the end that is reached first, as the stamp names the port at the other end.
//! - A plain xbar says nothing. What is seen at the end of a route is a *sight* of some xbar, and
//!   sights that are one xbar are joined by what they lead to. A **glance** (a few
//!   probes where hosts are likely) tells most sights. The rest are **studied**, a few sights at a
//!   time: their ports and what is behind those. Sights that even this does not tell apart are
//!   **compared** with what they may still be: the cables of known xbars whose far end is unknown.
//!   A sight that matches none is a new xbar.
//! - Tags are not signed. Where strangers may be about, a known tag at another port is believed only
//!   after a **proof**: see `proofs.rs`.
//! - Where a host seems to be in two places, hosts are greeted: see `greetings.rs`.
//! - Hosts prove what leads to them. What does not may be a stranger's invention: see `parts.rs`.
//! - Glances go before studies, studies before compares: each known xbar closes many open cables
//!   for nothing.

mod belated;
mod compare;
mod contested;
mod cost;
mod finish;
mod greetings;
mod guess;
mod knowledge;
mod outcome;
mod parts;
mod proofs;
mod recall;
mod request;
mod routes;
mod schedule;
mod silence;
mod study;
mod xbar;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use thiserror::Error;

use crate::answer_wait::AnswerWait;
use crate::map::{Host, Map, MapDefect, PortRef};
use crate::wire::{ProbeKind, Route, Stamp};
use crate::{Instant, Mac};

pub use contested::Met;
pub use cost::ExploreCost;
pub use parts::PartLeftOut;
pub use proofs::TagConflict;

use belated::Belated;
use compare::Compares;
use contested::Confirmations;
use greetings::Greetings;
use guess::Guess;
use knowledge::Knowledge;
use parts::Parts;
use proofs::Proofs;
use request::{Job, Pending};
use schedule::Queues;

/// What the user may set of an exploration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExploreSettings {
    /// Most ports that a plain xbar can have; at most 32, as far as a relative element reaches.
    pub plain_ports: u8,
    /// Longest way that is followed, in xbars.
    pub max_hops: usize,
    /// How long to wait for the answer to a probe or scout; where answers come late, longer, up to
    /// [`longest_wait`](Self::longest_wait).
    pub probe_timeout: Duration,
    /// How often an unanswered question is asked in all.
    pub probe_tries: u8,
    /// Most probes under way at once.
    pub probe_window: usize,
    /// Believe that two sights are one xbar, as they show one tag, only after a proof: tags are not
    /// signed. It costs a probe for each cable that closes a circle.
    pub prove_tags: bool,
    /// Believe that a host is behind a port only when it has answered a scout there: probes can be sent on to
    /// it from elsewhere. It costs a scout and a round trip for each host.
    pub greet_hosts: bool,
    /// Name the port behind which many xbars without a host fall silent before they are known, as one behind
    /// which nobody can be believed. Otherwise that port is taken for empty, and if it answers again when the
    /// map is verified, all is mapped anew.
    pub tell_silent_parts: bool,
}

impl ExploreSettings {
    /// The longest way that probes can follow there and back, in xbars.
    pub const MAX_HOPS: usize = Route::MAX_BYTES / 4 - 1;

    /// The longest time for which the answer to a probe or scout is waited for, however late answers come.
    pub fn longest_wait(&self) -> Duration {
        self.probe_timeout * AnswerWait::MOST
    }
}

/// Something to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExploreRequest {
    /// Names it in [`Explorer::handle_outcome`]. The first bit is clear; the first id is drawn from
    /// the seed, so that answers to an earlier exploration miss.
    pub id: u32,
    /// All elements, to the turn and back.
    pub route: Route,
    /// What to send along it.
    pub kind: RequestKind,
}

/// What to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestKind {
    /// A probe.
    Probe {
        /// Its kind.
        kind: ProbeKind,
        /// See [`Probe::left`](crate::wire::Probe::left).
        left: u8,
    },
    /// A scout that asks who is there.
    Scout {
        /// The way back for the reply.
        way_back: Route,
    },
}

/// What came of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExploreOutcome {
    /// It came back with its whole route obeyed.
    Returned {
        /// The stamp in it, if there is one.
        stamp: Option<Stamp>,
    },
    /// A host answered.
    Host(Met),
    /// It arrived here with its turning element not yet obeyed: the port leads to this host.
    OwnHost,
}

/// Why there is no map.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ExploreError {
    /// Answers that cannot all be true. Start again.
    #[error("the fabric changed while it was explored, or an agent lies: {0}; explore again")]
    Contradiction(&'static str),
    /// What was found makes no map that other agents take.
    #[error("the fabric changed while it was explored, or an agent lies: {0}; explore again")]
    NoMap(MapDefect),
    /// More xbars than a map can hold.
    #[error("the fabric has more xbars than the 65,535 that a map can hold")]
    TooManyXbars,
    /// Large parts of plain xbars that are wired alike and have no hosts.
    #[error(
        "too many plain xbars without hosts look alike; set plain_ports to their real number of ports, \
         put hosts on some of them, or use tagged ones"
    )]
    TooAlike,
    /// More hosts than an exploration can hold.
    #[error("the fabric has more than the 65,535 hosts that an exploration can hold")]
    TooManyHosts,
}

impl ExploreError {
    const TOO_WIDE: Self = Self::Contradiction("ports further apart than an xbar has");
}

/// Ids of requests have 31 bits: agents mark other ids by the bit left over.
const ID_MASK: u32 = u32::MAX >> 1;

/// Explores a fabric. See the module for how.
///
/// After `new`, and after every call of a `handle_*` method, the driver calls
/// [`poll_probe`](Self::poll_probe) until it gives nothing, then [`result`](Self::result), then asks
/// [`poll_timeout`](Self::poll_timeout) when to call [`handle_timeout`](Self::handle_timeout). Time is
/// passed in and never goes back. The same inputs give the same outputs.
#[derive(Debug)]
pub struct Explorer {
    settings: ExploreSettings,
    known: Knowledge,
    guess: Guess,
    queues: Queues,
    /// Sights under study or comparison.
    studies: Vec<u32>,
    compares: Compares,
    confirmations: Confirmations,
    greetings: Greetings,
    proofs: Proofs,
    parts: Parts,
    pending: BTreeMap<u32, Pending>,
    belated: Belated,
    /// How long answers take.
    answers: AnswerWait,
    /// When the pending time out, soonest first: none times out before one that was asked earlier.
    deadlines: VecDeque<(Instant, u32)>,
    next_id: u32,
    /// Tries of the first cable, of both kinds of probe together.
    first_cable_sent: u8,
    /// The other host, if one is at the end of our own cable.
    direct: Option<u32>,
    /// Whether any xbar has shown a tag: only then is it worth asking an xbar first who it is.
    tags_seen: bool,
    /// Whether something happened since the whole graph was last looked over.
    dirty: bool,
    /// Whether it started from an earlier map, and so may start anew if that does not hold.
    incremental: bool,
    /// Nodes before this one are of the earlier map.
    first_found: u32,
    cost: ExploreCost,
    /// Whether it began anew as a cable may have been moved.
    has_begun_anew: bool,
    outcome: Option<Result<Map, ExploreError>>,
    finished: bool,
}

impl Explorer {
    /// An exploration from nothing. `seed` sets where the ids of requests begin.
    pub fn new(settings: &ExploreSettings, own: Host, seed: u64) -> Self {
        let settings = ExploreSettings {
            plain_ports: settings.plain_ports.clamp(1, 32),
            // The way there and back, in two-byte elements, must fit a route.
            max_hops: settings.max_hops.clamp(1, ExploreSettings::MAX_HOPS),
            probe_tries: settings.probe_tries.clamp(1, 16),
            probe_window: settings.probe_window.max(1),
            ..*settings
        };
        let known = Knowledge::new(own);
        Self {
            known,
            settings,
            guess: Guess::new(),
            queues: Queues::default(),
            studies: Vec::new(),
            compares: Compares::default(),
            confirmations: Confirmations::default(),
            greetings: Greetings::default(),
            proofs: Proofs::default(),
            parts: Parts::default(),
            pending: BTreeMap::new(),
            belated: Belated::default(),
            answers: AnswerWait::new(),
            deadlines: VecDeque::new(),
            next_id: ChaCha8Rng::seed_from_u64(seed).next_u32() & ID_MASK,
            first_cable_sent: 0,
            direct: None,
            tags_seen: false,
            dirty: true,
            incremental: false,
            first_found: 0,
            cost: ExploreCost::default(),
            has_begun_anew: false,
            outcome: None,
            finished: false,
        }
    }

    /// An exploration that trusts `previous` but for the `suspects` (ports in its numbering): they,
    /// and what is newly found behind them, are probed. `sessions` are those of the exploration that
    /// made it. Falls back to a full exploration if what it finds does not fit `previous`, or if our
    /// own cable is suspect.
    pub fn incremental(
        settings: &ExploreSettings,
        own: Host,
        seed: u64,
        previous: &Map,
        sessions: &BTreeMap<Mac, u32>,
        suspects: &[PortRef],
    ) -> Self {
        let mut explorer = Self::new(settings, own, seed);
        if explorer.recall(previous, sessions, suspects).is_ok() {
            explorer.incremental = true;
            explorer.wake_touched();
        } else {
            explorer.start_anew();
        }
        explorer
    }

    /// Forgets what is known, but neither costs nor ids.
    fn start_anew(&mut self) {
        let fresh = Self::new(&self.settings, self.known.hosts()[0].host, 0);
        *self = Self { next_id: self.next_id, cost: self.cost, answers: self.answers, ..fresh };
    }

    /// The next thing to send, if the window has room and there is one.
    pub fn poll_probe(&mut self, now: Instant) -> Option<ExploreRequest> {
        while !self.finished && self.pending.len() < self.settings.probe_window {
            let Some((job, class)) = self.choose() else {
                if let Some(error) = self.proofs.take_failure() {
                    self.end(Err(error));
                    continue;
                }
                if self.compares.overflowed {
                    if !self.leave_out_heaviest() {
                        self.end(Err(ExploreError::TooAlike));
                    }
                    continue;
                }
                if !self.pending.is_empty() {
                    return None;
                }
                if !self.parts.ended_just_now() && !self.unstick() {
                    self.finish();
                }
                continue;
            };
            if let Some(request) = self.send(now, job, class) {
                return Some(request);
            }
        }
        None
    }

    /// Takes in what came of the request `id`. Returns whether anything waited for it; if not, nothing changes.
    pub fn handle_outcome(&mut self, now: Instant, id: u32, outcome: ExploreOutcome) -> bool {
        let Some(pending) = self.pending.remove(&id) else {
            let is_belated = self.handle_belated(now, id, outcome);
            self.cost.unexpected += u64::from(!is_belated);
            return is_belated;
        };
        self.note_done(&pending);
        // Whoever answers without end, and late, must not have all others waited for longer.
        if !pending.late {
            self.time_answer(now, pending.sent_at, outcome);
        }
        let worked = self.work_in(&pending, Some(outcome));
        self.settle(worked, pending.late);
        self.look_at_parts(now);
        self.drop_answered();
        true
    }

    /// Takes in what came of a question that was asked at `sent_at`, and when. Only hosts, which sign their answers where there
    /// are keys, have others waited for longer, and only by answers that the set wait would not have waited for.
    fn time_answer(&mut self, now: Instant, sent_at: Instant, outcome: ExploreOutcome) {
        let took = now.since(sent_at);
        if matches!(outcome, ExploreOutcome::Host(_)) && took > self.settings.probe_timeout {
            self.answers.note(now, took);
        }
    }

    /// Notes that a question is no longer under way.
    fn note_done(&mut self, pending: &Pending) {
        if pending.late {
            self.parts.done();
        } else {
            self.queues.done(pending.class);
        }
    }

    /// Gives up on requests that have waited too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(_, id)) = self.deadlines.front().filter(|(deadline, _)| *deadline <= now) {
            self.deadlines.pop_front();
            if let Some(pending) = self.pending.remove(&id) {
                self.note_done(&pending);
                if !pending.late {
                    self.belated.push(id, &pending);
                }
                let worked = self.work_in(&pending, None);
                self.settle(worked, pending.late);
                self.look_at_parts(now);
            }
            self.drop_answered();
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.front().map(|&(deadline, _)| deadline)
    }

    /// The map, or why there is none, once; `None` while exploring and afterwards. Hosts stand by
    /// falling rank, xbars in the order in which a breadth-first walk from this host meets them,
    /// and the version is left for the caller to set.
    pub fn result(&mut self) -> Option<Result<Map, ExploreError>> {
        self.outcome.take()
    }

    /// Takes in how late things have been, as the agent whose exploration this is knows it.
    pub(crate) fn learn_lateness(&mut self, now: Instant, answers: &AnswerWait) {
        self.answers.merge(now, answers);
    }

    /// How long answers took lately.
    pub(crate) const fn answers(&self) -> AnswerWait {
        self.answers
    }

    /// Entries in its tables: sights of xbars, and their ports.
    pub fn load(&self) -> usize {
        self.known.load()
    }

    /// What was sent so far.
    pub const fn cost(&self) -> ExploreCost {
        self.cost
    }

    /// Forgets the deadlines of what was answered, so that the first one is of something pending.
    fn drop_answered(&mut self) {
        while self.deadlines.front().is_some_and(|(_, id)| !self.pending.contains_key(id)) {
            self.deadlines.pop_front();
        }
    }

    /// Follows up an outcome that was worked in: wakes the xbars that it concerns, or ends with an error.
    fn settle(&mut self, worked: Result<(), ExploreError>, late: bool) {
        // As long as late questions follow each other, the whole graph need not be looked over after each of
        // them.
        self.dirty |= !late || !self.parts.has_late();
        match worked {
            Ok(()) => self.wake_touched(),
            Err(error) => self.end(Err(error)),
        }
    }

    /// Makes the map, as nothing is left to ask.
    fn finish(&mut self) {
        let is_doubtful =
            self.incremental && (self.found_doubtful_xbar() || !self.contested_hosts().is_empty());
        if is_doubtful {
            return self.start_anew();
        }
        if self.begin_confirmations() {
            return;
        }
        self.leave_out_rests();
        let map = self.map();
        if !self.has_begun_anew && map.as_ref().is_ok_and(|map| self.disbelieves_more_than_told(map)) {
            self.start_anew();
            self.has_begun_anew = true;
            return;
        }
        self.end(map);
    }

    /// Whether the map has ports behind which nobody is believed, beside those of parts that are left out for what they cost.
    /// A stranger may be there. Or a cable was moved meanwhile, and what was seen before and after does not fit together; then
    /// nobody would look at that port again, and what is cabled there would never be found. So the exploration begins anew, but
    /// only once, so that a stranger does not keep it from ending.
    fn disbelieves_more_than_told(&self, map: &Map) -> bool {
        let of_nobody = map.contested.iter().filter(|contested| contested.mac == Mac::NOBODY).count();
        of_nobody > self.parts_left_out().len()
    }

    /// Ends the exploration, or begins it anew if it trusted an earlier map that does not hold.
    fn end(&mut self, outcome: Result<Map, ExploreError>) {
        if self.incremental && outcome.is_err() {
            self.start_anew();
            return;
        }
        self.finished = true;
        self.outcome = Some(outcome);
        self.pending.clear();
        self.deadlines.clear();
    }

    /// Registers a job and makes its request; `None` if it cannot be asked.
    fn send(&mut self, now: Instant, mut job: Job, class: schedule::Class) -> Option<ExploreRequest> {
        let Some((route, kind)) = self.request(&mut job) else {
            self.give_up(&job);
            return None;
        };
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1) & ID_MASK;
        self.count(&job, &kind);
        self.sent(&job);
        let last = self.deadlines.back().map_or(now, |(deadline, _)| *deadline);
        let deadline = last.max(now + self.answers.wait(now, self.settings.probe_timeout));
        let xbar = self.xbar_of_job(&job).map(|node| self.known.xbar_mut(node));
        let late = xbar.is_some_and(|xbar| {
            xbar.spent = xbar.spent.saturating_add(1);
            xbar.late
        });
        if late {
            self.parts.began();
        } else {
            self.parts.asked(now);
            self.queues.began(class);
        }
        self.pending.insert(id, Pending { job, class, late, sent_at: now });
        self.deadlines.push_back((deadline, id));
        Some(ExploreRequest { id, route, kind })
    }
}
