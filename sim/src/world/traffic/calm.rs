//! Whether anything disturbs users' frames, so that what is promised of them can be asked for.

use std::collections::BTreeSet;
use std::time::Duration;

use mapper_proto::Instant;

use super::super::{HostSlot, World};
use crate::fabric::PlantNode;

/// Where each frame is late by no more than this, no user's frame is late by more than it may: one that a host sends again twice, each
/// time because of a notice and after waiting for a route, has 150 ms left for five such delays.
const MOST_JITTER: Duration = Duration::from_millis(30);

/// Until when something went on. It may have happened to frames that were sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Until(pub(super) Instant);

impl Until {
    /// Notes whether it goes on from now on.
    fn note(&mut self, now: Instant, goes_on: bool) {
        if goes_on {
            self.0 = Instant::FAR;
        } else if self.0 == Instant::FAR {
            self.0 = now;
        }
    }

    /// Whether it went on at any time since this moment.
    pub(super) fn concerns(self, sent_at: Instant) -> bool {
        self.0 > sent_at
    }
}

/// What may happen to users' frames though all hosts do what they should. Each excuses just what it can do.
#[derive(Debug)]
pub(super) struct Disturbances {
    /// Noise has frames arrive twice.
    pub(super) copied: Until,
    /// Noise flips bits, also those of routes.
    pub(super) garbled: Until,
    /// Each frame is late by a random time, so that frames overtake each other.
    pub(super) overtaken: Until,
    /// That time is so long that a frame may arrive when it counts as lost.
    pub(super) held_up: Until,
    /// For each host: cables join it to a hostile one, which may send it at any time any frame that it has received.
    pub(super) replayed: Vec<Until>,
}

impl Disturbances {
    /// What has not happened yet to frames for so many hosts.
    pub(super) fn of(hosts: usize) -> Self {
        let never = Until(Instant::ZERO);
        Self { copied: never, garbled: never, overtaken: never, held_up: never, replayed: vec![never; hosts] }
    }
}

/// A path in use is left when it was silent for so many intervals of its checks more than the number of
/// checks that may be missed.
const INTERVALS_MORE: u32 = 2;

impl World {
    /// How long it takes at most until a host goes around a path that has broken: until the checks of the host that is slowest to
    /// see it have been missed, as it is set.
    pub(in crate::world) fn paths_are_left_within(&self) -> Duration {
        let of_host = |slot: &HostSlot| {
            let settings = &slot.settings;
            settings.liveness_interval * (u32::from(settings.liveness_misses) + INTERVALS_MORE)
        };
        self.hosts.iter().map(of_host).max().unwrap_or_default()
    }

    /// Whether frames are neither lost, copied nor held up at random, and no host is hostile.
    pub(in crate::world) fn is_orderly(&self) -> bool {
        let hostile = |slot: &HostSlot| slot.node.as_ref().is_some_and(|node| node.replays());
        self.noise.is_quiet()
            && !self.plant.has_lossy_cables()
            && self.options.timing.jitter.is_zero()
            && self.to_lose.is_empty()
            && self.deaf_ways.is_empty()
            && !self.hosts.iter().any(hostile)
    }

    /// Whether all hosts use a map of the fabric as it is, each with an address of its own, hold no cable for dead, and
    /// nothing disturbs frames.
    pub(in crate::world) fn all_is_well(&mut self) -> bool {
        let dead = |slot: &HostSlot| Some(slot.node.as_ref()?.host()?.healing().dead_cables().count());
        self.traffic.is_some()
            && self.waiting_for_power == 0
            && self.is_orderly()
            && self.hosts.iter().filter_map(dead).all(|dead| dead == 0)
            && self.is_configured_with_the_truth()
            && !self.has_twins()
    }

    /// Notes, after a change of the noise, of the plant or of a host, what may happen to users' frames from now on. Users' frames are
    /// not signed, so a replayed frame counts where it arrives.
    pub(in crate::world) fn note_disturbances(&mut self) {
        let (now, jitter) = (self.now, self.options.timing.jitter);
        let reached = self.reached_by_replays();
        let Some(traffic) = &mut self.traffic else { return };
        let disturbances = &mut traffic.disturbances;
        disturbances.copied.note(now, self.noise.duplicate > 0.0);
        disturbances.garbled.note(now, self.noise.corrupt > 0.0);
        disturbances.overtaken.note(now, !jitter.is_zero());
        disturbances.held_up.note(now, jitter > MOST_JITTER);
        for (host, replayed) in (0..).zip(&mut disturbances.replayed) {
            replayed.note(now, reached.contains(&host));
        }
    }

    /// The hosts that cables join to a hostile host, which may send them frames that it has received.
    fn reached_by_replays(&mut self) -> BTreeSet<u32> {
        let replays =
            |&host: &u32| self.hosts[host as usize].node.as_ref().is_some_and(|node| node.replays());
        let all = 0..self.hosts.len() as u32;
        let hostile: Vec<u32> = all.clone().filter(replays).collect();
        let parts: BTreeSet<u32> =
            hostile.into_iter().map(|host| self.part_of(PlantNode::Host(host))).collect();
        all.filter(|&host| !parts.is_empty() && parts.contains(&self.part_of(PlantNode::Host(host))))
            .collect()
    }
}
