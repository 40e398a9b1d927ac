//! What an agent shows of itself: status and counters.

use std::sync::Arc;
use std::time::Duration;

use enum_map::Enum;
use strum::IntoStaticStr;

use super::liveness::LivenessCount;
use super::machine::Agent;
use super::verify::Cycle;
use crate::map::{AddressConflict, Map, MapVersion, Rank, decode_pieces};
use crate::wire::{AgentState, FrameError, FrameKind};
use crate::{Instant, Mac, Tally};

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

/// What a message is sent for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Enum, IntoStaticStr)]
pub enum Purpose {
    /// A loopback or identify probe of exploration.
    #[strum(serialize = "switch_probes")]
    SwitchProbe,
    /// A mapping scout of exploration.
    #[strum(serialize = "scouts")]
    Scout,
    /// A compare probe of exploration.
    #[strum(serialize = "compares")]
    Compare,
    /// A tree scout, a pause or a resume.
    #[strum(serialize = "tree")]
    Tree,
    /// A query for a map version.
    #[strum(serialize = "queries")]
    Query,
    /// A request for a piece, or a piece.
    #[strum(serialize = "pieces")]
    Piece,
    /// A probe or scout of verification.
    #[strum(serialize = "verify")]
    Verify,
    /// A reply other than a piece.
    #[strum(serialize = "replies")]
    Reply,
    /// A question whether a sender is there and who it says, before it is believed.
    #[strum(serialize = "hellos")]
    Hello,
    /// A question or an answer of a service.
    #[strum(serialize = "services")]
    Service,
    /// Not a purpose of its own: a scout or a probe of verification that was sent again after a time-out, which
    /// is counted under its purpose too.
    #[strum(serialize = "retries")]
    Retry,
}

/// Why an agent drops a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FrameDrop {
    /// Too short.
    Truncated,
    /// Too long.
    Oversized,
    /// CRC-32 mismatch.
    BadCrc,
    /// Route elements left over that are no probe's turn, or no route at all.
    UnstrippedRoute,
    /// Unknown protocol version.
    UnknownVersion,
    /// A frame type that is none of an agent's.
    UnknownKind,
    /// A frame type that is none of the mapper's: other programs use the same EtherType.
    Foreign,
    /// Fields that make no sense.
    Malformed,
    /// A reply or returning probe that nothing waits for: late, duplicated, replayed or forged.
    Unexpected,
    /// Well-formed, but what it says cannot be so: a forged or confused sender.
    Implausible,
    /// This agent has too much to do.
    Overload,
    /// Signed, while this agent has no key.
    UnexpectedTag,
    /// Not signed, while this agent has a key.
    NoTag,
    /// Signed with a key that this agent does not have.
    UnknownKey,
    /// Signed, but not with the key that is named.
    BadTag,
    /// Signed, and heard before or of a session that is over.
    Replayed,
    /// It is more than one source, or all strangers together, may send.
    RateLimited,
}

impl From<FrameError> for FrameDrop {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Truncated => Self::Truncated,
            FrameError::Oversized => Self::Oversized,
            FrameError::BadCrc => Self::BadCrc,
            FrameError::BadRoute => Self::UnstrippedRoute,
            FrameError::UnknownVersion(_) => Self::UnknownVersion,
            FrameError::UnknownKind(number) => match FrameKind::from(number) {
                FrameKind::Unknown(_) => Self::Foreign,
                FrameKind::Mapper | FrameKind::Data | FrameKind::Undeliverable | FrameKind::Hello => {
                    Self::UnknownKind
                }
            },
            FrameError::Malformed => Self::Malformed,
            FrameError::UnexpectedTag(_) => Self::UnexpectedTag,
            FrameError::NoTag => Self::NoTag,
            FrameError::UnknownKey(_) => Self::UnknownKey,
            FrameError::BadTag(_) => Self::BadTag,
            FrameError::Replayed => Self::Replayed,
            FrameError::RateLimited => Self::RateLimited,
        }
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
    pub liveness: Tally<LivenessCount>,
    /// Messages sent.
    pub sent: Tally<Purpose>,
    /// Frames dropped.
    pub dropped: Tally<FrameDrop>,
}

impl Agent {
    /// The time within which each child in the tree asks this agent, and so hears what it knows.
    pub fn heard_within(&self) -> Duration {
        self.settings.heard_within()
    }

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
            liveness: self.liveness.counts(),
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
