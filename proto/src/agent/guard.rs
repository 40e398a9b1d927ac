//! Which messages are believed. With keys every message is signed, and none is acted upon that is not genuine
//! and fresh.
//!
//! Genuine is what a key of the ring has signed. Fresh is told without clock and disk:
//!
//! - A **reply** names the frame of this agent that it answers, by its sequence number. Those begin
//!   at a random number at each start, so that no frame of a former self has the same, and each is
//!   answered once.
//! - An **own probe** that comes home is waited for by its sequence number, too.
//! - A **request** of another agent (scout, probe) is fresh if its session is known to be the
//!   present one of its sender, and its sequence number was not heard yet (a sliding window). A
//!   session is proved by any reply in it. Until then its messages are parked, and the sender is
//!   asked by a small scout ([`Reason::Hello`]) along the way back that the message gave. The answer
//!   proves the session, and what is parked is handled, one round trip late.
//!
//! ```text
//!                 message: park, ask              reply of this session
//!   unknown ------------------------> asked --------------------------------> proved
//!      ^                                | reply of another session               |
//!      |                                v                                        | another session
//!      +------- forgotten ----------- stale: dropped                             | is proved
//!      +-------------------------------------------------------------------------+
//! ```
//!
//! So recordings of a former session are never acted upon, also if both sides have restarted. That a session is
//! stale is forgotten after a second: of two hosts that had one address for a while the other may have answered. A
//! `Hello` itself is answered without proof: the answer says nothing that a recording could use,
//! and is no longer than what asked for it. Checks go from cheap to costly, and what is not known
//! to be sound shares a budget of its own: a flood does not keep proved peers waiting.

mod awaited;
mod limits;
mod parked;
mod peers;
mod window;

pub(super) use limits::Limits;
pub(super) use parked::ParkedMessage;

use super::status::{FrameDrop, Purpose};
use rand::Rng;

use self::awaited::Awaited;
use self::parked::Parked;
use self::peers::{Peers, Standing};
use super::machine::Agent;
use crate::wire::{
    AgentState, AuthTrailer, Frame, FrameError, Info, KeyRing, Message, Probe, Reason, Reply, RoundTrip,
    Route, Scout, Seal,
};
use crate::{Instant, Mac};

/// Most peers whose session is kept as proved.
const PEERS: usize = 16_384;

/// The keys of an agent, and what it knows of others by them.
#[derive(Debug)]
pub(super) struct Guard {
    keys: KeyRing,
    /// The number of the last frame that was sealed.
    sequence: u64,
    /// The number of the request that is being handled: its answer names it.
    answering: u64,
    /// The time, as last heard.
    now: Instant,
    awaited: Awaited,
    peers: Peers,
    parked: Parked,
}

/// What to do with a message.
#[derive(Debug)]
pub(super) enum Admission {
    /// Handle it.
    Handle,
    /// Handle it, and then these, which were parked until now.
    HandleThen(Vec<ParkedMessage>),
    /// Do nothing with it now: it is parked or dropped.
    Hold,
}

impl Guard {
    fn new(keys: KeyRing, random: u64) -> Self {
        Self {
            // A sequence number is never 0, and begins far from the largest one.
            sequence: random >> 1 | 1,
            keys,
            answering: 0,
            now: Instant::ZERO,
            awaited: Awaited::default(),
            peers: Peers::new(PEERS),
            parked: Parked::default(),
        }
    }

    /// The frame that carries a message, signed.
    pub(super) fn seal(&mut self, message: &Message) -> Vec<u8> {
        self.sequence += 1;
        let (sequence, now) = (self.sequence, self.now);
        let answers = match message {
            Message::Reply(_) => self.answering,
            Message::Probe(Probe { id, .. }) | Message::Scout(Scout { id, .. }) => {
                self.awaited.push(now, sequence, *id);
                0
            }
        };
        message.encode_sealed(Seal { key: self.keys.signing(), sequence, answers })
    }

    fn check_tag(&self, frame: &Frame<'_>, auth: &AuthTrailer) -> Result<(), FrameError> {
        let id = auth.key_id;
        match self.keys.get(id).ok_or(FrameError::UnknownKey(id))? {
            key if frame.is_signed_by(key) => Ok(()),
            _ => Err(FrameError::BadTag(id)),
        }
    }

    /// How many entries all its tables have together.
    fn len(&self) -> usize {
        self.awaited.len() + self.peers.len() + self.parked.len()
    }
}

impl Agent {
    /// Gives this agent keys, other keys, or none. May be called at any time: if old and new ring
    /// share the keys that others sign with, nothing is lost.
    ///
    /// With keys, all that is not signed with one of them is dropped and counted. Without, all that
    /// is signed is: it cannot be checked.
    pub fn set_keys(&mut self, keys: Option<KeyRing>) {
        match (keys, &mut self.guard) {
            (None, guard) => *guard = None,
            (Some(keys), Some(guard)) => guard.keys = keys,
            (Some(keys), None) => {
                let random = self.rng.next_u64() ^ keys.salt();
                // The session changes with the keys, too: it must not be that of a former self with the same
                // seed.
                self.session ^= (keys.salt() >> 32) as u32;
                self.guard = Some(Box::new(Guard::new(keys, random)));
            }
        }
    }

    /// Entries in the tables of guard and limits.
    pub(super) fn guard_load(&self) -> usize {
        self.guard.as_ref().map_or(0, |guard| guard.len()) + self.limits.len()
    }

    /// Learns what time it is.
    pub(super) fn note_time(&mut self, now: Instant) {
        if let Some(guard) = &mut self.guard {
            guard.now = now;
        }
    }

    /// Checks that a frame is signed if this agent has keys, and is not if it has none. Nothing else of it has
    /// been read by then.
    pub(super) fn check_trailer(&self, frame: &Frame<'_>) -> Result<Option<AuthTrailer>, FrameError> {
        match (&self.guard, frame.auth()) {
            (None, None) => Ok(None),
            (None, Some(auth)) => Err(FrameError::UnexpectedTag(auth.key_id)),
            (Some(_), None) => Err(FrameError::NoTag),
            (Some(guard), Some(auth)) if guard.keys.get(auth.key_id).is_some() => Ok(Some(auth)),
            (Some(_), Some(auth)) => Err(FrameError::UnknownKey(auth.key_id)),
        }
    }

    /// Whether a message may be handled. `auth` is what [`check_trailer`](Self::check_trailer) gave.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        (frame, auth): (&Frame<'_>, Option<AuthTrailer>),
        message: &Message,
        left: &Route,
    ) -> Result<Admission, FrameError> {
        let info = match message {
            Message::Reply(reply) => return self.admit_reply(now, (frame, auth), reply),
            Message::Probe(Probe { info, .. }) | Message::Scout(Scout { info, .. }) => *info,
        };
        if self.is_own(&info) {
            return self.admit_own(now, (frame, auth), message);
        }
        let Some(auth) = auth else {
            let allowed = self.limits.allow_unsigned(now, info.rank.mac);
            return if allowed { Ok(Admission::Handle) } else { Err(FrameError::RateLimited) };
        };
        self.admit_request(now, (frame, auth), (message, &info), left)
    }

    /// Whether this very agent says this of itself: not a former self, nor a host with its address.
    pub(super) fn is_own(&self, info: &Info) -> bool {
        info.rank.mac == self.settings.mac && info.session == self.session
    }

    /// Admits a frame of this very agent that has come back. A scout that does so is only counted, whoever made
    /// it.
    fn admit_own(
        &mut self,
        now: Instant,
        (frame, auth): (&Frame<'_>, Option<AuthTrailer>),
        message: &Message,
    ) -> Result<Admission, FrameError> {
        let (Some(guard), Some(auth), Message::Probe(probe)) = (&mut self.guard, auth, message) else {
            return Ok(Admission::Handle);
        };
        if !guard.awaited.waits(now, auth.sequence, probe.id) {
            self.dropped.count(FrameDrop::Unexpected);
            return Ok(Admission::Hold);
        }
        guard.check_tag(frame, &auth)?;
        guard.awaited.end(now, auth.sequence, probe.id);
        Ok(Admission::Handle)
    }

    fn admit_reply(
        &mut self,
        now: Instant,
        (frame, auth): (&Frame<'_>, Option<AuthTrailer>),
        reply: &Reply,
    ) -> Result<Admission, FrameError> {
        let (Some(guard), Some(auth)) = (&mut self.guard, auth) else { return Ok(Admission::Handle) };
        if reply.to != self.settings.mac || !guard.awaited.waits(now, auth.answers, reply.id) {
            self.dropped.count(FrameDrop::Unexpected);
            return Ok(Admission::Hold);
        }
        guard.check_tag(frame, &auth)?;
        guard.awaited.end(now, auth.answers, reply.id);
        let Info { rank, session, .. } = reply.info;
        if !guard.peers.prove(rank.mac, session, auth.sequence, auth.answers) {
            return Err(FrameError::Replayed);
        }
        let released = guard.parked.release(rank.mac, session, auth.sequence, auth.answers);
        for session in released.stale {
            guard.peers.call_stale(now, rank.mac, session);
        }
        for parked in &released.messages {
            guard.peers.note(rank.mac, parked.sequence);
        }
        Ok(Admission::HandleThen(released.messages))
    }

    fn admit_request(
        &mut self,
        now: Instant,
        (frame, auth): (&Frame<'_>, AuthTrailer),
        (message, info): (&Message, &Info),
        left: &Route,
    ) -> Result<Admission, FrameError> {
        let Some(guard) = &mut self.guard else { return Ok(Admission::Hold) };
        let (mac, session) = (info.rank.mac, info.session);
        let greets = matches!(message, Message::Scout(Scout { reason: Reason::Hello, .. }));
        let proved = match guard.peers.standing(now, mac, session, auth.sequence) {
            Standing::Fresh => true,
            Standing::Stale => return Err(FrameError::Replayed),
            // Of two hosts that had one address, the one that answers no more made this session of the other look over.
            // If the other, too, takes this agent's for over, neither would ever hear the other: so each is answered
            // that it is there. Who asks nothing is asked again once this is forgotten.
            Standing::Over if !greets => return Err(FrameError::Replayed),
            Standing::Over | Standing::Unproved if self.limits.allow_stranger(now) => false,
            Standing::Over | Standing::Unproved => return Err(FrameError::RateLimited),
        };
        guard.check_tag(frame, &auth)?;
        let allowed = if proved {
            guard.peers.note(mac, auth.sequence);
            self.limits.allow_peer(now, mac)
        } else {
            self.limits.allow_source(now, mac)
        };
        if !allowed {
            return Err(FrameError::RateLimited);
        }
        if proved || greets {
            guard.answering = auth.sequence;
            return Ok(Admission::Handle);
        }
        let parked = ParkedMessage { sequence: auth.sequence, message: message.clone(), left: left.clone() };
        let ask_again = self.settings.probe_timeout / 2;
        if guard.parked.park(now, (mac, session), parked, ask_again) {
            self.greet(now, (mac, session), message, left);
            if info.state == AgentState::Mapping && !info.flags.contested {
                self.hush(now, info.rank);
            }
        }
        Ok(Admission::Hold)
    }

    /// Asks the sender of a message whether it is there, along the way back that the message gave.
    /// The question is no longer than the message was on its last cable.
    fn greet(&mut self, now: Instant, key: (Mac, u32), message: &Message, left: &Route) {
        let RoundTrip { there, back } = match message {
            Message::Probe(probe) => {
                RoundTrip { there: left.elements().skip(1).collect(), back: probe.way_there.clone() }
            }
            Message::Scout(scout) => scout.way.clone().reversed(),
            Message::Reply(_) => return,
        };
        let (id, info) = (self.new_probe_id(), self.info());
        let way = RoundTrip { there: Route::new(), back };
        let scout = Scout { id, info, way, reason: Reason::Hello };
        self.sent.count(Purpose::Hello);
        self.transmit(there, &Message::Scout(scout));
        if let Some(guard) = &mut self.guard {
            guard.parked.note_asked(now, key, guard.sequence);
        }
    }

    /// The number of the frame that is being handled; 0 without keys.
    pub(super) fn answering(&self) -> u64 {
        self.guard.as_ref().map_or(0, |guard| guard.answering)
    }

    /// Notes that the parked message with this number is handled next, so that its answer names it.
    pub(super) fn turn_to_parked(&mut self, sequence: u64) {
        if let Some(guard) = &mut self.guard {
            guard.answering = sequence;
        }
    }
}
