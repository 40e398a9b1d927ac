//! How far xbars are from one destination.

use super::tiers::Tiers;

/// How far each xbar is from one destination, by going up and then down.
pub(super) struct Costs<'a> {
    tiers: &'a Tiers,
    /// The hops from each xbar that gets there by going down only.
    down: Vec<u8>,
    /// These xbars, the nearest first.
    nearest: Vec<u32>,
    /// The hops from the other xbars of each class.
    of_class: Vec<u8>,
}

impl<'a> Costs<'a> {
    /// The hops from where no way leads.
    pub(super) const NONE: u8 = u8::MAX;

    /// The costs from all xbars to a destination.
    pub(super) fn to(tiers: &'a Tiers, end: u32) -> Self {
        let mut down = vec![Self::NONE; tiers.from_top.len()];
        down[end as usize] = 0;
        let mut nearest = vec![end];
        let mut next = 0;
        while let Some(&xbar) = nearest.get(next) {
            next += 1;
            for &above in tiers.up.of(xbar) {
                if down[above as usize] == Self::NONE {
                    down[above as usize] = down[xbar as usize] + 1;
                    nearest.push(above);
                }
            }
        }
        let mut costs = Self { tiers, down, nearest, of_class: vec![Self::NONE; tiers.classes.count()] };
        // All higher xbars are known before the first xbar of a class is looked at.
        for &xbar in tiers.classes.firsts_from_top() {
            let above = tiers.up.of(xbar).iter().map(|&above| costs.hops(above));
            costs.of_class[tiers.classes.of(xbar)] = above.min().unwrap_or(Self::NONE).saturating_add(1);
        }
        costs
    }

    /// All steps down towards the destination, as the xbar and the place of the next among its neighbours below:
    /// the steps of an xbar together, by rising place. Xbars stand in no particular order.
    pub(super) fn steps_down(&self) -> Vec<(u32, u32)> {
        let tiers = self.tiers;
        let mut steps = Vec::with_capacity(self.nearest.len());
        for &xbar in &self.nearest {
            for (&above, &place) in tiers.up.of(xbar).iter().zip(tiers.places_below(xbar)) {
                if self.down[above as usize] == self.down[xbar as usize] + 1 {
                    steps.push((above, place));
                }
            }
        }
        // In a tree one step leads down from each xbar but the destination.
        if steps.len() >= self.nearest.len() {
            steps.sort_unstable_by_key(|&(xbar, place)| u64::from(xbar) << 32 | u64::from(place));
        }
        steps
    }

    /// Hops from an xbar.
    pub(super) fn hops(&self, xbar: u32) -> u8 {
        match self.down[xbar as usize] {
            Self::NONE => self.hops_upwards(xbar),
            hops => hops,
        }
    }

    /// Hops from an xbar by a way that goes up at first.
    pub(super) fn hops_upwards(&self, xbar: u32) -> u8 {
        self.of_class[self.tiers.classes.of(xbar)]
    }

    /// Whether there is a way from an xbar.
    pub(super) fn reaches(&self, xbar: u32) -> bool {
        self.hops(xbar) != Self::NONE
    }

    /// Whether the way from an xbar goes down only.
    pub(super) fn goes_down(&self, xbar: u32) -> bool {
        self.down[xbar as usize] != Self::NONE
    }
}
