//! What came of measuring the ways to another host, as JSON: `mapper trace`, `mapper ping` and `mapper bandwidth` ask
//! for it.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

use mapper_fib::segments::overhead_bytes;
use mapper_host::sounding::{Back, EchoWay, Plan, Sounded};
use serde::{Deserialize, Serialize};

use super::bandwidth::{self, Bandwidths};

/// The most bytes of an answer.
pub const MAX_SOUNDED_BYTES: usize = 4 << 20;
/// How long an echo is waited for, which is longer than it takes on any fabric.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often each hop is asked.
const TRACE_ROUNDS: u16 = 3;
/// How long after one round the next begins.
const TRACE_INTERVAL: Duration = Duration::from_millis(50);
/// What [`TracedWay::by`] says where kernels go by the destination.
pub const BY_ROUTES: &str = "routes";

/// A host that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoundedHost {
    /// Its address.
    pub mac: String,
    /// What it is called.
    pub name: String,
}

/// What was measured, or why nothing was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answered<T> {
    /// Why nothing was measured, in words.
    Refused(String),
    /// What was measured.
    Measured(T),
}

/// The ways to a host, hop by hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Traced {
    /// The host.
    pub to: SoundedHost,
    /// Its ways.
    pub ways: Vec<TracedWay>,
}

/// One way, hop by hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TracedWay {
    /// What its frames go by: `agents` (the agents' frames, and users' by the tap interface), `srv6` or `routes` (users'
    /// packets through kernels).
    pub by: String,
    /// Whether users' packets may take it now.
    pub in_use: bool,
    /// What it passes, the host last.
    pub hops: Vec<TracedHop>,
    /// The place in `hops` of the first that does not answer; `None` if all answer, or that cannot be told.
    pub stops_at: Option<usize>,
    /// What that means, in words.
    pub verdict: String,
    /// The place in `hops` of the first behind this machine at which the kernel chooses between ports that are equally near, flow
    /// by flow, so that other packets may go on another way than the one that was walked. `None` if there is no such.
    #[serde(default)]
    pub forks_at: Option<usize>,
}

/// A crossbar or host on a way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TracedHop {
    /// What it is called.
    pub name: String,
    /// The port that the way leaves it by; `None` for the host at its end, and where that is not known.
    pub leaves_by: Option<String>,
    /// How many echoes were sent to it; none where it cannot be asked.
    pub sent: usize,
    /// How many came back.
    pub received: usize,
    /// The shortest time that an echo took, in milliseconds.
    pub rtt_ms: Option<f64>,
    /// The address of the kernel that answered, where it says who it is: on ways by `routes`.
    #[serde(default)]
    pub answered_by: Option<Ipv6Addr>,
}

/// Round trips along the ways to a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pinged {
    /// The host.
    pub to: SoundedHost,
    /// Its ways.
    pub ways: Vec<PingedWay>,
}

/// Round trips along one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PingedWay {
    /// What its frames go by, as in [`TracedWay::by`].
    pub by: String,
    /// Whether users' packets may take it now.
    pub in_use: bool,
    /// The crossbars that it passes, and the ports that it leaves them by; up to the first at which it forks.
    pub via: Vec<String>,
    /// The crossbar behind those of `via` whose kernel chooses between ports that are equally near, flow by flow, so that it is not known
    /// what the way passes from there on; `None` if `via` is the whole way.
    #[serde(default)]
    pub forks_at_crossbar: Option<String>,
    /// How many echoes were sent.
    pub sent: usize,
    /// How many came back.
    pub received: usize,
    /// The part of them that did not come back, from 0 to 1; `None` if none were sent.
    pub loss: Option<f64>,
    /// Why none were sent, in words, if that is so.
    #[serde(default)]
    pub why_not_asked: Option<String>,
    /// The shortest time that an echo took, in milliseconds.
    pub min_ms: Option<f64>,
    /// The median of the times, in milliseconds.
    pub median_ms: Option<f64>,
    /// The longest time that an echo took, in milliseconds.
    pub max_ms: Option<f64>,
}

/// Why a host at the end of a way is not asked: echoes go from an address of IPv6 to another one.
const NO_ADDRESS: &str = "one of the two hosts has no IPv6 address on the fabric";

/// The part of what was sent that did not come back, or else why nothing was sent.
pub(super) fn loss_of(sent: usize, received: usize) -> (Option<f64>, Option<String>) {
    match sent {
        0 => (None, Some(NO_ADDRESS.to_owned())),
        _ => (Some((sent - received) as f64 / sent as f64), None),
    }
}

/// A hop, and how it is asked.
#[derive(Debug, Clone)]
pub struct Hop {
    /// What it is called.
    pub name: String,
    /// The port that the way leaves it by.
    pub leaves_by: Option<String>,
    /// How it is asked; `None` if it is in this machine, or cannot be.
    pub echo: Option<EchoWay>,
}

/// A way that is to be measured.
#[derive(Debug, Clone)]
pub struct WayAsked {
    /// What its frames go by.
    pub by: &'static str,
    /// Whether users' packets may take it now.
    pub in_use: bool,
    /// What it passes, the host last.
    pub hops: Vec<Hop>,
    /// The longest that it carries, in bytes: of the agents' frames with the route, of packets through
    /// kernels the packet alone.
    pub longest_bytes: usize,
    /// As in [`TracedWay::forks_at`].
    pub forks_at: Option<usize>,
}

impl WayAsked {
    /// The crossbars that it passes, and the ports that it leaves them by; up to the first at which it forks.
    pub(super) fn via(&self) -> Vec<String> {
        let port = |hop: &Hop| Some(format!("{}, {}", hop.name, hop.leaves_by.as_ref()?));
        let before = self.forks_at.unwrap_or(self.hops.len());
        self.hops.iter().take(before).filter_map(port).collect()
    }

    /// The crossbar at which it forks, so that it is not known what it passes from there on.
    pub(super) fn fork(&self) -> Option<String> {
        Some(self.hops.get(self.forks_at?)?.name.clone())
    }
}

/// How the ways are measured.
#[derive(Debug, Clone, Copy)]
pub enum Measure {
    /// Each hop.
    Trace {
        /// How long frames are on cables, in bytes behind the Ethernet header; 0 for as short as can be.
        frame_bytes: u16,
    },
    /// The whole way, by single echoes.
    Ping {
        /// How many echoes go along each way.
        count: u16,
        /// The time from one to the next.
        interval: Duration,
        /// As in [`Self::Trace`].
        frame_bytes: u16,
    },
    /// Trains of packets as long as the way carries.
    Bandwidth {
        /// How many trains.
        trains: u16,
        /// How many packets each has.
        packets: u16,
    },
}

/// How many bytes of a frame are not counted by what a plan says of an echo's length: the outer header of segments.
fn outer_bytes(echo: &EchoWay) -> usize {
    match echo {
        EchoWay::Kernels { segments, .. } if !segments.is_empty() => overhead_bytes(segments.len()) as usize,
        EchoWay::Kernels { .. } | EchoWay::Agents { .. } => 0,
    }
}

/// A measurement that was asked for.
#[derive(Debug, Clone)]
pub struct SoundingAsked {
    /// The host.
    pub to: SoundedHost,
    /// Its ways.
    pub ways: Vec<WayAsked>,
    /// How they are measured.
    pub measure: Measure,
    /// What the crossbars of kernels are called that said that hop limits ended there, as far as it is known whose addresses
    /// theirs are.
    pub called: BTreeMap<Ipv6Addr, String>,
}

impl SoundingAsked {
    /// What is to be sent for it.
    pub fn plan(&self) -> Plan {
        let (rounds, train, interval) = match self.measure {
            Measure::Trace { .. } => (TRACE_ROUNDS, 1, TRACE_INTERVAL),
            Measure::Ping { count, interval, .. } => (count, 1, interval),
            Measure::Bandwidth { trains, packets } => (trains, packets, Duration::ZERO),
        };
        let bytes = |way: &WayAsked, echo: &EchoWay| match self.measure {
            Measure::Bandwidth { .. } => way.longest_bytes,
            Measure::Trace { frame_bytes } | Measure::Ping { frame_bytes, .. } => {
                usize::from(frame_bytes).saturating_sub(outer_bytes(echo))
            }
        };
        let echoes = self.asked().map(|(way, echo)| (echo.clone(), bytes(way, echo))).collect();
        Plan { echoes, train, rounds, interval, patience: PATIENCE }
    }

    /// The echoes in the order of the plan.
    fn asked(&self) -> impl Iterator<Item = (&WayAsked, &EchoWay)> {
        let is_trace = matches!(self.measure, Measure::Trace { .. });
        let of_way = move |way: &'_ WayAsked| if is_trace { 0 } else { way.hops.len().saturating_sub(1) };
        self.ways.iter().flat_map(move |way| {
            let hops = way.hops.iter().skip(of_way(way));
            hops.filter_map(move |hop| Some((way, hop.echo.as_ref()?)))
        })
    }

    /// The answer as JSON.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn answer(&self, sounded: &Sounded) -> serde_json::Result<Vec<u8>> {
        let to = self.to.clone();
        let mut backs = sounded.iter();
        match self.measure {
            Measure::Trace { frame_bytes } => {
                let mut ways: Vec<_> =
                    self.ways.iter().map(|way| traced(way, &self.called, &mut backs)).collect();
                let stopped = ways.iter_mut().filter(|way| frame_bytes > 0 && way.stops_at.is_some());
                stopped.for_each(|way| way.verdict.push_str(&of_long_frames(frame_bytes)));
                serde_json::to_vec(&Answered::Measured(Traced { to, ways }))
            }
            Measure::Ping { .. } => {
                let ways = self.ways.iter().map(|way| pinged(way, &mut backs)).collect();
                serde_json::to_vec(&Answered::Measured(Pinged { to, ways }))
            }
            Measure::Bandwidth { packets, .. } => {
                let of_way = |way| bandwidth::of_way(way, of_host(way, &mut backs), packets.into());
                let ways = self.ways.iter().map(of_way).collect();
                serde_json::to_vec(&Answered::Measured(Bandwidths { to, ways }))
            }
        }
    }
}

fn ms(took: Duration) -> f64 {
    // The time is rounded to a microsecond, which is as exact as it can be.
    took.as_micros() as f64 / 1000.0
}

/// The times of the echoes that came back, shortest first.
fn sorted(rounds: &[Option<Back>]) -> Vec<Duration> {
    let mut took: Vec<_> = rounds.iter().flatten().map(|back| back.took).collect();
    took.sort_unstable();
    took
}

fn traced<'a>(
    way: &WayAsked,
    called: &BTreeMap<Ipv6Addr, String>,
    backs: &mut impl Iterator<Item = &'a Vec<Option<Back>>>,
) -> TracedWay {
    let mut rounds_of = |hop: &Hop| {
        let asked = hop.echo.as_ref();
        asked.and_then(|_| backs.next()).map_or(&[][..], Vec::as_slice)
    };
    let mut all: Vec<_> = way.hops.iter().map(|hop| (hop, rounds_of(hop))).collect();
    if way.by == BY_ROUTES {
        leave_what_is_behind_the_host(&mut all);
    }
    let hops: Vec<TracedHop> = all.into_iter().map(|(hop, rounds)| traced_hop(hop, rounds, called)).collect();
    let forks_at = way.forks_at.filter(|&at| at + 1 < hops.len());
    let (stops_at, verdict) = judge(way.by, &hops, forks_at);
    TracedWay { by: way.by.to_owned(), in_use: way.in_use, hops, stops_at, verdict, forks_at }
}

/// Where an echo whose hop limit was to end at a crossbar reached the host, the way is shorter than it was taken to be, and
/// neither that crossbar nor those behind it are on it.
fn leave_what_is_behind_the_host(hops: &mut Vec<(&Hop, &[Option<Back>])>) {
    let is_of_host =
        |(_, rounds): &(&Hop, &[Option<Back>])| rounds.iter().flatten().any(|back| back.ended_at.is_none());
    let host = hops.len().saturating_sub(1);
    if let Some(at) = hops.iter().take(host).position(is_of_host) {
        hops.drain(at..host);
    }
}

fn traced_hop(hop: &Hop, rounds: &[Option<Back>], called: &BTreeMap<Ipv6Addr, String>) -> TracedHop {
    let back = sorted(rounds);
    let answered_by = rounds.iter().flatten().find_map(|back| back.ended_at);
    let name = match answered_by {
        None => hop.name.clone(),
        // A machine may have addresses that no agent tells of.
        Some(ip) => called.get(&ip).cloned().unwrap_or_else(|| format!("{} (as {ip})", hop.name)),
    };
    let is_another = answered_by.is_some_and(|ip| called.get(&ip).is_some_and(|name| *name != hop.name));
    TracedHop {
        name,
        leaves_by: hop.leaves_by.clone().filter(|_| !is_another),
        sent: rounds.len(),
        received: back.len(),
        rtt_ms: back.first().copied().map(ms),
        answered_by,
    }
}

/// What is added to the words about where a way breaks off, if the user chose how long frames are.
fn of_long_frames(frame_bytes: u16) -> String {
    format!(
        "; these frames had {frame_bytes} bytes: if shorter ones are answered, as without `--size`, something there carries less"
    )
}

/// Where a way breaks off, and what that means.
fn judge(by: &str, hops: &[TracedHop], forks_at: Option<usize>) -> (Option<usize>, String) {
    let answers = |hop: &TracedHop| hop.received > 0;
    let is_silent = |hop: &TracedHop| hop.sent > 0 && hop.received == 0;
    let Some(host) = hops.last() else { return (None, "there is nothing on it".to_owned()) };
    if host.sent == 0 {
        return (None, format!("it cannot be asked: {NO_ADDRESS}"));
    }
    // If a hop beyond a silent one answers, the way does go on at the silent one.
    let last_alive = hops.iter().rposition(answers);
    let beyond = last_alive.map_or(0, |at| at + 1);
    let Some(silent) = hops.iter().skip(beyond).position(is_silent).map(|at| at + beyond) else {
        let verdict = match hops.iter().any(is_silent) {
            true => "the host answers, so the way is whole, though some on it did not answer for themselves",
            false => "all answer",
        };
        return (None, verdict.to_owned());
    };
    let unasked = hops[beyond..silent].iter().any(|hop| hop.sent == 0 && beyond > 0);
    let before = match silent.checked_sub(1).map(|at| &hops[at]) {
        Some(TracedHop { name, leaves_by: Some(port), .. }) => format!("{name}, {port}"),
        Some(TracedHop { name, .. }) => name.clone(),
        None => "this host".to_owned(),
    };
    let name = &hops[silent].name;
    let is_host = silent + 1 == hops.len();
    let verdict = match (by, is_host) {
        _ if unasked => format!("{name} does not answer, and what is before it could not be asked"),
        (BY_ROUTES, true) => format!(
            "{name} is the first that does not answer: its agent has ended or hangs, its cable from {before} is dead, or a \
             firewall on either of the two drops packets; `mapper doctor` on each says what it lacks"
        ),
        (BY_ROUTES, false) => {
            let others = if forks_at.is_some_and(|at| at < silent) { ", or another as near," } else { "" };
            format!(
                "{name}{others} is the first that does not answer: the cable from {before} is dead, a firewall there drops \
                 packets, or its own kernel does not send packets on; `mapper doctor` on each says what it lacks. Kernels \
                 answer only so often: if you asked again and again, wait for ten seconds"
            )
        }
        ("srv6", true) => format!(
            "{name} is the first that does not answer, though its crossbar does: its agent has ended or hangs, a \
             firewall there drops what is for the machine itself, or it has lost its address"
        ),
        ("srv6", false) => format!(
            "{name} is the first that does not answer: the cable from {before} is dead, or its kernel does not send \
             packets on; `mapper doctor` there says what it lacks"
        ),
        (_, true) => format!(
            "{name} is the first that does not answer: its agent has ended, or its cable from {before} is dead"
        ),
        (_, false) => {
            format!("{name} is the first that does not answer: it, or the cable from {before}, is dead")
        }
    };
    (Some(silent), verdict)
}

/// The echoes of a way's host, if it was asked.
fn of_host<'a>(
    way: &WayAsked,
    backs: &mut impl Iterator<Item = &'a Vec<Option<Back>>>,
) -> &'a [Option<Back>] {
    let asked = way.hops.last().and_then(|hop| hop.echo.as_ref());
    asked.and_then(|_| backs.next()).map_or(&[][..], Vec::as_slice)
}

fn pinged<'a>(way: &WayAsked, backs: &mut impl Iterator<Item = &'a Vec<Option<Back>>>) -> PingedWay {
    let rounds = of_host(way, backs);
    let back = sorted(rounds);
    let (sent, received) = (rounds.len(), back.len());
    let (loss, why_not_asked) = loss_of(sent, received);
    PingedWay {
        by: way.by.to_owned(),
        in_use: way.in_use,
        via: way.via(),
        forks_at_crossbar: way.fork(),
        sent,
        received,
        loss,
        why_not_asked,
        min_ms: back.first().copied().map(ms),
        // Of an even number of times it is the lower of the two in the middle.
        median_ms: back.get(received.saturating_sub(1) / 2).copied().map(ms),
        max_ms: back.last().copied().map(ms),
    }
}
