//! What agents say to each other.

use super::Route;
use crate::Mac;
use crate::map::{MapVersion, PortRef, Rank};

/// Where an agent is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AgentState {
    /// Waits: it may not map (level 0) or has just begun.
    #[default]
    Starting,
    /// Explores the fabric.
    Mapping,
    /// Knows of a higher mapper and waits for its map.
    Passive,
    /// Collects the map from its parent, piece by piece.
    Fetching,
    /// Has a map; its routes are being computed.
    Routing,
    /// Has routes and verifies.
    Configured,
    /// Mapped and found no other host.
    Isolated,
}

/// What an agent says of itself in every message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Info {
    /// Its rank: level and MAC.
    pub rank: Rank,
    /// What its host runs.
    pub host_type: u8,
    /// Drawn at random at each start: tells an agent from its former self.
    pub session: u32,
    /// Where it is in its life.
    pub state: AgentState,
    /// The valid map that it holds, or [`MapVersion::NONE`].
    pub version: MapVersion,
    /// How many pieces that map has.
    pub pieces: u16,
    /// See [`InfoFlags`].
    pub flags: InfoFlags,
}

/// What an agent says of itself, in single bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InfoFlags {
    /// It and all below it in the tree are configured with the map it holds.
    pub subtree_complete: bool,
    /// The global mapper has said that the whole network is configured with the map it holds.
    pub network_complete: bool,
    /// It prints what others send it to print (`--printeur`).
    pub printeur: bool,
}

/// Why a probe was sent, and so how many route elements a host that it hits finds left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProbeKind {
    /// `t1..tk, 0, -tk..-t1`: comes back if an xbar is behind turn tk.
    Loopback,
    /// `A, d, reverse(B)`: comes back if A and B lead to one xbar.
    Compare,
    /// `t1..tk, identify, -tk..-t1`: comes back stamped if a tagged xbar is behind turn tk.
    Identify,
}

/// A frame that is meant to come back to its sender. Where it hits a host instead, and the route
/// left over begins with delta 0 or identify, that host's agent answers along the rest with a
/// [`Reply`]: one frame tells a port with an xbar from a port with a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Tells this probe from all others of this sender.
    pub id: u32,
    /// Why it was sent.
    pub kind: ProbeKind,
    /// How many route elements are left over where it turns, the turning one included: what a
    /// host that answers must find left.
    pub left: u8,
    /// Who sent it.
    pub info: Info,
}

/// Why a scout was sent; a reply names the reason of what it answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Who is there?
    Mapping,
    /// Are you there, and which map do you hold? Carries up to [`Reason::MAX_SUSPECTS`] ports
    /// where a fault was seen, in the numbering of the map that became invalid, named by its version.
    QueryMapVersion {
        /// The map that the suspects refer to; `NONE` without suspects.
        seen: MapVersion,
        /// Where it no longer holds.
        suspects: Vec<PortRef>,
    },
    /// I am your parent in the tree of this map: come and collect it.
    Tree {
        /// The map to collect.
        version: MapVersion,
        /// The level of the global mapper that made it.
        level: u8,
    },
    /// Are you still there, with a valid map of the same version?
    Verify,
    /// Send me this piece of this map.
    MapRequest {
        /// The map.
        version: MapVersion,
        /// The piece, counted from 0.
        piece: u16,
    },
    /// Send nothing of your own accord until I say so or this many milliseconds pass.
    Pause {
        /// Milliseconds after which the pause ends by itself.
        max_ms: u16,
    },
    /// Go on.
    Resume,
    /// Print this (`--printeur`).
    Printf {
        /// The text, at most [`Reason::MAX_PRINTF_BYTES`] bytes of UTF-8.
        text: String,
    },
}

impl Reason {
    /// Most suspects in one scout.
    pub const MAX_SUSPECTS: usize = 8;
    /// Longest text of a network printf.
    pub const MAX_PRINTF_BYTES: usize = 512;
}

/// A small, unreliable message to an agent. It carries the way back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scout {
    /// Tells this scout from all others of this sender.
    pub id: u32,
    /// Who sent it.
    pub info: Info,
    /// The way back to the sender.
    pub way_back: Route,
    /// Why it was sent.
    pub reason: Reason,
}

/// What a reply answers. The payloads are those of the reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// To a [`Probe`] that hit this host.
    Probe,
    /// To [`Reason::Mapping`].
    Mapping,
    /// To [`Reason::QueryMapVersion`].
    QueryMapVersion,
    /// To [`Reason::Tree`].
    Tree,
    /// To [`Reason::Verify`].
    Verify,
    /// To [`Reason::MapRequest`]: a piece, or nothing if this agent does not hold that map.
    MapRequest {
        /// The map.
        version: MapVersion,
        /// The piece, counted from 0.
        piece: u16,
        /// How many pieces the map has.
        pieces: u16,
        /// The piece's bytes; empty if it cannot be had here.
        bytes: Vec<u8>,
    },
    /// To [`Reason::Pause`].
    Pause,
    /// To [`Reason::Resume`].
    Resume,
    /// To [`Reason::Printf`].
    Printf,
}

/// The reply to a probe or scout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The id of what it answers.
    pub id: u32,
    /// The address of the agent that asked: a reply that strays is told by it.
    pub to: Mac,
    /// Who answers.
    pub info: Info,
    /// What it answers, and with what.
    pub answer: Answer,
}

/// A mapper message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// See [`Probe`].
    Probe(Probe),
    /// See [`Scout`].
    Scout(Scout),
    /// See [`Reply`].
    Reply(Reply),
}
