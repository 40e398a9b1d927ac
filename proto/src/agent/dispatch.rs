//! Which part of the agent a scout, a reply, or a scout without a reply is for.

use super::cause::Cause;
use super::event::Event;
use super::machine::Agent;
use super::pause::Asker;
use super::requests::{Asked, Request, Requests};
use super::status::FrameDrop;
use crate::Instant;
use crate::wire::{Answer, Reason, Reply, Scout};

impl Agent {
    /// Hands a scout to what it is for, and answers it.
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
        let asker = Asker::of(&scout);
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
                self.hear_pause(now, asker, max_ms);
                Answer::Pause
            }
            Reason::Alive { answer_bytes } => return self.answer_alive(scout, answer_bytes),
            Reason::Resume => {
                self.hear_resume(now, asker);
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

    /// Hands a reply to what waits for it, or counts it as unexpected.
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
            Asked::ParentNotice(mac) => self.parent_notified(now, mac, &info),
            Asked::Refutation(_) | Asked::Twin => {}
            Asked::Pause | Asked::Resume | Asked::Courtesy => {}
            Asked::ChildNotice(mac) => self.child_notified(now, mac, &info),
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
    pub(super) fn unanswered(&mut self, now: Instant, request: &Request) {
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
}
