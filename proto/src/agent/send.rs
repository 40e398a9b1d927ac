//! What leaves the agent: messages and events, in bounded queues.

use super::event::{Event, Transmit};
use super::held::Held;
use super::machine::Agent;
use super::requests::{Asked, Requests};
use super::status::{FrameDrop, Purpose};
use crate::Instant;
use crate::Mac;
use crate::map::MapVersion;
use crate::wire::{Answer, Data, Info, InfoFlags, Message, Reason, Reply, RoundTrip, Route, Scout};

/// Most frames that wait to be sent. Windows keep them far below; a flood from outside is cut here.
const OUTBOX_LIMIT: usize = 4096;

impl Agent {
    /// What this agent says of itself.
    pub(super) fn info(&self) -> Info {
        let held = self.held.as_deref().filter(|held| held.valid);
        Info {
            rank: self.rank(),
            host_type: self.settings.host_type,
            session: self.session,
            state: self.state,
            version: held.map_or(MapVersion::NONE, |h| h.version),
            pieces: held.map_or(0, |h| h.pieces.len() as u16),
            flags: InfoFlags {
                subtree_complete: held.is_some_and(Held::subtree_complete),
                network_complete: held.is_some_and(|h| h.network_complete),
                printeur: self.settings.printeur,
                contested: self.twin.is_some(),
                non_clos: self.settings.non_clos,
            },
            mtu: self.settings.mtu,
        }
    }

    /// Sends a scout that waits for a reply.
    pub(super) fn ask(&mut self, now: Instant, asked: Asked, way: RoundTrip, reason: Reason, tries: u8) {
        let scout = (asked, way.clone(), reason.clone());
        match self.requests.begin(now, scout, tries, self.answer_wait(now)) {
            Some(id) => self.send_scout(id, way, reason),
            None => {
                self.dropped.count(FrameDrop::Overload);
                if let Asked::Service { ticket, .. } = asked {
                    self.event(Event::ServiceAnswered { ticket, answer: None });
                }
            }
        }
    }

    /// Sends a scout, for the first time or again.
    pub(super) fn send_scout(&mut self, id: u32, way: RoundTrip, reason: Reason) {
        let purpose = match reason {
            Reason::Mapping => Purpose::Scout,
            Reason::QueryMapVersion { .. } => Purpose::Query,
            Reason::Tree { .. } | Reason::Pause { .. } | Reason::Resume | Reason::Printf { .. } => {
                Purpose::Tree
            }
            Reason::Verify | Reason::Alive { .. } | Reason::AddressConflict { .. } => Purpose::Verify,
            Reason::MapRequest { .. } => Purpose::Piece,
            Reason::Hello => Purpose::Hello,
            Reason::Service { .. } => Purpose::Service,
        };
        self.sent.count(purpose);
        let route = way.there.clone();
        self.transmit(route, &Message::Scout(Scout { id, info: self.info(), way, reason }));
    }

    /// Puts a message in the outbox, signed if there are keys; it is dropped and counted if that is
    /// full.
    pub(super) fn transmit(&mut self, route: Route, message: &Message) {
        if self.has_room() {
            let frame = self.seal(message);
            self.outbox.push_back(Transmit { route, frame });
        }
    }

    /// Puts a message in the outbox inside a data frame to this host, which is made up to so many bytes, the route and all.
    /// It is signed and dropped as by [`Self::transmit`]. Crossbars name the frame by this token, and say nothing of it if that
    /// is [`Data::QUIET`]. Returns the token, unless the frame was dropped.
    pub(super) fn transmit_as_data(
        &mut self,
        token: u64,
        way: RoundTrip,
        to: Mac,
        message: &Message,
        wanted_bytes: usize,
    ) -> Option<u64> {
        if !self.has_room() {
            return None;
        }
        let mapper_frame = self.seal(message);
        let wanted_bytes = wanted_bytes.saturating_sub(way.there.as_bytes().len());
        match Data::carry(token, &way.back, (to, self.settings.mac), &mapper_frame, wanted_bytes) {
            Ok(frame) => {
                self.outbox.push_back(Transmit { route: way.there, frame });
                Some(token)
            }
            Err(_) => {
                self.dropped.count(FrameDrop::Overload);
                None
            }
        }
    }

    /// How long the data frame is that carries a message and nothing to make up its length.
    pub(super) fn data_bytes(&self, message: &Message, way_back: &Route) -> usize {
        let seal_bytes = if self.guard.is_some() { Message::SEAL_BYTES } else { 0 };
        Data::carrying_bytes(way_back, message.encode().len() + seal_bytes)
    }

    fn has_room(&mut self) -> bool {
        let room = self.outbox.len() < OUTBOX_LIMIT;
        self.dropped.add(FrameDrop::Overload, u64::from(!room));
        room
    }

    fn seal(&mut self, message: &Message) -> Vec<u8> {
        match &mut self.guard {
            Some(guard) => guard.seal(message),
            None => message.encode(),
        }
    }

    /// Tells the driver what has happened.
    pub(super) fn event(&mut self, event: Event) {
        // A driver that does not take its events loses the oldest of them.
        if self.events.len() >= OUTBOX_LIMIT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// A new id for a probe of this agent, be it of verification or of exploration.
    pub(super) const fn new_probe_id(&mut self) -> u32 {
        self.next_probe = self.next_probe.wrapping_add(1);
        self.next_probe & !Requests::ID_BIT
    }

    /// Answers a check of a path as users' frames would go, in a frame as long as it asks for; if it leaves
    /// no room for that, in a shorter one of the mapper's: no answer is longer than what asked for it.
    pub(super) fn answer_alive(&mut self, scout: Scout, answer_bytes: u16) {
        let Scout { id, info, way, .. } = scout;
        self.sent.count(Purpose::Reply);
        let to = info.rank.mac;
        let reply = Message::Reply(Reply { id, to, info: self.info(), answer: Answer::Alive });
        let least = self.data_bytes(&reply, &way.there) + way.back.as_bytes().len();
        match usize::from(answer_bytes) {
            bytes if bytes >= least => {
                // The host that sent the check watches the path, so nothing is to be done about an answer that gets lost.
                let _quiet = self.transmit_as_data(Data::QUIET, way.reversed(), to, &reply, bytes);
            }
            _ => self.transmit(way.back, &reply),
        }
    }

    /// Answers a scout or probe along the way back that it gave.
    pub(super) fn answer(&mut self, to: &Info, id: u32, way_back: Route, answer: Answer) {
        self.sent.count(match answer {
            Answer::MapRequest { .. } => Purpose::Piece,
            Answer::Probe
            | Answer::Mapping
            | Answer::QueryMapVersion
            | Answer::Tree
            | Answer::Verify
            | Answer::Pause
            | Answer::Resume
            | Answer::Printf
            | Answer::AddressConflict
            | Answer::Alive
            | Answer::Hello
            | Answer::Service { .. } => Purpose::Reply,
        });
        let reply = Reply { id, to: to.rank.mac, info: self.info(), answer };
        self.transmit(way_back, &Message::Reply(reply));
    }
}
