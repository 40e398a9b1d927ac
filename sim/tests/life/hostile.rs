//! Whatever frames an agent gets, it counts them, keeps its bounds and goes on.

use mapper_proto::agent::FrameDrop;
use std::collections::VecDeque;

use mapper_host::Host;
use mapper_proto::map::{MapVersion, PortRef, Rank};
use mapper_proto::wire::{
    AgentState, Answer, Data, Element, Info, Message, Probe, ProbeKind, Reason, Reply, RoundTrip, Route,
    Scout,
};
use mapper_proto::{Instant, Mac};
use mapper_sim::fabric::Xbars;
use mapper_sim::node::{SimulatedHost, Spawn, Start};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::lab::{Plan, ms};
use mapper_sim::fabric::Plant;
use mapper_sim::world::{Until, World};

/// The attacks begin and end at these moments of virtual time.
const ATTACK_MS: std::ops::Range<u64> = 1000..4000;

/// A host that gets false frames besides all that it really receives.
struct Harried {
    host: Host,
    own: Rank,
    rng: ChaCha8Rng,
    /// The last frames that it really received, newest last.
    seen: VecDeque<Vec<u8>>,
    version: MapVersion,
}

impl Harried {
    fn harry(&mut self, now: Instant) {
        if now < ms(ATTACK_MS.start) || now >= ms(ATTACK_MS.end) {
            return;
        }
        for _ in 0..8 {
            let payload = self.lie();
            self.host.handle_frame(now, &payload);
            assert!(self.host.agent().load() < 512);
        }
    }

    fn lie(&mut self) -> Vec<u8> {
        let mut real = self.seen[self.rng.random_range(0..self.seen.len())].clone();
        match self.rng.random_range(0..8) {
            0 => {
                let mut noise = vec![0; self.rng.random_range(0..300)];
                self.rng.fill_bytes(&mut noise);
                noise
            }
            1 => {
                real.truncate(self.rng.random_range(0..=real.len()));
                real
            }
            2 => {
                let bit = self.rng.random_range(0..real.len() * 8);
                real[bit / 8] ^= 1 << (bit % 8);
                real
            }
            3 => [real, vec![0; 20_000]].concat(),
            4 => real,
            5 => Data { token: 1, way_back: Route::new(), ethernet: &[7; 60] }.encode().unwrap(),
            _ => self.forged(),
        }
    }

    fn forged(&mut self) -> Vec<u8> {
        let anyone =
            Rank { level: self.rng.random_range(0..2), mac: Mac::from_u64(self.rng.random_range(1..99)) };
        let unknown = Rank { level: 9, mac: Mac::from_position(77) };
        let rank = [anyone, unknown, self.own][self.rng.random_range(0..3)];
        let versions = [
            self.version,
            MapVersion { mac: rank.mac, counter: 3 },
            MapVersion { mac: unknown.mac, counter: self.rng.random_range(1..9) },
        ];
        let version = versions[self.rng.random_range(0..3)];
        let states = [AgentState::Mapping, AgentState::Configured, AgentState::Passive];
        let state = states[self.rng.random_range(0..3)];
        let pieces = [0, 1, u16::MAX][self.rng.random_range(0..3)];
        let info = Info { rank, state, version, pieces, session: 1, ..Info::default() };
        let id = self.rng.random_range(0..=u32::MAX);
        let way = || Route::from_iter([Element::Relative(1)]);
        let suspects = vec![PortRef { xbar: u32::MAX, port: 255 }; 8];
        let reasons = [
            Reason::Tree { version, level: rank.level },
            Reason::QueryMapVersion { seen: version, suspects },
            Reason::MapRequest { version, piece: u16::MAX, room_bytes: 100 },
            Reason::Verify,
            Reason::Mapping,
            Reason::Pause { max_ms: 1 },
            Reason::Printf { text: "x".repeat(512) },
        ];
        let reason = reasons[self.rng.random_range(0..reasons.len())].clone();
        let bytes = vec![0xee; 100];
        let message = match self.rng.random_range(0..4) {
            0 => Message::Reply(Reply {
                id,
                to: self.own.mac,
                info,
                answer: Answer::MapRequest { version, piece: 0, pieces: u16::MAX, needs_bytes: 100, bytes },
            }),
            1 => Message::Probe(Probe { id, kind: ProbeKind::Loopback, left: 1, info, way_there: way() }),
            _ => Message::Scout(Scout { id, info, way: RoundTrip { back: way(), there: way() }, reason }),
        };
        let turn = matches!(message, Message::Probe(_)).then(|| Route::from_iter([Element::Relative(0)]));
        [turn.unwrap_or_default().as_bytes(), &message.encode()].concat()
    }
}

impl SimulatedHost for Harried {
    fn handle_frame(&mut self, now: Instant, payload: &[u8]) {
        self.host.handle_frame(now, payload);
        self.seen.push_back(payload.to_vec());
        if self.seen.len() > 64 {
            self.seen.pop_front();
        }
        self.version = self.host.agent().status().version;
        self.harry(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now);
        self.harry(now);
    }

    fn host(&self) -> Option<&Host> {
        Some(&self.host)
    }

    fn host_mut(&mut self) -> Option<&mut Host> {
        Some(&mut self.host)
    }
}

struct AllHarried(u64);

impl Spawn for AllHarried {
    fn spawn(&mut self, start: Start) -> Box<dyn SimulatedHost> {
        Box::new(Harried {
            own: start.settings.rank(),
            rng: ChaCha8Rng::seed_from_u64(start.seed ^ self.0),
            host: start.real(),
            seen: VecDeque::new(),
            version: MapVersion::NONE,
        })
    }
}

#[test]
fn agents_that_are_fed_lies_count_them_and_agree_again() {
    for (seed, kinds) in [(1, Xbars::Plain), (2, Xbars::Tagged), (3, Xbars::Mixed)] {
        let plan = Plan::new("ring:n=4,hosts=2,ports=8", kinds);
        let plant = Plant::new(&plan.fabric, kinds, 1).unwrap();
        let spawn = Box::new(AllHarried(seed));
        let mut world = World::with_nodes(&plan.fabric, plant, plan.options, Vec::new(), spawn);
        world.run(Until::After(ms(999).since(Instant::ZERO)), ms(999)).unwrap();
        assert!(world.verdict().configured);
        world.run(Until::After(ms(4000).since(Instant::ZERO)), ms(4000)).unwrap();
        let mut kinds_seen = [0; 9];
        for host in 0..8 {
            let d = world.status(host).unwrap().dropped;
            let by_kind = [
                d[FrameDrop::Truncated],
                d[FrameDrop::Oversized],
                d[FrameDrop::BadCrc],
                d[FrameDrop::UnstrippedRoute],
                d[FrameDrop::UnknownKind] + d[FrameDrop::Foreign] + d[FrameDrop::UnknownVersion],
                d[FrameDrop::Malformed],
                d[FrameDrop::Unexpected],
                d[FrameDrop::Implausible],
                d.total(),
            ];
            kinds_seen.iter_mut().zip(by_kind).for_each(|(all, one)| *all += one);
        }
        let [.., malformed, _, _, _] = kinds_seen;
        assert!(
            malformed < 1000 && kinds_seen.iter().enumerate().all(|(i, &n)| i == 5 || n > 0),
            "{kinds_seen:?}"
        );
        // By then no agent waits for a forged leader any more.
        world.run(Until::After(ms(20_000).since(Instant::ZERO)), ms(20_000)).unwrap();
        let verdict = world.verdict();
        assert!(verdict.configured && verdict.map_matches_fabric, "{kinds:?}: {}", verdict.why_not);
        let version = world.status(0).unwrap().version;
        world.run(Until::After(ms(30_000).since(Instant::ZERO)), ms(30_000)).unwrap();
        assert_eq!(world.status(0).unwrap().version, version);
    }
}
