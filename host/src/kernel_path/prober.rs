//! Sends probes along ways, a few at a time, and finds what an answer is about.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use mapper_fib::probe::{Datagram, DatagramEnds, HOP_LIMIT};
use mapper_fib::segments::{Element, overhead_bytes, towards_port, towards_port_v4};
use mapper_proto::{Instant, Mac};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::way::{ANSWER_WITHIN, Due, FarEnd, RECHECK_EVERY, Way};
use super::window::Window;

/// The most ways that have their turn in one burst, which is followed by a [`PAUSE`].
const BURST: usize = 128;
/// How long it takes until the next burst, so that ten thousand ways neither fill a queue nor keep the agent from
/// its other work.
const PAUSE: Duration = Duration::from_millis(2);

/// The least time from one try to the next of ways that no packets take, whichever ways are tried. So the
/// more ways there are, the less often each is tried. A way is tried more often as soon as it takes packets.
const UNUSED_PAUSE: Duration = Duration::from_millis(100);
/// How far apart the moments are at which ways that no packets take are tried, all that are due by then at once: a machine
/// at rest is woken less often so.
const TOGETHER_EVERY: Duration = Duration::from_millis(500);
/// The least time from one try to the next of ways that were tried in vain again and again, as each such try
/// takes several probes.
const REFUTED_PAUSE: Duration = Duration::from_millis(200);

/// The longest time for which an answer to a probe is waited for.
const WAITED_FOR: Duration = Duration::from_secs(2);

/// A probe to be sent through this machine's kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelProbe {
    /// The address by which the kernel is to route it, whatever its destination is.
    pub towards: IpAddr,
    /// The segments of its way; none where crossbars go by the destination.
    pub segments: Vec<Ipv6Addr>,
    /// An address of this host, and one of the host at the way's end.
    pub ends: DatagramEnds,
    /// The host at the way's end, which alone is to answer; `None` if whoever gets it is to.
    pub asked: Option<Mac>,
    /// The number that its answer repeats.
    pub nonce: u64,
    /// Whether it is the last one that this host asks that one, whose ways are all tried.
    pub is_last: bool,
    /// How long the packet is to be inside its outer header, in bytes; 0 for as short as can be.
    pub inner_bytes: usize,
    /// How many kernels the packet may come to inside its outer header. The one where that ends says so.
    pub hop_limit: u8,
}

impl KernelProbe {
    /// What it says.
    pub const fn question(&self) -> Datagram {
        Datagram::Question { nonce: self.nonce, is_last: self.is_last, asked: self.asked }
    }
}

/// What a probe that is under way is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Probed {
    /// The host at its way's end.
    pub(super) mac: Mac,
    /// The number of the way.
    pub(super) number: u32,
    /// Whether the probe turns at the last crossbar, and does not reach the host.
    pub(super) turns: bool,
}

/// The addresses of a way's ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    /// An address of this host.
    pub(super) own: Ipv6Addr,
    /// An address of that host.
    pub(super) other: Ipv6Addr,
    /// Addresses of IPv4 of both hosts, if it can be asked whether packets of IPv4 get through.
    pub(super) v4: Option<(Ipv4Addr, Ipv4Addr)>,
}

/// Where a probe goes.
#[derive(Debug)]
struct ProbeCourse {
    towards: IpAddr,
    segments: Vec<Ipv6Addr>,
    ends: DatagramEnds,
    /// Whether it turns before it gets to the host.
    turns: bool,
}

impl ProbeCourse {
    /// What is to be asked of a way now: along `turned`, if there are such segments, which lead home, and otherwise along the way to
    /// its end.
    fn of(way: &Way, ends: Ends, turned: Option<Vec<Ipv6Addr>>) -> Option<Self> {
        let towards = towards_port(way.port).into();
        let Ends { own, other, v4 } = ends;
        if let Some(segments) = turned {
            let ends = DatagramEnds::V6 { source: own, destination: own };
            return Some(Self { towards, segments, ends, turns: true });
        }
        let segments = way.segments_of_probe()?;
        if !way.probes_v4() {
            let ends = DatagramEnds::V6 { source: own, destination: other };
            return Some(Self { towards, segments, ends, turns: false });
        }
        let (source, destination) = v4?;
        let towards = if segments.is_empty() { towards_port_v4(way.port).into() } else { towards };
        Some(Self { towards, segments, ends: DatagramEnds::V4 { source, destination }, turns: false })
    }

    /// As [`Self::of`], with packets of IPv6 to the way's end, whatever is to be found out about it.
    fn of_v6(way: &Way, Ends { own, other, .. }: Ends) -> Option<Self> {
        let ends = DatagramEnds::V6 { source: own, destination: other };
        let (towards, segments) = (towards_port(way.port).into(), way.segments(Element::DeliverV6)?);
        Some(Self { towards, segments, ends, turns: false })
    }
}

/// When a way's turn comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    at: Instant,
    /// The way's place among those to its host. The first ways to all hosts are tried before the second ones.
    place: u32,
    mac: Mac,
    number: u32,
}

/// What a turn waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnQueue {
    /// It waits for its time: a probe is under way, or the way is proved and is tried again now and then.
    Timed,
    /// It waits for its time and for room in the window, as the first probe of a try is to be sent.
    First,
}

/// When each way is tried next, and which probes are under way.
#[derive(Debug)]
pub(super) struct Prober {
    timed: BTreeSet<Turn>,
    first: BTreeSet<Turn>,
    /// The turn of each way, and the queue in which it is.
    turns: BTreeMap<(Mac, u32), (Turn, TurnQueue)>,
    /// How many first probes may be under way.
    window: Window,
    under_way: BTreeMap<u64, Probed>,
    /// The nonces of probes in the order in which they were sent. Those along ways that are gone are among
    /// them.
    sent: VecDeque<(Instant, u64)>,
    to_send: VecDeque<KernelProbe>,
    /// When the burst began, and how many ways had their turn in it.
    burst: (Instant, usize),
    /// The first moment at which ways that no packets take are tried. Each host has its own, so that hosts that started
    /// together do not try theirs together.
    together_from: Instant,
    rng: ChaCha8Rng,
}

impl Prober {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Self {
            timed: BTreeSet::new(),
            first: BTreeSet::new(),
            turns: BTreeMap::new(),
            window: Window::new(ANSWER_WITHIN),
            under_way: BTreeMap::new(),
            sent: VecDeque::new(),
            to_send: VecDeque::new(),
            burst: (Instant::ZERO, 0),
            together_from: Instant::ZERO + rng.random_range(Duration::ZERO..TOGETHER_EVERY),
            rng,
        }
    }

    /// Has a way's turn come at this moment, and not when it was to come before.
    pub(super) fn schedule(&mut self, at: Instant, mac: Mac, way: &Way) {
        let turn = Turn { at, place: way.place, mac, number: way.number };
        let queue = if way.is_proved() || way.nonce.is_some() { TurnQueue::Timed } else { TurnQueue::First };
        self.plan(turn, queue);
    }

    fn plan(&mut self, turn: Turn, queue: TurnQueue) {
        if let Some((before, queue)) = self.turns.insert((turn.mac, turn.number), (turn, queue)) {
            self.queue_mut(queue).remove(&before);
        }
        self.queue_mut(queue).insert(turn);
    }

    const fn queue_mut(&mut self, queue: TurnQueue) -> &mut BTreeSet<Turn> {
        match queue {
            TurnQueue::Timed => &mut self.timed,
            TurnQueue::First => &mut self.first,
        }
    }

    /// Has a way's turn come at this moment, unless it comes earlier anyway.
    pub(super) fn hasten(&mut self, at: Instant, mac: Mac, number: u32) {
        if let Some(&(turn, queue)) = self.turns.get(&(mac, number)).filter(|(turn, _)| turn.at > at) {
            self.plan(Turn { at, ..turn }, queue);
        }
    }

    /// Whether a way's turn is still to come.
    pub(super) fn has(&self, mac: Mac, number: u32) -> bool {
        self.turns.contains_key(&(mac, number))
    }

    /// How often a way is tried again that works, and that no packets take.
    pub(super) fn recheck_unused_every(&self) -> Duration {
        self.over_all_ways(UNUSED_PAUSE).max(RECHECK_EVERY)
    }

    /// When a way that no packets take is tried that is due at this moment: see [`TOGETHER_EVERY`].
    pub(super) fn try_together(&self, due: Instant) -> Instant {
        let since = due.since(self.together_from).as_nanos() as u64;
        let every = TOGETHER_EVERY.as_nanos() as u64;
        self.together_from + Duration::from_nanos(since.div_ceil(every) * every)
    }

    /// The pause times the number of ways that have a turn.
    fn over_all_ways(&self, pause: Duration) -> Duration {
        pause.saturating_mul(u32::try_from(self.turns.len()).unwrap_or(u32::MAX))
    }

    /// A way whose turn it is. One that is tried for the first time has its turn from `new_from` on, and never if that is `None`.
    pub(super) fn next_due(&mut self, now: Instant, new_from: Option<Instant>) -> Option<(Mac, u32)> {
        self.window.give_up(now);
        if now >= self.burst.0 + PAUSE {
            self.burst = (now, 0);
        }
        if self.burst.1 >= BURST {
            return None;
        }
        let timed = self.timed.first().filter(|turn| turn.at <= now);
        let tries_new = new_from.is_some_and(|from| from <= now) && self.window.has_room(now);
        let first = self.first.first().filter(|turn| turn.at <= now && tries_new);
        let &turn = timed.or(first)?;
        self.burst.1 += 1;
        let (_, queue) = self.turns.remove(&(turn.mac, turn.number))?;
        self.queue_mut(queue).remove(&turn);
        Some((turn.mac, turn.number))
    }

    /// Does what is due on a way to this host. If an address of either end is missing, no probe can be sent,
    /// which counts as if it had been lost. `turn` gives the segments of a packet that turns at the way's
    /// last crossbar and comes home, if there can be such a packet. Returns whether the way carries packets
    /// no more.
    pub(super) fn fire(
        &mut self,
        now: Instant,
        mac: Mac,
        (way, end): (&mut Way, FarEnd),
        ends: Option<Ends>,
        turn: impl FnOnce(&Way) -> Option<Vec<Ipv6Addr>>,
    ) -> bool {
        let before = way.nonce;
        self.forget_old(now);
        let is_first_try = !way.is_proved();
        let (due, mut next) = way.fire(now, FarEnd { may_turn: end.may_turn && ends.is_some(), ..end });
        if let Some(nonce) = before.filter(|_| due != Due::Wait) {
            self.under_way.remove(&nonce);
        }
        if due == Due::Left && way.is_hopeless() {
            next = next.max(now + self.over_all_ways(REFUTED_PAUSE));
        }
        if let Due::Probe { full_length, turns } = due {
            let nonce = self.rng.random();
            way.nonce = Some(nonce);
            if let Some(ends) = ends {
                let turned = if turns { turn(way) } else { None };
                self.send(now, (mac, way), ProbeCourse::of(way, ends, turned), (nonce, full_length));
                if is_first_try {
                    self.window.sent(now, nonce);
                }
            }
        }
        self.schedule(next, mac, way);
        due == Due::Lost
    }

    /// Sends a probe that asks this; none if it cannot be asked.
    fn send(
        &mut self,
        now: Instant,
        (mac, way): (Mac, &Way),
        question: Option<ProbeCourse>,
        (nonce, full_length): (u64, bool),
    ) {
        let Some(ProbeCourse { towards, segments, ends, turns }) = question else { return };
        self.under_way.insert(nonce, Probed { mac, number: way.number, turns });
        self.sent.push_back((now, nonce));
        // A list of segments that leads there and home may be longer than one that leads there, and leaves
        // less room for the packet.
        let overhead = if segments.is_empty() { 0 } else { overhead_bytes(segments.len()) };
        let inner_bytes = if full_length { way.mtu_to_show(overhead) as usize } else { 0 };
        self.to_send.push_back(KernelProbe {
            towards,
            segments,
            ends,
            asked: (!turns).then_some(mac),
            nonce,
            is_last: false,
            inner_bytes,
            hop_limit: HOP_LIMIT,
        });
    }

    /// Asks the last question, along a way that is proved. Returns its nonce.
    pub(super) fn ask_last(&mut self, now: Instant, (mac, way): (Mac, &Way), ends: Ends) -> u64 {
        let nonce = self.rng.random();
        self.send(now, (mac, way), ProbeCourse::of_v6(way, ends), (nonce, false));
        if let Some(probe) = self.to_send.back_mut().filter(|probe| probe.nonce == nonce) {
            probe.is_last = true;
        }
        nonce
    }

    /// Forgets probes that are no longer waited for.
    fn forget_old(&mut self, now: Instant) {
        while let Some(&(_, nonce)) = self.sent.front().filter(|(at, _)| now.since(*at) > WAITED_FOR) {
            self.sent.pop_front();
            self.under_way.remove(&nonce);
        }
    }

    /// What the probe with this nonce was about, which is answered now.
    pub(super) fn take(&mut self, now: Instant, nonce: u64) -> Option<Probed> {
        self.window.answered(now, nonce);
        self.under_way.remove(&nonce)
    }

    /// How many probes are waited for.
    #[cfg(test)]
    pub(super) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    pub(super) fn poll(&mut self) -> Option<KernelProbe> {
        self.to_send.pop_front()
    }

    /// When a way's turn comes next, where new ones have theirs from `new_from` on.
    pub(super) fn poll_timeout(&self, new_from: Option<Instant>) -> Option<Instant> {
        let timed = self.timed.first().map(|turn| turn.at);
        let first = self.first.first().zip(new_from);
        let first = first.map(|(turn, from)| turn.at.max(from).max(self.window.room_at().unwrap_or(from)));
        let at = timed.into_iter().chain(first).min()?;
        Some(if self.burst.1 >= BURST { at.max(self.burst.0 + PAUSE) } else { at })
    }
}
