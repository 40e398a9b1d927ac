//! What leaves the agent: messages and events, in bounded queues.

use super::event::{Event, Transmit};
use super::held::Held;
use super::machine::Agent;
use super::requests::{Asked, Requests};
use crate::Instant;
use crate::map::MapVersion;
use crate::wire::{Answer, Info, InfoFlags, Message, Reason, Reply, Route, Scout};

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
        }
    }

    /// Sends a scout that waits for a reply.
    pub(super) fn ask(&mut self, now: Instant, asked: Asked, way: (Route, Route), reason: Reason, tries: u8) {
        let deadline = now + self.settings.probe_timeout;
        match self.requests.begin(asked, way.clone(), reason.clone(), tries, deadline) {
            Some(id) => self.send_scout(id, way, reason),
            None => self.dropped.overload += 1,
        }
    }

    /// Sends a scout, for the first time or again.
    pub(super) fn send_scout(&mut self, id: u32, (route, way_back): (Route, Route), reason: Reason) {
        let counter = match reason {
            Reason::Mapping => &mut self.sent.scouts,
            Reason::QueryMapVersion { .. } => &mut self.sent.queries,
            Reason::Tree { .. } | Reason::Pause { .. } | Reason::Resume | Reason::Printf { .. } => {
                &mut self.sent.tree
            }
            Reason::Verify | Reason::Alive | Reason::AddressConflict { .. } => &mut self.sent.verify,
            Reason::MapRequest { .. } => &mut self.sent.pieces,
            Reason::Hello => &mut self.sent.hellos,
        };
        *counter += 1;
        let scout = Scout { id, info: self.info(), way_back, way_there: route.clone(), reason };
        self.transmit(route, &Message::Scout(scout));
    }

    /// Puts a message in the outbox, signed if there are keys; it is dropped and counted if that is
    /// full.
    pub(super) fn transmit(&mut self, route: Route, message: &Message) {
        if self.outbox.len() >= OUTBOX_LIMIT {
            self.dropped.overload += 1;
            return;
        }
        let frame = match &mut self.guard {
            Some(guard) => guard.seal(message),
            None => message.encode(),
        };
        self.outbox.push_back(Transmit { route, frame });
    }

    /// Tells the driver.
    pub(super) fn event(&mut self, event: Event) {
        // A driver that never drains loses the oldest.
        if self.events.len() >= OUTBOX_LIMIT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// An id for a probe of this agent, of verification or exploration.
    pub(super) const fn new_probe_id(&mut self) -> u32 {
        self.next_probe = self.next_probe.wrapping_add(1);
        self.next_probe & !Requests::ID_BIT
    }

    /// Answers a scout or probe along the way back that it gave.
    pub(super) fn answer(&mut self, to: &Info, id: u32, way_back: Route, answer: Answer) {
        match answer {
            Answer::MapRequest { .. } => self.sent.pieces += 1,
            _ => self.sent.replies += 1,
        }
        let reply = Reply { id, to: to.rank.mac, info: self.info(), answer };
        self.transmit(way_back, &Message::Reply(reply));
    }
}
