//! How high each xbar stands. The shape of a fabric tells that, and not who has a host.
//!
//! Switches of real clusters carry service adapters (a SHARP aggregation node, a management host, a gateway), and
//! spines do too. Such an adapter makes no leaf of a spine. [`Tiers`] says which xbars are leaves and how many steps
//! the others stand above them, and all that ranks xbars takes it from here: engines, the agents' orientation, the
//! measures of quality, the descriptions and the drawings.
//!
//! 1. `leaves`: which xbars with hosts are leaves, and which stand above them.
//! 2. `meeting`: which leaves no way up and then down joins.
//! 3. `one_top`: an order of xbars for routes up and then down that joins the adapters of spines, too.

mod leaves;
mod meeting;
mod one_top;
#[cfg(test)]
mod tests;

pub(crate) use meeting::leaves_apart;
pub(crate) use one_top::with_one_top;

use crate::{Attachment, Topology};

/// How high each xbar stands above the leaves.
///
/// It is a function of the topology alone, so agents that hold the same map agree on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    heights: Vec<u32>,
    leaves: Vec<u32>,
    served: Vec<u32>,
}

impl Tiers {
    /// The height of an xbar that no leaf reaches.
    pub const UNREACHED: u32 = u32::MAX;

    /// The tiers of a topology, over its live cables.
    pub fn of(topology: &Topology) -> Self {
        let (leaves, served) = leaves::find(topology);
        Self { heights: distances(topology, &leaves), leaves, served }
    }

    /// By xbar, how many steps it is above the nearest leaf, or [`Self::UNREACHED`].
    pub fn heights(&self) -> &[u32] {
        &self.heights
    }

    /// How many steps an xbar is above the nearest leaf, or `None` if no leaf reaches it.
    pub fn height(&self, xbar: u32) -> Option<u32> {
        Some(self.heights[xbar as usize]).filter(|&height| height != Self::UNREACHED)
    }

    /// How many tiers there are, if every cable between xbars joins neighbouring ones; none of that is asked of parts that
    /// have no hosts.
    pub fn count_if_stepwise(&self, topology: &Topology) -> Option<u32> {
        let is_step = |channel: u32| {
            let (tail, head) = (topology.tail(channel).xbar, topology.head(channel).xbar);
            let (a, b) = (self.heights[tail as usize], self.heights[head as usize]);
            tail == head || a == Self::UNREACHED || a.abs_diff(b) == 1
        };
        let reached = self.heights.iter().filter(|&&height| height != Self::UNREACHED);
        let count = reached.max().map_or(0, |&top| top + 1);
        (0..topology.channel_count() as u32).all(is_step).then_some(count)
    }

    /// The leaves, by rising number.
    pub fn leaves(&self) -> &[u32] {
        &self.leaves
    }

    /// Whether an xbar is a leaf.
    pub fn is_leaf(&self, xbar: u32) -> bool {
        self.leaves.binary_search(&xbar).is_ok()
    }

    /// The xbars above the leaves that have hosts, by rising number. These hosts are service adapters.
    pub fn served(&self) -> &[u32] {
        &self.served
    }

    /// Whether an xbar stands above the leaves and has service adapters.
    pub fn is_served(&self, xbar: u32) -> bool {
        self.served.binary_search(&xbar).is_ok()
    }

    /// How many service adapters there are on xbars above the leaves.
    pub fn service_adapters(&self, topology: &Topology) -> usize {
        self.served.iter().map(|&xbar| cabled_hosts(topology, xbar)).sum()
    }
}

/// Steps from the nearest of some xbars to each, along live cables; [`Tiers::UNREACHED`] where there are none.
pub(crate) fn distances(topology: &Topology, from: &[u32]) -> Vec<u32> {
    let mut distances = vec![Tiers::UNREACHED; topology.xbar_count()];
    from.iter().for_each(|&xbar| distances[xbar as usize] = 0);
    let mut queue = from.to_vec();
    let mut next = 0;
    while let Some(&xbar) = queue.get(next) {
        next += 1;
        for head in neighbours(topology, xbar) {
            if distances[head as usize] == Tiers::UNREACHED {
                distances[head as usize] = distances[xbar as usize] + 1;
                queue.push(head);
            }
        }
    }
    distances
}

/// How many hosts are cabled to an xbar.
pub(crate) fn cabled_hosts(topology: &Topology, xbar: u32) -> usize {
    let is_cabled = |&&host: &&u32| matches!(topology.attachment(host), Attachment::Port(_));
    topology.hosts_of(xbar).iter().filter(is_cabled).count()
}

/// The other xbars that an xbar's live cables lead to, one for each cable.
fn neighbours(topology: &Topology, xbar: u32) -> impl Iterator<Item = u32> + '_ {
    let live = topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel));
    live.map(|channel| topology.head(channel).xbar).filter(move |&head| head != xbar)
}
