//! Echoes: single frames along a way and back, for whoever measures a route or looks where it breaks off.
//!
//! They are the frames by which paths in use are checked ([`liveness`](super::liveness)): the host at the end
//! answers at once, in whatever state it is, and crossbars send them back. An echo says nothing to the agent itself.

use std::collections::{BTreeMap, VecDeque};

use super::event::Event;
use super::machine::Agent;
use crate::wire::RoundTrip;
use crate::{Instant, Mac};

/// Most echoes under way. One more makes the agent forget the oldest.
const UNDER_WAY: usize = 512;

/// A frame that is to come back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Echo {
    /// Comes back in [`Event::Echoed`].
    pub ticket: u32,
    /// The way to the host, and back through the same ports.
    pub way: RoundTrip,
    /// The host at its end.
    pub to: Mac,
    /// At which of the way's xbars it turns, counted from 1; `None` for the host itself, which answers.
    pub turn: Option<usize>,
    /// How long it is, route and all, in bytes; 0 for as short as can be.
    pub bytes: usize,
}

/// Echoes under way.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    /// The ticket of each, and the host that is to answer, by the id of its frame.
    under_way: BTreeMap<u32, (u32, Option<Mac>)>,
    /// The ids of all that are under way, oldest first.
    order: VecDeque<u32>,
}

impl Echoes {
    fn note(&mut self, id: u32, ticket: u32, answers: Option<Mac>) {
        self.under_way.insert(id, (ticket, answers));
        self.order.push_back(id);
        if self.order.len() > UNDER_WAY
            && let Some(oldest) = self.order.pop_front()
        {
            self.under_way.remove(&oldest);
        }
    }

    fn take(&mut self, id: u32, from: Option<Mac>) -> Option<u32> {
        let (ticket, _) = *self.under_way.get(&id).filter(|(_, answers)| *answers == from)?;
        self.under_way.remove(&id);
        self.order.retain(|other| *other != id);
        Some(ticket)
    }
}

impl Agent {
    /// Sends an echo. [`Event::Echoed`] tells that it came back, once; nothing tells that it did not.
    pub fn echo(&mut self, now: Instant, Echo { ticket, way, to, turn, bytes }: Echo) {
        self.note_time(now);
        let id = self.new_probe_id();
        self.echoes.note(id, ticket, turn.is_none().then_some(to));
        // A notice that the echo could not be delivered is treated as silence, so nobody needs its token.
        let _token = match turn {
            None => self.send_check_of_host(id, &way, to, bytes),
            Some(xbar) => self.send_probe_of_xbar(id, &way, to, xbar, bytes),
        };
    }

    /// Ends the echo that this host has answered. Returns whether there was one.
    pub(super) fn echo_answered(&mut self, id: u32, from: Mac) -> bool {
        self.echo_is_back(id, Some(from))
    }

    /// Ends the echo whose frame came home from an xbar. Returns whether there was one.
    pub(super) fn echo_returned(&mut self, id: u32) -> bool {
        self.echo_is_back(id, None)
    }

    fn echo_is_back(&mut self, id: u32, from: Option<Mac>) -> bool {
        let ticket = self.echoes.take(id, from);
        ticket.into_iter().for_each(|ticket| self.event(Event::Echoed { ticket }));
        ticket.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_counts_once_and_only_from_whom_it_was_meant_for() {
        let mut echoes = Echoes::default();
        let [host, other] = [1, 2].map(Mac::from_position);
        echoes.note(1, 71, Some(host));
        echoes.note(2, 72, None);
        assert_eq!(echoes.take(1, None), None);
        assert_eq!(echoes.take(1, Some(other)), None);
        assert_eq!(echoes.take(1, Some(host)), Some(71));
        assert_eq!(echoes.take(1, Some(host)), None);
        assert_eq!(echoes.take(2, None), Some(72));
        assert!(echoes.under_way.is_empty() && echoes.order.is_empty());
    }

    #[test]
    fn the_oldest_is_forgotten_when_there_are_too_many() {
        let mut echoes = Echoes::default();
        (0..2 * UNDER_WAY as u32).for_each(|id| echoes.note(id, id, None));
        assert_eq!((echoes.under_way.len(), echoes.order.len()), (UNDER_WAY, UNDER_WAY));
        assert_eq!(echoes.take(0, None), None);
    }
}
