//! Users' frames: who sends to whom, and what becomes of them.
//!
//! Every host sends at an even rate, to a few others in turn. Each frame has its sender and its number, so
//! that the receiver can tell which were lost, came twice or were overtaken. In some runs hosts also send
//! broadcasts.

mod calm;
mod frame;
mod pair;
mod report;
#[cfg(test)]
mod tests;
mod users;

use std::collections::BTreeSet;
use std::time::Duration;

use mapper_proto::{Instant, Mac};
use mapper_routing::OutOfReach;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::World;
use super::options::{TrafficOptions, derive_seed};
use crate::faults::Fault;
use calm::Disturbances;
pub(super) use frame::UserFrame;
pub use pair::LOST_AFTER;
pub(super) use pair::Leg;
use pair::{Arrival, Gap, Pair, Upheavals};
pub use report::{FaultEffect, PairGap, TrafficReport};
pub(super) use users::goes_in_a_circle;

/// Names the stream of seeds for the choice of who sends to whom.
const TRAFFIC: u64 = 6;
/// Most faults whose effect is told.
const MAX_EFFECTS: usize = 1000;
/// Most gaps that are told one by one.
const MAX_GAPS: usize = 100_000;

/// Who sends what to whom, and what arrived.
#[derive(Debug)]
pub(super) struct Traffic {
    interval: Duration,
    started: bool,
    /// When users sent their last frames.
    stopped_at: Option<Instant>,
    /// How many flows the frames of a pair belong to, in turn.
    flows: u64,
    /// For each host the hosts to which it sends, in turn.
    pairs: Vec<Vec<Pair>>,
    /// For each host its broadcasts, as frames to each other host; empty if hosts send none.
    broadcasts: Vec<Vec<Pair>>,
    /// For each host how many frames it has sent to single hosts.
    sent: Vec<u64>,
    /// For each host the place in `pairs` of the one whose turn it is.
    turns: Vec<usize>,
    duplicated: u64,
    late: u64,
    reordered: u64,
    effects: Vec<FaultEffect>,
    gaps: Vec<PairGap>,
    longest_gap: Duration,
    /// What is to blame for frames that arrive otherwise than they should.
    disturbances: Disturbances,
    /// The first thing that happened and never must, in words.
    wrong: Option<String>,
}

/// How things are when a fault strikes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances {
    /// How they were before: see [`World::all_is_well`].
    pub(super) all_well: bool,
    /// How frames go behind it: see [`World::is_orderly`].
    pub(super) orderly: bool,
    /// Whether a whole xbar ends with it.
    pub(super) ends_xbar: bool,
    /// How long it may take behind it until hosts find kernels that do not forward: see [`World::kernels_are_left_within`].
    pub(super) left_within: Duration,
    /// How long it takes at most until hosts go around a path that has broken: see [`World::paths_are_left_within`].
    pub(super) paths_left_within: Duration,
}

impl Traffic {
    pub(super) fn new(options: &TrafficOptions, hosts: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(derive_seed(seed, TRAFFIC, 0));
        let pairs = (0..hosts as u32)
            .map(|host| {
                let partners = draw_partners(host, hosts as u32, options.partners, &mut rng);
                partners.into_iter().map(|to| Pair::new(to, options.flows)).collect()
            })
            .collect();
        let others = |host| (0..hosts as u32).filter(move |&other| other != host);
        let to_all = |host| others(host).map(|to| Pair::new(to, 1)).collect();
        let broadcasters = 0..if options.broadcasts { hosts as u32 } else { 0 };
        Self {
            interval: Duration::from_secs_f64(1.0 / options.rate),
            started: false,
            stopped_at: None,
            flows: options.flows,
            pairs,
            broadcasts: broadcasters.map(to_all).collect(),
            sent: vec![0; hosts],
            turns: vec![0; hosts],
            duplicated: 0,
            late: 0,
            reordered: 0,
            effects: Vec::new(),
            gaps: Vec::new(),
            longest_gap: Duration::ZERO,
            disturbances: Disturbances::of(hosts),
            wrong: None,
        }
    }

    /// Takes in that a fault struck.
    pub(super) fn strike(
        &mut self,
        now: Instant,
        fault: Fault,
        what: &str,
        Circumstances { all_well, orderly, ends_xbar, left_within, paths_left_within }: Circumstances,
    ) {
        if self.started && self.effects.len() < MAX_EFFECTS {
            self.effects.push(FaultEffect {
                at: now,
                what: what.to_owned(),
                fault,
                pairs: 0,
                longest_gap: Duration::ZERO,
                routes_after: Duration::ZERO,
                still_without: 0,
                new_map_after: None,
                kept_gap: all_well.then_some(Duration::ZERO),
                mapped_gap: orderly.then_some(Duration::ZERO),
                ends_xbar,
                left_within,
                paths_left_within,
            });
        }
    }

    /// Takes in that a host believes somebody who claims its address without having it. What was promised of the last
    /// fault was promised of hosts that each have an address of their own.
    pub(super) fn note_false_twin(&mut self) {
        if let Some(effect) = self.effects.last_mut() {
            effect.kept_gap = None;
        }
    }

    /// The frame that a host sends now, and to whom.
    fn next_frame(&mut self, host: u32, now: Instant) -> Option<UserFrame> {
        let pairs = &mut self.pairs[host as usize];
        let turn = &mut self.turns[host as usize];
        let count = pairs.len();
        let pair = pairs.get_mut(*turn)?;
        *turn = (*turn + 1) % count;
        self.sent[host as usize] += 1;
        Some(UserFrame { from: host, to: pair.to, number: pair.send(now) })
    }

    /// The broadcast that a host sends now, if it is time for one.
    fn next_broadcast(&mut self, host: u32, now: Instant) -> Option<UserFrame> {
        let is_time = self.sent[host as usize].is_multiple_of(TrafficOptions::BROADCAST_EVERY);
        let pairs = self.broadcasts.get_mut(host as usize).filter(|_| is_time)?;
        let number = pairs.iter_mut().map(|pair| pair.send(now)).last()?;
        Some(UserFrame { from: host, to: UserFrame::ALL, number })
    }

    /// The pairs of `from` and `to`, of frames to single hosts and of broadcasts. If `to` stands for all,
    /// these are its broadcasts to each host.
    fn pairs_to(&mut self, from: u32, to: u32) -> impl Iterator<Item = &mut Pair> {
        let (of, to) = match to {
            UserFrame::ALL => (&mut self.broadcasts, None),
            to => (&mut self.pairs, Some(to)),
        };
        let pairs = of.get_mut(from as usize).into_iter().flatten();
        pairs.filter(move |pair| to.is_none_or(|to| pair.to == to))
    }

    /// Takes in that a frame reached the user of a host. `upheavals` says how often a host's flows have
    /// moved by now. Returns what is wrong about how the frame arrived, if neither noise nor a hostile host is to
    /// blame, nor the flow's route was lost while the frame was under way.
    fn arrive(
        &mut self,
        at: u32,
        frame: UserFrame,
        upheavals: impl Fn(u32) -> Upheavals,
    ) -> Option<&'static str> {
        // A host that has the address of another also gets frames that are for that one.
        let to = if frame.to == UserFrame::ALL { at } else { frame.to };
        let pair = self.pairs_to(frame.from, frame.to).find(|pair| pair.to == to)?;
        let arrival = pair.arrive(frame.number);
        let disturbances = &self.disturbances;
        let (sent_at, excused, wrong) = match arrival {
            Arrival::InOrder => return None,
            Arrival::Forgotten => {
                self.late += 1;
                return None;
            }
            Arrival::Late { sent_at } => {
                self.late += 1;
                (
                    sent_at,
                    disturbances.held_up.concerns(sent_at),
                    "arrived more than 250 ms after it was sent",
                )
            }
            Arrival::Overtaken { sent_at, upheavals: when_sent, relay, same_way } => {
                self.reordered += 1;
                // What moved at its sender need not have been this flow: one that kept to its way keeps its order, too.
                let mut before = [(frame.from, when_sent)].into_iter().chain(relay);
                if !same_way && before.any(|(host, before)| before != upheavals(host)) {
                    return None;
                }
                (
                    sent_at,
                    disturbances.overtaken.concerns(sent_at),
                    "was overtaken by a later one of its flow",
                )
            }
            Arrival::Again { sent_at } => {
                self.duplicated += 1;
                // Each host gets a copy of a broadcast, and nothing in a copy says for which host it is. If a cable
                // leads elsewhere than in the map, or a bit of its route flips, a host may get the copy of another
                // beside its own.
                let may_stray = frame.to == UserFrame::ALL
                    && (disturbances.garbled.concerns(sent_at) || !self.had_true_map(sent_at));
                (sent_at, may_stray || disturbances.copied.concerns(sent_at), "arrived twice")
            }
        };
        let is_replayed = self.disturbances.replayed[at as usize].concerns(sent_at);
        (!excused && !is_replayed).then_some(wrong)
    }

    /// Whether all hosts had a map of the fabric as it is at this moment, and no fault struck since.
    fn had_true_map(&self, at: Instant) -> bool {
        self.effects.last().is_none_or(|last| last.new_map_after.is_some_and(|after| at >= last.at + after))
    }

    fn list(gaps: &mut Vec<PairGap>, gap: Gap) {
        if gaps.len() < MAX_GAPS {
            gaps.push(PairGap { from: gap.from, to: gap.to });
        }
    }

    /// Attributes a gap to the last fault before it.
    fn note(effects: &mut [FaultEffect], gap: Gap, hit_at: &mut Option<Instant>) {
        let Some(effect) = effects.iter_mut().rev().find(|effect| effect.at <= gap.from) else { return };
        effect.pairs += usize::from(hit_at.replace(effect.at) != Some(effect.at));
        effect.longest_gap = effect.longest_gap.max(gap.to.since(gap.from));
        effect.routes_after = effect.routes_after.max(gap.to.since(effect.at));
    }

    /// Attributes to each fault the part of a gap that lies behind it, up to the next fault: see
    /// [`FaultEffect::kept_gap`] and [`FaultEffect::mapped_gap`]. The pair sent a frame each `between`. What is kept counts from the
    /// first of them behind the fault: a path that no frame has taken since there was a map is watched from then on.
    fn note_parts(effects: &mut [FaultEffect], gap: Gap, between: Duration) {
        let mut until = gap.to;
        for effect in effects.iter_mut().rev().skip_while(|effect| effect.at >= gap.to) {
            let behind = |moment: Instant| until.since(gap.from.max(moment).min(until));
            if gap.renewed_at.is_none_or(|renewed_at| renewed_at < effect.at)
                && let Some(longest) = &mut effect.kept_gap
            {
                // From then on the pair waited for the new map.
                let waited_from = gap.no_safe_route_at.filter(|&at| at >= effect.at && at < until);
                let kept_until = waited_from.unwrap_or(until);
                *longest =
                    kept_until.since(gap.first_behind(effect.at, between).min(kept_until)).max(*longest);
            }
            if let (Some(longest), Some(after)) = (&mut effect.mapped_gap, effect.new_map_after) {
                *longest = behind(effect.at + after).max(*longest);
            }
            until = effect.at;
            if effect.at <= gap.from {
                return;
            }
        }
    }

    /// Up to when users may have sent frames: until now, or until they stopped. What happens later, no gap can tell.
    fn sent_until(&self, now: Instant) -> Instant {
        self.stopped_at.map_or(now, |stopped_at| stopped_at.min(now))
    }

    /// The time from one frame of a host to another to its next to the same one.
    fn between_frames(&self, host: u32) -> Duration {
        self.interval * self.pairs[host as usize].len() as u32
    }

    /// Takes in the gaps of a host's pairs that are over.
    fn settle(&mut self, host: u32, now: Instant) {
        let between = self.between_frames(host);
        for pair in &mut self.pairs[host as usize] {
            while let Some(gap) = pair.expire(now) {
                self.longest_gap = self.longest_gap.max(gap.to.since(gap.from));
                Self::list(&mut self.gaps, gap);
                Self::note(&mut self.effects, gap, &mut pair.hit_at);
                Self::note_parts(&mut self.effects, gap, between);
            }
        }
        // The only promise about gaps of broadcasts is that they end.
        for pair in self.broadcasts.get_mut(host as usize).into_iter().flatten() {
            while pair.expire(now).is_some() {}
        }
    }

    /// Takes in all gaps that are over.
    fn settle_all(&mut self, now: Instant) {
        (0..self.pairs.len() as u32).for_each(|host| self.settle(host, now));
    }

    /// Takes in that all hosts have a map of the fabric as it is.
    fn configured(&mut self, now: Instant) {
        if let Some(effect) = self.effects.last_mut() {
            effect.new_map_after.get_or_insert(now.since(effect.at));
        }
    }

    fn awaits_map(&self) -> bool {
        self.effects.last().is_some_and(|effect| effect.new_map_after.is_none())
    }
}

/// Some other hosts in random order, each at most once.
fn draw_partners(host: u32, hosts: u32, count: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let others = hosts.saturating_sub(1) as usize;
    if others <= count {
        let mut all: Vec<u32> = (0..hosts).filter(|&other| other != host).collect();
        all.shuffle(rng);
        return all;
    }
    let mut drawn: Vec<u32> = Vec::with_capacity(count);
    while drawn.len() < count {
        let other = rng.random_range(0..hosts);
        if other != host && !drawn.contains(&other) {
            drawn.push(other);
        }
    }
    drawn
}

impl World {
    /// Notes which pairs cables join now, after the plant has changed.
    pub(super) fn part_users(&mut self) {
        if self.traffic.is_none() {
            return;
        }
        let joined = self.joined_hosts();
        let Some(traffic) = &mut self.traffic else { return };
        let now = self.now;
        for (from, pairs) in (0..).zip(&mut traffic.pairs) {
            for pair in pairs {
                let was_parted = std::mem::replace(&mut pair.parted, !joined(from, pair.to));
                if was_parted && !pair.parted {
                    pair.renewed_at = Some(now);
                }
            }
        }
    }

    /// Takes in that a host's routes go around dead cables now. Those to whom it has no safe route wait for the new map, once
    /// all these cables are known to be dead: before that, the turns that lead around them are not open yet.
    pub(super) fn note_no_safe_routes(&mut self, host: u32) {
        let dead =
            self.hosts[host as usize].node.as_ref().and_then(|node| Some(node.host()?.healing().dead()));
        let Some(table) = self.table(host).filter(|_| dead.is_some_and(|dead| dead.avoided == dead.proved))
        else {
            return;
        };
        let no_safe_route = |&(_, why): &(Mac, OutOfReach)| why == OutOfReach::NoSafeRoute;
        let waits: BTreeSet<Mac> = table.unreachable().filter(no_safe_route).map(|(mac, _)| mac).collect();
        let to_wait = (0..).zip(&self.hosts).filter(|(_, slot)| waits.contains(&slot.settings.mac));
        let to_wait: BTreeSet<u32> = to_wait.map(|(host, _)| host).collect();
        let Some(traffic) = self.traffic.as_mut().filter(|_| !to_wait.is_empty()) else { return };
        // The other host proves its ways through kernels by answers that this one sends.
        let both_ways = self.options.kernels;
        for (from, pairs) in (0..).zip(&mut traffic.pairs) {
            let is_one = |pair: &&mut Pair| {
                from == host && to_wait.contains(&pair.to)
                    || both_ways && pair.to == host && to_wait.contains(&from)
            };
            let struck_at = traffic.effects.last().map_or(Instant::ZERO, |effect| effect.at);
            for pair in pairs.iter_mut().filter(is_one) {
                let is_news = pair.no_safe_route_at.is_none_or(|at| at < struck_at);
                pair.no_safe_route_at = if is_news { Some(self.now) } else { pair.no_safe_route_at };
            }
        }
    }

    /// Takes in that an agent starts at this host, so that it and its partners have to find each other anew.
    pub(super) fn renew_users_of(&mut self, host: u32) {
        let now = self.now;
        let pairs = self.traffic.iter_mut().flat_map(|traffic| (0..).zip(&mut traffic.pairs));
        for (from, pairs) in pairs {
            let its = pairs.iter_mut().filter(|pair| host == from || host == pair.to);
            its.for_each(|pair| pair.renewed_at = Some(now));
        }
    }
}
