//! Parts of a fabric in which no host has been found.
//!
//! Whoever is cabled to a port can answer as a tree of crossbars without end, but not as hosts: with keys
//! these prove themselves. So what an exploration spends on a part without hosts is bounded:
//!
//! - A *part* is what was found behind one cable of an xbar that leads to hosts (an *anchored* one), and
//!   neither leads to any nor back to another anchored one. It costs what its questions, ports and sights are worth.
//! - A part that costs much ([`LATE`]) is asked *late*: when nothing else can be asked, and with half of
//!   the window while answers to other questions are awaited. Its newest xbars are asked first, though
//!   only a few levels beyond the oldest one: so a host is found soon, if there is one, and then
//!   the part is none any more.
//! - A part that costs too much ([`MOST`] and what all else did), or keeps the exploration waiting when all
//!   else is known, is left out of the map, and the port that leads to it is told. What is left out is the
//!   heaviest branch, as there may be hosts behind the others; in the end the rest, if there are none.
//! - A part that falls silent ends early: see `silence.rs`.
//!
//! An xbar that is left out keeps its node, but neither ports nor tag: found again by another way it is
//! a new one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use super::Explorer;
use super::greetings::Greeting;
use super::knowledge::{At, Far};
use super::request::Job;
use super::schedule::Class;
use super::xbar::Stage;
use crate::Instant;
use crate::map::{Place, PortRef};

/// What a part may cost before it is asked late.
const LATE: u64 = 1 << 14;
/// What a part may cost in all, beside as much as all that leads to hosts did: thousands of xbars.
const MOST: u64 = 1 << 18;
/// What one more sight of an xbar costs, in questions: it takes memory.
const SIGHT: u64 = 8;
/// How long parts may keep an exploration waiting, in time-outs of a question, beside a share of what all
/// that leads to hosts cost.
const PATIENCE: u32 = 256;
/// Questions that lead to hosts and lengthen the patience by one time-out.
const QUESTIONS_A_TIMEOUT: u64 = 64;
/// Answers between two looks at all parts; more in a large fabric.
const ANSWERS_A_LOOK: u32 = 256;
/// Branches of one part that are left out before the rest of it is, too.
const BRANCHES: u32 = 3;
/// How many levels beyond the oldest xbar those are that are asked before it.
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
    /// The ports that lead to these, and of how many xbars they were.
    told: Vec<(At, usize)>,
    /// Late questions have just ended, so the whole graph is to be looked over once more.
    ended: bool,
    /// Xbars that are asked whether they are still there.
    pub(super) checks: VecDeque<u32>,
    /// Xbars that were asked so, and did not answer.
    pub(super) gone: Vec<u32>,
}

/// A part of the fabric that a map leaves out: whatever is there answers as crossbars do, to more questions
/// than a part without hosts is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartLeftOut {
    /// The port behind which it is.
    pub place: Place,
    /// How many crossbars it showed.
    pub xbars: usize,
}

impl fmt::Display for PartLeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, xbars } = self;
        write!(
            f,
            "behind {place} something answers without end: {xbars} crossbars so far, and no host, is more than \
             can be believed; it is left out of the map: see what is plugged in there"
        )
    }
}

/// An xbar in the tree of the ways by which xbars are reached.
struct Branch {
    root: u32,
    /// The xbar before it.
    parent: Option<usize>,
    /// Whether a host is known on it, or on any xbar that is reached by it.
    anchored: bool,
    /// What it cost, with all that is reached by it and does not lead to hosts.
    cost: u64,
    /// Whether it has something to ask late, or something that is reached by it does.
    busy: bool,
    /// How many branches were left out behind it.
    left_out: u32,
    /// The costliest that is reached by it directly.
    heaviest: Option<usize>,
}

/// All xbars, each behind the one by which it is reached.
struct Branches {
    branches: Vec<Branch>,
    /// What all that leads to hosts cost.
    anchored_cost: u64,
}

impl Branches {
    /// The first xbar of each part.
    fn tops(&self) -> impl Iterator<Item = usize> + '_ {
        let is_anchored = |parent: Option<usize>| parent.is_none_or(|parent| self.branches[parent].anchored);
        (0..self.branches.len())
            .filter(move |&at| !self.branches[at].anchored && is_anchored(self.branches[at].parent))
    }

    /// What to leave out of the part `top`.
    fn branch_to_leave_out(&self, top: usize) -> usize {
        let mut at = top;
        if self.branches[top].left_out >= BRANCHES {
            return top;
        }
        while let Some(next) = self.branches[at].heaviest
            && self.branches[next].cost * 2 > self.branches[at].cost
        {
            at = next;
        }
        at
    }

    /// The xbars of a branch.
    fn within(&self, branch: usize) -> BTreeSet<u32> {
        let mut is_within = vec![false; self.branches.len()];
        for (at, it) in self.branches.iter().enumerate().skip(branch) {
            is_within[at] = at == branch || it.parent.is_some_and(|parent| is_within[parent]);
        }
        self.branches.iter().zip(is_within).filter_map(|(it, is)| is.then_some(it.root)).collect()
    }
}

impl Parts {
    /// The question was asked late.
    pub(super) const fn began(&mut self) {
        self.under_way += 1;
    }

    /// A late question was answered or given up.
    pub(super) const fn done(&mut self) {
        self.under_way -= 1;
    }

    /// Something was asked that is not late.
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

    /// An xbar may have something to ask, late.
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
            self.leave_out(&tree, branch, true);
            // The parts that are left get some more time, though less of it.
            self.parts.asked_at = Some(now);
        }
    }

    /// Leaves out what cost most. False if there is nothing that may be.
    pub(super) fn leave_out_heaviest(&mut self) -> bool {
        let tree = self.branches();
        let live = tree.tops().filter(|&top| tree.branches[top].cost > 0);
        let Some(top) = live.max_by_key(|&top| tree.branches[top].cost) else { return false };
        self.leave_out(&tree, tree.branch_to_leave_out(top), true);
        true
    }

    /// All xbars as a tree.
    fn branches(&self) -> Branches {
        let mut order: Vec<(usize, u32)> =
            self.known.roots().map(|root| (self.known.depth(root), root)).collect();
        // Who comes before an xbar is nearer to us.
        order.sort_unstable();
        let mut places = vec![0; self.known.nodes()];
        for (place, &(_, root)) in order.iter().enumerate() {
            places[root as usize] = place;
        }
        let place_of = |at: At| places[self.known.root(at).node as usize];
        let mut branches: Vec<Branch> = order
            .iter()
            .map(|&(depth, root)| {
                let xbar = self.known.xbar(root);
                let asks = self.parts.late.contains(&(depth, root))
                    || xbar.waiting > 0
                    || xbar.identify_waiting
                    || matches!(xbar.stage, Stage::Studied | Stage::Compared);
                Branch {
                    root,
                    parent: self.known.parent(xbar.via).map(place_of),
                    anchored: xbar.hosted,
                    cost: if xbar.left_out { 0 } else { xbar.cost(SIGHT) },
                    busy: asks && !xbar.left_out,
                    left_out: xbar.branches_left_out,
                    heaviest: None,
                }
            })
            .collect();
        self.anchor(&mut branches, place_of);
        let mut anchored_cost = 0;
        for at in (0..branches.len()).rev() {
            let Branch { parent, anchored, cost, busy, left_out, .. } = branches[at];
            anchored_cost += if anchored { cost } else { 0 };
            // What is behind an anchored xbar is a part of its own, and does not count as that xbar's.
            let Some(parent) = parent.filter(|&parent| !branches[parent].anchored) else { continue };
            let heaviest = branches[parent].heaviest.map_or(0, |at| branches[at].cost);
            let parent = &mut branches[parent];
            parent.cost += cost;
            parent.busy |= busy;
            parent.left_out += left_out;
            if cost > heaviest {
                parent.heaviest = Some(at);
            }
        }
        Branches { branches, anchored_cost }
    }

    /// Finds the anchored xbars: those with hosts, and those on a way from one of them to another that uses
    /// no cable twice. A stranger at one port has no second cable to what is anchored.
    fn anchor(&self, branches: &mut [Branch], place_of: impl Fn(At) -> usize) {
        let mut todo: Vec<usize> = (0..branches.len()).filter(|&at| branches[at].anchored).collect();
        for &at in &todo {
            branches[at].anchored = false;
        }
        while let Some(mut next) = todo.pop().map(Some) {
            while let Some(at) = next.filter(|&at| !branches[at].anchored) {
                branches[at].anchored = true;
                let beyond = self.known.neighbours(branches[at].root).filter(|&far| {
                    let via = self.known.xbar(far.node).via;
                    // The cable by which it was found leads to everything.
                    !branches[place_of(far)].anchored && self.known.root(At { node: via, delta: 0 }) != far
                });
                todo.extend(beyond.map(&place_of));
                next = branches[at].parent;
            }
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
        // Who tries again and again gets less and less.
        let most = (MOST >> self.parts.left_out.min(4)) + tree.anchored_cost;
        let is_over = self.parts.is_out_of_patience(now);
        let busy = tree.tops().filter(|&top| tree.branches[top].busy);
        let top = busy.max_by_key(|&top| (tree.branches[top].cost, Reverse(top)))?;
        let cost = tree.branches[top].cost;
        (cost > most || (is_over && cost > LATE)).then(|| tree.branch_to_leave_out(top))
    }

    /// Leaves a branch out: nothing more is asked of it, and what was learned of it is forgotten. It is
    /// `told` unless it is not there any more.
    fn leave_out(&mut self, tree: &Branches, branch: usize, told: bool) {
        let within = tree.within(branch);
        let is_within =
            |known: &super::Knowledge, node: u32| within.contains(&known.root(At { node, delta: 0 }).node);
        let entry = self.known.parent(self.known.xbar(tree.branches[branch].root).via);
        let stopped: Vec<u32> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.job.nodes().any(|node| is_within(&self.known, node)))
            .map(|(&id, _)| id)
            .collect();
        for pending in stopped.iter().filter_map(|id| self.pending.remove(id)).collect::<Vec<_>>() {
            self.note_done(&pending);
            if let Job::Prove(proof) = pending.job {
                self.release(&proof);
            }
        }
        for proof in self.proofs.take_all() {
            if Job::Prove(proof).nodes().any(|node| is_within(&self.known, node)) {
                self.release(&proof);
            } else {
                self.proofs.push(proof);
            }
        }
        let known = &self.known;
        self.compares.retain(|compare| !Job::Compare(*compare).nodes().any(|node| is_within(known, node)));
        self.greetings.retain(|greeting| !is_within(known, greeting.at.node));
        self.studies.retain(|&sight| !is_within(known, sight));
        self.parts.checks.retain(|&node| !is_within(known, node));
        // Xbars beside the branch may lead to it by a better way, so their ports that lead there are asked
        // again.
        let beside: Vec<At> = within
            .iter()
            .flat_map(|&root| self.known.neighbours(root))
            .filter(|&at| {
                !is_within(&self.known, at.node) && entry.map(|entry| self.known.root(entry)) != Some(at)
            })
            .collect();
        for at in beside {
            self.known.xbar_mut(at.node).forget_port(at.delta);
            self.wake(at.node);
        }
        self.known.forget_tags(|known, node| is_within(known, node));
        for &root in &within {
            self.known.xbar_mut(root).leave_out();
        }
        self.dirty = true;
        if !told {
            return;
        }
        self.known.xbar_mut(tree.branches[branch].root).branches_left_out =
            tree.branches[branch].left_out + 1;
        self.parts.left_out += 1;
        // What lies within this branch need not be told again.
        let known = &self.known;
        self.parts.told.retain(|&(at, _)| !is_within(known, at.node));
        if let Some(entry) = entry {
            self.parts.told.push((entry, within.len()));
            self.proofs.disbelieve_port(entry);
        }
    }

    /// Leaves out all of the parts of which a branch was left out: they have no hosts, so nobody needs the
    /// rest, and it may be a stranger's too.
    pub(super) fn leave_out_rests(&mut self) {
        if self.parts.left_out == 0 {
            return;
        }
        let tree = self.branches();
        let is_rest = |top: &usize| {
            let branch = &tree.branches[*top];
            branch.left_out > 0 && !self.known.xbar(branch.root).left_out
        };
        for top in tree.tops().filter(is_rest).collect::<Vec<_>>() {
            self.leave_out(&tree, top, true);
        }
    }

    /// Ends what is known only by xbars that are not there any more.
    fn end_silent_parts(&mut self) {
        if self.parts.gone.is_empty() {
            return;
        }
        let mut gone = std::mem::take(&mut self.parts.gone);
        // The nearest comes first: all that is behind the others is behind it, too.
        gone.sort_by_key(|&node| self.known.depth(node));
        for node in gone {
            let root = self.known.root(At { node, delta: 0 }).node;
            let tree = self.branches();
            let at = tree.branches.iter().position(|branch| branch.root == root && !branch.anchored);
            if let Some(at) = at.filter(|_| !self.known.xbar(root).left_out) {
                self.leave_out(&tree, at, false);
            }
        }
    }

    /// The parts that the map leaves out, and where they are, once there is a map.
    pub fn parts_left_out(&self) -> Vec<PartLeftOut> {
        if self.parts.told.is_empty() {
            return Vec::new();
        }
        let Ok(numbers) = self.numbering(&self.disbelieved_xbars()) else { return Vec::new() };
        let told = self.parts.told.iter().filter_map(|&(at, xbars)| {
            let at = self.known.root(at);
            let found_otherwise = self.known.xbar(at.node).far(at.delta).is_some_and(
                |far| matches!(self.known.far_root(far), Far::Xbar(far) if numbers.contains_key(&far.node)),
            );
            let at_port = self.place(&numbers, at).filter(|_| !found_otherwise)?;
            let tag = self.known.xbar(at.node).tag.map(|tag| tag.tag);
            Some(PartLeftOut { place: Place { at: at_port, tag }, xbars })
        });
        told.collect()
    }

    /// A port by its number in the map to be.
    pub(super) fn place(&self, numbers: &BTreeMap<u32, u32>, at: At) -> Option<PortRef> {
        let at = self.known.root(at);
        let &xbar = numbers.get(&at.node)?;
        let port = u8::try_from(at.delta - self.first_port(self.known.xbar(at.node))).ok()?;
        Some(PortRef { xbar, port })
    }
}
