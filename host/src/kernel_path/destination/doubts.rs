//! Ways that are left because a cable on them is silent, while nobody knows whether it is the cable that is dead or the
//! agent at its end.

use std::collections::BTreeSet;

use mapper_proto::Instant;

use crate::kernel_path::Heard;

/// The ways that were left since the host at their end was last heard. As long as it is not heard, the kernels on these ways
/// are likelier to reach it than frames are, which its agent would have to deliver: where that has crashed, its kernel goes
/// on. Once it is heard, by another way, it is the cable that is dead.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// The numbers of the ways in doubt.
    ways: BTreeSet<u32>,
    /// The numbers of all ways that are left for silence.
    left: BTreeSet<u32>,
    /// When the latest of these ways was left.
    since: Instant,
}

impl Doubts {
    /// Takes in that these ways are left for silence now.
    pub(super) fn follow(&mut self, now: Instant, left: BTreeSet<u32>) {
        self.ways.retain(|way| left.contains(way));
        let before = std::mem::replace(&mut self.left, left);
        let others: BTreeSet<u32> = self.left.difference(&before).copied().collect();
        if !others.is_empty() {
            self.since = now;
            self.ways.extend(others);
        }
    }

    /// Takes in what is heard of the host. If nobody listens for it, nobody would ever hear it. Returns whether this ends doubts.
    pub(super) fn settle(&mut self, heard: Heard) -> bool {
        let is_heard = heard.at.is_some_and(|at| at > self.since);
        let is_over = self.are_there() && (is_heard || !heard.is_listened_for);
        if is_over {
            self.ways.clear();
        }
        is_over
    }

    pub(super) fn are_there(&self) -> bool {
        !self.ways.is_empty()
    }

    /// Whether it is in doubt that the way with this number is rightly left.
    pub(super) fn are_about(&self, way: u32) -> bool {
        self.ways.contains(&way)
    }
}
