//! With keys, a stranger changes nothing: neither one without a key, nor one with another, nor one
//! that has recorded a whole earlier run.

use std::sync::{Arc, Mutex};

use mapper_host::Host;
use mapper_proto::agent::{FrameDrop, Status};
use mapper_proto::map::{MapVersion, Rank};
use mapper_proto::wire::{
    AgentState, Element, Info, Key, KeyRing, Message, Probe, ProbeKind, Reason, RoundTrip, Route,
    SECRET_BYTES, Scout, Seal,
};
use mapper_proto::{Instant, Mac};
use mapper_sim::fabric::{Plant, Xbars};
use mapper_sim::faults::FaultPlan;
use mapper_sim::node::{SimulatedHost, Spawn, Start};
use mapper_sim::world::{FabricCount, Options, Until, World};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::lab::{Plan, ms};

pub(crate) fn ring(secret: u8, salt: u64) -> KeyRing {
    KeyRing::new(vec![Key::new(1, [secret; SECRET_BYTES])], salt).unwrap()
}

/// Frames of a run, with what was left of their routes.
type Recording = Arc<Mutex<Vec<Vec<u8>>>>;

/// How many bytes a stranger delivered to agents, and how many they sent because of it.
#[derive(Clone, Copy, Default, Debug)]
struct Bytes {
    fed: u64,
    caused: u64,
}

/// A host that the strongest possible stranger attacks: it hears everything, and delivers any frame to any
/// host with any rest of a route at any time, but has no key.
struct Beset {
    host: Host,
    own: Mac,
    rng: ChaCha8Rng,
    /// Where all frames are recorded in the first run.
    records: Option<Recording>,
    /// The recorded frames that the stranger plays back in the second run.
    recording: Arc<Vec<Vec<u8>>>,
    from: Instant,
    bytes: Arc<Mutex<Bytes>>,
    outbox: Vec<Vec<u8>>,
}

impl Beset {
    fn settle(&mut self) {
        while let Some(outgoing) = self.host.poll_transmit() {
            self.outbox.push([outgoing.route, outgoing.frame].concat());
        }
    }

    fn beset(&mut self, now: Instant) {
        self.settle();
        if self.recording.is_empty() || now < self.from {
            return;
        }
        for _ in 0..8 {
            let payload = self.lie();
            self.host.handle_frame(now, &payload);
            let before = self.outbox.len();
            self.settle();
            let caused: usize = self.outbox[before..].iter().map(Vec::len).sum();
            let mut bytes = self.bytes.lock().unwrap();
            bytes.fed += payload.len() as u64;
            bytes.caused += caused as u64;
        }
        assert!(self.host.agent().load() < 20_000);
    }

    fn lie(&mut self) -> Vec<u8> {
        let recorded = self.recording[self.rng.random_range(0..self.recording.len())].clone();
        match self.rng.random_range(0..8) {
            0 => self.forged(None),
            1 => self.forged(Some(&Key::new(1, [0xbb; SECRET_BYTES]))),
            2 => self.forged(Some(&Key::new(2, [0xbb; SECRET_BYTES]))),
            3 => {
                let mut damaged = recorded;
                let bit = self.rng.random_range(0..damaged.len() * 8);
                damaged[bit / 8] ^= 1 << (bit % 8);
                damaged
            }
            _ => recorded,
        }
    }

    /// A message in the name of any host, with any level, which is signed with this key or not at all.
    fn forged(&mut self, key: Option<&Key>) -> Vec<u8> {
        let mac = Mac::from_position(self.rng.random_range(0..9));
        let version = MapVersion { mac, counter: 7 };
        let info = Info {
            rank: Rank { level: [0, 1, 9][self.rng.random_range(0..3)], mac },
            session: self.rng.next_u32(),
            state: AgentState::Mapping,
            version: if self.rng.random_bool(0.5) { version } else { MapVersion::NONE },
            pieces: 1,
            ..Info::default()
        };
        let way = || Route::from_iter([Element::Relative(1)]);
        let reasons = [
            Reason::Mapping,
            Reason::Verify,
            Reason::Tree { version, level: 9 },
            Reason::Hello,
            Reason::Alive { answer_bytes: 0 },
        ];
        let reason = reasons[self.rng.random_range(0..reasons.len())].clone();
        let id = self.rng.next_u32();
        let (message, left) = if self.rng.random_bool(0.3) {
            let kind = ProbeKind::Loopback;
            let probe = Probe { id, kind, left: 2, info, way_there: way() };
            (Message::Probe(probe), Route::from_iter([Element::Relative(0), Element::Relative(1)]))
        } else {
            (
                Message::Scout(Scout { id, info, way: RoundTrip { back: way(), there: way() }, reason }),
                Route::new(),
            )
        };
        let frame = match key {
            Some(key) => message.encode_sealed(Seal { key, sequence: self.rng.next_u64(), answers: 0 }),
            None => message.encode(),
        };
        [left.as_bytes(), &frame].concat()
    }
}

impl SimulatedHost for Beset {
    fn handle_frame(&mut self, now: Instant, payload: &[u8]) {
        if let Some(records) = &self.records {
            records.lock().unwrap().push(payload.to_vec());
        }
        self.host.handle_frame(now, payload);
        self.beset(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now);
        self.beset(now);
    }

    fn append_transmit(&mut self, payload: &mut Vec<u8>) -> bool {
        self.settle();
        let next = (!self.outbox.is_empty()).then(|| self.outbox.remove(0));
        next.inspect(|next| payload.extend(next)).is_some()
    }

    fn host(&self) -> Option<&Host> {
        Some(&self.host)
    }

    fn host_mut(&mut self) -> Option<&mut Host> {
        Some(&mut self.host)
    }

    fn status(&self) -> Option<Status> {
        let status = self.host.agent().status();
        assert_eq!(status.rank.mac, self.own);
        Some(status)
    }
}

#[derive(Clone, Default)]
struct AllBeset {
    records: Option<Recording>,
    recording: Arc<Vec<Vec<u8>>>,
    from: Instant,
    bytes: Arc<Mutex<Bytes>>,
}

impl Spawn for AllBeset {
    fn spawn(&mut self, start: Start) -> Box<dyn SimulatedHost> {
        Box::new(Beset {
            own: start.settings.mac,
            rng: ChaCha8Rng::seed_from_u64(start.seed),
            host: start.real(),
            records: self.records.clone(),
            recording: self.recording.clone(),
            from: self.from,
            bytes: self.bytes.clone(),
            outbox: Vec::new(),
        })
    }
}

const FABRIC: &str = "ring:n=4,hosts=2,ports=8";

/// A world whose agents have keys. Runs of different numbers have different sessions.
fn world(kinds: Xbars, run: u64, spawn: AllBeset, faults: &str) -> World {
    // In the recording of the first run, the leader of the second run has a lower level.
    let plan = Plan::new(FABRIC, kinds).levels(|host| if run == 2 && host == 0 { 5 } else { 1 });
    let plant = Plant::new(&plan.fabric, kinds, 1).unwrap();
    let faults = FaultPlan::parse("faults", faults, &plant).unwrap().draw(&plant, 1);
    let mut options = Options { seed: run, ..plan.options };
    options.agent.keys = Some(ring(0xaa, run << 40 | run));
    World::with_nodes(&plan.fabric, plant, options, faults, Box::new(spawn))
}

fn run_to(world: &mut World, at: Instant) {
    world.run(Until::After(at.since(Instant::ZERO)), at).unwrap();
}

/// All frames of a run with a mapping, a change and a long time without changes.
fn record(kinds: Xbars) -> Arc<Vec<Vec<u8>>> {
    let records = Recording::default();
    let spawn = AllBeset { records: Some(records.clone()), ..AllBeset::default() };
    let mut world = world(kinds, 1, spawn, "at 1s kill h3");
    run_to(&mut world, ms(6000));
    assert!(world.verdict().configured);
    let frames = records.lock().unwrap().clone();
    assert!(frames.len() > 500, "{}", frames.len());
    Arc::new(frames)
}

#[test]
fn a_stranger_that_recorded_an_earlier_run_changes_nothing() {
    for kinds in [Xbars::Tagged, Xbars::Plain] {
        let bytes = Arc::new(Mutex::new(Bytes::default()));
        let spawn = AllBeset {
            recording: record(kinds),
            from: ms(1000),
            bytes: bytes.clone(),
            ..AllBeset::default()
        };
        let mut world = world(kinds, 2, spawn, "at 5s kill h3");
        run_to(&mut world, ms(999));
        let verdict = world.verdict();
        assert!(verdict.configured && verdict.map_matches_fabric, "{kinds:?}: {}", verdict.why_not);
        let version = world.status(0).unwrap().version;

        run_to(&mut world, ms(4999));
        for host in 0..8 {
            let status = world.status(host).unwrap();
            assert_eq!((status.version, status.state), (version, AgentState::Configured), "{kinds:?}");
            assert!(
                status.dropped[FrameDrop::Replayed] > 0
                    && status.dropped[FrameDrop::NoTag] > 0
                    && status.dropped[FrameDrop::BadTag] > 0
            );
        }
        // A recording of its earlier messages does not make a host that dies look alive.
        run_to(&mut world, ms(9000));
        let verdict = world.verdict();
        assert!(verdict.configured && verdict.map_matches_fabric, "{kinds:?}: {}", verdict.why_not);
        assert_eq!(world.status(0).unwrap().hosts, 7);
        let bytes = *bytes.lock().unwrap();
        assert!(bytes.fed > 100_000 && bytes.caused * 10 < bytes.fed, "{kinds:?}: {bytes:?}");
    }
}

#[test]
fn a_stranger_does_not_keep_agents_from_mapping() {
    for kinds in [Xbars::Tagged, Xbars::Plain] {
        let configured_at = |recording| {
            let spawn = AllBeset { recording, ..AllBeset::default() };
            let mut world = world(kinds, 3, spawn, "");
            world.run(Until::Configured, ms(10_000)).unwrap();
            let verdict = world.verdict();
            assert!(verdict.configured && verdict.map_matches_fabric, "{kinds:?}: {}", verdict.why_not);
            world.configured_at().unwrap().as_millis_f64()
        };
        let (alone, beset) = (configured_at(Arc::default()), configured_at(record(kinds)));
        assert!(beset < 2.0 * alone, "{kinds:?}: {alone} ms, {beset} ms with a stranger");
    }
}

#[test]
fn keys_cost_little_of_the_time_to_map() {
    for (spec, kinds) in [
        ("clos:hosts=128,ports=16", Xbars::Plain),
        ("clos:hosts=128,ports=16", Xbars::Tagged),
        (FABRIC, Xbars::Mixed),
    ] {
        let cost = |keys: Option<KeyRing>| {
            let mut lab = Plan::new(spec, kinds).agents(move |agent| agent.keys = keys.clone()).start();
            lab.settle_by(ms(10_000));
            (lab.world.configured_at().unwrap().as_millis_f64(), lab.world.stats().frames[FabricCount::Sent])
        };
        let (without, with) = (cost(None), cost(Some(ring(1, 1))));
        println!(
            "{spec} {kinds:?}: {:.3} ms and {} messages without keys, {:.3} ms and {} with",
            without.0, without.1, with.0, with.1
        );
        assert!(with.0 < 1.25 * without.0, "{spec} {kinds:?}: {} ms, {} ms with keys", without.0, with.0);
        // Whoever begins to map hears of a higher mapper one round trip later.
        assert!(with.1 < 2 * without.1, "{spec} {kinds:?}: {} messages, {} with keys", without.1, with.1);
    }
}

#[test]
fn agents_with_keys_survive_loss_duplicates_and_restarts() {
    for kinds in [Xbars::Tagged, Xbars::Plain] {
        let faults = "loss 1% from 0ms until 2s\nduplicate 5% from 0ms until 2s\n\
                      at 500ms restart h1\nat 900ms restart h8";
        let mut world = world(kinds, 4, AllBeset::default(), faults);
        run_to(&mut world, ms(9000));
        let verdict = world.verdict();
        assert!(verdict.configured && verdict.map_matches_fabric, "{kinds:?}: {}", verdict.why_not);
    }
}
