//! What is left out of a map, and what becomes of all that is known of it.

use std::collections::BTreeMap;
use std::fmt;

use super::WORTH_TELLING;
use super::branches::Branches;
use crate::explore::knowledge::{At, Far};
use crate::explore::request::Job;
use crate::explore::{Explorer, Knowledge};
use crate::map::{Place, PortRef};

/// A part of the fabric that a map leaves out: whatever is there answers as crossbars do, to more questions
/// than a part without hosts is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartLeftOut {
    /// The port behind which it is.
    pub place: Place,
    /// How many crossbars it showed.
    pub xbars: usize,
    /// Whether it fell silent before all of it was known.
    pub fell_silent: bool,
}

/// Why nothing more is asked of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// It is not worth what it costs.
    TooCostly,
    /// It fell silent, and answers again each time that a map is verified.
    SilentAgain,
    /// It is not there any more.
    Gone,
}

/// A branch that was left out, and is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// The port that leads to it.
    at: At,
    /// How many xbars it had.
    xbars: usize,
    fell_silent: bool,
}

impl fmt::Display for PartLeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, xbars, fell_silent } = self;
        let why = match fell_silent {
            false => format!(
                "something answers without end: {xbars} crossbars so far, and no host, is more than can be believed"
            ),
            true => format!("{xbars} crossbars answer now and then, and no host"),
        };
        write!(f, "behind {place} {why}; it is left out of the map: see what is plugged in there")
    }
}

impl Explorer {
    /// Leaves out the branch that cost most. Returns false if there is none that may be left out.
    pub(in crate::explore) fn leave_out_heaviest(&mut self) -> bool {
        let tree = self.branches();
        let live = tree.tops().filter(|&top| tree.branches[top].cost > 0);
        let Some(top) = live.max_by_key(|&top| tree.branches[top].cost) else { return false };
        self.leave_out(&tree, tree.branch_to_leave_out(top), Ending::TooCostly);
        true
    }

    /// Leaves a branch out: nothing more is asked of it, and what was learned of it is forgotten. It is
    /// told unless it is gone.
    pub(super) fn leave_out(&mut self, tree: &Branches, branch: usize, ending: Ending) {
        let within = tree.within(branch);
        let is_within =
            |known: &Knowledge, node: u32| within.contains(&known.root(At { node, delta: 0 }).node);
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
        self.belated.retain(|job| !job.nodes().any(|node| is_within(known, node)));
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
        if ending == Ending::Gone {
            if let Some(at) = entry {
                self.empty_port(at);
            }
            return;
        }
        self.known.xbar_mut(tree.branches[branch].root).branches_left_out =
            tree.branches[branch].left_out + 1;
        self.parts.left_out += 1;
        // Branches that were left out within this one need not be told any more.
        let known = &self.known;
        self.parts.told.retain(|told| !is_within(known, told.at.node));
        if let Some(at) = entry {
            let fell_silent = ending == Ending::SilentAgain;
            self.parts.told.push(Told { at, xbars: within.len(), fell_silent });
            self.proofs.disbelieve_port(at);
        }
    }

    /// Takes a port for empty whose far end is not there any more. It is not asked again: whoever answers and falls
    /// silent in turn must not keep the exploration busy. The map does not show it in use, so the span of a plain
    /// xbar, by which its ports are numbered, must not count it either.
    fn empty_port(&mut self, at: At) {
        let at = self.known.root(at);
        let port = self.known.xbar_mut(at.node).port_mut(at.delta);
        port.far = None;
        port.settle();
    }

    /// Leaves out all of the parts of which a branch was left out: they have no hosts, so nobody needs the
    /// rest, and it may be a stranger's too.
    pub(in crate::explore) fn leave_out_rests(&mut self) {
        if self.parts.left_out == 0 {
            return;
        }
        let all_silent = self.parts.told.iter().all(|told| told.fell_silent);
        let ending = if all_silent { Ending::SilentAgain } else { Ending::TooCostly };
        let tree = self.branches();
        let is_rest = |top: &usize| {
            let branch = &tree.branches[*top];
            branch.left_out > 0 && !self.known.xbar(branch.root).left_out
        };
        for top in tree.tops().filter(is_rest).collect::<Vec<_>>() {
            self.leave_out(&tree, top, ending);
        }
    }

    /// Leaves out what is reached only by xbars that are not there any more.
    pub(super) fn end_silent_parts(&mut self) {
        if self.parts.gone.is_empty() {
            return;
        }
        let mut gone = std::mem::take(&mut self.parts.gone);
        // The nearest comes first, as what is behind the others may be behind it, too.
        gone.sort_by_key(|&node| self.known.depth(node));
        for node in gone {
            let root = self.known.root(At { node, delta: 0 }).node;
            let tree = self.branches();
            let at = tree.branches.iter().position(|branch| branch.root == root && !branch.anchored);
            if let Some(at) = at.filter(|_| !self.known.xbar(root).left_out) {
                let is_told = self.settings.tell_silent_parts && tree.within(at).len() >= WORTH_TELLING;
                self.leave_out(&tree, at, if is_told { Ending::SilentAgain } else { Ending::Gone });
            }
        }
    }

    /// The parts that the map leaves out, and where they are, once there is a map.
    pub fn parts_left_out(&self) -> Vec<PartLeftOut> {
        if self.parts.told.is_empty() {
            return Vec::new();
        }
        let Ok(numbers) = self.numbering(&self.disbelieved_xbars()) else { return Vec::new() };
        let told = self.parts.told.iter().filter_map(|&Told { at, xbars, fell_silent }| {
            let at = self.known.root(at);
            let found_otherwise = self.known.xbar(at.node).far(at.delta).is_some_and(
                |far| matches!(self.known.far_root(far), Far::Xbar(far) if numbers.contains_key(&far.node)),
            );
            let at_port = self.place(&numbers, at).filter(|_| !found_otherwise)?;
            let tag = self.known.xbar(at.node).tag.map(|tag| tag.tag);
            Some(PartLeftOut { place: Place { at: at_port, tag }, xbars, fell_silent })
        });
        told.collect()
    }

    /// A port by its number in the map to be.
    pub(in crate::explore) fn place(&self, numbers: &BTreeMap<u32, u32>, at: At) -> Option<PortRef> {
        let at = self.known.root(at);
        let &xbar = numbers.get(&at.node)?;
        let port = u8::try_from(at.delta - self.first_port(self.known.xbar(at.node))).ok()?;
        Some(PortRef { xbar, port })
    }
}
