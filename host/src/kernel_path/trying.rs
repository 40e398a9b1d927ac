//! Ways are tried: probes that are due, and what is made of answers and of silence.

use std::net::Ipv4Addr;

use mapper_proto::{Instant, Mac};

use super::prober::{Ends, Probed};
use super::way::{FarEnd, Way};
use super::{KernelPath, KernelProbe, ways};

/// What is heard of the agent of a host by the checks of paths that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Heard {
    /// Whether a path to the host is checked.
    pub(crate) is_listened_for: bool,
    /// When the agent last answered a check of such a path.
    pub(crate) at: Option<Instant>,
}

impl KernelPath {
    /// Does what is due. `heard` says what is heard of the agent of a host.
    pub(crate) fn handle_timeout(&mut self, now: Instant, heard: impl Fn(Mac) -> Heard) {
        self.part_company(now);
        self.look_at_left(now);
        self.settle_doubts(&heard);
        let (is_holding, new_from) = (self.is_holding(), self.new_ways_from());
        let Self { prober, destinations, own, agent_port, left, v4_probes_from, .. } = self;
        let left_needs_proof = left.handle_timeout(now);
        // Where an agent has crashed, other agents hold its cables for dead. If no cable is held for dead, a
        // host that answers no probe has other reasons, and its packets are better left to the tap interface.
        let sees_dead_cables =
            !self.goes_around_lossy_only && self.table.as_ref().is_some_and(|table| !table.is_whole());
        let mut renewed = Vec::new();
        let mut any_refuted = false;
        while let Some((mac, number)) = prober.next_due(now, new_from) {
            let Some(destination) = destinations.get_mut(&mac) else { continue };
            let heard = heard(mac);
            let end = FarEnd {
                may_turn: sees_dead_cables && destination.has_answered_lately(now),
                is_used: destination.is_used(now),
                is_listened_for: heard.is_listened_for,
                heard_at: heard.at.max(destination.answered_at),
            };
            let target = destination.target();
            let v4 = destination.ends_of_v4(*v4_probes_from);
            let Some(way) = destination.ways.iter_mut().find(|way| way.number == number) else { continue };
            if is_holding && way.is_proved() && !(v4.is_some() && way.is_v4_unknown()) {
                continue;
            }
            let ends = own.source_of_probes().zip(target);
            let turn = |way: &Way| ways::turn(way, *agent_port, ends);
            let ends = ends.map(|(own, other)| Ends { own, other, v4 });
            let (was_refuted, before) =
                (way.is_refuted(), (way.surely_shortened_to(), way.carries_v4(), way.is_v4_unknown()));
            let is_lost = prober.fire(now, mac, (way, end), ends, turn);
            if is_lost || (way.surely_shortened_to(), way.carries_v4(), way.is_v4_unknown()) != before {
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
    fn settle_doubts(&mut self, heard: impl Fn(Mac) -> Heard) {
        let mut settled = Vec::new();
        self.doubtful.retain(|&mac| {
            let Some(destination) = self.destinations.get_mut(&mac) else { return false };
            if destination.settle_doubts(heard(mac)) {
                settled.push(mac);
            }
            destination.has_doubts()
        });
        settled.into_iter().for_each(|mac| self.update(mac));
    }

    /// Takes in that a probe was answered, by a host that also answers those of IPv4 if `answers_v4`.
    pub(crate) fn answered(&mut self, now: Instant, nonce: u64, answers_v4: bool) {
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
        let mut is_changed = !turns && destination.set_answers_v4(answers_v4);
        // A probe that turned before it reached the host tells nothing of whether the host answers IPv4.
        let has_v4 = destination.ends_of_v4(self.v4_probes_from).is_some();
        let tries_v4 = !turns && has_v4;
        let Some(way) = destination.ways.iter_mut().find(|way| way.number == number) else { return };
        let was_silent = way.is_silent_behind();
        way.note_answer(turns, tries_v4);
        is_changed |= way.is_silent_behind() != was_silent;
        let (is_news, due) = way.answered(now, every);
        // As long as it is not known whether packets of IPv4 get through, they go by the tap interface. So the host itself is asked
        // as soon as a probe has turned before it.
        let asks_host = turns && has_v4 && !way.is_silent_behind();
        let is_pressing = is_used || tries_v4 && way.is_v4_unknown();
        let next = match () {
            () if asks_host && way.is_v4_unknown() => now,
            () if is_pressing => due,
            () => self.prober.try_together(due),
        };
        self.prober.schedule(next, mac, way);
        is_changed |= is_news;
        if !turns {
            destination.answered(now);
            is_changed |= destination.forget_set_aside(&mut self.numbers);
        }
        if is_changed {
            self.update(mac);
        }
    }

    /// Takes in that a probe of this host is answered, by a packet of IPv6 that the kernel sends or one of IPv4.
    pub(crate) fn answers(&mut self, mac: Mac, is_v6: bool) {
        if let Some(destination) = self.destinations.get_mut(&mac) {
            destination.answer(is_v6);
        }
    }

    /// Says from which address probes of IPv4 come, and that they are answered there; `None` if there is no such address.
    pub(crate) fn set_v4_probes_from(&mut self, now: Instant, from: Option<Ipv4Addr>) {
        if self.v4_probes_from != from {
            self.v4_probes_from = from;
            let all: Vec<Mac> = self.destinations.keys().copied().collect();
            all.into_iter().for_each(|mac| self.renew_and_try(now, mac));
        }
    }

    /// Whether this host answers probes of IPv4.
    pub(crate) const fn answers_v4(&self) -> bool {
        self.v4_probes_from.is_some()
    }

    /// The next probe to send through the kernel.
    pub(crate) fn poll_probe(&mut self) -> Option<KernelProbe> {
        self.prober.poll()
    }
}
