//! A neighbour in the tree by which records travel, and what it is to be asked or told.

use std::time::Duration;

use mapper_proto::{Instant, Mac};

use super::body::Compared;
use super::ranks::Ranks;
use super::table::Directory;
use super::{AGAIN_AFTER, CHILDREN_AFTER, COMPARE_EVERY, FIRST_AFTER};

/// This host's parent or one of its children in the tree over the map's hosts.
#[derive(Debug)]
pub(super) struct Neighbour {
    pub(super) mac: Mac,
    /// Whether it is this host's parent, and no child.
    pub(super) is_parent: bool,
    /// When to compare with it. It is the child that compares with its parent; `None` for a child of this host, unless this host has
    /// just started, and the child has not compared yet.
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
            is_parent: false,
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

    /// Takes in that this host begins to use a map, which is the first since its start or not. A child compares by itself when it
    /// gets a map. It may have this one for long, and know what only this host could tell the rest, so a host that has started asks
    /// those children that have not compared a while later.
    pub(super) fn map_changed(&mut self, now: Instant, is_parent: bool, is_first_map: bool) {
        self.is_parent = is_parent;
        let compare_after = if is_parent { FIRST_AFTER } else { CHILDREN_AFTER };
        self.compare_at = (is_parent || is_first_map).then_some(now + compare_after);
        (self.compare_after, self.unanswered, self.not_before) = (FIRST_AFTER, 0, now + FIRST_AFTER);
    }

    /// Takes in that this neighbour has compared by itself.
    pub(super) fn has_compared(&mut self) {
        self.compare_at = self.compare_at.filter(|_| self.is_parent);
    }

    /// Takes in that this neighbour does not know all that this host does. If it is the parent, it is compared with again soon. A
    /// child compares by itself as soon as it has a map that lists all.
    pub(super) fn compare_soon(&mut self, now: Instant) {
        self.in_step = false;
        self.compare_at = self.is_parent.then_some(now + self.compare_after);
        self.compare_after = (2 * self.compare_after).min(AGAIN_AFTER);
    }

    /// Takes the answer to a comparison. What differs is told by both, and compared again soon: each time
    /// twice as late, up to [`AGAIN_AFTER`], as it may be something that one of them refuses.
    pub(super) fn compared(&mut self, now: Instant, directory: &Directory, answer: Compared) {
        self.unanswered = 0;
        self.in_step = answer.differing == 0;
        if self.in_step {
            self.compare_after = FIRST_AFTER;
            self.compare_at = self.is_parent.then_some(now + COMPARE_EVERY);
        } else {
            self.compare_soon(now);
        }
        self.untold.extend(directory.ranks_in(answer.wanted));
    }
}
