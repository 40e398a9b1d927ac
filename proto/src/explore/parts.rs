//! Parts of a fabric in which no host has been found.
//!
//! Whoever is cabled to a port can answer as a tree of crossbars without end, but not as hosts: with keys
//! these prove themselves. So what an exploration spends on a part without hosts is bounded:
//!
//! - An xbar is *anchored* if a host is cabled to it, or if it lies on a way from one such xbar to another. A
//!   *part* is what was found behind one cable of an anchored xbar, if no anchored xbar is in it. It costs what its
//!   questions, ports and sights are worth.
//! - A part that costs much ([`LATE`]) is asked *late*: when nothing else can be asked, and with half of
//!   the window while answers to other questions are awaited. Its newest xbars are asked first, though
//!   only a few levels beyond the oldest one: so a host is found soon, if there is one, and then
//!   its xbars are anchored, and the part is no part any more.
//! - A part that costs too much ([`MOST`] and what all else did), or keeps the exploration waiting when all
//!   else is known, is left out of the map, and the port that leads to it is told. What is left out is the
//!   heaviest branch, as there may be hosts behind the others; in the end the rest, if there are none.
//! - A part that falls silent ends early: see `silence.rs`. Its port is taken for empty. If maps are found wrong
//!   again and again, the port is told as well ([`tell_silent_parts`](super::ExploreSettings::tell_silent_parts)):
//!   somebody there may be too slow for questions and yet answer when the map is verified.
//!
//! An xbar that is left out keeps its node, but neither ports nor tag: found again by another way it is
//! a new one.

mod branches;
mod left_out;

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::Explorer;
use super::greetings::Greeting;
use super::knowledge::At;
use super::request::Job;
use super::schedule::Class;
use crate::Instant;
use branches::Branches;
use left_out::Ending;
pub use left_out::PartLeftOut;

/// What a part may cost before it is asked late, in questions.
const LATE: u64 = 1 << 14;
/// What a part may cost in all, beside as much as all that leads to hosts did: thousands of xbars.
const MOST: u64 = 1 << 18;
/// What one more sight of an xbar costs, in questions: it takes memory.
const SIGHT: u64 = 10;
/// How many xbars a part that falls silent must have shown to be told.
const WORTH_TELLING: usize = 64;
/// How long parts may keep an exploration waiting, in time-outs of a question, beside a share of what all
/// that leads to hosts cost.
const PATIENCE: u32 = 256;
/// Questions that lead to hosts and lengthen the patience by one time-out.
const QUESTIONS_A_TIMEOUT: u64 = 64;
/// Answers between two looks at all parts; more in a large fabric.
const ANSWERS_A_LOOK: u32 = 256;
/// How many levels, from that of the oldest xbar on, are asked at a time. The newest xbars among them are asked
/// first.
const LEVELS: usize = 4;

/// What is known of parts without hosts, and which questions they still have: see the module.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Xbars that may have something to ask, late, by depth.
    late: BTreeSet<(usize, u32)>,
    /// Questions under way that were asked late.
    under_way: usize,
    /// Answers until all parts are looked at.
    until_look: u32,
    /// When something was last asked that is not late.
    asked_at: Option<Instant>,
    /// How long late questions may go on alone. `None` if there are none.
    patience: Option<Duration>,
    /// How many branches were left out as they cost too much.
    left_out: u32,
    /// The branches that were left out and are told.
    told: Vec<left_out::Told>,
    /// Late questions have just ended, so the whole graph is to be looked over once more.
    ended: bool,
    /// Xbars that are asked whether they are still there.
    pub(super) checks: VecDeque<u32>,
    /// Xbars that were asked so, and did not answer.
    pub(super) gone: Vec<u32>,
}

impl Parts {
    /// Counts a question that is asked late.
    pub(super) const fn began(&mut self) {
        self.under_way += 1;
    }

    /// Counts a late question that was answered or given up.
    pub(super) const fn done(&mut self) {
        self.under_way -= 1;
    }

    /// Notes when a question was asked that is not late.
    pub(super) const fn asked(&mut self, now: Instant) {
        self.asked_at = Some(now);
    }

    /// Has all parts looked at soon: one of them may have become none.
    pub(super) const fn look_soon(&mut self) {
        self.until_look = 0;
    }

    /// Whether an xbar may have something to ask, late.
    pub(super) fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Whether late questions have ended since this was last asked.
    pub(super) fn ended_just_now(&mut self) -> bool {
        std::mem::take(&mut self.ended)
    }

    /// Whether late questions alone went on for too long.
    fn is_out_of_patience(&self, now: Instant) -> bool {
        let alone = self.asked_at.map_or(Duration::ZERO, |at| now.since(at));
        self.patience.is_some_and(|patience| alone > patience)
    }

    /// Queues an xbar that may have something to ask late.
    pub(super) fn queue(&mut self, depth: usize, node: u32) {
        self.late.insert((depth, node));
    }
}

impl Explorer {
    /// The xbar in whose cause a question is asked, if it is known which.
    pub(super) fn xbar_of_job(&self, job: &Job) -> Option<u32> {
        let node = match *job {
            Job::FirstCable(_) | Job::Confirm { .. } => return None,
            Job::Port(at, _) | Job::Greet(Greeting { at, .. }) => at.node,
            Job::Identify(node) | Job::Recheck(node) => node,
            Job::Compare(compare) => compare.sight,
            Job::Prove(proof) => proof.claimant(),
        };
        Some(self.known.root(At { node, delta: 0 }).node)
    }

    /// Whether one more late question may be under way.
    pub(super) fn has_room_for_late(&self) -> bool {
        let late = self.parts.under_way;
        late < (self.settings.probe_window / 2).max(1) || late == self.pending.len()
    }

    /// The next late question, and its class.
    pub(super) fn next_late(&mut self) -> Option<(Job, Class)> {
        if !self.has_room_for_late() {
            return None;
        }
        let had_late = self.parts.has_late();
        while let Some(&(oldest, _)) = self.parts.late.first()
            && let Some(&(depth, node)) = self.parts.late.range(..(oldest + LEVELS, 0)).next_back()
        {
            if self.known.is_root(node) && self.known.xbar(node).late {
                let port = self.next_port(node).map(|job| (job, Class::Port));
                let glance = || self.next_glance(node).map(|job| (job, Class::Glance));
                let retry = || self.next_retry(node).map(|job| (job, Class::Retry));
                if let Some(job) = port.or_else(glance).or_else(retry) {
                    return Some(job);
                }
            }
            self.parts.late.remove(&(depth, node));
            if self.known.is_root(node) && !self.known.xbar(node).late {
                self.wake(node);
            }
        }
        if let Some(job) = self.next_late_proof() {
            return Some((job, Class::Port));
        }
        if had_late {
            (self.dirty, self.parts.ended) = (true, true);
        }
        self.next_of_studies(true).map(|job| (job, Class::Study))
    }

    /// Looks at all parts, if it is time to: a question was answered or given up.
    pub(super) fn look_at_parts(&mut self, now: Instant) {
        self.parts.until_look = self.parts.until_look.saturating_sub(1);
        if self.finished {
            return;
        }
        self.end_silent_parts();
        if self.parts.until_look > 0 && !self.parts.is_out_of_patience(now) {
            return;
        }
        self.dirty = true;
        loop {
            let tree = self.branches();
            let nodes = tree.branches.len() as u32;
            self.parts.until_look = ANSWERS_A_LOOK.max(nodes / 2);
            self.mark_late(&tree);
            let Some(branch) = self.too_costly(&tree, now) else { return };
            self.leave_out(&tree, branch, Ending::TooCostly);
            // The parts that are left get some more time, though less of it.
            self.parts.asked_at = Some(now);
        }
    }

    /// Settles which xbars are asked late.
    fn mark_late(&mut self, tree: &Branches) {
        let mut is_late = vec![false; tree.branches.len()];
        for (at, branch) in tree.branches.iter().enumerate() {
            let parent = branch.parent.filter(|&parent| !tree.branches[parent].anchored);
            is_late[at] = match parent {
                _ if branch.anchored => false,
                Some(parent) => is_late[parent],
                None => branch.cost > LATE,
            };
            let xbar = self.known.xbar_mut(branch.root);
            if xbar.left_out || xbar.late == is_late[at] {
                continue;
            }
            xbar.late = is_late[at];
            if !is_late[at] {
                self.wake(branch.root);
            }
        }
        let is_awaited = tree.branches.iter().zip(&is_late).any(|(branch, &late)| late && branch.busy);
        let shared = u32::try_from(tree.anchored_cost / QUESTIONS_A_TIMEOUT).unwrap_or(u32::MAX);
        let patience = self.settings.probe_timeout.saturating_mul(shared.saturating_add(PATIENCE));
        self.parts.patience = is_awaited.then(|| patience / (1 << self.parts.left_out.min(8)));
    }

    /// The branch that is not worth what it costs, or none.
    fn too_costly(&self, tree: &Branches, now: Instant) -> Option<usize> {
        // Each branch that was left out lowers what the next may cost, so that a stranger who tries again and
        // again gets less and less.
        let most = (MOST >> self.parts.left_out.min(4)) + tree.anchored_cost;
        let is_over = self.parts.is_out_of_patience(now);
        let busy = tree.tops().filter(|&top| tree.branches[top].busy);
        let top = busy.max_by_key(|&top| (tree.branches[top].cost, Reverse(top)))?;
        let cost = tree.branches[top].cost;
        (cost > most || (is_over && cost > LATE)).then(|| tree.branch_to_leave_out(top))
    }
}
