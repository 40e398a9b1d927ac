//! Other agents whose present session is proved, and what was heard of them.
//!
//! Only who answered a frame of this agent just now gets in, so that recordings cannot fill the
//! table; beyond its bound the one that was heard least recently goes, and is asked again.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::window::Window;
use crate::{Instant, Mac};

/// Most sessions that are known to be over, for each address.
const STALE: usize = 16;
/// How long a session that did not answer counts as over. It may be that of the host which has the address
/// rightly, where another one that had it for a while answered instead: so it is asked again then, and a
/// recording costs one question in that time.
const OVER_FOR: Duration = Duration::from_secs(1);

/// What is known of a frame before its tag is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// The frame is of a proved session, and was not heard yet.
    Fresh,
    /// The frame was heard already, or is too old.
    Stale,
    /// The session was asked for a moment ago, and another one of its address has answered: it is over, unless two hosts
    /// have the address.
    Over,
    /// The session is not known, so nobody can say whether the frame is fresh.
    Unproved,
}

#[derive(Debug)]
struct Peer {
    session: u32,
    /// The frame of this agent by whose answer the session was proved last.
    proved_by: u64,
    window: Window,
    /// Sessions that are over, and when they were called so: newest last.
    stale: VecDeque<(u32, Instant)>,
    last_use: u64,
}

impl Peer {
    fn is_over(&self, now: Instant, session: u32) -> bool {
        self.stale.iter().any(|&(stale, since)| stale == session && now.since(since) < OVER_FOR)
    }
}

/// All proved sessions, by address.
#[derive(Debug)]
pub(super) struct Peers {
    by_mac: BTreeMap<Mac, Peer>,
    by_use: BTreeMap<u64, Mac>,
    uses: u64,
    limit: usize,
}

impl Peers {
    /// A table with room for this many agents.
    pub(super) const fn new(limit: usize) -> Self {
        Self { by_mac: BTreeMap::new(), by_use: BTreeMap::new(), uses: 0, limit }
    }

    /// Where a frame of this session and number stands now.
    pub(super) fn standing(&self, now: Instant, mac: Mac, session: u32, sequence: u64) -> Standing {
        match self.by_mac.get(&mac) {
            Some(peer) if peer.session == session && peer.window.is_fresh(sequence) => Standing::Fresh,
            Some(peer) if peer.session == session => Standing::Stale,
            Some(peer) if peer.is_over(now, session) => Standing::Over,
            _ => Standing::Unproved,
        }
    }

    /// Notes a frame of a proved session whose tag is right.
    pub(super) fn note(&mut self, mac: Mac, sequence: u64) {
        if let Some(peer) = self.by_mac.get_mut(&mac) {
            peer.window.note(sequence);
            self.used(mac);
        }
    }

    /// Takes this session for the present one of an address that answered frame `answers` of this agent just
    /// now. Returns false if a later answer has shown another session.
    pub(super) fn prove(&mut self, mac: Mac, session: u32, sequence: u64, answers: u64) -> bool {
        match self.by_mac.get_mut(&mac) {
            Some(peer) if peer.session == session => {
                peer.window.note(sequence);
                peer.proved_by = peer.proved_by.max(answers);
            }
            Some(peer) if peer.proved_by >= answers => return false,
            Some(peer) => {
                // The former session may be that of a second host with this address, and is not
                // called stale for that.
                peer.session = session;
                peer.proved_by = answers;
                peer.window = Window::begin(sequence);
                peer.stale.retain(|(stale, _)| *stale != session);
            }
            None => {
                self.make_room();
                let (window, stale) = (Window::begin(sequence), VecDeque::new());
                let peer = Peer { session, proved_by: answers, window, stale, last_use: 0 };
                self.by_mac.insert(mac, peer);
            }
        }
        self.used(mac);
        true
    }

    /// Notes that a session is over: it was asked whether it is there, and another one of the same address has
    /// answered.
    pub(super) fn call_stale(&mut self, now: Instant, mac: Mac, session: u32) {
        let Some(peer) = self.by_mac.get_mut(&mac) else { return };
        if peer.session == session {
            return;
        }
        peer.stale.retain(|(stale, _)| *stale != session);
        if peer.stale.len() >= STALE {
            peer.stale.pop_front();
        }
        peer.stale.push_back((session, now));
    }

    fn used(&mut self, mac: Mac) {
        let Some(peer) = self.by_mac.get_mut(&mac) else { return };
        self.by_use.remove(&peer.last_use);
        self.uses += 1;
        peer.last_use = self.uses;
        self.by_use.insert(self.uses, mac);
    }

    fn make_room(&mut self) {
        while self.by_mac.len() >= self.limit {
            let Some((_, mac)) = self.by_use.pop_first() else { return };
            self.by_mac.remove(&mac);
        }
    }

    /// How many agents have a proved session.
    pub(super) fn len(&self) -> usize {
        self.by_mac.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Mac = Mac([2, 0, 0, 0, 0, 1]);

    #[test]
    fn a_session_is_believed_from_its_proof_on() {
        let mut peers = Peers::new(4);
        assert_eq!(peers.standing(Instant::ZERO, HOST, 1, 100), Standing::Unproved);
        assert!(peers.prove(HOST, 1, 100, 7));
        assert_eq!(peers.standing(Instant::ZERO, HOST, 1, 100), Standing::Stale, "the answer itself");
        assert_eq!(peers.standing(Instant::ZERO, HOST, 1, 99), Standing::Fresh, "on its way at the proof");
        assert!(peers.prove(HOST, 1, 1000, 8));
        assert_eq!(peers.standing(Instant::ZERO, HOST, 1, 99), Standing::Stale, "long before the proof");
        assert_eq!(peers.standing(Instant::ZERO, HOST, 1, 1001), Standing::Fresh);
        peers.note(HOST, 1001);
        assert_eq!(peers.standing(Instant::ZERO, HOST, 1, 1001), Standing::Stale);
        assert_eq!(peers.standing(Instant::ZERO, HOST, 2, 500), Standing::Unproved);
    }

    #[test]
    fn a_late_answer_of_a_former_session_changes_nothing() {
        let mut peers = Peers::new(4);
        assert!(peers.prove(HOST, 1, 100, 7));
        assert!(peers.prove(HOST, 2, 5, 9));
        assert!(!peers.prove(HOST, 1, 200, 8));
        assert_eq!(peers.standing(Instant::ZERO, HOST, 2, 6), Standing::Fresh);
    }

    #[test]
    fn a_session_that_is_over_is_not_asked_for_again() {
        let mut peers = Peers::new(4);
        assert!(peers.prove(HOST, 2, 5, 9));
        peers.call_stale(Instant::ZERO, HOST, 1);
        peers.call_stale(Instant::ZERO, HOST, 2);
        assert_eq!(peers.standing(Instant::ZERO, HOST, 1, 1000), Standing::Over);
        assert_eq!(
            peers.standing(Instant::ZERO, HOST, 2, 6),
            Standing::Fresh,
            "the proved one is never stale"
        );
        for session in 10..10 + STALE as u32 {
            peers.call_stale(Instant::ZERO, HOST, session);
        }
        assert_eq!(
            peers.standing(Instant::ZERO, HOST, 1, 1000),
            Standing::Unproved,
            "the oldest is forgotten"
        );
    }

    #[test]
    fn a_session_that_another_host_answered_for_is_asked_for_again_after_a_while() {
        let mut peers = Peers::new(4);
        assert!(peers.prove(HOST, 2, 5, 9));
        peers.call_stale(Instant::ZERO, HOST, 1);
        let later = Instant::ZERO + OVER_FOR;
        assert_eq!(peers.standing(later, HOST, 1, 1000), Standing::Unproved);
        peers.call_stale(later, HOST, 1);
        assert_eq!(
            peers.standing(later + OVER_FOR / 2, HOST, 1, 1001),
            Standing::Over,
            "the other one answered again"
        );
        assert_eq!(peers.standing(later + OVER_FOR, HOST, 1, 1001), Standing::Unproved);
    }

    #[test]
    fn the_one_heard_least_recently_makes_way() {
        let mut peers = Peers::new(3);
        let host = Mac::from_position;
        for nth in 0..3 {
            assert!(peers.prove(host(nth), 1, 10, 1));
        }
        peers.note(host(0), 11);
        assert!(peers.prove(host(3), 1, 10, 1));
        assert_eq!(peers.len(), 3);
        assert_eq!(peers.standing(Instant::ZERO, host(1), 1, 99), Standing::Unproved);
        assert_eq!(peers.standing(Instant::ZERO, host(0), 1, 12), Standing::Fresh);
        assert_eq!(peers.by_use.len(), 3);
    }
}
