//! What a host's spine covers.

use super::super::reach::Reach;
use super::super::spines::Spine;
use super::super::tree::Tree;

/// What one host's spine covers. An xbar is covered if the way up to the spine and then down along it is as
/// short as any other way from there.
pub(super) struct Cover<'a> {
    tree: &'a Tree<'a>,
    reach: &'a Reach,
    to: u32,
    spine: &'a Spine,
}

impl<'a> Cover<'a> {
    pub(super) fn new(tree: &'a Tree<'a>, reach: &'a Reach, to: u32, spine: &'a Spine) -> Self {
        Self { tree, reach, to, spine }
    }

    /// The xbars of the spine, with the steps up to each.
    fn steps(&self) -> impl Iterator<Item = (u8, u32)> {
        let topology = &self.tree.subnet.topology;
        let above = self.spine.channels().iter().map(|&channel| topology.head(channel).xbar);
        (0..).zip(std::iter::once(self.to).chain(above))
    }

    pub(super) fn covers(&self, xbar: u32) -> bool {
        let steps = self.reach.between(self.to, xbar);
        self.steps().any(|(up, top)| {
            self.reach.above(self.tree, top, xbar) && self.reach.between(top, xbar) + up == steps
        })
    }

    /// The xbars among those marked with 1 in `xbars` that are not covered and from which some way leads.
    /// `missing` is memory for a byte for each xbar, which is reused, as these passes over all xbars take
    /// most of the time.
    pub(super) fn missing(&self, xbars: &[u8], missing: &mut Vec<u8>) -> Option<Vec<u32>> {
        let steps = self.reach.of(self.to);
        missing.clear();
        missing.extend(xbars.iter().zip(steps).map(|(&xbar, &steps)| xbar & u8::from(steps != Reach::NONE)));
        for (up, top) in self.steps() {
            let rank = self.tree.rank(top);
            let below = self.reach.of(top).iter().zip(&self.tree.ranks.of).zip(steps);
            for (missing, ((&down, &low), &steps)) in missing.iter_mut().zip(below) {
                let covered = (rank.saturating_add(down) == low) & (down.wrapping_add(up) == steps);
                *missing &= u8::from(!covered);
            }
        }
        if missing.iter().fold(0, |any, &missing| any | missing) == 0 {
            return None;
        }
        Some((0..).zip(&*missing).filter(|(_, missing)| **missing == 1).map(|(xbar, _)| xbar).collect())
    }
}
