//! Questions of services: carried like the agent's own messages, and never at their cost.
//!
//! What runs beside the agent (names, addresses) asks other hosts through it, so that its messages are
//! signed and fresh as all are, and go by routes that are proved. An agent that has no map in force, maps, or
//! keeps quiet for a mapper asks nothing for a service. How many questions are under way, and how many are
//! answered in a second, is bounded apart from everything else.

use super::event::Event;
use super::machine::Agent;
use super::requests::{Asked, Request};
use super::status::{FrameDrop, Purpose};
use crate::wire::{AgentState, Answer, Reason, Reply, RoundTrip, Route, Scout, ServiceNumber};
use crate::{Instant, Mac};

/// Most questions of services under way at once.
const UNDER_WAY: usize = 64;

/// A question for another host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceQuestion {
    /// A number that tells this question from all others. It comes back in [`Event::ServiceAnswered`].
    pub ticket: u32,
    /// Which service asks, and is asked.
    pub service: ServiceNumber,
    /// The host.
    pub to: Mac,
    /// What is asked, at most [`Reason::MAX_SERVICE_BYTES`] bytes.
    pub question: Vec<u8>,
    /// Most bytes that the answer may have beyond those of the question.
    pub room_bytes: u16,
}

/// A question that another host has asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskedService {
    /// Who asks.
    pub from: Mac,
    /// The service that is asked.
    pub service: ServiceNumber,
    /// The question itself.
    pub question: Vec<u8>,
    /// How long the answer may be, in bytes.
    pub most_bytes: usize,
    id: u32,
    way_back: Route,
    /// The number of its frame, which the answer names.
    sequence: u64,
}

impl Agent {
    /// Whether a service may ask something now.
    pub fn may_ask_service(&self) -> bool {
        let has_map = self.held.as_ref().is_some_and(|held| held.valid && held.routed);
        let is_quiet = self.pause.is_on() || self.mapping.is_some();
        let under_way = || self.requests.count(|asked| matches!(asked, Asked::Service { .. }));
        self.state == AgentState::Configured && has_map && !is_quiet && under_way() < UNDER_WAY
    }

    /// Asks a question of a service along a way there and back, with the usual tries. What comes of it is told
    /// by [`Event::ServiceAnswered`]. The question may be asked twice, as an answer can get lost. False if
    /// nothing may be asked now: see [`Self::may_ask_service`].
    pub fn ask_service(&mut self, now: Instant, question: ServiceQuestion, way: RoundTrip) -> bool {
        self.note_time(now);
        if !self.may_ask_service() {
            return false;
        }
        let ServiceQuestion { ticket, service, to, question, room_bytes } = question;
        let reason = Reason::Service { service, room_bytes, question };
        self.ask(now, Asked::Service { ticket, to }, way, reason, self.settings.probe_tries);
        true
    }

    /// Answers a question of [`Event::ServiceAsked`]; `None` if there is no answer, or no such service here. An
    /// answer that is longer than the question had room for is none.
    pub fn answer_service(&mut self, asked: AskedService, answer: Option<Vec<u8>>) {
        let AskedService { from, service, most_bytes, id, way_back, sequence, .. } = asked;
        let answer = answer.filter(|answer| answer.len() <= most_bytes);
        self.turn_to_parked(sequence);
        self.sent.count(Purpose::Service);
        let answer = Answer::Service { service, answer };
        let reply = Reply { id, to: from, info: self.info(), answer };
        self.transmit(way_back, &crate::wire::Message::Reply(reply));
    }

    /// Hands the question of another host for a service of this one to the driver.
    pub(super) fn hear_service(&mut self, now: Instant, scout: Scout) {
        let Scout { id, info, way, reason } = scout;
        let Reason::Service { service, room_bytes, question } = reason else { return };
        if !self.limits.allow_service(now) {
            self.dropped.count(FrameDrop::RateLimited);
            return;
        }
        let most_bytes = (question.len() + usize::from(room_bytes)).min(Reason::MAX_SERVICE_BYTES);
        let sequence = self.answering();
        let from = info.rank.mac;
        self.event(Event::ServiceAsked {
            asked: AskedService { from, service, question, most_bytes, id, way_back: way.back, sequence },
        });
    }

    pub(super) fn service_answered(&mut self, ticket: u32, answer: Answer) {
        let Answer::Service { answer, .. } = answer else { return };
        self.event(Event::ServiceAnswered { ticket, answer });
    }

    pub(super) fn service_silent(&mut self, request: &Request) {
        if let Asked::Service { ticket, .. } = request.asked {
            self.event(Event::ServiceAnswered { ticket, answer: None });
        }
    }
}
