//! How far xbars are from one destination.

use super::tiers::Tiers;

/// How far each xbar is from one destination, by going up and then down.
pub(super) struct Costs {
    /// Hops, by xbar.
    hops: Vec<u8>,
    /// Which xbars get there by going down only.
    goes_down: Vec<bool>,
}

impl Costs {
    const NONE: u8 = u8::MAX;

    /// From all xbars to a destination.
    pub(super) fn to(tiers: &Tiers, end: u32) -> Self {
        let xbars = tiers.from_top.len();
        let mut costs = Self { hops: vec![Self::NONE; xbars], goes_down: vec![false; xbars] };
        costs.hops[end as usize] = 0;
        costs.goes_down[end as usize] = true;
        let mut queue = vec![end];
        let mut next = 0;
        while let Some(&xbar) = queue.get(next) {
            next += 1;
            for group in &tiers.up[xbar as usize] {
                if !costs.goes_down[group.xbar as usize] {
                    costs.goes_down[group.xbar as usize] = true;
                    costs.hops[group.xbar as usize] = costs.hops[xbar as usize] + 1;
                    queue.push(group.xbar);
                }
            }
        }
        // All that is higher is known before an xbar is looked at.
        for &xbar in tiers.from_top.iter().filter(|&&xbar| !costs.goes_down[xbar as usize]) {
            let above = tiers.up[xbar as usize].iter().map(|group| costs.hops[group.xbar as usize]);
            let least = above.min().unwrap_or(Self::NONE);
            costs.hops[xbar as usize] = least.saturating_add(1);
        }
        costs
    }

    /// Hops from an xbar.
    pub(super) fn hops(&self, xbar: u32) -> u8 {
        self.hops[xbar as usize]
    }

    /// Whether there is a way from an xbar.
    pub(super) fn reaches(&self, xbar: u32) -> bool {
        self.hops[xbar as usize] != Self::NONE
    }

    /// Whether the way from an xbar goes down only.
    pub(super) fn goes_down(&self, xbar: u32) -> bool {
        self.goes_down[xbar as usize]
    }
}
