//! How a configured agent watches over its map: it drives a [`Cycle`] of verification and judges
//! what parent, children and hosts answer.

use std::time::Duration;

use super::cause::Cause;
use super::checks::{Check, ProbeCheck};
use super::machine::Agent;
use super::requests::Asked;
use super::status::Purpose;
use super::timers::Timer;
use super::verify::{Cycle, Phase, Room, Step};
use crate::map::ways::follow;
use crate::map::{MapVersion, PortRef, decode_pieces};
use crate::wire::{Info, Message, Probe, Reason, Route};
use crate::{Instant, Mac};

/// For how many cycles in a row a child may hold another map, or none, before the map counts as invalid.
const STALE_CYCLES: u8 = 3;
/// Most questions of a cycle under way at once to which an answer is expected. Verification is in no hurry, and
/// the answers come home together, into a queue in which users' frames wait too and that may be a short one.
const MAX_ANSWERS: usize = 4;
/// How many glances come between two cycles. The last part of the pause is without one.
const GLANCES: u32 = 9;

impl Agent {
    /// Begins a cycle of verification.
    pub(super) fn begin_cycle(&mut self, now: Instant) {
        let Some(held) = self.held.as_ref().filter(|held| held.valid) else { return };
        if self.pause.is_on() || !held.is_done() {
            return self.rest_before_cycle(now);
        }
        if self.glances_left > 0 {
            self.glances_left -= 1;
            let mut glance = Cycle::new();
            glance.enter(Phase::Glance, &held.share);
            self.cycle = Some(glance);
            return;
        }
        if self.settings.thrash && held.parent.is_none() && held.network_complete {
            return self.map_again(now, Cause::ToldToRemap);
        }
        let parent = held.parent.map(|parent| (Asked::VerifyParent, parent.mac));
        let children = held.children.iter().map(|child| (Asked::VerifyChild(child.mac), child.mac));
        let asked: Vec<_> = parent
            .into_iter()
            .chain(children)
            .filter_map(|(asked, mac)| Some((asked, held.routes.get(&mac).cloned()?)))
            .collect();
        self.cycle = Some(Cycle::new());
        self.watch_contested(now);
        for (asked, way) in asked {
            self.ask(now, asked, way, Reason::Verify, self.verify_tries());
        }
    }

    /// Asks the parent now whether it holds the map, and not only in the next cycle.
    pub(super) fn verify_parent(&mut self, now: Instant) {
        let Some(held) = self.held.as_ref().filter(|held| held.valid && held.is_done()) else { return };
        let way = held.parent.and_then(|parent| held.routes.get(&parent.mac).cloned());
        if let Some(way) = way.filter(|_| !self.requests.waits_for(Asked::VerifyParent)) {
            self.ask(now, Asked::VerifyParent, way, Reason::Verify, self.verify_tries());
        }
    }

    /// Waits for the next cycle, with glances meanwhile if there is anything to glance at.
    pub(super) fn rest_before_cycle(&mut self, now: Instant) {
        let glances = self.held.as_ref().is_some_and(|held| held.share.iter().any(Check::is_glance));
        self.glances_left = if glances { GLANCES } else { 0 };
        self.rest(now);
    }

    /// Begins the next part of the pause between two cycles.
    fn rest(&mut self, now: Instant) {
        let glances = self.held.as_ref().is_some_and(|held| held.share.iter().any(Check::is_glance));
        let part =
            if glances { self.settings.verify_pause / (GLANCES + 1) } else { self.settings.verify_pause };
        self.set_timer(Timer::Verify, now + part);
    }

    /// Takes in that this agent's interface has carrier again. Its cable may lead elsewhere than before, so an
    /// exploration under way begins anew: what was found from two places does not make one map. Else this agent
    /// looks again.
    pub fn own_carrier_is_back(&mut self, now: Instant) {
        self.note_time(now);
        if self.mapping.is_some() {
            self.map_again(now, Cause::OwnCarrierBack);
            self.pump(now);
        } else {
            self.look_again(now);
        }
    }

    /// Looks at the fabric now, and not only when the next glance is due: a port of this machine's own
    /// crossbar has gained carrier, say.
    pub fn look_again(&mut self, now: Instant) {
        self.note_time(now);
        if self.cycle.is_none() && self.timers[Timer::Verify as usize].is_some() {
            self.glances_left = self.glances_left.max(1);
            self.begin_cycle(now);
            self.pump(now);
        }
    }

    /// How often an unanswered question of verification is asked: more often than others, as verification is in
    /// no hurry and a wrong alarm costs a whole mapping.
    pub(super) const fn verify_tries(&self) -> u8 {
        self.settings.probe_tries.saturating_mul(2)
    }

    /// How long an answer to the last tries of a question of verification is waited for. The first try waits for a quarter of
    /// that, and each one for twice as long as the one before it until that is reached: where machines have more to do than they can, answers come
    /// late from all of them, and whoever took that for silence would call for a new map, which is more to do for all.
    pub(super) fn longest_wait(&self, now: Instant) -> Duration {
        self.answer_wait(now) * 4
    }

    /// Takes the cycle as far as it goes without waiting.
    pub(super) fn pump_cycle(&mut self, now: Instant) {
        while let Some(cycle) = self.cycle.as_mut() {
            let phase = cycle.phase;
            if phase == Phase::Tree {
                let of_tree = |asked| matches!(asked, Asked::VerifyParent | Asked::VerifyChild(_));
                if self.requests.count(of_tree) > 0 {
                    return;
                }
                self.enter(Phase::Links);
                continue;
            }
            self.send_checks(now);
            let hosts = self.ask_hosts(now);
            let idle = self.cycle.as_ref().is_some_and(Cycle::is_idle);
            if hosts > 0 || !idle {
                return;
            }
            match phase {
                Phase::Tree | Phase::Links => self.enter(Phase::NoConnects),
                Phase::NoConnects => {
                    self.cycle = None;
                    self.rest_before_cycle(now);
                }
                Phase::Glance => {
                    self.cycle = None;
                    self.rest(now);
                }
            }
        }
    }

    fn enter(&mut self, phase: Phase) {
        let (Some(cycle), Some(held)) = (self.cycle.as_mut(), self.held.as_ref()) else { return };
        cycle.enter(phase, &held.share);
    }

    /// Hosts of this agent's share that were asked and have not answered yet.
    fn waiting_hosts(&self) -> usize {
        self.requests.count(|asked| matches!(asked, Asked::VerifyHost(_)))
    }

    /// Asks the hosts of this agent's share, as many at once as there is room for. Returns how many have not
    /// answered yet.
    fn ask_hosts(&mut self, now: Instant) -> usize {
        let expected = self.cycle.as_ref().map_or(0, Cycle::expected_answers);
        let most = self.settings.probe_window.min(MAX_ANSWERS.saturating_sub(expected));
        let mut waiting = self.waiting_hosts();
        while waiting < most {
            let Some(index) = self.cycle.as_mut().and_then(Cycle::next_host) else { break };
            let check = self.held.as_ref().and_then(|held| held.share.get(index));
            let Some(Check::Host { way, .. }) = check else { continue };
            let way = way.clone();
            self.ask(now, Asked::VerifyHost(index), way, Reason::Verify, self.verify_tries());
            waiting += 1;
        }
        waiting
    }

    fn send_checks(&mut self, now: Instant) {
        let (probes, wait) = (self.settings.probe_window, self.answer_wait(now));
        let room = Room { probes, answers: MAX_ANSWERS.saturating_sub(self.waiting_hosts()) };
        loop {
            let (tries, id) = (self.verify_tries(), self.new_probe_id());
            let step = self.cycle.as_mut().and_then(|cycle| cycle.begin(now, room, tries, wait, id));
            if step.is_none() {
                return;
            }
            self.take_step(now, step);
        }
    }

    /// Does what a cycle wants done.
    pub(super) fn take_step(&mut self, now: Instant, step: Option<Step>) {
        match step {
            None => {}
            Some(Step::Probe(id, check)) => self.send_check(id, check),
            Some(Step::Failed { cause, suspect }) => {
                let glance = self.cycle.as_ref().is_some_and(|cycle| cycle.phase == Phase::Glance);
                // A cable that comes and goes is left to the whole cycle, which is in no hurry.
                if !glance || suspect.is_none_or(|at| self.cable_backoff.counts(now, at)) {
                    self.invalidate(now, cause, suspect.as_slice());
                }
            }
            // A stranger could pretend that a cable is there, again and again, and must not have all hosts
            // map each time.
            Some(Step::Proved(ends)) if self.cable_backoff.counts(now, ends[0]) => {
                self.invalidate(now, Cause::CableProved, &ends);
            }
            Some(Step::Proved(_)) => {}
        }
    }

    pub(super) fn send_check(&mut self, id: u32, ProbeCheck { route, left, kind, .. }: ProbeCheck) {
        self.sent.count(Purpose::Verify);
        let way_there = route.elements().take(route.hops().saturating_sub(usize::from(left))).collect();
        let probe = Probe { id, kind, left, info: self.info(), way_there };
        self.transmit(route, &Message::Probe(probe));
    }

    /// Deals with checks whose time has run out.
    pub(super) fn expire_checks(&mut self, now: Instant) {
        let longest_wait = self.longest_wait(now);
        while let Some(step) = self.cycle.as_mut().and_then(|cycle| cycle.expire(now, longest_wait)) {
            self.sent.add(Purpose::Retry, u64::from(matches!(step, Step::Probe(..))));
            self.take_step(now, Some(step));
        }
    }

    /// Takes in what a host that verifies this agent says of itself thereby.
    pub(super) fn hear_verify(&mut self, now: Instant, info: &Info) {
        let mac = info.rank.mac;
        if self.is_parent(mac) {
            self.judge_parent(now, info);
        } else {
            self.judge_child(now, mac, info);
        }
    }

    /// Judges the parent's answer to verification.
    pub(super) fn hear_parent_verified(&mut self, now: Instant, info: &Info) {
        let parent = self.held.as_ref().filter(|held| held.valid).and_then(|held| held.parent);
        if parent.is_some_and(|parent| parent.mac != info.rank.mac) {
            // The map is known not to hold, so it is not taken again, whoever offers it.
            let version = self.held.as_ref().map_or(MapVersion::NONE, |held| held.version);
            self.refute(version);
            return self.map_again(now, Cause::ParentReplaced);
        }
        if !self.look_at_level(now, info) {
            self.judge_parent(now, info);
        }
    }

    /// Judges a child's answer to verification.
    pub(super) fn hear_child_verified(&mut self, now: Instant, mac: Mac, info: &Info) {
        if info.rank.mac != mac {
            let cause = Cause::HostReplaced { found: info.rank.mac, expected: mac };
            // Any cable on the way may be the one that was moved.
            let suspects = self.ports_to(mac);
            return self.invalidate(now, cause, &suspects);
        }
        if self.look_at_level(now, info) {
            return;
        }
        if self.judge_child(now, mac, info) {
            let child = self.held.as_mut().and_then(|held| held.child_mut(mac));
            child.into_iter().for_each(|child| child.stale_cycles = 0);
            return;
        }
        if self.heard_contested(now, info, None) {
            return;
        }
        self.tell_child(now, mac);
        let Some(child) = self.held.as_mut().and_then(|held| held.child_mut(mac)) else { return };
        child.stale_cycles = child.stale_cycles.saturating_add(1);
        if child.stale_cycles >= STALE_CYCLES && self.backoff.counts(now, mac) {
            self.invalidate(now, Cause::MapNotTaken { mac }, &[]);
        }
    }

    /// Takes in what a child says of itself. True if it holds this very map.
    pub(super) fn judge_child(&mut self, now: Instant, mac: Mac, info: &Info) -> bool {
        let Some(held) = self.held.as_mut().filter(|held| held.valid) else { return false };
        let version = held.version;
        let Some(child) = held.child_mut(mac) else { return false };
        let was_complete = child.complete;
        let same = child.hear(info, version);
        if child.complete != was_complete {
            self.completeness_changed(now);
        }
        same
    }

    /// Judges the answer of a host of this agent's share to verification.
    pub(super) fn hear_host_verified(&mut self, now: Instant, check: usize, info: &Info) {
        let asked = self.held.as_ref().and_then(|held| held.share.get(check));
        let Some(Check::Host { mac, suspect, way }) = asked else { return };
        if *mac != info.rank.mac {
            let cause = Cause::HostReplaced { found: info.rank.mac, expected: *mac };
            let suspects = self.ports_along(&way.there);
            return self.invalidate(now, cause, &suspects);
        }
        let suspect = *suspect;
        self.heard_contested(now, info, suspect);
    }

    /// Maps from scratch, as the parent does not answer and so nobody above can be told.
    pub(super) fn parent_lost(&mut self, now: Instant) {
        let version = self.held.as_ref().map_or(MapVersion::NONE, |held| held.version);
        // A parent that is lost once may have been out of luck. But if it was there to give the same map once
        // more, and still does not answer over the map's route, the map does not hold.
        if self.parent_lost_under == version {
            self.refute(version);
        }
        self.parent_lost_under = version;
        self.map_again(now, Cause::ParentGone);
    }

    /// Declares the map invalid, as a child does not answer.
    pub(super) fn child_lost(&mut self, now: Instant, mac: Mac) {
        let suspects = self.ports_to(mac);
        self.invalidate(now, Cause::HostSilent { mac }, &suspects);
    }

    /// All ports by which the way to a neighbour in the tree leaves an xbar.
    fn ports_to(&self, mac: Mac) -> Vec<PortRef> {
        let way = self.held.as_ref().and_then(|held| held.routes.get(&mac));
        way.map(|way| self.ports_along(&way.there)).unwrap_or_default()
    }

    /// All ports by which a route leaves an xbar: if it leads to silence, any cable on the way may be
    /// the one that is broken.
    fn ports_along(&self, route: &Route) -> Vec<PortRef> {
        let Some((held, at)) = self.held.as_ref().and_then(|held| Some((held, held.at?))) else {
            return Vec::new();
        };
        let Ok(map) = decode_pieces(held.version, &held.pieces) else { return Vec::new() };
        let first = |hops| route.elements().take(hops).collect();
        (1..=route.hops()).filter_map(|hops| follow(&map, at, &first(hops))).collect()
    }

    /// Declares the map invalid, as a host of this agent's share does not answer.
    pub(super) fn host_lost(&mut self, now: Instant, check: usize) {
        let lost = self.held.as_ref().and_then(|held| held.share.get(check));
        if let Some(Check::Host { mac, way, .. }) = lost {
            let (cause, suspects) = (Cause::HostSilent { mac: *mac }, self.ports_along(&way.there));
            self.invalidate(now, cause, &suspects);
        }
    }
}
