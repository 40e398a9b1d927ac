//! Soundings: echoes along ways that somebody wants to know about, sent in rounds, and how long each took.
//!
//! An echo goes as the agents' checks of paths go, or through the kernels as their probes do, and turns at a crossbar
//! or is answered by the host. Nothing of this host depends on what others want to know; where a path loses frames, it
//! sounds it for itself.

#[cfg(test)]
mod tests;
mod through_kernels;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv6Addr;
use std::time::Duration;

use mapper_fib::probe::{DatagramEnds, HOP_LIMIT};
use mapper_fib::segments::towards_port;
use mapper_proto::agent::{Agent, Echo};
use mapper_proto::wire::RoundTrip;
use mapper_proto::{Instant, Mac};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::kernel_path::KernelProbe;
pub use through_kernels::{KernelCourse, KernelWay};

/// The most soundings at once.
const MOST_AT_ONCE: usize = 4;
/// The number of a sounding that the host itself begins.
pub const OF_HOST: u32 = u32::MAX;
/// The most echoes of a sounding, all rounds together.
pub const MOST_ECHOES: usize = 65_536;
/// How long after one echo of a round the next is sent.
const SPACING: Duration = Duration::from_micros(500);
/// How long after a train of echoes the next one is sent. No train meets another one in that time, unless its
/// packets are long and its way carries less than some 100 megabits a second.
const TRAIN_SPACING: Duration = Duration::from_millis(30);
/// How much later the next train is sent for each packet of a train.
const PACKET_SPACING: Duration = Duration::from_micros(120);

/// What an echo goes along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EchoWay {
    /// A route of the agents. The echo turns at one of its crossbars, or the host at its end answers.
    Agents {
        /// The route and the way back.
        way: RoundTrip,
        /// The host at its end.
        to: Mac,
        /// The crossbar at which the echo turns, counted from 1; `None` if the host answers.
        turn: Option<usize>,
    },
    /// A way through the kernels. The echo comes to its destination, which answers and may be this host
    /// itself.
    Kernels {
        /// The port of this host that it leaves by.
        port: u8,
        /// The segments.
        segments: Vec<Ipv6Addr>,
        /// Its source and destination.
        ends: (Ipv6Addr, Ipv6Addr),
        /// How many kernels it may come to; the last of them says so. `None` for as many as lead to its destination.
        hop_limit: Option<u8>,
    },
}

impl EchoWay {
    /// Whether it asks a kernel on the way to say that its hop limit ended there. Kernels say so only so often to each host, so
    /// such an echo is not sent any more once it was answered.
    const fn has_hop_limit(&self) -> bool {
        matches!(self, Self::Kernels { hop_limit: Some(_), .. })
    }
}

/// What is to be sounded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The ways, and how long echoes along them are, in bytes: of agents the frame with its route, of kernels the
    /// packet inside its outer header; 0 for as short as can be.
    pub echoes: Vec<(EchoWay, usize)>,
    /// How many echoes go along each way at once in a round: one, or a train that shows how fast the way
    /// carries them.
    pub train: u16,
    /// How many rounds there are.
    pub rounds: u16,
    /// How long after the beginning of a round the next one begins, if the first has been sent by then.
    pub interval: Duration,
    /// How long an echo is waited for.
    pub patience: Duration,
}

impl Plan {
    /// How long after one echo of a round the next is sent.
    fn spacing(&self) -> Duration {
        match self.train {
            0 | 1 => SPACING,
            packets => TRAIN_SPACING + PACKET_SPACING * u32::from(packets),
        }
    }

    /// How long after the beginning of a round the next one begins.
    fn round(&self) -> Duration {
        self.interval.max(self.spacing() * self.echoes.len() as u32)
    }

    /// How long it takes until the last echo is sent.
    pub fn lasts(&self) -> Duration {
        self.round() * u32::from(self.rounds)
    }
}

/// An echo that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Back {
    /// How long it was away.
    pub took: Duration,
    /// When it arrived at the host that answered it, in nanoseconds of that host's clock, if it told.
    pub arrived_ns: Option<u64>,
    /// Who said that its hop limit ended there; `None` if it was answered by whom it was for.
    pub ended_at: Option<Ipv6Addr>,
}

/// What came of a sounding: for each way in the order of the plan all its echoes, round by round, those of a train one
/// after the other; `None` for one that did not come back. Of those with a hop limit there are fewer than rounds if one was
/// answered before the last round.
pub type Sounded = Vec<Vec<Option<Back>>>;

/// Why a sounding was not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SoundingRefused {
    /// Others are under way.
    #[error("this host is measuring for others; ask again in a while")]
    Busy,
    /// There would be too many echoes.
    #[error("that would be more than {MOST_ECHOES} frames, all ways together; ask for fewer")]
    TooMany,
}

/// A sounding under way.
#[derive(Debug)]
struct Running {
    plan: Plan,
    sounded: Sounded,
    /// How many echoes have neither come back nor been given up.
    left: usize,
}

/// An echo that is waited for.
#[derive(Debug, Clone, Copy)]
struct Awaited {
    sounding: u32,
    echo: usize,
    /// The place of the echo among all that go along its way.
    nth: usize,
    sent_at: Instant,
    deadline: Instant,
}

/// What tells one echo from others: a ticket of the agent's, or the nonce of a probe through kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Ticket(u32),
    Nonce(u64),
}

/// All soundings of a host.
#[derive(Debug)]
pub(crate) struct Soundings {
    running: BTreeMap<u32, Running>,
    /// What is to be sent, and when: of which sounding, in which round, along which way.
    due: BTreeSet<(Instant, u32, u16, usize)>,
    awaited: BTreeMap<Key, Awaited>,
    deadlines: BTreeSet<(Instant, Key)>,
    probes: VecDeque<KernelProbe>,
    next_ticket: u32,
    /// Draws nonces, once a seed is known that nobody can guess.
    rng: Option<ChaCha8Rng>,
    done: VecDeque<(u32, Sounded)>,
}

impl Soundings {
    pub(crate) const fn new() -> Self {
        Self {
            running: BTreeMap::new(),
            due: BTreeSet::new(),
            awaited: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            probes: VecDeque::new(),
            next_ticket: 0,
            rng: None,
            done: VecDeque::new(),
        }
    }

    /// Lets echoes go through kernels. `seed` must be random.
    pub(crate) fn use_kernel(&mut self, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // The probes that prove ways draw from the first stream of the same seed.
        rng.set_stream(1);
        self.rng = Some(rng);
    }

    /// Begins a sounding that is named by this number.
    pub(crate) fn begin(&mut self, now: Instant, number: u32, plan: Plan) -> Result<(), SoundingRefused> {
        let (echoes, along_each) = (plan.echoes.len(), usize::from(plan.rounds) * usize::from(plan.train));
        if echoes * along_each > MOST_ECHOES {
            return Err(SoundingRefused::TooMany);
        }
        let is_busy = self.running.len() >= MOST_AT_ONCE
            // Two trains at once would measure each other, and fill the queues that agents' frames wait in.
            || plan.train > 1 && self.running.values().any(|running| running.plan.train > 1);
        if is_busy || self.running.contains_key(&number) {
            return Err(SoundingRefused::Busy);
        }
        let (spacing, interval) = (plan.spacing(), plan.round());
        for round in 0..plan.rounds {
            let begins = now + interval * u32::from(round);
            self.due.extend((0..echoes).map(|echo| (begins + spacing * echo as u32, number, round, echo)));
        }
        let sounded = vec![vec![None; along_each]; echoes];
        let running = Running { plan, sounded, left: echoes * along_each };
        self.running.insert(number, running);
        self.end_if_done(number);
        Ok(())
    }

    /// Sends what is due, and gives up what was waited for long enough.
    pub(crate) fn handle_timeout(&mut self, now: Instant, agent: &mut Agent) {
        while let Some((deadline, key)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(deadline, key));
            if let Some(Awaited { sounding, .. }) = self.awaited.remove(&key) {
                self.count(sounding);
            }
        }
        while let Some(due) = self.due.first().copied().filter(|(at, ..)| *at <= now) {
            self.due.remove(&due);
            let (_, sounding, round, echo) = due;
            let train = usize::from(self.running.get(&sounding).map_or(0, |running| running.plan.train));
            for in_train in 0..train {
                self.send(now, agent, sounding, (echo, usize::from(round) * train + in_train));
            }
        }
    }

    fn send(&mut self, now: Instant, agent: &mut Agent, sounding: u32, (echo, nth): (usize, usize)) {
        let Some(running) = self.running.get(&sounding) else { return };
        let Some((way, bytes)) = running.plan.echoes.get(echo).cloned() else { return };
        if way.has_hop_limit() && self.leave_rest_if_answered(sounding, (echo, nth)) {
            return self.count(sounding);
        }
        let Some(running) = self.running.get(&sounding) else { return };
        let deadline = now + running.plan.patience;
        let key = match way {
            EchoWay::Agents { way, to, turn } => {
                let ticket = self.next_ticket;
                self.next_ticket = ticket.wrapping_add(1);
                agent.echo(now, Echo { ticket, way, to, turn, bytes });
                Key::Ticket(ticket)
            }
            EchoWay::Kernels { port, segments, ends: (source, destination), hop_limit } => {
                let Some(nonce) = self.rng.as_mut().map(RngExt::random) else {
                    return self.count(sounding);
                };
                let towards = towards_port(port).into();
                let inner_bytes = bytes;
                self.probes.push_back(KernelProbe {
                    towards,
                    segments,
                    ends: DatagramEnds::V6 { source, destination },
                    asked: None,
                    nonce,
                    is_last: false,
                    inner_bytes,
                    hop_limit: hop_limit.unwrap_or(HOP_LIMIT),
                });
                Key::Nonce(nonce)
            }
        };
        self.awaited.insert(key, Awaited { sounding, echo, nth, sent_at: now, deadline });
        self.deadlines.insert((deadline, key));
    }

    /// Forgets the echoes along a way from the `nth` on, if one before it was answered. Returns whether that is so.
    fn leave_rest_if_answered(&mut self, sounding: u32, (echo, nth): (usize, usize)) -> bool {
        let running = self.running.get_mut(&sounding);
        let Some(all) = running.and_then(|running| running.sounded.get_mut(echo)) else { return false };
        let is_answered = all.iter().take(nth).any(Option::is_some);
        if is_answered {
            all.truncate(nth);
        }
        is_answered
    }

    /// Takes in that an echo of the agent's is back.
    pub(crate) fn echoed(&mut self, now: Instant, ticket: u32) {
        self.is_back(now, Key::Ticket(ticket), (None, None));
    }

    /// Takes in that the hop limit of a probe through kernels ended at the one with this address.
    pub(crate) fn ended(&mut self, now: Instant, nonce: u64, at: Ipv6Addr) {
        let key = Key::Nonce(nonce);
        // A probe that was sent without a hop limit of its own can end so only in a circle, which is no answer.
        let way = self.awaited.get(&key).and_then(|awaited| {
            let running = self.running.get(&awaited.sounding)?;
            running.plan.echoes.get(awaited.echo)
        });
        if way.is_some_and(|(way, _)| way.has_hop_limit()) {
            self.is_back(now, key, (None, Some(at)));
        }
    }

    /// Takes in that a probe through kernels was answered. `arrived_ns` is when it arrived there, by the
    /// other host's clock, if that is known.
    pub(crate) fn answered(&mut self, now: Instant, nonce: u64, arrived_ns: Option<u64>) {
        self.is_back(now, Key::Nonce(nonce), (arrived_ns, None));
    }

    fn is_back(&mut self, now: Instant, key: Key, (arrived_ns, ended_at): (Option<u64>, Option<Ipv6Addr>)) {
        let Some(Awaited { sounding, echo, nth, sent_at, deadline }) = self.awaited.remove(&key) else {
            return;
        };
        self.deadlines.remove(&(deadline, key));
        let of_way = self.running.get_mut(&sounding).and_then(|running| running.sounded.get_mut(echo));
        if let Some(back) = of_way.and_then(|all| all.get_mut(nth)) {
            *back = Some(Back { took: now.since(sent_at), arrived_ns, ended_at });
        }
        self.count(sounding);
    }

    /// Counts an echo that has come back or was given up.
    fn count(&mut self, sounding: u32) {
        if let Some(running) = self.running.get_mut(&sounding) {
            running.left = running.left.saturating_sub(1);
        }
        self.end_if_done(sounding);
    }

    fn end_if_done(&mut self, sounding: u32) {
        if self.running.get(&sounding).is_some_and(|running| running.left == 0)
            && let Some(running) = self.running.remove(&sounding)
        {
            self.done.push_back((sounding, running.sounded));
        }
    }

    /// The next probe to send through the kernel.
    pub(crate) fn poll_probe(&mut self) -> Option<KernelProbe> {
        self.probes.pop_front()
    }

    /// A sounding that has come to its end.
    pub(crate) fn poll_done(&mut self) -> Option<(u32, Sounded)> {
        self.done.pop_front()
    }

    /// When [`Self::handle_timeout`] wants to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let due = self.due.first().map(|(at, ..)| *at);
        due.into_iter().chain(self.deadlines.first().map(|(at, _)| *at)).min()
    }
}
