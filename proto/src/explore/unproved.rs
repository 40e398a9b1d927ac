//! Claims of tags that could not be proved, asked once more.
//!
//! Behind a port whose claim is refuted (see [`proofs`](super::proofs)) is a liar, or the cable was moved
//! between the stamp and the question for its proof, or the known xbar is not there any more where it was first
//! seen, as a cable on the way to it was moved. A liar is left out of the map, and nobody asks it again:
//! so that must not happen to a crossbar for having been moved. In the end each such port, and the port behind which
//! the known xbar was seen, is asked for its stamp once more. If it shows another one, or nothing, the exploration
//! begins anew. It does so only once, so that a liar which shows another tag each time does not keep it from ending.

use std::collections::VecDeque;

use super::knowledge::At;
use super::request::{Ask, Job};
use super::routes::WayOut;
use super::schedule::Class;
use super::{ExploreOutcome, Explorer, RequestKind};
use crate::wire::{Route, Stamp};

/// A claim that is asked once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unproved {
    /// The port behind which the stamp was made.
    from: At,
    /// The tag, and the port by which the frame came in.
    shown: (u64, u8),
    /// How often it was asked so far.
    sent: u8,
}

/// The claims that were not proved.
#[derive(Debug, Default)]
pub(super) struct UnprovedClaims {
    todo: VecDeque<Unproved>,
    /// Whether some port showed something else.
    has_changed: bool,
    /// Whether the exploration began anew for that already.
    begun_anew: bool,
}

impl UnprovedClaims {
    /// The most claims that are asked once more. Only many liars, or much loss, leave more of them.
    const MOST: usize = 64;

    /// Claims of an exploration that begins anew, and does so only once.
    pub(super) const fn of_new_beginning() -> Self {
        Self { todo: VecDeque::new(), has_changed: false, begun_anew: true }
    }

    /// Notes that this was shown behind a port.
    fn push(&mut self, from: At, shown: (u64, u8)) {
        let claim = Unproved { from, shown, sent: 0 };
        if self.todo.len() < Self::MOST && !self.begun_anew && !self.todo.contains(&claim) {
            self.todo.push_back(claim);
        }
    }

    /// Whether the exploration must begin anew.
    pub(super) const fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl Unproved {
    /// The sight whose port leads to what makes the claim.
    pub(super) const fn claimant(&self) -> u32 {
        self.from.node
    }
}

impl Explorer {
    /// Notes that the claim of a stamp is refuted that was made behind the port `from`, and by which ways the xbars were
    /// found that showed this tag before.
    pub(super) fn note_unproved(&mut self, from: At, stamp: &Stamp) {
        self.unproved.push(from, (stamp.tag, stamp.arrival));
        for known in self.known.claimed_ports(stamp) {
            let via = self.known.xbar(known.node).via;
            let entry = self.known.numbered(At { node: via, delta: 0 });
            if let Some((port, shown)) = self.known.parent(via).zip(entry) {
                self.unproved.push(port, shown);
            }
        }
    }

    /// The next unproved claim to ask once more.
    pub(super) fn next_unproved(&mut self) -> Option<(Job, Class)> {
        let claim = self.unproved.todo.pop_front()?;
        Some((Job::AskAgain(claim), Class::Retry))
    }

    /// The probe that asks for the stamp of a claim once more.
    pub(super) fn unproved_request(&self, claim: &Unproved) -> Option<(Route, RequestKind)> {
        Self::request_along(&WayOut::out_of(&self.known, claim.from.node, claim.from.delta)?, Ask::Identify)
    }

    /// Takes in what a port showed that was asked once more.
    pub(super) fn asked_again(&mut self, claim: Unproved, outcome: Option<ExploreOutcome>) {
        let sent = claim.sent + 1;
        match outcome {
            None if sent < self.settings.probe_tries => {
                self.unproved.todo.push_back(Unproved { sent, ..claim });
            }
            Some(ExploreOutcome::Returned { stamp: Some(stamp) })
                if (stamp.tag, stamp.arrival) == claim.shown => {}
            _ => self.unproved.has_changed = true,
        }
    }
}
