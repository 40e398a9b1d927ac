//! Loads by tier, which show what storey of a fabric is busy, and how evenly.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Tiers, Topology};
use mapper_fabric::wording::plural;

/// Which way channels lead, seen from the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TierHeading {
    /// They lead away from hosts.
    Up,
    /// They stay within a tier.
    Level,
    /// They lead towards hosts.
    Down,
}

impl TierHeading {
    /// The direction in a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Level => "level",
            Self::Down => "down",
        }
    }
}

/// The loads of the channels from one tier to a neighbouring one.
///
/// A tier is the xbars as high above the leaves, as [`Tiers`] tells them: tier 0 is the leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct TierLoads {
    /// The tier that the channels leave.
    pub from_tier: u32,
    /// The tier that they arrive at.
    pub to_tier: u32,
    /// How many channels there are.
    pub channels: usize,
    /// Routes over the channel that fewest cross.
    pub min: f64,
    /// Routes over a channel, in the mean.
    pub mean: f64,
    /// Routes over the channel that most cross.
    pub max: f64,
    /// How many channels have how much load, in [`Self::BINS`] equal steps from 0 to [`Self::max`]. A load on
    /// the border of two steps counts in the upper one, and the maximum in the last.
    pub histogram: [u32; Self::BINS],
}

impl TierLoads {
    /// How many steps the histogram has.
    pub const BINS: usize = 10;

    /// Which way the channels lead.
    pub fn heading(&self) -> TierHeading {
        match self.from_tier.cmp(&self.to_tier) {
            std::cmp::Ordering::Less => TierHeading::Up,
            std::cmp::Ordering::Equal => TierHeading::Level,
            std::cmp::Ordering::Greater => TierHeading::Down,
        }
    }

    fn of(from_tier: u32, to_tier: u32, loads: &[f64]) -> Self {
        let max = loads.iter().copied().fold(0.0, f64::max);
        let mut histogram = [0; Self::BINS];
        for &load in loads {
            let bin = if max > 0.0 { (load / max * Self::BINS as f64) as usize } else { 0 };
            histogram[bin.min(Self::BINS - 1)] += 1;
        }
        Self {
            from_tier,
            to_tier,
            channels: loads.len(),
            min: loads.iter().copied().fold(max, f64::min),
            mean: loads.iter().sum::<f64>() / loads.len().max(1) as f64,
            max,
            histogram,
        }
    }
}

impl fmt::Display for TierLoads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "tier {} to {} ({}): {}, {:.0} to {:.0} routes each, mean {:.1}; in tenths of the most:",
            self.from_tier,
            self.to_tier,
            self.heading().name(),
            plural(self.channels, "channel"),
            self.min,
            self.max,
            self.mean
        )?;
        self.histogram.iter().try_for_each(|count| write!(f, " {count}"))
    }
}

/// The loads of the channels, summed up for each pair of tiers that channels join.
pub(super) fn by_tier(topology: &Topology, loads: &[f64]) -> Vec<TierLoads> {
    let groups = group_by_tier(topology, loads);
    groups.into_iter().map(|((from, to), loads)| TierLoads::of(from, to, &loads)).collect()
}

/// The loads of the channels from each tier to each other. Channels that no leaf reaches are left out.
pub fn group_by_tier(topology: &Topology, loads: &[f64]) -> BTreeMap<(u32, u32), Vec<f64>> {
    let tiers = Tiers::of(topology);
    let mut groups: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for (channel, &load) in (0..topology.channel_count() as u32).zip(loads) {
        let (tail, head) = (topology.tail(channel).xbar, topology.head(channel).xbar);
        if let (Some(from), Some(to)) = (tiers.height(tail), tiers.height(head)) {
            groups.entry((from, to)).or_default().push(load);
        }
    }
    groups
}
