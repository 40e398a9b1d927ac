//! Ways are tried: probes that are due, and what is made of answers and of silence.

use mapper_proto::{Instant, Mac};

use super::prober::{Ends, Probed};
use super::way::{FarEnd, Way};
use super::{KernelPath, KernelProbe, ways};

impl KernelPath {
    /// Does what is due. `heard_at` says when the agent of a host last answered a check of a path that is used.
    pub(crate) fn handle_timeout(&mut self, now: Instant, heard_at: impl Fn(Mac) -> Option<Instant>) {
        self.part_company(now);
        self.settle_doubts(&heard_at);
        let (is_holding, new_from) = (self.is_holding(), self.new_ways_from());
        let Self { prober, destinations, own, agent_port, left, .. } = self;
        let left_needs_proof = left.handle_timeout(now);
        // Where an agent has crashed, other agents hold its cables for dead. If no cable is held for dead, a
        // host that answers no probe has other reasons, and its packets are better left to the tap interface.
        let sees_dead_cables =
            !self.goes_around_lossy_only && self.table.as_ref().is_some_and(|table| !table.is_whole());
        let mut renewed = Vec::new();
        let mut any_refuted = false;
        while let Some((mac, number)) = prober.next_due(now, new_from) {
            let Some(destination) = destinations.get_mut(&mac) else { continue };
            let end = FarEnd {
                may_turn: sees_dead_cables && destination.has_answered_lately(now),
                is_used: destination.is_used(now),
                heard_at: heard_at(mac).max(destination.answered_at),
            };
            let target = destination.target();
            let Some(way) = destination.ways.iter_mut().find(|way| way.number == number) else { continue };
            if is_holding && way.is_proved() {
                continue;
            }
            let ends = own.source_of_probes().zip(target);
            let turn = |way: &Way| ways::turn(way, *agent_port, ends);
            let ends = ends.map(|(own, other)| Ends { own, other });
            let (was_refuted, was_shortened) = (way.is_refuted(), way.surely_shortened_to());
            if prober.fire(now, mac, (way, end), ends, turn) || way.surely_shortened_to() != was_shortened {
                renewed.push(mac);
            }
            any_refuted |= !was_refuted && way.is_refuted();
        }
        // What an earlier run has left along such ways goes.
        self.revision += u64::from(any_refuted || left_needs_proof);
        renewed.into_iter().for_each(|mac| self.update(mac));
        self.say_farewells(now);
        self.drop_unlisted(|it| now >= it.until);
    }

    /// Has packets leave ways over silent cables whose hosts are heard by other ways. Of a host that nobody listens for it
    /// would never be known, so its packets leave them at once.
    fn settle_doubts(&mut self, heard_at: &impl Fn(Mac) -> Option<Instant>) {
        let mut settled = Vec::new();
        self.doubtful.retain(|&mac| {
            let Some(destination) = self.destinations.get_mut(&mac) else { return false };
            if destination.settle_doubts(heard_at(mac)) {
                settled.push(mac);
            }
            destination.has_doubts()
        });
        settled.into_iter().for_each(|mac| self.update(mac));
    }

    /// Takes in that a probe was answered.
    pub(crate) fn answered(&mut self, now: Instant, nonce: u64) {
        let Some(Probed { mac, number, turns }) = self.prober.take(now, nonce) else { return };
        if self.is_farewell_answered(mac, nonce) {
            return;
        }
        let Some(destination) = self.destinations.get_mut(&mac) else { return };
        if !destination.ways.iter().any(|way| way.number == number && way.nonce == Some(nonce)) {
            return;
        }
        let is_used = destination.is_used(now);
        let every = if is_used { self.recheck_used_every } else { self.prober.recheck_unused_every() };
        let Some(way) = destination.ways.iter_mut().find(|way| way.number == number) else { return };
        let (is_news, due) = way.answered(now, every);
        let next = if is_used { due } else { self.prober.try_together(due) };
        self.prober.schedule(next, mac, way);
        let mut is_changed = is_news;
        if !turns {
            destination.answered(now);
            is_changed |= destination.forget_set_aside(&mut self.numbers);
        }
        if is_changed {
            self.update(mac);
        }
    }

    /// Takes in that a probe of this host is answered, by a packet that the kernel sends.
    pub(crate) fn answers(&mut self, mac: Mac) {
        if let Some(destination) = self.destinations.get_mut(&mac) {
            destination.answer();
        }
    }

    /// The next probe to send through the kernel.
    pub(crate) fn poll_probe(&mut self) -> Option<KernelProbe> {
        self.prober.poll()
    }
}
