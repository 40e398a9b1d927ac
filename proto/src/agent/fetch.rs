//! Distribution: the child asks its parent for the map, piece by piece.

use super::cause::Cause;
use super::status::FrameDrop;
use std::time::Duration;

use super::held::Held;
use super::machine::Agent;
use super::parent::Parent;
use super::requests::Asked;
use super::timers::Timer;
use crate::Instant;
use crate::map::{Assembly, MapVersion, Rank};
use crate::wire::{AgentState, Answer, Info, Reason, RoundTrip};

/// A map on its way here.
#[derive(Debug)]
pub(super) struct Fetch {
    version: MapVersion,
    /// The global mapper that made it; its level is not known before the map is here, unless a
    /// tree scout told it.
    pub(super) leader: Rank,
    from: Info,
    way: RoundTrip,
    assembly: Assembly,
    /// The next piece that has not been asked for.
    next: u16,
    /// How much room a piece takes; not known before the parent has said.
    room_bytes: Option<u16>,
    /// Pieces that did not fit the room that was given.
    misfits: u16,
    /// The moment at which the map is given up if it is not whole.
    give_up_at: Instant,
}

impl Agent {
    /// Begins to collect the map that an agent holds. `level` is that of the global mapper, if known.
    pub(super) fn begin_fetch(&mut self, now: Instant, from: &Info, way: RoundTrip, level: Option<u8>) {
        let Ok(assembly) = Assembly::new(from.version, from.pieces) else {
            self.dropped.count(FrameDrop::Implausible);
            return;
        };
        self.leave_tree(now, Cause::NewMapOffered);
        // An agent that is offered one map after another, and is given none, has waited since the first
        // offer.
        let since = self.parent.as_ref().map_or(now, |parent| parent.since);
        let leader = Rank { level: level.unwrap_or(from.rank.level), mac: from.version.mac };
        self.parent = Some(Parent::in_tree(from.rank, way.clone(), now, since));
        self.fetch = Some(Box::new(Fetch {
            version: from.version,
            leader,
            from: *from,
            way,
            assembly,
            next: 0,
            room_bytes: None,
            misfits: 0,
            give_up_at: now + self.longest_fetch(now, from.pieces),
        }));
        self.state = AgentState::Fetching;
        self.await_piece(now);
        self.printeur = from.flags.printeur;
        // The first question is small: whoever named this parent must not be able to have it flooded.
        self.ask_for_piece(now, 0);
    }

    /// The version that is being collected.
    pub(super) fn fetching(&self) -> Option<MapVersion> {
        self.fetch.as_ref().map(|fetch| fetch.version)
    }

    fn ask_for_pieces(&mut self, now: Instant) {
        let mut under_way = self.requests.count(|asked| matches!(asked, Asked::Piece(_)));
        while under_way < self.settings.piece_window {
            let Some(fetch) = self.fetch.as_mut().filter(|fetch| fetch.next < fetch.from.pieces) else {
                return;
            };
            let piece = fetch.next;
            fetch.next += 1;
            under_way += 1;
            self.ask_for_piece(now, piece);
        }
    }

    fn ask_for_piece(&mut self, now: Instant, piece: u16) {
        let Some(fetch) = &self.fetch else { return };
        let room_bytes = fetch.room_bytes.unwrap_or(0);
        let reason = Reason::MapRequest { version: fetch.version, piece, room_bytes };
        let way = fetch.way.clone();
        let asked = Asked::Piece(fetch.from.rank.mac);
        self.ask(now, asked, way, reason, self.piece_tries());
    }

    /// A piece is worth more patience than a probe: giving up costs a whole mapping.
    const fn piece_tries(&self) -> u8 {
        self.settings.probe_tries.saturating_mul(3)
    }

    /// How long one request for a piece may take now, with all its tries.
    fn longest_request(&self, now: Instant) -> Duration {
        self.answer_wait(now) * u32::from(self.piece_tries())
    }

    /// How long a map of so many pieces may take if every one comes at the last try, and the
    /// first ones did not fit.
    fn longest_fetch(&self, now: Instant, pieces: u16) -> Duration {
        self.patience() + self.longest_request(now) * (u32::from(pieces) + 1)
    }

    /// Gives up unless one more piece is here in time. Each request has its own tries; this is for
    /// one that could not be sent, or whose answer said nothing.
    fn await_piece(&mut self, now: Instant) {
        let Some(fetch) = &self.fetch else { return };
        let next = now + self.settings.silence_limit.max(self.longest_request(now) * 2);
        self.set_timer(Timer::Patience, next.min(fetch.give_up_at));
    }

    /// Takes in a piece, or the answer that the parent cannot deliver it.
    pub(super) fn hear_piece(&mut self, now: Instant, info: &Info, answer: Answer) {
        let Answer::MapRequest { version, piece, needs_bytes, bytes, .. } = answer else { return };
        let Some(fetch) =
            self.fetch.as_mut().filter(|f| f.version == version && f.from.rank.mac == info.rank.mac)
        else {
            self.dropped.count(FrameDrop::Unexpected);
            return;
        };
        if bytes.is_empty() && needs_bytes > 0 {
            return self.make_room(now, piece, needs_bytes);
        }
        if bytes.is_empty() {
            // The parent has given up that map; it will say when there is a new one.
            return self.fetch_again_later(now);
        }
        if fetch.assembly.insert(piece, bytes).is_err() {
            self.dropped.count(FrameDrop::Implausible);
            return self.fetch_failed(now, Cause::PieceMakesNoSense);
        }
        if fetch.assembly.is_complete() {
            self.finish_fetch(now);
        } else {
            self.await_piece(now);
            self.ask_for_pieces(now);
        }
    }

    /// Asks once more for a piece that did not fit the room that the request gave it, with room for it.
    fn make_room(&mut self, now: Instant, piece: u16, needs_bytes: u16) {
        let Some(fetch) = self.fetch.as_mut() else { return };
        // This happens once, for the first piece, and rarely again, as the first pieces are the longest.
        if fetch.misfits > fetch.from.pieces || usize::from(needs_bytes) > Answer::MAX_PIECE_BYTES {
            self.dropped.count(FrameDrop::Implausible);
            return self.fetch_failed(now, Cause::NoPieceDelivered);
        }
        fetch.misfits += 1;
        if fetch.room_bytes.is_none() {
            fetch.next = 1;
        }
        fetch.room_bytes = fetch.room_bytes.max(Some(needs_bytes));
        self.ask_for_piece(now, piece);
        self.ask_for_pieces(now);
    }

    fn fetch_again_later(&mut self, now: Instant) {
        self.end_fetch();
        if let Some(mut parent) = self.parent.clone() {
            parent.hear(now);
            self.follow(now, parent);
        }
    }

    /// Gives up and maps again: if the network has not changed, this agent will become passive
    /// once more and be told its parent anew.
    pub(super) fn fetch_failed(&mut self, now: Instant, cause: Cause) {
        if self.fetch.is_some() {
            self.end_fetch();
            self.map_again(now, cause);
        }
    }

    fn end_fetch(&mut self) -> Option<Box<Fetch>> {
        self.stop_timer(Timer::Patience);
        self.requests.forget(|asked| matches!(asked, Asked::Piece(_)));
        self.fetch.take()
    }

    fn finish_fetch(&mut self, now: Instant) {
        let Some(fetch) = self.end_fetch() else { return };
        let version = fetch.version;
        let Ok(map) = fetch.assembly.finish() else {
            self.dropped.count(FrameDrop::Implausible);
            return self.map_again(now, Cause::MapMakesNoSense);
        };
        let pieces = fetch.assembly.into_pieces();
        let led_by_maker = map.hosts.first().is_some_and(|host| host.mac == version.mac);
        let outranked = map.hosts.first().is_some_and(|host| host.rank() < self.rank());
        let held = Held::new(&map, pieces, self.settings.mac, self.settings.xbar_check);
        match held.filter(|_| led_by_maker && !outranked) {
            Some(held) => self.install(now, held, map),
            // The global mapper that made the map did not find this agent, so it must hear of it.
            None => {
                self.map_without_me = Some(version);
                self.map_again(now, Cause::NotInMap);
            }
        }
    }

    /// Answers a child's request for a piece: with the piece, if it fits the room that the request
    /// has made for it.
    pub(super) fn serve(&self, version: MapVersion, piece: u16, room_bytes: u16) -> Answer {
        let held = self.held.as_ref().filter(|held| held.valid && held.version == version);
        let pieces = held.map_or(0, |held| held.pieces.len() as u16);
        let found = held.and_then(|held| held.pieces.get(usize::from(piece)));
        let found = found.filter(|bytes| bytes.len() <= Answer::MAX_PIECE_BYTES);
        let needs_bytes = found.map_or(0, |bytes| bytes.len() as u16);
        let bytes = found.filter(|_| needs_bytes <= room_bytes).cloned().unwrap_or_default();
        Answer::MapRequest { version, piece, pieces, needs_bytes, bytes }
    }
}
