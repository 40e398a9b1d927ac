//! The parent of an agent without a map: who it waits for.

use crate::Instant;
use crate::map::Rank;
use crate::wire::RoundTrip;

/// The parent that an agent without a map holds on to.
#[derive(Clone, Debug)]
pub(super) struct Parent {
    pub(super) rank: Rank,
    pub(super) way: RoundTrip,
    /// Met in the election, not named by a tree scout or a map.
    pub(super) provisional: bool,
    pub(super) last_heard: Instant,
    /// Queries in a row that had all their tries and no answer.
    pub(super) unanswered_queries: u8,
    /// When this agent began to wait for a map.
    pub(super) since: Instant,
}

impl Parent {
    /// One that was met in the election.
    pub(super) const fn met(rank: Rank, way: RoundTrip, now: Instant) -> Self {
        Self { rank, way, provisional: true, last_heard: now, unanswered_queries: 0, since: now }
    }

    /// One in the tree of a map. This agent has waited for a map since `since`.
    pub(super) const fn in_tree(rank: Rank, way: RoundTrip, now: Instant, since: Instant) -> Self {
        Self { rank, way, provisional: false, last_heard: now, unanswered_queries: 0, since }
    }

    /// Notes that it lives.
    pub(super) const fn hear(&mut self, now: Instant) {
        self.last_heard = now;
        self.unanswered_queries = 0;
    }
}
