//! What an agent shows of itself: status and counters.

use std::sync::Arc;

use super::liveness::LivenessStatus;
use super::machine::Agent;
use super::verify::Cycle;
use crate::map::{AddressConflict, Map, MapVersion, Rank, decode_pieces};
use crate::wire::AgentState;
use crate::{Instant, Mac};

/// What the last mapping by this agent cost, retries counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MappingCost {
    /// Loopback and identify probes sent.
    pub switch_probes: u64,
    /// Scouts sent.
    pub scouts: u64,
    /// Compare probes sent.
    pub compares: u64,
    /// When it began.
    pub began: Instant,
    /// When it ended.
    pub ended: Instant,
}

/// Messages sent since the start, by what they are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Loopback and identify probes of exploration.
    pub switch_probes: u64,
    /// Mapping scouts of exploration.
    pub scouts: u64,
    /// Compare probes of exploration.
    pub compares: u64,
    /// Tree scouts, pauses and resumes.
    pub tree: u64,
    /// Queries for a map version.
    pub queries: u64,
    /// Requests for pieces and the pieces themselves.
    pub pieces: u64,
    /// Probes and scouts of verification.
    pub verify: u64,
    /// Replies other than pieces.
    pub replies: u64,
    /// Questions whether a sender is there and who it says, before it is believed.
    pub hellos: u64,
    /// Questions and answers of services.
    pub services: u64,
    /// Of scouts and of probes of verification, those sent again after a time-out; counted above too.
    pub retries: u64,
}

/// Frames dropped since the start, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dropped {
    /// Too short.
    pub truncated: u64,
    /// Too long.
    pub oversized: u64,
    /// CRC-32 mismatch.
    pub bad_crc: u64,
    /// Route elements left over that are no probe's turn, or no route at all.
    pub unstripped_route: u64,
    /// Unknown protocol version.
    pub unknown_version: u64,
    /// Unknown frame type.
    pub unknown_kind: u64,
    /// Fields that make no sense.
    pub malformed: u64,
    /// Replies and returning probes that nothing waits for: late, duplicated, replayed or forged.
    pub unexpected: u64,
    /// Well-formed, but what it says cannot be so: a forged or confused sender.
    pub implausible: u64,
    /// Dropped because this agent has too much to do.
    pub overload: u64,
    /// Signed, while this agent has no key.
    pub unexpected_tag: u64,
    /// Not signed, while this agent has a key.
    pub no_tag: u64,
    /// Signed with a key that this agent does not have.
    pub unknown_key: u64,
    /// Signed, but not with the key that is named.
    pub bad_tag: u64,
    /// Signed, and heard before or of a session that is over.
    pub replayed: u64,
    /// More than one source, or all strangers together, may send.
    pub rate_limited: u64,
}

impl Dropped {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.truncated
            + self.oversized
            + self.bad_crc
            + self.unstripped_route
            + self.unknown_version
            + self.unknown_kind
            + self.malformed
            + self.unexpected
            + self.implausible
            + self.overload
            + self.unexpected_tag
            + self.no_tag
            + self.unknown_key
            + self.bad_tag
            + self.replayed
            + self.rate_limited
    }
}

/// A host in the map that does not answer as it should.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreachable {
    /// Which host.
    pub mac: Mac,
    /// What is wrong, in words for a person.
    pub why: String,
}

/// A picture of an agent for status displays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// This agent's rank.
    pub rank: Rank,
    /// Where it is in its life.
    pub state: AgentState,
    /// The global mapper, if known.
    pub leader: Option<Rank>,
    /// Its parent in the tree (or the provisional one).
    pub parent: Option<Mac>,
    /// Its children in the tree.
    pub children: Vec<Mac>,
    /// The map it holds, `NONE` without one or with an invalid one.
    pub version: MapVersion,
    /// Hosts in that map (also while it is invalid but its routes still serve).
    pub hosts: usize,
    /// Xbars in that map.
    pub xbars: usize,
    /// Cables between xbars in that map.
    pub cables: usize,
    /// Whether the global mapper has said that all agents are configured with this map.
    pub network_complete: bool,
    /// Hosts of the map that this agent looks after and that do not answer as they should.
    pub unreachable: Vec<Unreachable>,
    /// Addresses that several hosts have. Those hosts are not in the map, and stand in `unreachable` too.
    pub conflicts: Vec<AddressConflict>,
    /// The last mapping by this agent, if it finished one.
    pub mapping: Option<MappingCost>,
    /// What the checks of paths in use cost and found.
    pub liveness: LivenessStatus,
    /// Messages sent.
    pub sent: Sent,
    /// Frames dropped.
    pub dropped: Dropped,
}

impl Agent {
    /// A picture for status displays.
    pub fn status(&self) -> Status {
        let held = self.held.as_deref();
        let in_force = held.filter(|h| h.valid);
        let mut unreachable: Vec<_> = held
            .iter()
            .flat_map(|h| &h.children)
            .filter_map(|c| c.trouble.clone().map(|why| Unreachable { mac: c.mac, why }))
            .collect();
        if let Some(why) = held.and_then(|h| h.routing_failure.clone()) {
            unreachable.push(Unreachable { mac: self.settings.mac, why });
        }
        let conflicts = self.address_conflicts();
        unreachable.extend(self.contested_unreachable());
        Status {
            rank: self.rank(),
            state: self.state,
            leader: self.known_leader(),
            parent: in_force
                .and_then(|h| h.parent)
                .or_else(|| self.parent.as_ref().map(|p| p.rank))
                .map(|rank| rank.mac),
            children: in_force.iter().flat_map(|h| &h.children).map(|c| c.mac).collect(),
            version: in_force.map_or(MapVersion::NONE, |h| h.version),
            hosts: held.map_or(0, |h| h.hosts),
            xbars: held.map_or(0, |h| h.xbars),
            cables: held.map_or(0, |h| h.cables),
            network_complete: in_force.is_some_and(|h| h.network_complete),
            unreachable,
            conflicts,
            mapping: self.last_mapping,
            liveness: self.liveness.status(),
            sent: self.sent,
            dropped: self.dropped,
        }
    }

    /// The valid map that this agent holds, put together anew: costly for a large one.
    pub fn map(&self) -> Option<Arc<Map>> {
        let held = self.held.as_ref().filter(|held| held.valid)?;
        decode_pieces(held.version, &held.pieces).ok().map(Arc::new)
    }

    /// A number that is equal for equal maps, of the valid map that this agent holds.
    pub fn map_digest(&self) -> Option<u64> {
        self.held.as_ref().filter(|held| held.valid).map(|held| held.digest)
    }

    /// Entries in all queues and tables, for tests that bound them.
    pub fn load(&self) -> usize {
        let queues = self.outbox.len() + self.events.len() + self.requests.count(|_| true);
        let verification = self.cycle.as_ref().map_or(0, Cycle::load) + self.doubts.count();
        let memory = self.heard.len() + self.suspects.len() + self.refuted.count() + self.quiet.load();
        queues + verification + memory + self.liveness.load() + self.guard_load()
    }

    /// The maker of the map in force or to come. That of an old map is none, once nobody is left
    /// to wait for.
    fn known_leader(&self) -> Option<Rank> {
        let held = self.held.as_deref();
        let expected = self.parent.as_ref().and_then(|parent| match &self.fetch {
            Some(fetch) => Some(fetch.leader),
            None if parent.provisional => Some(parent.rank),
            None => held.map(|held| held.leader),
        });
        held.filter(|held| held.valid).map(|held| held.leader).or(expected)
    }
}
