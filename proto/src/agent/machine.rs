//! The agent itself: its state, its beginning, and what its driver calls.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::backoff::Backoff;
use super::cause::Cause;
use super::doubts::Doubts;
use super::echo::Echoes;
use super::event::{Event, Transmit};
use super::fetch::Fetch;
use super::guard::{Guard, Limits};
use super::held::Held;
use super::liveness::Liveness;
use super::mapping::Mapping;
use super::parent::Parent;
use super::pause::{Pause, Quiet};
use super::refuted::Refuted;
use super::requests::Requests;
use super::settings::Settings;
use super::status::{FrameDrop, MappingCost, Purpose};
use super::timers::Timer;
use super::twin::Twin;
use super::verify::Cycle;
use crate::answer_wait::AnswerWait;
use crate::map::{LinkMtu, MapVersion, PortRef, Rank, TaggedPort};
use crate::wire::{AgentState, Route};
use crate::{Instant, Mac, Tally};

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
    /// How long answers take.
    pub(super) answers: AnswerWait,
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
    /// The ports that hold cables that lose frames, those first that were found first.
    pub(super) lossy: Vec<TaggedPort>,
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
            answers: AnswerWait::new(),
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
            lossy: Vec::new(),
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

    /// How long an answer is waited for now.
    pub(super) fn answer_wait(&self, now: Instant) -> Duration {
        self.answers.wait(now, self.settings.probe_timeout)
    }

    pub(super) const fn rank(&self) -> Rank {
        self.settings.rank()
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
