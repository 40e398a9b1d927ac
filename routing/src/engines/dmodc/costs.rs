//! How far xbars are from one destination.

use super::tiers::Tiers;

/// How far each xbar is from one destination, by going up and then down.
pub(super) struct Costs {
    /// The hops from each xbar.
    hops: Vec<u8>,
    /// Which xbars get there by going down only.
    goes_down: Vec<bool>,
}

impl Costs {
    const NONE: u8 = u8::MAX;

    /// The costs from all xbars to a destination.
    pub(super) fn to(tiers: &Tiers, end: u32) -> Self {
        let xbars = tiers.from_top.len();
        let mut costs = Self { hops: vec![Self::NONE; xbars], goes_down: vec![false; xbars] };
        costs.hops[end as usize] = 0;
        costs.goes_down[end as usize] = true;
        let mut queue = vec![end];
        let mut next = 0;
        while let Some(&xbar) = queue.get(next) {
            next += 1;
            for &above in tiers.up.of(xbar) {
                if !costs.goes_down[above as usize] {
                    costs.goes_down[above as usize] = true;
                    costs.hops[above as usize] = costs.hops[xbar as usize] + 1;
                    queue.push(above);
                }
            }
        }
        // All higher xbars are known before the first xbar of a class is looked at.
        let mut of_class = vec![None; tiers.classes.count];
        for &xbar in tiers.from_top.iter().filter(|&&xbar| !costs.goes_down[xbar as usize]) {
            let hops = of_class[tiers.classes.of(xbar)].get_or_insert_with(|| {
                let above = tiers.up.of(xbar).iter().map(|&above| costs.hops[above as usize]);
                above.min().unwrap_or(Self::NONE).saturating_add(1)
            });
            costs.hops[xbar as usize] = *hops;
        }
        costs
    }

    /// All steps down towards the destination, as the xbar and the place of the next among its neighbours below:
    /// the steps of an xbar together, by rising place.
    pub(super) fn steps_down(&self, tiers: &Tiers, end: u32) -> Vec<(u32, u32)> {
        let mut steps = Vec::new();
        let mut queue = vec![end];
        let mut is_queued = vec![false; self.hops.len()];
        let mut next = 0;
        while let Some(&xbar) = queue.get(next) {
            next += 1;
            for &above in tiers.up.of(xbar) {
                if self.hops(above) != self.hops(xbar) + 1 {
                    continue;
                }
                if let Ok(place) = tiers.down.of(above).binary_search(&xbar) {
                    steps.push((above, place as u32));
                }
                if !std::mem::replace(&mut is_queued[above as usize], true) {
                    queue.push(above);
                }
            }
        }
        steps.sort_unstable();
        steps
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
