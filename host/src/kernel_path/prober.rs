//! Sends probes along ways, a few at a time, and finds what an answer is about.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv6Addr;
use std::time::Duration;

use mapper_fib::segments::{first_port, overhead_bytes};
use mapper_proto::{Instant, Mac};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::way::{Due, FarEnd, Way};

/// The most probes that are begun in one [`PAUSE`].
const BURST: usize = 128;
/// How long it takes until the next burst, so that ten thousand ways neither fill a queue nor keep the agent from
/// its other work.
const PAUSE: Duration = Duration::from_millis(2);

/// No answer to a probe is waited for longer.
const WAITED_FOR: Duration = Duration::from_secs(2);

/// A probe to be sent through this machine's kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelProbe {
    /// The address by which the kernel is to route it, whatever its destination is.
    pub towards: Ipv6Addr,
    /// The segments of its way; none where crossbars go by the destination.
    pub segments: Vec<Ipv6Addr>,
    /// An address of this host.
    pub source: Ipv6Addr,
    /// An address of the host at the way's end.
    pub destination: Ipv6Addr,
    /// What its answer repeats.
    pub nonce: u64,
    /// How long the packet is to be inside its outer header, in bytes; 0 for as short as can be.
    pub inner_bytes: usize,
}

/// What a probe that is under way is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Probed {
    /// The host at its way's end.
    pub(super) mac: Mac,
    /// The number of the way.
    pub(super) number: u32,
    /// Whether it turns before the host.
    pub(super) turns: bool,
}

/// The addresses of a way's ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    /// An address of this host.
    pub(super) own: Ipv6Addr,
    /// An address of that host.
    pub(super) other: Ipv6Addr,
}

/// When each way is tried next, and which probes are under way.
#[derive(Debug)]
pub(super) struct Prober {
    due: BTreeSet<(Instant, Mac, u32)>,
    /// When each way is due, which is the key to `due`.
    at: BTreeMap<(Mac, u32), Instant>,
    under_way: BTreeMap<u64, Probed>,
    /// The nonces of probes in the order in which they were sent. Ways go, and what was under way along them with them.
    sent: VecDeque<(Instant, u64)>,
    to_send: VecDeque<KernelProbe>,
    /// When the burst began, and how many ways had their turn in it.
    burst: (Instant, usize),
    rng: ChaCha8Rng,
}

impl Prober {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            due: BTreeSet::new(),
            at: BTreeMap::new(),
            under_way: BTreeMap::new(),
            sent: VecDeque::new(),
            to_send: VecDeque::new(),
            burst: (Instant::ZERO, 0),
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// Has a way's time come at this moment, and no other.
    pub(super) fn schedule(&mut self, at: Instant, mac: Mac, number: u32) {
        if let Some(before) = self.at.insert((mac, number), at) {
            self.due.remove(&(before, mac, number));
        }
        self.due.insert((at, mac, number));
    }

    /// Has a way's time come at this moment, unless it comes earlier.
    pub(super) fn hasten(&mut self, at: Instant, mac: Mac, number: u32) {
        if self.at.get(&(mac, number)).is_some_and(|&planned| planned > at) {
            self.schedule(at, mac, number);
        }
    }

    /// Whether a way's time is still to come.
    pub(super) fn has(&self, mac: Mac, number: u32) -> bool {
        self.at.contains_key(&(mac, number))
    }

    /// A way whose time has come.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<(Mac, u32)> {
        if now >= self.burst.0 + PAUSE {
            self.burst = (now, 0);
        }
        let &(at, mac, number) = self.due.first()?;
        if at > now || self.burst.1 >= BURST {
            return None;
        }
        self.burst.1 += 1;
        self.due.remove(&(at, mac, number));
        self.at.remove(&(mac, number));
        Some((mac, number))
    }

    /// Does what is due on a way to this host. Without addresses of both ends no probe can be sent, as if it had been
    /// lost. `turn` gives the segments of a packet that turns at the way's last crossbar and comes home, if there is such
    /// a one. Returns whether the way carries packets no more.
    pub(super) fn fire(
        &mut self,
        now: Instant,
        mac: Mac,
        (way, end): (&mut Way, FarEnd),
        ends: Option<Ends>,
        turn: impl FnOnce(&Way) -> Option<Vec<Ipv6Addr>>,
    ) -> bool {
        if let Some(nonce) = way.nonce {
            self.under_way.remove(&nonce);
        }
        self.forget_old(now);
        let (due, next) = way.fire(now, FarEnd { may_turn: end.may_turn && ends.is_some(), ..end });
        if let Due::Probe { full_length, turns } = due {
            let nonce = self.rng.random();
            way.nonce = Some(nonce);
            if let Some(ends) = ends {
                let turned = if turns { turn(way) } else { None };
                self.send(now, (mac, way), ends, (nonce, full_length), turned);
            }
        }
        self.schedule(next, mac, way.number);
        due == Due::Lost
    }

    /// Sends a probe: along the way to its end, or along these segments, which lead home.
    fn send(
        &mut self,
        now: Instant,
        (mac, way): (Mac, &Way),
        Ends { own: source, other }: Ends,
        (nonce, full_length): (u64, bool),
        turned: Option<Vec<Ipv6Addr>>,
    ) {
        let turns = turned.is_some();
        let Some(segments) = turned.or_else(|| way.segments_of_probe()) else { return };
        self.under_way.insert(nonce, Probed { mac, number: way.number, turns });
        self.sent.push_back((now, nonce));
        // A list of segments that leads home as well may be longer, and leaves less room for the packet.
        let overhead = if segments.is_empty() { 0 } else { overhead_bytes(segments.len()) };
        let mtu = way.link_mtu.saturating_sub(overhead).min(way.mtu());
        let inner_bytes = if full_length { mtu as usize } else { 0 };
        let destination = if turns { source } else { other };
        let towards = first_port(way.port);
        self.to_send.push_back(KernelProbe { towards, segments, source, destination, nonce, inner_bytes });
    }

    /// Forgets probes that nobody waits for any more.
    fn forget_old(&mut self, now: Instant) {
        while let Some(&(_, nonce)) = self.sent.front().filter(|(at, _)| now.since(*at) > WAITED_FOR) {
            self.sent.pop_front();
            self.under_way.remove(&nonce);
        }
    }

    /// What the probe with this nonce was about.
    pub(super) fn take(&mut self, nonce: u64) -> Option<Probed> {
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

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let &(at, ..) = self.due.first()?;
        Some(if self.burst.1 >= BURST { at.max(self.burst.0 + PAUSE) } else { at })
    }
}
