//! All xbars as a tree, in which a part is a branch.

use std::collections::BTreeSet;

use super::SIGHT;
use crate::explore::Explorer;
use crate::explore::knowledge::At;
use crate::explore::xbar::Stage;

/// Branches of one part that are left out before the rest of it is, too.
const BRANCHES: u32 = 3;

/// An xbar in the tree of the ways by which xbars are reached.
pub(super) struct Branch {
    pub(super) root: u32,
    /// The xbar before it.
    pub(super) parent: Option<usize>,
    /// Whether a host is known on it, or on any xbar that is reached by it.
    pub(super) anchored: bool,
    /// What it cost, with all that is reached by it and does not lead to hosts.
    pub(super) cost: u64,
    /// Whether it has something to ask late, or something that is reached by it does.
    pub(super) busy: bool,
    /// How many branches were left out behind it.
    pub(super) left_out: u32,
    /// The costliest that is reached by it directly.
    pub(super) heaviest: Option<usize>,
}

/// All xbars, each behind the one by which it is reached.
pub(super) struct Branches {
    pub(super) branches: Vec<Branch>,
    /// What all that leads to hosts cost.
    pub(super) anchored_cost: u64,
}

impl Branches {
    /// The first xbar of each part.
    pub(super) fn tops(&self) -> impl Iterator<Item = usize> + '_ {
        let is_anchored = |parent: Option<usize>| parent.is_none_or(|parent| self.branches[parent].anchored);
        (0..self.branches.len())
            .filter(move |&at| !self.branches[at].anchored && is_anchored(self.branches[at].parent))
    }

    /// What to leave out of the part `top`.
    pub(super) fn branch_to_leave_out(&self, top: usize) -> usize {
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
    pub(super) fn within(&self, branch: usize) -> BTreeSet<u32> {
        let mut is_within = vec![false; self.branches.len()];
        for (at, it) in self.branches.iter().enumerate().skip(branch) {
            is_within[at] = at == branch || it.parent.is_some_and(|parent| is_within[parent]);
        }
        self.branches.iter().zip(is_within).filter_map(|(it, is)| is.then_some(it.root)).collect()
    }
}
impl Explorer {
    /// All xbars as a tree.
    pub(super) fn branches(&self) -> Branches {
        let mut order: Vec<(usize, u32)> =
            self.known.roots().map(|root| (self.known.depth(root), root)).collect();
        // The xbar before another on its way is nearer to us, so it comes first in this order.
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
            // The branch behind an anchored xbar is a part of its own, so its cost does not count for the xbar above.
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
}
