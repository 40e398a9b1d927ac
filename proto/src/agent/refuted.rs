//! Maps that are known not to hold, and how all who hold one come to know it.
//!
//! An agent that has seen that a map does not hold, or was told so by one who has, never takes
//! that version again, whoever offers it: only a new one can be right, and a mapper that is told
//! makes a new one even if nothing has changed. Whoever offers the old one is told over the way
//! by which the offer came. That way works, while the map's own way to the parent may lead
//! over the very cable that was moved. So each offer takes the word one step nearer to the maker of
//! the map: a host that was told is itself offered the map by its parent, and tells that one.

use super::cause::Cause;
use std::collections::VecDeque;

use super::backoff::Backoff;
use super::machine::Agent;
use super::requests::Asked;
use crate::map::{MapVersion, PortRef, decode_pieces};
use crate::wire::{AgentState, Info, Reason, RoundTrip};
use crate::{Instant, Mac};

/// Maps that are known not to hold.
#[derive(Debug, Default)]
pub(super) struct Refuted {
    /// Their versions, the latest last.
    versions: VecDeque<MapVersion>,
    /// How often hosts that are no children and report a change may still make the map invalid.
    reporters: Backoff<Mac>,
}

impl Refuted {
    /// Most versions kept in mind. An older one that is offered again is found wrong again.
    const LIMIT: usize = 16;

    fn note(&mut self, version: MapVersion) {
        if version.is_some() && !self.versions.contains(&version) {
            if self.versions.len() >= Self::LIMIT {
                self.versions.pop_front();
            }
            self.versions.push_back(version);
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.versions.len()
    }
}

impl Agent {
    /// Keeps in mind that this map does not hold.
    pub(super) fn refute(&mut self, version: MapVersion) {
        self.refuted.note(version);
    }

    /// Whether this map is known not to hold.
    pub(super) fn is_refuted(&self, version: MapVersion) -> bool {
        self.refuted.versions.contains(&version)
    }

    /// Refuses a map that is offered but known not to hold, and tells the host that offers it so.
    pub(super) fn refuse(&mut self, now: Instant, info: &Info, way: RoundTrip, version: MapVersion) {
        if let Some(parent) = self.parent.as_mut().filter(|_| self.state == AgentState::Passive)
            && parent.rank.mac == info.rank.mac
        {
            // The offer came this way; the map's own way may be one of those that changed.
            parent.way = way.clone();
        }
        self.tell_refuted(now, info.rank.mac, way, version);
    }

    /// Tells a host that the map that it holds is known not to hold.
    pub(super) fn tell_refuted(&mut self, now: Instant, to: Mac, way: RoundTrip, version: MapVersion) {
        if !self.requests.waits_for(Asked::Refutation(to)) {
            let reason = self.refutation(version);
            self.ask(now, Asked::Refutation(to), way, reason, self.settings.probe_tries);
        }
    }

    /// The query that also reports that a map no longer holds, and where, if it is known.
    pub(super) fn refutation(&self, version: MapVersion) -> Reason {
        let is_last = self.held.as_ref().is_some_and(|held| held.version == version);
        let suspects = if is_last { self.suspects.clone() } else { Vec::new() };
        Reason::QueryMapVersion { seen: version, suspects }
    }

    /// Handles the report of a host that is no child of this agent that the map in force does not hold. It met
    /// this agent when it mapped, or was offered the map. Only hosts of the map are believed, and each less and
    /// less often.
    pub(super) fn hear_refutation(
        &mut self,
        now: Instant,
        info: &Info,
        seen: MapVersion,
        suspects: &[PortRef],
    ) {
        let mac = info.rank.mac;
        let Some(held) = self.held.as_ref().filter(|held| held.version == seen) else { return };
        if self.is_refuted(seen) || info.flags.contested || !self.refuted.reporters.counts(now, mac) {
            return;
        }
        let Ok(map) = decode_pieces(held.version, &held.pieces) else { return };
        if map.hosts.iter().any(|host| host.mac == mac) {
            self.refute(seen);
            self.invalidate(now, Cause::ChangeReported { mac }, suspects);
        }
    }
}
