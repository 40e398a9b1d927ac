//! Which xbars with hosts are leaves.

use mapper_fabric::parts::Parts;

use super::{cabled_hosts, distances, neighbours};
use crate::Topology;

/// An xbar has *few* hosts if the fullest xbar of its part has at least this many times as many: these few
/// may be service adapters, or hosts of a leaf that is nearly empty.
const SHARE_OF_FEW: usize = 3;

/// The leaves, and the xbars with hosts that stand above them, both by rising number.
///
/// An xbar with many hosts is a leaf. One with few stands above the leaves if a cable joins it with an xbar of many,
/// or if it joins parts of the fabric as an upper tier of a tree does: see [`Many::are_joined_by`]. All that only
/// holds where every cable then joins neighbouring tiers; in any other part of the fabric all xbars with hosts are
/// leaves.
pub(super) fn find(topology: &Topology) -> (Vec<u32>, Vec<u32>) {
    let xbars = 0..topology.xbar_count() as u32;
    let hosts: Vec<usize> = xbars.clone().map(|xbar| cabled_hosts(topology, xbar)).collect();
    let mut fullest = vec![0; hosts.len()];
    for xbar in xbars.clone() {
        let fullest = &mut fullest[topology.component(xbar) as usize];
        *fullest = hosts[xbar as usize].max(*fullest);
    }
    let with_hosts: Vec<u32> = xbars.filter(|&xbar| hosts[xbar as usize] > 0).collect();
    let has_few =
        |xbar: u32| hosts[xbar as usize] * SHARE_OF_FEW <= fullest[topology.component(xbar) as usize];
    let (few, many): (Vec<u32>, Vec<u32>) = with_hosts.iter().partition(|&&xbar| has_few(xbar));
    if few.is_empty() {
        return (with_hosts, Vec::new());
    }
    let many = Many::new(topology, &many);
    let mut is_above = vec![false; hosts.len()];
    few.iter().for_each(|&xbar| is_above[xbar as usize] = many.are_joined_by(xbar));
    let leaves: Vec<u32> = with_hosts.iter().copied().filter(|&xbar| !is_above[xbar as usize]).collect();
    let is_tiered = tiered_parts(topology, &distances(topology, &leaves));
    with_hosts
        .into_iter()
        .partition(|&xbar| !(is_above[xbar as usize] && is_tiered[topology.component(xbar) as usize]))
}

/// The xbars with many hosts, and what stands above them.
struct Many<'a> {
    topology: &'a Topology,
    /// How many steps each xbar is above the nearest xbar with many hosts.
    heights: Vec<u32>,
    /// How many xbars with many hosts each part has; a part is named by its first xbar.
    of_part: Vec<usize>,
    /// For each part, the lowest height up to which cables join all its xbars with many hosts.
    joined_at: Vec<u32>,
}

impl<'a> Many<'a> {
    fn new(topology: &'a Topology, many: &[u32]) -> Self {
        let heights = distances(topology, many);
        let mut of_part = vec![0; heights.len()];
        many.iter().for_each(|&xbar| of_part[topology.component(xbar) as usize] += 1);
        let joined_at = joined_at(topology, &heights);
        Self { topology, heights, of_part, joined_at }
    }

    /// Whether an xbar with few hosts stands in a tier that joins xbars of many.
    ///
    /// An xbar next to one of many hosts does so. One further away does not if the xbars of many hosts are
    /// joined further down already. Otherwise ways down from it must lead to half as many again of these as
    /// ways down from any one xbar below it, because all spines of a leaf lead to the same ones, or nearly.
    /// In the tier that joins all xbars of many hosts, ways down must also lead to most of them.
    fn are_joined_by(&self, xbar: u32) -> bool {
        let part = self.topology.component(xbar) as usize;
        let height = self.heights[xbar as usize];
        if height <= 1 || height > self.joined_at[part] {
            return height == 1;
        }
        let mut below: Vec<u32> = self.below(xbar).collect();
        below.sort_unstable();
        below.dedup();
        let reached: Vec<Vec<u32>> = below.iter().map(|&head| self.reached_downwards(head)).collect();
        let most = reached.iter().map(Vec::len).max().unwrap_or_default();
        let mut all = reached.concat();
        all.sort_unstable();
        all.dedup();
        let joins_enough = height < self.joined_at[part] || 2 * all.len() > self.of_part[part];
        joins_enough && 2 * all.len() >= 3 * most
    }

    /// The xbars that an xbar's cables down lead to.
    fn below(&self, xbar: u32) -> impl Iterator<Item = u32> + '_ {
        let own = self.heights[xbar as usize];
        neighbours(self.topology, xbar).filter(move |&head| self.heights[head as usize] < own)
    }

    /// The xbars of many hosts that ways down from an xbar lead to.
    fn reached_downwards(&self, from: u32) -> Vec<u32> {
        let mut layer = vec![from];
        while layer.first().is_some_and(|&xbar| self.heights[xbar as usize] > 0) {
            let mut next: Vec<u32> = layer.iter().flat_map(|&xbar| self.below(xbar)).collect();
            next.sort_unstable();
            next.dedup();
            layer = next;
        }
        layer
    }
}

/// For each part, named by its first xbar, the lowest height up to which cables join all its xbars of height
/// 0.
fn joined_at(topology: &Topology, heights: &[u32]) -> Vec<u32> {
    let higher = |from: u32, to: u32| heights[from as usize].max(heights[to as usize]);
    let mut cables: Vec<(u32, u32)> = (0..heights.len() as u32)
        .flat_map(|xbar| {
            neighbours(topology, xbar).filter(move |&head| head < xbar).map(move |head| (head, xbar))
        })
        .collect();
    cables.sort_unstable_by_key(|&(from, to)| (higher(from, to), from, to));
    let mut parts = Parts::new(heights.len());
    let mut has_many: Vec<bool> = heights.iter().map(|&height| height == 0).collect();
    let mut joined_at = vec![0; heights.len()];
    for (from, to) in cables {
        let Some((a, b)) = parts.join(from, to) else { continue };
        if has_many[a as usize] && has_many[b as usize] {
            let part = topology.component(from) as usize;
            joined_at[part] = higher(from, to);
        }
        has_many[a as usize] |= has_many[b as usize];
    }
    joined_at
}

/// For each part of the fabric, named by its first xbar, whether all its cables join neighbouring tiers.
fn tiered_parts(topology: &Topology, heights: &[u32]) -> Vec<bool> {
    let mut is_tiered = vec![true; heights.len()];
    for xbar in 0..heights.len() as u32 {
        if neighbours(topology, xbar).any(|head| heights[xbar as usize].abs_diff(heights[head as usize]) != 1)
        {
            is_tiered[topology.component(xbar) as usize] = false;
        }
    }
    is_tiered
}
