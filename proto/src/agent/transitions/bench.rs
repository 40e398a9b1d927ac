//! A bench for one agent: what may happen to it, and how its state is told from outside.

use std::collections::VecDeque;
use std::time::Duration;

use crate::agent::{Agent, CableCause, Event, Settings};
use crate::map::{Host, LinkMtu, Map, MapVersion, Place, PortRef, Rank, Xbar, encode_pieces, host_type};
use crate::wire::{
    AgentState, Answer, Element, Frame, Info, InfoFlags, Message, Reason, Reply, RoundTrip, Route, Scout,
};
use crate::{Instant, Mac};

/// Hosts by their place in the order of rank, all on one plain xbar. The agent under test is `OWN`. In
/// the tree of the map `LEADER` is its parent and `CHILD` its child; `HIGHEST` is not in the map.
pub(super) const CHILD: u8 = 1;
pub(super) const OTHER: u8 = 2;
pub(super) const OWN: u8 = 3;
pub(super) const LEADER: u8 = 4;
pub(super) const HIGHEST: u8 = 5;

/// How long silence may last before an agent is on its own.
pub(super) const LONGEST_WAIT_MS: u64 = 60_000;

pub(super) fn rank(host: u8) -> Rank {
    Rank { level: 1, mac: Mac::from_position(u32::from(host)) }
}

pub(super) fn port(host: u8) -> PortRef {
    PortRef { xbar: 0, port: host }
}

/// The way from the agent under test to a host, and back.
pub(super) fn way(host: u8) -> RoundTrip {
    let delta = host as i8 - OWN as i8;
    let route = |delta| Route::from_iter([Element::Relative(delta)]);
    RoundTrip { there: route(delta), back: route(-delta) }
}

pub(super) fn version(counter: u32) -> MapVersion {
    MapVersion { mac: rank(LEADER).mac, counter }
}

/// The map as its maker numbers it: the same fabric each time.
pub(super) fn pieces() -> Vec<Vec<u8>> {
    let host =
        |host| Host { mac: rank(host).mac, level: 1, host_type: host_type::ETHERNET, at: Some(port(host)) };
    let map = Map {
        hosts: [LEADER, OWN, OTHER, CHILD].map(host).to_vec(),
        xbars: vec![Xbar { ports: 8, tag: None, ports_known: false }],
        ..Map::default()
    };
    encode_pieces(&map, 64)
}

/// Something that happens to an agent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input {
    /// This host looks for xbars and hosts, holding the map of this counter (0 for none).
    MapperMet(u8, u32),
    /// This host says that it is the parent in the tree of the map of this counter.
    Offer(u8, u32),
    /// This host reports that the map of this counter does not hold.
    Report(u8, u32),
    /// This host verifies, holding the map of this counter (0 for none).
    Verify(u8, u32),
    /// This host asks for quiet.
    Pause(u8),
    /// A mapper says that another host has the agent's address.
    Twin,
    /// All requests for pieces are answered by who was asked, until the map is complete.
    Pieces,
    /// The first request for a piece is answered: there is none.
    NoPiece,
    /// The first request for a piece is answered by this host, which was not asked.
    PieceOf(u8),
    /// This host answers the query for a map version, holding the map of this counter.
    Version(u8, u32),
    /// Where the first host was verified, the second answers.
    Verified(u8, u8),
    /// The driver has routes.
    Routes,
    /// The driver can have none.
    NoRoutes,
    /// The cable of the agent's own host has lost its carrier.
    CableDown,
    /// Nothing happens until the state changes, at most for `LONGEST_WAIT_MS`.
    Silence,
}

/// States of an agent, told apart as the table needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum At {
    Starting,
    Mapping,
    /// Waits for the map of a mapper that it met.
    Passive,
    /// Waits for another map, as its map was given up; it may be right.
    GivenUp,
    /// Waits for another map, as its map does not hold.
    Refuted,
    Fetching,
    Routing,
    /// The driver can have no routes.
    Unroutable,
    Configured,
    /// Alone.
    Isolated,
    /// Another host has its address.
    Contested,
}

impl At {
    /// The inputs that bring a new agent to this state.
    pub(super) fn way(self) -> Vec<Input> {
        let with = |before: Self, input| [before.way(), vec![input]].concat();
        match self {
            Self::Starting => Vec::new(),
            Self::Mapping => vec![Input::Silence],
            Self::Passive => with(Self::Mapping, Input::MapperMet(LEADER, 0)),
            Self::GivenUp => with(Self::Configured, Input::Verify(LEADER, 0)),
            Self::Refuted => with(Self::Configured, Input::Verified(CHILD, OTHER)),
            Self::Fetching => with(Self::Passive, Input::Offer(LEADER, 1)),
            Self::Routing => with(Self::Fetching, Input::Pieces),
            Self::Unroutable => with(Self::Routing, Input::NoRoutes),
            Self::Configured => with(Self::Routing, Input::Routes),
            Self::Isolated => vec![Input::Silence, Input::Silence, Input::Routes],
            Self::Contested => with(Self::Mapping, Input::Twin),
        }
    }
}

/// An agent, its clock, and the scouts that it has sent and nobody has answered.
pub(super) struct Bench {
    pub(super) agent: Agent,
    pub(super) now: Instant,
    pub(super) asked: VecDeque<Scout>,
    pub(super) installed: Option<(MapVersion, Vec<Mac>)>,
}

impl Bench {
    pub(super) fn new(level: u8) -> Self {
        let settings = Settings { level, ..Settings::new(rank(OWN).mac) };
        let agent = Agent::new(settings, 1, Instant::ZERO);
        Self { agent, now: Instant::ZERO, asked: VecDeque::new(), installed: None }
    }

    pub(super) fn at(place: At) -> Self {
        let mut bench = Self::new(1);
        place.way().into_iter().for_each(|input| bench.put(input));
        bench
    }

    /// The state of the agent, told from what it shows.
    pub(super) fn place(&self) -> At {
        let status = self.agent.status();
        match status.state {
            AgentState::Starting => At::Starting,
            AgentState::Mapping => At::Mapping,
            AgentState::Passive => {
                let held = self.agent.held.as_ref().map(|held| held.version);
                match held.filter(|_| self.agent.parent.as_ref().is_some_and(|p| !p.provisional)) {
                    Some(version) if self.agent.is_refuted(version) => At::Refuted,
                    Some(_) => At::GivenUp,
                    None => At::Passive,
                }
            }
            AgentState::Fetching => At::Fetching,
            AgentState::Routing if self.agent.held.as_ref().unwrap().is_done() => At::Unroutable,
            AgentState::Routing => At::Routing,
            AgentState::Configured => At::Configured,
            AgentState::Isolated if self.agent.twin.is_some() => At::Contested,
            AgentState::Isolated => At::Isolated,
        }
    }

    pub(super) fn drain(&mut self) {
        while let Some(sent) = self.agent.poll_transmit() {
            let (message, _) = Message::read_frame(&Frame::parse(&sent.frame).unwrap()).unwrap();
            if let Message::Scout(scout) = message {
                self.asked.push_back(scout);
            }
        }
        while let Some(event) = self.agent.poll_event() {
            if let Event::MapInstalled { map, neighbours } = event {
                self.installed = Some((map.version, neighbours));
            }
        }
        while self.asked.len() > 200 {
            self.asked.pop_front();
        }
    }

    pub(super) fn hear(&mut self, message: &Message) {
        self.agent.handle_frame(self.now, &message.encode());
        self.drain();
    }

    pub(super) fn info(host: u8, counter: u32, state: AgentState) -> Info {
        let version = if counter == 0 { MapVersion::NONE } else { version(counter) };
        Info {
            rank: rank(host),
            host_type: host_type::ETHERNET,
            session: u32::from(host),
            state,
            version,
            pieces: if counter == 0 { 0 } else { pieces().len() as u16 },
            flags: InfoFlags::default(),
            mtu: LinkMtu::default(),
        }
    }

    pub(super) fn scout(&mut self, host: u8, counter: u32, state: AgentState, reason: Reason) {
        let way = way(host).reversed();
        let info = Self::info(host, counter, state);
        self.hear(&Message::Scout(Scout { id: 7, info, way, reason }));
    }

    pub(super) fn answer(&mut self, id: u32, host: u8, counter: u32, answer: Answer) {
        let info = Self::info(host, counter, AgentState::Configured);
        self.hear(&Message::Reply(Reply { id, to: rank(OWN).mac, info, answer }));
    }

    /// The first scout of a kind that still waits for its answer.
    pub(super) fn take(&mut self, wanted: impl Fn(&Scout) -> bool) -> Option<Scout> {
        let index = self.asked.iter().position(wanted)?;
        self.asked.remove(index)
    }

    /// Answers the next request for a piece.
    pub(super) fn answer_piece(&mut self, host: u8, is_there: bool) -> bool {
        let request = self.take(|scout| matches!(scout.reason, Reason::MapRequest { .. }));
        let Some(Scout { id, reason: Reason::MapRequest { version, piece, room_bytes }, .. }) = request
        else {
            return false;
        };
        let all = pieces();
        let bytes = all.get(usize::from(piece)).filter(|_| is_there).cloned().unwrap_or_default();
        let needs_bytes = bytes.len() as u16;
        let bytes = if needs_bytes <= room_bytes { bytes } else { Vec::new() };
        let count = if is_there { all.len() as u16 } else { 0 };
        let answer = Answer::MapRequest { version, piece, pieces: count, needs_bytes, bytes };
        self.answer(id, host, version.counter, answer);
        true
    }

    /// Lets the next time-out come. False if there is none.
    pub(super) fn step(&mut self) -> bool {
        let Some(due) = self.agent.poll_timeout() else { return false };
        self.now = self.now.max(due);
        self.agent.handle_timeout(self.now);
        self.drain();
        true
    }

    /// Lets time pass without any input until the state changes from `before`, at most for [`LONGEST_WAIT_MS`].
    pub(super) fn silence(&mut self, before: AgentState) {
        let end = self.now + Duration::from_millis(LONGEST_WAIT_MS);
        while self.agent.status().state == before && self.agent.poll_timeout().is_some_and(|due| due <= end) {
            self.step();
        }
    }

    /// Waits for a scout of verification over the way to this host.
    pub(super) fn next_verification(&mut self, host: u8) -> Option<Scout> {
        let end = self.now + Duration::from_millis(2500);
        self.asked.clear();
        loop {
            let route = way(host).there;
            let wanted = |scout: &Scout| scout.reason == Reason::Verify && scout.way.there == route;
            if let Some(scout) = self.take(wanted) {
                return Some(scout);
            }
            // All other hosts answer, as some hosts are verified only after those.
            if let Some(other) = self.take(|scout| scout.reason == Reason::Verify) {
                let answers =
                    [CHILD, OTHER, LEADER].into_iter().find(|host| way(*host).there == other.way.there);
                answers.into_iter().for_each(|host| self.answer(other.id, host, 1, Answer::Verify));
                continue;
            }
            if self.agent.poll_timeout().is_none_or(|due| due > end) {
                return None;
            }
            self.step();
        }
    }

    pub(super) fn put(&mut self, input: Input) {
        let mapping = AgentState::Mapping;
        let configured = AgentState::Configured;
        match input {
            Input::MapperMet(host, counter) => self.scout(host, counter, mapping, Reason::Mapping),
            Input::Offer(host, counter) => {
                let reason = Reason::Tree { version: version(counter), level: 1 };
                self.scout(host, counter, configured, reason);
            }
            Input::Report(host, counter) => {
                let reason = Reason::QueryMapVersion { seen: version(counter), suspects: vec![port(CHILD)] };
                self.scout(host, 0, AgentState::Passive, reason);
            }
            Input::Verify(host, counter) => self.scout(host, counter, configured, Reason::Verify),
            Input::Pause(host) => self.scout(host, 0, mapping, Reason::Pause { max_ms: 5000 }),
            Input::Twin => {
                let places = vec![Place { at: port(OWN), tag: None }, Place { at: port(HIGHEST), tag: None }];
                self.scout(LEADER, 1, configured, Reason::AddressConflict { places });
            }
            Input::Pieces => while self.answer_piece(LEADER, true) {},
            Input::NoPiece => {
                self.answer_piece(LEADER, false);
            }
            Input::PieceOf(host) => {
                self.answer_piece(host, true);
            }
            Input::Version(host, counter) => {
                let query = self.take(|scout| matches!(scout.reason, Reason::QueryMapVersion { .. }));
                if let Some(query) = query {
                    self.answer(query.id, host, counter, Answer::QueryMapVersion);
                }
            }
            Input::Verified(host, by) => {
                if let Some(scout) = self.next_verification(host) {
                    self.answer(scout.id, by, 1, Answer::Verify);
                }
            }
            Input::Routes => {
                if let Some((version, neighbours)) = self.installed.clone() {
                    let hosts = [CHILD, OTHER, LEADER, HIGHEST];
                    let near = hosts.into_iter().filter(|host| neighbours.contains(&rank(*host).mac));
                    let routes = near.map(|host| (rank(host).mac, way(host).there)).collect();
                    self.agent.handle_routes(self.now, version, routes);
                }
            }
            Input::NoRoutes => {
                if let Some((version, _)) = self.installed {
                    self.agent.handle_routing_failure(self.now, version, "too far".into());
                }
            }
            Input::CableDown => self.agent.cable_down(self.now, port(OWN), CableCause::Carrier),
            Input::Silence => self.silence(self.agent.status().state),
        }
        self.drain();
    }
}
