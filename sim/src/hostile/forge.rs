//! Forged messages, which are well-formed and lie.

use mapper_host::resolution::lies_about;
use mapper_proto::Mac;
use mapper_proto::map::{MapVersion, PortRef, Rank};
use mapper_proto::wire::{
    AgentState, Answer, Element, Info, InfoFlags, Message, Probe, ProbeKind, Reason, Reply, RoundTrip, Route,
    Scout, ServiceNumber,
};
use rand::RngExt;

use super::Hostile;

impl Hostile {
    /// A message that decodes and says what is not true.
    pub(super) fn forged(&mut self) -> Vec<u8> {
        let info = self.false_info();
        let id = self.id();
        if let Some(reason) = self.lie_about_name() {
            let way = RoundTrip { there: self.way(), back: self.way() };
            return Message::Scout(Scout { id, info, way, reason }).encode();
        }
        let message = match self.rng.random_range(0..4) {
            0 => Message::Reply(Reply { id, to: self.victim(), info, answer: self.answer() }),
            1 => Message::Probe(Probe {
                id,
                kind: [ProbeKind::Loopback, ProbeKind::Compare, ProbeKind::Identify]
                    [self.rng.random_range(0..3)],
                left: self.rng.random_range(0..=u8::MAX),
                info,
                way_there: self.way(),
            }),
            _ => {
                let way = RoundTrip { there: self.way(), back: self.way() };
                Message::Scout(Scout { id, info, way, reason: self.reason() })
            }
        };
        message.encode()
    }

    /// Says, in the name of whoever it pretends to be, that it has what somebody asked for. Before a question
    /// was heard nothing is drawn for it, so the other attacks of a seed stay the same.
    fn lie_about_name(&mut self) -> Option<Reason> {
        if self.questions.is_empty() || self.rng.random_bool(0.5) {
            return None;
        }
        let heard = self.rng.random_range(0..self.questions.len());
        let (liar, revision) = (self.victim(), self.rng.random_range(0..=u32::MAX));
        let lies = lies_about(&self.questions[heard], liar, revision)?;
        let question = lies[self.rng.random_range(0..lies.len())].clone();
        Some(Reason::Service { service: ServiceNumber::RESOLUTION, room_bytes: 0, question })
    }

    /// A message id, mostly one that was overheard.
    fn id(&mut self) -> u32 {
        if !self.overheard.is_empty() && self.rng.random_bool(0.7) {
            return self.overheard[self.rng.random_range(0..self.overheard.len())].id;
        }
        self.rng.random_range(0..=u32::MAX)
    }

    fn overheard_info(&mut self) -> Option<Info> {
        (!self.overheard.is_empty())
            .then(|| self.overheard[self.rng.random_range(0..self.overheard.len())].info)
    }

    fn victim(&mut self) -> Mac {
        self.overheard_info().map_or(self.own, |info| info.rank.mac)
    }

    /// What the sender says of itself: that it is some other host, itself or nobody, and often that it is a
    /// higher mapper than all others.
    fn false_info(&mut self) -> Info {
        let heard = self.overheard_info().unwrap_or_default();
        let mac = match self.rng.random_range(0..3) {
            0 => heard.rank.mac,
            1 => Mac::from_u64(self.rng.random_range(0..=u64::MAX)),
            _ => self.own,
        };
        let level = if self.rng.random_bool(0.5) { u8::MAX } else { heard.rank.level };
        let states = [
            AgentState::Mapping,
            AgentState::Passive,
            AgentState::Fetching,
            AgentState::Configured,
            AgentState::Isolated,
        ];
        Info {
            rank: Rank { level, mac },
            host_type: self.rng.random_range(0..=u8::MAX),
            session: if self.rng.random_bool(0.5) {
                heard.session
            } else {
                self.rng.random_range(0..=u32::MAX)
            },
            state: states[self.rng.random_range(0..states.len())],
            version: self.version(),
            pieces: if self.rng.random_bool(0.5) { u16::MAX } else { self.rng.random_range(0..=u16::MAX) },
            flags: InfoFlags {
                subtree_complete: true,
                network_complete: true,
                printeur: true,
                contested: false,
                non_clos: false,
            },
            mtu: heard.mtu,
        }
    }

    fn version(&mut self) -> MapVersion {
        let mut version = self.overheard_info().map(|info| info.version).unwrap_or_default();
        if self.rng.random_bool(0.5) {
            version.counter = self.rng.random_range(1..=u32::MAX);
        }
        if self.rng.random_bool(0.3) {
            version.mac = Mac::from_u64(self.rng.random_range(0..=u64::MAX));
        }
        version
    }

    fn way(&mut self) -> Route {
        if !self.ways.is_empty() && self.rng.random_bool(0.5) {
            return self.ways[self.rng.random_range(0..self.ways.len())].clone();
        }
        let hops = self.rng.random_range(0..Route::MAX_BYTES);
        (0..hops).map(|_| Element::Relative(self.rng.random_range(-32..=31))).collect()
    }

    fn reason(&mut self) -> Reason {
        match self.rng.random_range(0..10) {
            0 => Reason::Mapping,
            1 => {
                let count = self.rng.random_range(0..=Reason::MAX_SUSPECTS);
                let suspects = (0..count).map(|_| self.port()).collect();
                Reason::QueryMapVersion { seen: self.version(), suspects }
            }
            2 | 3 => Reason::Tree { version: self.version(), level: self.rng.random_range(0..=u8::MAX) },
            4 => Reason::Verify,
            5 => Reason::MapRequest {
                version: self.version(),
                piece: self.rng.random_range(0..=u16::MAX),
                room_bytes: self.rng.random_range(0..1400),
            },
            6 => Reason::Pause { max_ms: u16::MAX },
            7 => Reason::Resume,
            8 => Reason::Alive { answer_bytes: self.rng.random_range(0..1400) },
            _ => Reason::Printf { text: "x".repeat(self.rng.random_range(0..=Reason::MAX_PRINTF_BYTES)) },
        }
    }

    fn port(&mut self) -> PortRef {
        PortRef { xbar: self.rng.random_range(0..=u32::MAX), port: self.rng.random_range(0..=u8::MAX) }
    }

    fn answer(&mut self) -> Answer {
        match self.rng.random_range(0..6) {
            0 => Answer::Probe,
            1 => Answer::Mapping,
            2 => Answer::QueryMapVersion,
            3 => Answer::Tree,
            4 => Answer::Verify,
            _ => {
                let bytes = self.rng.random_range(0..1400);
                Answer::MapRequest {
                    version: self.version(),
                    piece: self.rng.random_range(0..4),
                    pieces: self.rng.random_range(0..=u16::MAX),
                    needs_bytes: self.rng.random_range(0..=u16::MAX),
                    bytes: self.noise(bytes),
                }
            }
        }
    }
}
