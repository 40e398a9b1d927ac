//! Cables of the map in force that the driver says are dead.
//!
//! Lost carrier is certain: the map is invalid at once. A path that fell silent only raises a doubt: the
//! cable is checked at once, with the usual tries, and the map is invalid if it does not answer.

use super::cause::{CableCause, Cause};
use super::checks::{Check, doubted};
use super::event::Event;
use super::liveness::LivenessCount;
use super::machine::Agent;
use super::requests::Asked;
use super::status::FrameDrop;
use super::verify::{Cycle, Room, Step};
use crate::Instant;
use crate::map::ways::Ways;
use crate::map::{Map, MapVersion, PortRef, decode_pieces};
use crate::wire::{Info, Reason, Stamp};

/// Most cables in doubt at once; what else is wrong is found by verification.
const LIMIT: usize = 16;

/// The cables that are in doubt, and the checks of them that are under way.
#[derive(Debug)]
pub(super) struct Doubts {
    /// The probes that check cables between xbars and this host's own cable.
    pub(super) probes: Cycle,
    /// All cables in doubt, each by one of its ports, and why it is.
    cables: Vec<(PortRef, CableCause)>,
}

impl Doubts {
    /// No cable is in doubt.
    pub(super) const fn none() -> Self {
        Self { probes: Cycle::new(), cables: Vec::new() }
    }

    /// Ends the doubt about the cable at this port. Returns why it was in doubt; `None` if it was not.
    fn settle(&mut self, at: PortRef) -> Option<CableCause> {
        let index = self.cables.iter().position(|(doubted, _)| *doubted == at)?;
        Some(self.cables.swap_remove(index).1)
    }

    /// How many cables are in doubt.
    pub(super) const fn count(&self) -> usize {
        self.cables.len()
    }
}

impl Agent {
    /// Says that the cable at a port of the map in force (that of the last
    /// [`Event::MapInstalled`](super::Event::MapInstalled)) is dead. If that is [certain](CableCause::is_certain), as its
    /// carrier is lost, the map is invalid at once; if not, this agent checks the cable now, and
    /// the map is invalid only if it does not answer.
    ///
    /// A port that is certainly dead again and again makes the map invalid less and less often. Ports
    /// without a cable in the map mean nothing.
    pub fn cable_down(&mut self, now: Instant, at: PortRef, cause: CableCause) {
        self.note_time(now);
        let certain = cause.is_certain();
        let doubted = self.doubts.cables.iter().any(|(doubted, _)| *doubted == at);
        let full = self.doubts.count() >= LIMIT;
        if !certain && (doubted || full) {
            self.dropped.add(FrameDrop::Overload, u64::from(full && !doubted));
            return;
        }
        let Some(held) = self.held.as_ref().filter(|held| held.valid) else { return };
        let Ok(map) = decode_pieces(held.version, &held.pieces) else { return };
        if !is_in_use(&map, at) {
            return;
        }
        if certain {
            if self.cable_backoff.counts(now, at) {
                self.invalidate(now, Cause::CableDown(cause), &[at]);
            }
        } else if let Some(home) = held.at {
            self.doubt(now, at, cause, doubted_check(&map, home, at));
        }
        self.pump(now);
    }

    fn doubt(&mut self, now: Instant, at: PortRef, cause: CableCause, check: Option<Check>) {
        match check {
            Some(Check::Host { way, .. }) => {
                self.ask(now, Asked::DoubtedHost(at), way, Reason::Verify, self.settings.probe_tries);
            }
            Some(check) => self.doubts.probes.add(check),
            // Only the cable itself leads to the port, so the doubt cannot be checked.
            None => return self.invalidate(now, Cause::CableDown(cause), &[at]),
        }
        self.doubts.cables.push((at, cause));
    }

    /// Sends the probes to cables in doubt.
    pub(super) fn pump_doubts(&mut self, now: Instant) {
        let (window, wait) = (self.settings.probe_window, self.answer_wait(now));
        // Healing waits for these, so users' frames may wait for their answers.
        let room = Room { probes: window, answers: window };
        let tries = self.settings.probe_tries;
        while self.doubts.probes.has_queued() {
            let id = self.new_probe_id();
            let Some(step) = self.doubts.probes.begin(now, room, tries, wait, id) else { return };
            self.take_doubt_step(now, step);
        }
    }

    /// Handles a probe that came home, if it was sent to a cable in doubt. Returns whether it was.
    pub(super) fn doubt_returned(&mut self, now: Instant, id: u32, stamp: Option<&Stamp>) -> bool {
        let Some(at) = self.doubts.probes.suspect_of(id) else { return false };
        match self.doubts.probes.handle_returned(id, stamp) {
            Some(step) => self.take_doubt_step(now, step),
            None => self.clear_doubt(at),
        }
        true
    }

    /// Handles the answer of a host to a probe, if that was sent to a cable in doubt. Returns whether it was.
    pub(super) fn doubt_hit_host(&mut self, now: Instant, id: u32) -> bool {
        if !self.doubts.probes.waits_for(id) {
            return false;
        }
        if let Some(step) = self.doubts.probes.handle_host(id) {
            self.take_doubt_step(now, step);
        }
        true
    }

    /// Deals with probes to cables in doubt whose time has run out.
    pub(super) fn expire_doubts(&mut self, now: Instant) {
        let longest_wait = self.answer_wait(now);
        while let Some(step) = self.doubts.probes.expire(now, longest_wait) {
            self.take_doubt_step(now, step);
        }
    }

    fn take_doubt_step(&mut self, now: Instant, step: Step) {
        match step {
            Step::Probe(id, check) => self.send_check(id, check),
            Step::Failed { cause, suspect } => {
                let why = suspect.and_then(|at| self.doubts.settle(at));
                suspect.into_iter().for_each(|at| self.cable_gave_no_answer(at));
                let cause = match why {
                    Some(doubt) => Cause::DoubtConfirmed { doubt, found: Box::new(cause) },
                    None => cause,
                };
                self.invalidate(now, cause, suspect.as_slice());
            }
            // Only cables of the map are in doubt.
            Step::Proved(_) => {}
        }
    }

    /// Handles the answer of the host at a cable in doubt.
    pub(super) fn hear_doubted_host(&mut self, now: Instant, at: PortRef, info: &Info) {
        let map = self.held.as_ref().and_then(|held| decode_pieces(held.version, &held.pieces).ok());
        let expected = map.as_ref().and_then(|map| map.hosts.iter().find(|host| host.at == Some(at)));
        match expected {
            Some(host) if host.mac != info.rank.mac => {
                let cause = Cause::HostReplaced { found: info.rank.mac, expected: host.mac };
                self.invalidate(now, cause, &[at]);
            }
            _ => self.clear_doubt(at),
        }
    }

    /// Declares the map invalid, as the host at a cable in doubt does not answer.
    pub(super) fn doubted_host_lost(&mut self, now: Instant, at: PortRef) {
        if let Some(doubt) = self.doubts.settle(at) {
            self.cable_gave_no_answer(at);
            let found = Box::new(Cause::DoubtedHostSilent);
            self.invalidate(now, Cause::DoubtConfirmed { doubt, found }, &[at]);
        }
    }

    fn cable_gave_no_answer(&mut self, at: PortRef) {
        if let Some(version) = self.held.as_ref().map(|held| held.version) {
            self.event(Event::CableAsked { version, at, answered: false });
        }
    }

    fn clear_doubt(&mut self, at: PortRef) {
        if self.doubts.settle(at).is_some() {
            self.liveness.counts.count(LivenessCount::Cleared);
            let version = self.held.as_ref().map_or(MapVersion::NONE, |held| held.version);
            self.event(Event::CableCleared { version, at });
        }
    }
}

/// Whether the map shows a cable at this port.
fn is_in_use(map: &Map, at: PortRef) -> bool {
    let known = (at.xbar as usize) < map.xbars.len();
    let cabled = || map.cables.iter().any(|cable| cable.a == at || cable.b == at);
    known && (cabled() || map.hosts.iter().any(|host| host.at == Some(at)))
}

fn doubted_check(map: &Map, home: PortRef, at: PortRef) -> Option<Check> {
    doubted(map, &Ways::new(&map.routable(), home), home, at)
}
