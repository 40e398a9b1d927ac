//! What an agent hands to its driver.

use std::sync::Arc;

use super::cause::Cause;
use super::liveness::PathId;
use super::service::AskedService;
use crate::Mac;
use crate::explore::{PartLeftOut, TagConflict};
use crate::map::{Map, MapVersion, PortRef, Rank};
use crate::wire::{FrameError, Route};

/// A frame to send: the link puts its own header, then the route, then the frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The ports to leave by.
    pub route: Route,
    /// All behind the route: header, body, CRC-32.
    pub frame: Vec<u8>,
}

/// What happened, for the driver to act on or to log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Exploration began, because of this.
    MappingStarted {
        /// Why.
        cause: Cause,
    },
    /// This agent finished a map as global mapper; its costs are in [`Status::mapping`](super::Status::mapping).
    Mapped {
        /// The new map's version.
        version: MapVersion,
    },
    /// While this agent mapped, several xbars showed one tag: all but one of them are strangers, or set
    /// up wrongly.
    TagContested {
        /// The tag, and how many show it.
        conflict: TagConflict,
    },
    /// While this agent mapped, something answered to more questions than a part of the fabric without hosts is
    /// worth: the map leaves it out.
    PartLeftOut {
        /// Where, and how much it was.
        part: PartLeftOut,
    },
    /// A higher mapper was met.
    BecamePassive {
        /// Its rank.
        to: Rank,
    },
    /// A complete map is here: compute routes and call [`Agent::handle_routes`](super::Agent::handle_routes) with those to
    /// `neighbours`, or [`Agent::handle_routing_failure`](super::Agent::handle_routing_failure).
    MapInstalled {
        /// The map.
        map: Arc<Map>,
        /// Parent and children in the tree, to which the agent itself needs a route.
        neighbours: Vec<Mac>,
    },
    /// The map no longer holds.
    MapInvalid {
        /// Which map.
        version: MapVersion,
        /// Why.
        cause: Cause,
    },
    /// Routes for this map are in place and verification runs.
    Configured {
        /// The map.
        version: MapVersion,
    },
    /// Every agent of the network is configured with this map.
    NetworkComplete {
        /// The map.
        version: MapVersion,
    },
    /// Another host has this agent's address: it has left the network, and its routes must not be used
    /// any more. Told again when more is known.
    AddressContested {
        /// Where, and what to do, in words for a person.
        why: String,
    },
    /// Another agent asked to have this printed (`--printeur`).
    Printed {
        /// Who asked.
        from: Mac,
        /// The text.
        text: String,
    },
    /// A watched path no longer answers. It comes again if the path has answered since, fell silent before it was up, and breaks
    /// in another place now.
    PathDown {
        /// The path.
        path: PathId,
        /// How many xbars of its route, from the first, still answer: the cable behind the last
        /// of these is the likely one. With all of them, that to the host, or the host itself.
        reached: usize,
        /// How long the checks were that were not answered, route and all, in bytes; 0 for as short
        /// as can be.
        frame_bytes: usize,
    },
    /// A watched path that was down answers again.
    PathUp {
        /// The path.
        path: PathId,
    },
    /// A watched path answers, and a tenth of its latest checks got lost, or more. Told again as long as that is so.
    PathLosesFrames {
        /// The path.
        path: PathId,
        /// How long the checks were, route and all, in bytes; 0 for as short as can be.
        frame_bytes: usize,
    },
    /// A cable that was held for dead carries frames again:
    /// see [`Agent::test_cable`](super::Agent::test_cable).
    CableUp {
        /// The map that the port is of.
        version: MapVersion,
        /// A port that holds it.
        at: PortRef,
    },
    /// The mapper's frames pass a cable that this agent was told to be silent:
    /// see [`Agent::cable_down`](super::Agent::cable_down).
    CableCleared {
        /// The map that the port is of.
        version: MapVersion,
        /// A port that holds it.
        at: PortRef,
    },
    /// A cable that this agent was told to be dead was asked whether it lives, and has answered or not, for
    /// the first time or otherwise than the last time.
    CableAsked {
        /// The map that the port is of.
        version: MapVersion,
        /// A port that holds it.
        at: PortRef,
        /// Whether it has answered.
        answered: bool,
    },
    /// Another host asks a service of this one: to be answered by
    /// [`Agent::answer_service`](super::Agent::answer_service) before the next frame is taken.
    ServiceAsked {
        /// The question.
        asked: AskedService,
    },
    /// What came of a question of [`Agent::ask_service`](super::Agent::ask_service).
    ServiceAnswered {
        /// The ticket of the question.
        ticket: u32,
        /// The answer; `None` if there was none, or the host does not run the service.
        answer: Option<Vec<u8>>,
    },
    /// An echo of [`Agent::echo`](super::Agent::echo) came back.
    Echoed {
        /// Its ticket.
        ticket: u32,
    },
    /// A frame was dropped. The counters of the status have it already.
    Dropped {
        /// Why.
        error: FrameError,
    },
}
