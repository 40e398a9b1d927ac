//! Whether anything disturbs users' frames, so that what is promised of them can be asked for.

use super::super::{HostSlot, World};

impl World {
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

    /// Notes, after a change of the noise or of a host, whether cables keep frames in order and carry each
    /// once, and whether no hostile host replays frames of others. Users' frames are not signed, so a
    /// replayed frame counts where it arrives.
    pub(in crate::world) fn note_order(&mut self) {
        let replayed = self.hosts.iter().any(|slot| slot.node.as_ref().is_some_and(|node| node.replays()));
        // If a bit of its route flips, a broadcast may reach a host that has a copy of its own.
        let may_stray =
            self.noise.corrupt > 0.0 && self.options.traffic.is_some_and(|users| users.broadcasts);
        let orderly =
            self.options.timing.jitter.is_zero() && self.noise.duplicate <= 0.0 && !replayed && !may_stray;
        if let Some(traffic) = &mut self.traffic {
            traffic.set_orderly(self.now, orderly);
        }
    }
}
