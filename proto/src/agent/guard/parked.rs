//! Messages of sessions that are not proved yet: kept until their sender has answered.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::window::REACH;
use crate::wire::{Message, Route};
use crate::{Instant, Mac};

/// Most sessions of which something is parked. The oldest is dropped for one more.
const SESSIONS: usize = 256;
/// Most messages parked of one session. The latest are kept.
const MESSAGES: usize = 4;
/// A message that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::agent) struct ParkedMessage {
    pub(in crate::agent) sequence: u64,
    pub(in crate::agent) message: Message,
    /// What was left of its route.
    pub(in crate::agent) left: Route,
}

#[derive(Debug)]
struct Session {
    messages: VecDeque<ParkedMessage>,
    /// When and by which frame of this agent its sender was last asked.
    asked: Option<(Instant, u64)>,
}

/// What the proof of a session has made of the messages of its address.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// The messages that are to be handled now.
    pub(super) messages: Vec<ParkedMessage>,
    /// Sessions that were asked about and are over, as a later session of the same address has answered.
    pub(super) stale: Vec<u32>,
}

/// All parked messages.
#[derive(Debug, Default)]
pub(super) struct Parked {
    sessions: BTreeMap<(Mac, u32), Session>,
    /// The sessions of which something is parked, the oldest first.
    order: VecDeque<(Mac, u32)>,
}

impl Parked {
    /// Keeps a message. True if its sender should be asked now: not asked yet, or so long ago that
    /// the question or its answer is lost.
    pub(super) fn park(
        &mut self,
        now: Instant,
        (mac, session): (Mac, u32),
        message: ParkedMessage,
        ask_again: Duration,
    ) -> bool {
        let key = (mac, session);
        if !self.sessions.contains_key(&key) {
            self.make_room();
            self.order.push_back(key);
        }
        let entry =
            self.sessions.entry(key).or_insert_with(|| Session { messages: VecDeque::new(), asked: None });
        if entry.messages.iter().all(|parked| parked.sequence != message.sequence) {
            if entry.messages.len() >= MESSAGES {
                entry.messages.pop_front();
            }
            entry.messages.push_back(message);
        }
        entry.asked.is_none_or(|(at, _)| now.since(at) >= ask_again)
    }

    /// Notes that the sender was asked by frame `sequence` of this agent.
    pub(super) fn note_asked(&mut self, now: Instant, key: (Mac, u32), sequence: u64) {
        if let Some(entry) = self.sessions.get_mut(&key) {
            entry.asked = Some((now, sequence));
        }
    }

    /// Takes out what is parked of an address that has answered frame `answers` of this agent by its frame
    /// `sequence`, in this session.
    pub(super) fn release(&mut self, mac: Mac, session: u32, sequence: u64, answers: u64) -> Released {
        let mut released = Released::default();
        let of_mac: Vec<u32> =
            self.sessions.range((mac, 0)..=(mac, u32::MAX)).map(|(&(_, session), _)| session).collect();
        for parked in of_mac {
            let asked_before = |entry: &Session| entry.asked.is_some_and(|(_, by)| by <= answers);
            if parked != session && !self.sessions.get(&(mac, parked)).is_some_and(asked_before) {
                continue;
            }
            let entry = self.sessions.remove(&(mac, parked));
            self.order.retain(|key| *key != (mac, parked));
            if parked != session {
                released.stale.push(parked);
            } else if let Some(entry) = entry {
                // A message from long before the answer is no news of its sender, but an earlier recording of
                // the same session.
                let recent = |parked: &ParkedMessage| parked.sequence.saturating_add(REACH) > sequence;
                released.messages.extend(entry.messages.into_iter().filter(recent));
            }
        }
        released
    }

    fn make_room(&mut self) {
        while self.sessions.len() >= SESSIONS {
            let Some(oldest) = self.order.pop_front() else { return };
            self.sessions.remove(&oldest);
        }
    }

    /// How many messages there are.
    pub(super) fn len(&self) -> usize {
        self.sessions.values().map(|session| session.messages.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Info, Reason, RoundTrip, Scout};

    const HOST: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const AGAIN: Duration = Duration::from_millis(5);

    fn message(sequence: u64) -> ParkedMessage {
        let scout = Scout { id: 1, info: Info::default(), way: RoundTrip::default(), reason: Reason::Verify };
        ParkedMessage { sequence, message: Message::Scout(scout), left: Route::new() }
    }

    #[test]
    fn a_sender_is_asked_once_and_again_after_a_while() {
        let mut parked = Parked::default();
        assert!(parked.park(Instant::ZERO, (HOST, 1), message(1), AGAIN));
        parked.note_asked(Instant::ZERO, (HOST, 1), 70);
        assert!(!parked.park(Instant::ZERO, (HOST, 1), message(2), AGAIN));
        assert!(parked.park(Instant::ZERO + AGAIN, (HOST, 1), message(3), AGAIN));
    }

    #[test]
    fn what_was_sent_just_before_the_proof_is_released() {
        let mut parked = Parked::default();
        for sequence in [1, 1000, 1001, 1001] {
            parked.park(Instant::ZERO, (HOST, 1), message(sequence), AGAIN);
        }
        assert_eq!(parked.len(), 3);
        let released = parked.release(HOST, 1, 1002, 70);
        assert_eq!(released.messages, [message(1000), message(1001)]);
        assert_eq!(parked.len(), 0);
        assert!(parked.order.is_empty());
    }

    #[test]
    fn another_session_is_stale_if_it_was_asked_for_and_did_not_answer() {
        let mut parked = Parked::default();
        for session in [2, 3, 4] {
            parked.park(Instant::ZERO, (HOST, session), message(1), AGAIN);
        }
        parked.note_asked(Instant::ZERO, (HOST, 2), 70);
        parked.note_asked(Instant::ZERO, (HOST, 3), 72);
        let released = parked.release(HOST, 1, 5, 71);
        assert!(released.messages.is_empty());
        assert_eq!(released.stale, [2], "3 was asked after, 4 not at all");
        assert_eq!(parked.len(), 2);
    }

    #[test]
    fn no_more_is_parked_than_the_bounds() {
        let mut parked = Parked::default();
        for nth in 0..4 * SESSIONS as u64 {
            for sequence in 0..9 {
                let mac = Mac::from_position(nth as u32);
                parked.park(Instant::ZERO, (mac, 1), message(sequence), AGAIN);
            }
        }
        assert_eq!(parked.len(), SESSIONS * MESSAGES);
        assert_eq!(parked.order.len(), SESSIONS);
    }
}
