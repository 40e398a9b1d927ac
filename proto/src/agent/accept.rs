//! Frames that arrive at the agent: each is checked, and then handed to what it is for, or dropped and counted.

use super::event::Event;
use super::guard::Admission;
use super::machine::Agent;
use super::probed::turns_here;
use super::status::FrameDrop;
use crate::Instant;
use crate::wire::{
    Answer, Data, Frame, FrameError, FrameKind, Message, Reason, Reply, Route, Scout, Stamp, split_route,
};

impl Agent {
    /// Takes a frame from the link. `payload` is all that stands behind the link's own header.
    pub(super) fn accept(&mut self, now: Instant, payload: &[u8]) -> Result<(), FrameError> {
        let (left, bytes) = split_route(payload)?;
        let outer = Frame::parse(bytes)?;
        let frame = match outer.kind() {
            FrameKind::Data => Frame::parse(Data::carried_in(&outer)?)?,
            _ => outer,
        };
        let auth = self.check_trailer(&frame)?;
        let (message, stamp) = Message::read_frame(&frame)?;
        if asks_too_much(&message, payload.len()) {
            return Err(FrameError::Malformed);
        }
        if self.is_astray(&message, &left) {
            self.dropped.count(FrameDrop::UnstrippedRoute);
            return Ok(());
        }
        match self.admit(now, (&frame, auth), &message, &left)? {
            Admission::Handle => self.take(now, message, &left, stamp.as_ref()),
            Admission::HandleThen(parked) => {
                self.take(now, message, &left, stamp.as_ref());
                for parked in parked {
                    self.turn_to_parked(parked.sequence);
                    self.take(now, parked.message, &parked.left, None);
                }
            }
            Admission::Hold => {}
        }
        Ok(())
    }

    /// Whether a message has arrived at a host that it was not sent to: a scout or reply with some of its route
    /// left, or a probe of another agent that was not to turn here.
    fn is_astray(&self, message: &Message, left: &Route) -> bool {
        match message {
            Message::Probe(probe) if self.is_own(&probe.info) => false,
            Message::Probe(probe) => !turns_here(probe, left),
            Message::Scout(_) | Message::Reply(_) => !left.is_empty(),
        }
    }

    fn take(&mut self, now: Instant, message: Message, left: &Route, stamp: Option<&Stamp>) {
        match message {
            Message::Probe(probe) if probe.info.rank.mac == self.settings.mac => {
                self.own_probe(now, &probe, left, stamp);
            }
            Message::Probe(probe) => self.foreign_probe(now, &probe, left),
            Message::Scout(scout) => self.scout(now, scout),
            // The answer to a greeting has proved its sender's session, and nothing else was asked for.
            Message::Reply(Reply { answer: Answer::Hello, .. }) if self.guard.is_some() => {}
            Message::Reply(reply) => self.reply(now, reply),
        }
    }

    /// Counts a frame that cannot be used, and tells the driver of it.
    pub(super) fn drop_frame(&mut self, error: FrameError) {
        self.dropped.count(error.into());
        self.event(Event::Dropped { error });
    }
}

/// Whether a check of a path asks for an answer longer than itself. Such a check is refused, so that nobody can
/// use this agent to flood a third host.
fn asks_too_much(message: &Message, arrived_bytes: usize) -> bool {
    matches!(message, Message::Scout(Scout { reason: Reason::Alive { answer_bytes }, .. })
        if usize::from(*answer_bytes) > arrived_bytes)
}
