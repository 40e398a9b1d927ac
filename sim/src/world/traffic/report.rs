//! What became of users' frames, and what each fault did to them.

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_proto::Instant;

use super::super::World;
use super::Traffic;
use crate::faults::Fault;

/// A time in which all frames from one host to another were lost, though cables led there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PairGap {
    /// When the first of them was sent.
    pub from: Instant,
    /// When the first frame that arrived behind them was sent, or the end of the run, or when users stopped before it.
    pub to: Instant,
}

/// What a fault did to users.
#[derive(Clone, PartialEq, Debug)]
pub struct FaultEffect {
    /// When it struck.
    pub at: Instant,
    /// What it was, as in a fault file.
    pub what: String,
    /// The fault itself.
    pub fault: Fault,
    /// How many pairs of hosts lost frames by it.
    pub pairs: usize,
    /// The longest time that a pair lost all frames while cables led from one to the other.
    pub longest_gap: Duration,
    /// How long after it the last of these pairs had a route again.
    pub routes_after: Duration,
    /// How many of these pairs still have no route, though cables lead there.
    pub still_without: usize,
    /// How long after the fault all hosts were configured with a map of the fabric as it then was; `None` if
    /// they were not before the next fault or the end.
    pub new_map_after: Option<Duration>,
    /// The longest time that a pair lost all frames up to the next fault, if this fault struck when all was
    /// well and no host was made to believe since that another has its address. Only pairs count that could send to each
    /// other before and that cables joined all the while, up to the moment when the sender found that no safe route leads around
    /// the dead cables.
    pub kept_gap: Option<Duration>,
    /// The longest time that a pair went on losing all frames after all hosts had that new map, up to the
    /// next fault; `None` if frames were lost, copied or held up at random behind this fault.
    pub mapped_gap: Option<Duration>,
    /// Whether a whole xbar ended: one without power, or the crossbar of a node with its agent.
    pub ends_xbar: bool,
    /// How long it may take behind it until hosts find kernels that do not forward: see [`World::kernels_are_left_within`].
    pub left_within: Duration,
    /// How long it takes at most until hosts go around a path that has broken, by the slowest checks that one of them is set to.
    pub paths_left_within: Duration,
}

/// What became of users' frames.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TrafficReport {
    /// Frames that users sent.
    pub sent: u64,
    /// Frames that arrived, each once.
    pub delivered: u64,
    /// Frames that did not arrive. Those that may be under way still are not counted.
    pub lost: u64,
    /// How many of the lost frames went to hosts that no cables led to when they were sent, or where no agent ran. No fault's gaps
    /// tell of them.
    pub out_of_reach: u64,
    /// Frames that have not arrived, and were sent less than [`LOST_AFTER`](super::LOST_AFTER) ago.
    pub undecided: u64,
    /// Frames that arrived again.
    pub duplicated: u64,
    /// Frames that arrived when they had counted as lost.
    pub late: u64,
    /// Frames that arrived behind one that was sent after them.
    pub reordered: u64,
    /// The longest time that a pair lost all frames while cables led from one to the other.
    pub longest_gap: Duration,
    /// What each fault did.
    pub faults: Vec<FaultEffect>,
    /// When pairs lost all frames, in the order in which that was over; the first 100,000.
    pub gaps: Vec<PairGap>,
}

impl World {
    /// What became of users' frames so far; `None` if users send none.
    pub fn traffic(&mut self) -> Option<TrafficReport> {
        let now = self.now;
        self.traffic.as_mut()?.settle_all(now);
        let joined = self.joined_hosts();
        let traffic = self.traffic.as_ref()?;
        let sent_until = traffic.sent_until(now);
        let mut report = TrafficReport {
            duplicated: traffic.duplicated,
            late: traffic.late,
            reordered: traffic.reordered,
            longest_gap: traffic.longest_gap,
            faults: traffic.effects.clone(),
            gaps: traffic.gaps.clone(),
            ..TrafficReport::default()
        };
        for (from, pairs) in (0..).zip(&traffic.pairs) {
            for pair in pairs {
                report.sent += pair.sent;
                report.delivered += pair.delivered;
                report.lost += pair.lost;
                report.out_of_reach += pair.out_of_reach;
                report.undecided += pair.undecided();
                let Some(gap) = pair.open_gap(sent_until).filter(|_| joined(from, pair.to)) else { continue };
                report.longest_gap = report.longest_gap.max(gap.to.since(gap.from));
                Traffic::list(&mut report.gaps, gap);
                Traffic::note(&mut report.faults, gap, &mut pair.hit_at.clone());
                Traffic::note_parts(&mut report.faults, gap, traffic.between_frames(from));
                if let Some(effect) = report.faults.iter_mut().rev().find(|effect| effect.at <= gap.from) {
                    effect.still_without += 1;
                }
            }
        }
        Some(report)
    }

    /// Whether a pair of hosts that cables join lost frames before this moment, and it is not settled that it has a route again.
    pub fn users_wait_since_before(&mut self, moment: Instant) -> bool {
        let now = self.now;
        let Some(traffic) = &mut self.traffic else { return false };
        traffic.settle_all(now);
        let joined = self.joined_hosts();
        let pairs = self.traffic.iter().flat_map(|traffic| (0..).zip(&traffic.pairs));
        let mut pairs = pairs.flat_map(|(from, pairs)| pairs.iter().map(move |pair| (from, pair)));
        pairs.any(|(from, pair)| {
            pair.open_gap(now).is_some_and(|gap| gap.from < moment) && joined(from, pair.to)
        })
    }

    /// Frames lost so far between hosts that cables join now, by sender and receiver, or `None` for frames to all. One that
    /// was sent less than [`LOST_AFTER`](super::LOST_AFTER) ago does not count yet.
    pub fn lost_between_joined(&mut self) -> BTreeMap<(u32, Option<u32>), u64> {
        let now = self.now;
        if let Some(traffic) = &mut self.traffic {
            traffic.settle_all(now);
        }
        let joined = self.joined_hosts();
        let Some(traffic) = &self.traffic else { return BTreeMap::new() };
        let mut lost = BTreeMap::new();
        for (pairs, to_all) in [(&traffic.pairs, false), (&traffic.broadcasts, true)] {
            for (from, pairs) in (0..).zip(pairs) {
                for pair in pairs.iter().filter(|pair| joined(from, pair.to)) {
                    *lost.entry((from, (!to_all).then_some(pair.to))).or_default() += pair.lost;
                }
            }
        }
        lost
    }

    /// The first thing about users' frames that must never happen.
    ///
    /// # Errors
    /// In words, naming the hosts.
    pub fn check_traffic(&self) -> Result<(), String> {
        self.traffic.as_ref().and_then(|traffic| traffic.wrong.clone()).map_or(Ok(()), Err)
    }
}
