//! The agent itself: its state, and its timers, scouts and replies, each of which is handed to the file of its
//! concern.

use super::cause::Cause;
use std::collections::{BTreeMap, VecDeque};

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::backoff::Backoff;
use super::doubts::Doubts;
use super::echo::Echoes;
use super::event::{Event, Transmit};
use super::fetch::Fetch;
use super::guard::{Guard, Limits};
use super::held::Held;
use super::liveness::Liveness;
use super::mapping::Mapping;
use super::pause::{Pause, Quiet};
use super::refuted::Refuted;
use super::requests::{Asked, Expired, Request, Requests};
use super::settings::Settings;
use super::status::{FrameDrop, MappingCost, Purpose};
use super::twin::Twin;
use super::verify::Cycle;
use crate::map::{LinkMtu, MapVersion, PortRef, Rank};
use crate::wire::{AgentState, Answer, Reason, Reply, RoundTrip, Route, Scout};
use crate::{Instant, Mac, Tally};

/// The parent that an agent without a map holds on to.
#[derive(Clone, Debug)]
pub(super) struct Parent {
    pub(super) rank: Rank,
    pub(super) way: RoundTrip,
    /// Met in the election, not named by a tree scout or a map.
    pub(super) provisional: bool,
    pub(super) last_heard: Instant,
    /// Queries in a row that had all their tries and no answer.
    pub(super) unanswered_queries: u8,
    /// When this agent began to wait for a map.
    pub(super) since: Instant,
}

impl Parent {
    /// One that was met in the election.
    pub(super) const fn met(rank: Rank, way: RoundTrip, now: Instant) -> Self {
        Self { rank, way, provisional: true, last_heard: now, unanswered_queries: 0, since: now }
    }

    /// One in the tree of a map. This agent has waited for a map since `since`.
    pub(super) const fn in_tree(rank: Rank, way: RoundTrip, now: Instant, since: Instant) -> Self {
        Self { rank, way, provisional: false, last_heard: now, unanswered_queries: 0, since }
    }

    /// Notes that it lives.
    pub(super) const fn hear(&mut self, now: Instant) {
        self.last_heard = now;
        self.unanswered_queries = 0;
    }
}

/// What wakes the agent, beside requests and probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// Ask the parent for its map version.
    Query,
    /// Begin the next cycle of verification.
    Verify,
    /// Begin to map (again).
    Map,
    /// The pause imposed by a mapper ends.
    PauseEnd,
    /// Look whether another host still has this agent's address.
    Twin,
    /// No longer wait for a piece of the map, or for routes.
    Patience,
}

impl Timer {
    const COUNT: usize = Self::ALL.len();
    /// All timers. Of those that are due at one moment an earlier one fires first.
    const ALL: [Self; 6] = [Self::PauseEnd, Self::Map, Self::Query, Self::Verify, Self::Twin, Self::Patience];
}

/// One agent: a deterministic state machine.
///
/// Feed it by `handle_*`; after each, drain [`poll_transmit`](Self::poll_transmit) and
/// [`poll_event`](Self::poll_event), and call [`handle_timeout`](Self::handle_timeout) when
/// [`poll_timeout`](Self::poll_timeout) falls due. Two agents with the same settings, seed and
/// inputs do the same.
#[derive(Debug)]
pub struct Agent {
    pub(super) settings: Settings,
    pub(super) rng: ChaCha8Rng,
    pub(super) session: u32,
    pub(super) state: AgentState,
    pub(super) counter: u32,
    pub(super) mapping: Option<Box<Mapping>>,
    pub(super) parent: Option<Parent>,
    pub(super) held: Option<Box<Held>>,
    /// Another host that has this agent's address.
    pub(super) twin: Option<Box<Twin>>,
    pub(super) fetch: Option<Box<Fetch>>,
    pub(super) cycle: Option<Cycle>,
    pub(super) requests: Requests,
    pub(super) liveness: Liveness,
    pub(super) echoes: Echoes,
    pub(super) timers: [Option<Instant>; Timer::COUNT],
    /// Where the invalid map is known not to hold.
    pub(super) suspects: Vec<PortRef>,
    /// Maps that are known not to hold.
    pub(super) refuted: Refuted,
    /// The map under which a parent was last lost.
    pub(super) parent_lost_under: MapVersion,
    /// Who was heard while there was no map to look them up in, and the way to them.
    pub(super) heard: Vec<(Mac, Route)>,
    /// The last map that came and did not show this agent.
    pub(super) map_without_me: Option<MapVersion>,
    pub(super) mapping_cause: Cause,
    pub(super) backoff: Backoff<Mac>,
    /// How often ports whose cable comes or goes may still make the map invalid.
    pub(super) cable_backoff: Backoff<PortRef>,
    /// Glances still to come before the next whole cycle of verification.
    pub(super) glances_left: u32,
    pub(super) doubts: Doubts,
    pub(super) failed_mappings: u32,
    /// Mappings in a row that made the same map, and when the map last changed.
    pub(super) futile_mappings: u32,
    pub(super) last_change: Instant,
    pub(super) next_probe: u32,
    /// The quiet that this agent keeps, and that it wants of others as a mapper.
    pub(super) pause: Pause,
    pub(super) quiet: Quiet,
    /// The moment before which a sleeping agent does not map, even if others do. `None` once another agent maps.
    pub(super) asleep_until: Option<Instant>,
    /// Whether the parent accepts network printfs, as it last said.
    pub(super) printeur: bool,
    pub(super) last_mapping: Option<MappingCost>,
    /// The sessions of the hosts in the last map that this agent made, if it may map incrementally.
    pub(super) sessions: BTreeMap<Mac, u32>,
    /// How long frames may be at the hosts in the last map that this agent made, if it may map incrementally.
    pub(super) mtus: BTreeMap<Mac, LinkMtu>,
    pub(super) sent: Tally<Purpose>,
    pub(super) dropped: Tally<FrameDrop>,
    /// Which messages are believed, if this agent has keys.
    pub(super) guard: Option<Box<Guard>>,
    pub(super) limits: Limits,
    pub(super) outbox: VecDeque<Transmit>,
    pub(super) events: VecDeque<Event>,
}

impl Agent {
    /// An agent that begins its life at `now`. Level 0 waits to be found; all others map after a
    /// short sleep, unless a higher one has come forward by then.
    pub fn new(settings: Settings, seed: u64, now: Instant) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ settings.mac.to_u64().rotate_left(16));
        let session = rng.next_u32();
        // The counter begins at random, so that a mapper that restarts is told from its former self.
        let counter = rng.random_range(1..=u32::MAX);
        let requests = Requests::new(rng.next_u32());
        let next_probe = rng.next_u32();
        // The checks of paths draw from a stream of their own, so that whether paths are watched changes
        // nothing else.
        let mut jitter = rng.clone();
        jitter.set_stream(1);
        let liveness = Liveness::new(jitter);
        let sleep = settings.start_delay.mul_f64(rng.random_range(1.0..=1.5));
        let asleep_until = Some(now + settings.start_delay);
        let mut agent = Self {
            settings,
            rng,
            session,
            state: AgentState::Starting,
            counter,
            mapping: None,
            parent: None,
            held: None,
            twin: None,
            fetch: None,
            cycle: None,
            requests,
            liveness,
            echoes: Echoes::default(),
            timers: [None; Timer::COUNT],
            suspects: Vec::new(),
            refuted: Refuted::default(),
            parent_lost_under: MapVersion::NONE,
            heard: Vec::new(),
            map_without_me: None,
            mapping_cause: Cause::Start,
            backoff: Backoff::default(),
            cable_backoff: Backoff::default(),
            glances_left: 0,
            doubts: Doubts::none(),
            failed_mappings: 0,
            futile_mappings: 0,
            last_change: now,
            next_probe,
            pause: Pause::none(now),
            quiet: Quiet::default(),
            asleep_until,
            printeur: false,
            last_mapping: None,
            sessions: BTreeMap::new(),
            mtus: BTreeMap::new(),
            sent: Tally::default(),
            dropped: Tally::default(),
            guard: None,
            limits: Limits::default(),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
        };
        let keys = agent.settings.keys.take();
        agent.set_keys(keys);
        if agent.settings.level > 0 {
            agent.set_timer(Timer::Map, now + sleep);
        }
        agent
    }

    /// Takes a frame from the link: all behind the link's own header.
    pub fn handle_frame(&mut self, now: Instant, payload: &[u8]) {
        self.note_time(now);
        if let Err(error) = self.accept(now, payload) {
            self.drop_frame(error);
        }
        self.pump(now);
    }

    pub(super) fn scout(&mut self, now: Instant, scout: Scout) {
        if scout.reason == Reason::Hello && scout.info.session != self.session {
            // A greeting is answered before all else: it says that somebody wants to know who is here, and
            // nothing more.
            return self.answer(&scout.info, scout.id, scout.way.back, Answer::Hello);
        }
        if scout.info.rank.mac == self.settings.mac {
            return self.scout_of_own_address(now, scout);
        }
        let way = scout.way.clone().reversed();
        if !matches!(scout.reason, Reason::Alive { .. }) {
            // Checks of paths come by the hundred a second: they are answered, and that is all.
            self.contact(now, &scout.info, &way);
        }
        let answer = match scout.reason {
            Reason::Mapping => Answer::Mapping,
            Reason::QueryMapVersion { seen, suspects } => {
                self.hear_query(now, &scout.info, seen, &suspects);
                Answer::QueryMapVersion
            }
            Reason::Tree { version, level } => {
                self.hear_tree(now, &scout.info, way, version, level);
                Answer::Tree
            }
            Reason::Verify => {
                self.hear_verify(now, &scout.info);
                Answer::Verify
            }
            Reason::MapRequest { version, piece, room_bytes } => self.serve(version, piece, room_bytes),
            Reason::Pause { max_ms } => {
                self.hear_pause(now, scout.info.rank.mac, max_ms);
                Answer::Pause
            }
            Reason::Alive { answer_bytes } => return self.answer_alive(scout, answer_bytes),
            Reason::Resume => {
                self.hear_resume(now, scout.info.rank.mac);
                Answer::Resume
            }
            Reason::AddressConflict { places } => {
                self.hear_address_conflict(now, &scout.info, places);
                Answer::AddressConflict
            }
            Reason::Printf { text } => {
                if self.settings.printeur {
                    self.event(Event::Printed { from: scout.info.rank.mac, text });
                }
                Answer::Printf
            }
            Reason::Hello => Answer::Hello,
            Reason::Service { .. } => return self.hear_service(now, scout),
        };
        self.answer(&scout.info, scout.id, scout.way.back, answer);
    }

    pub(super) fn reply(&mut self, now: Instant, reply: Reply) {
        if reply.to != self.settings.mac {
            self.dropped.count(FrameDrop::Unexpected);
        } else if reply.info.rank.mac == self.settings.mac {
            self.reply_of_own_address(now, &reply);
        } else if reply.answer == Answer::Alive {
            let from = reply.info.rank.mac;
            if !self.path_answered(now, reply.id, from) && !self.echo_answered(reply.id, from) {
                self.dropped.count(FrameDrop::Unexpected);
            }
        } else if reply.id & Requests::ID_BIT != 0 {
            match self.requests.take_answered(reply.id, reply.info.rank.mac, &reply.answer) {
                Some(request) => self.answered(now, request.asked, reply),
                None => self.dropped.count(FrameDrop::Unexpected),
            }
        } else if self.cycle.as_ref().is_some_and(|cycle| cycle.waits_for(reply.id)) {
            let step = self.cycle.as_mut().and_then(|cycle| cycle.handle_host(reply.id));
            self.take_step(now, step);
        } else if !self.doubt_hit_host(now, reply.id)
            && !self.cable_test_answered(reply.id)
            && !self.mapping_found_host(now, &reply)
        {
            self.dropped.count(FrameDrop::Unexpected);
        }
    }

    /// Hands the reply to a scout of this agent to what the scout asked for.
    fn answered(&mut self, now: Instant, asked: Asked, reply: Reply) {
        let info = reply.info;
        self.note_printeur(&info);
        match asked {
            Asked::ParentVersion(_) => self.hear_parent_version(now, &info),
            Asked::ParentNotice(_) | Asked::Refutation(_) | Asked::Twin => {}
            Asked::Pause | Asked::Resume | Asked::Courtesy => {}
            Asked::ChildNotice(mac) => self.child_notified(mac, info.rank.mac),
            Asked::Contested(index) => self.hear_contested(now, index, &info),
            Asked::VerifyParent => self.hear_parent_verified(now, &info),
            Asked::VerifyChild(mac) => self.hear_child_verified(now, mac, &info),
            Asked::VerifyHost(check) => self.hear_host_verified(now, check, &info),
            Asked::DoubtedHost(at) => self.hear_doubted_host(now, at, &info),
            Asked::Piece(_) => self.hear_piece(now, &info, reply.answer),
            Asked::Service { ticket, .. } => self.service_answered(ticket, reply.answer),
        }
    }

    /// Tells what a scout asked for that it had all its tries and no answer.
    fn unanswered(&mut self, now: Instant, request: &Request) {
        match request.asked {
            Asked::ParentVersion(mac) => self.parent_silent(now, mac),
            Asked::ParentNotice(_) | Asked::Refutation(_) | Asked::Twin => {}
            Asked::Pause | Asked::Resume | Asked::Courtesy => {}
            Asked::Contested(index) => self.contested_silent(now, index),
            Asked::ChildNotice(mac) => self.child_silent(mac),
            Asked::VerifyParent => self.parent_lost(now),
            Asked::VerifyChild(mac) => self.child_lost(now, mac),
            Asked::VerifyHost(check) => self.host_lost(now, check),
            Asked::DoubtedHost(at) => self.doubted_host_lost(now, at),
            Asked::Piece(_) => self.fetch_failed(now, Cause::PieceUnanswered),
            Asked::Service { .. } => self.service_silent(request),
        }
    }

    /// Acts on what falls due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.note_time(now);
        while let Some(expired) = self.requests.expired(now, self.settings.probe_timeout) {
            match expired {
                Expired::Again(id, request) => {
                    self.sent.count(Purpose::Retry);
                    self.send_scout(id, request.way, request.reason);
                }
                Expired::GivenUp(request) => self.unanswered(now, &request),
            }
        }
        for timer in Timer::ALL {
            if self.timers[timer as usize].is_some_and(|due| due <= now) {
                self.timers[timer as usize] = None;
                self.fire(now, timer);
            }
        }
        self.expire_checks(now);
        self.expire_doubts(now);
        self.expire_probes(now);
        self.check_paths(now);
        self.pump(now);
    }

    fn fire(&mut self, now: Instant, timer: Timer) {
        match timer {
            Timer::Query => self.query_parent(now),
            Timer::Verify => self.begin_cycle(now),
            Timer::Map if self.state == AgentState::Starting => self.map_again(now, Cause::Start),
            Timer::Map => self.begin_mapping(now),
            Timer::PauseEnd => self.end_pause(now),
            Timer::Twin => self.look_for_twin(now),
            Timer::Patience => self.lose_patience(now),
        }
    }

    /// Takes routes that the driver computed and proved for the map of
    /// [`Event::MapInstalled`]: all are in place in its own tables, and here are those to the
    /// neighbours named there.
    pub fn handle_routes(&mut self, now: Instant, version: MapVersion, routes: Vec<(Mac, Route)>) {
        self.note_time(now);
        self.take_routes(now, version, routes);
        self.pump(now);
    }

    /// Learns that there are no routes for this map, and why.
    pub fn handle_routing_failure(&mut self, now: Instant, version: MapVersion, why: String) {
        self.note_time(now);
        self.take_routing_failure(now, version, why);
        self.pump(now);
    }

    /// The next frame to send, if any.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.pop_front()
    }

    /// What has happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called; `None` for never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let probes =
            self.mapping.as_ref().filter(|_| !self.pause.is_on()).and_then(|mapping| mapping.deadline());
        let checks =
            self.cycle.as_ref().and_then(Cycle::deadline).into_iter().chain(self.doubts.probes.deadline());
        let timers = self.timers.iter().copied().flatten();
        let paths = self.liveness.deadline();
        timers.chain(probes).chain(checks).chain(self.requests.deadline()).chain(paths).min()
    }

    pub(super) const fn rank(&self) -> Rank {
        self.settings.rank()
    }

    pub(super) const fn set_timer(&mut self, timer: Timer, due: Instant) {
        self.timers[timer as usize] = Some(due);
    }

    pub(super) const fn stop_timer(&mut self, timer: Timer) {
        self.timers[timer as usize] = None;
    }

    /// Sends what exploration and verification have room for.
    pub(super) fn pump(&mut self, now: Instant) {
        self.pump_quiet(now);
        if self.pause.is_on() {
            return;
        }
        self.pump_mapping(now);
        self.pump_cycle(now);
        self.pump_doubts(now);
    }
}
