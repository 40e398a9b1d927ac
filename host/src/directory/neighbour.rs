//! A neighbour in the tree by which records travel, and what it is to be asked or told.

use std::time::Duration;

use mapper_proto::{Instant, Mac};

use super::body::Compared;
use super::ranks::Ranks;
use super::table::Directory;
use super::{COMPARE_EVERY, FIRST_AFTER};

/// This host's parent or one of its children in the tree over the map's hosts.
#[derive(Debug)]
pub(super) struct Neighbour {
    pub(super) mac: Mac,
    /// When to compare with it. Only a child compares with its parent, so this is `None` for a child of this
    /// host.
    pub(super) compare_at: Option<Instant>,
    /// How long the next comparison waits if this one finds a difference.
    pub(super) compare_after: Duration,
    /// The moment before which it is asked nothing.
    pub(super) not_before: Instant,
    /// The moment before which it is told nothing more.
    pub(super) tell_after: Instant,
    /// The hosts of the map whose records it may not know.
    pub(super) untold: Ranks,
    /// Comparisons in a row that were not answered.
    pub(super) unanswered: u8,
    /// Whether it knew the same as this host when both compared last.
    pub(super) in_step: bool,
    pub(super) under_way: Option<UnderWay>,
}

/// A question that waits for its answer.
#[derive(Debug)]
pub(super) enum UnderWay {
    Compare,
    /// The records of these hosts were told.
    Tell(Vec<Mac>),
}

impl UnderWay {
    /// The hosts whose records are on their way.
    pub(super) fn told(&self) -> impl Iterator<Item = Mac> + '_ {
        let told = if let Self::Tell(told) = self { &told[..] } else { &[] };
        told.iter().copied()
    }
}

impl Neighbour {
    pub(super) fn new(mac: Mac, now: Instant) -> Self {
        Self {
            mac,
            compare_at: None,
            compare_after: FIRST_AFTER,
            not_before: now,
            tell_after: now,
            untold: Ranks::default(),
            unanswered: 0,
            in_step: false,
            under_way: None,
        }
    }

    /// When there is something to ask this neighbour. `None` while it has a question to answer.
    pub(super) fn due_at(&self) -> Option<Instant> {
        match (&self.under_way, self.untold.is_empty()) {
            (Some(_), _) => None,
            (None, false) => Some(self.not_before.max(self.tell_after)),
            (None, true) => Some(self.compare_at?.max(self.not_before)),
        }
    }

    /// Takes the answer to a comparison. What differs is told by both, and compared again soon: each time
    /// twice as late, as it may be something that one of them refuses.
    pub(super) fn compared(&mut self, now: Instant, directory: &Directory, answer: Compared) {
        self.unanswered = 0;
        self.in_step = answer.differing == 0;
        self.compare_after = if self.in_step { FIRST_AFTER } else { self.compare_after };
        self.compare_at = Some(now + if self.in_step { COMPARE_EVERY } else { self.compare_after });
        if !self.in_step {
            self.compare_after = (2 * self.compare_after).min(COMPARE_EVERY);
        }
        self.untold.extend(directory.ranks_in(answer.wanted));
    }
}
