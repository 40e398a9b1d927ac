//! Each host's way up: the xbars over which most others come down to it.

use rayon::prelude::*;

use super::order::HostOrder;
use super::reach::Reach;
use super::tree::Tree;

/// Most steps up, as a tree has at most 8 ranks.
const MOST_STEPS: usize = 7;

/// One host's way up from its xbar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Spine {
    steps: u8,
    channels: [u32; MOST_STEPS],
    /// `cables[k]`: which cable of its group step k - 1 takes; `cables[0]` counts the hosts of the xbar.
    cables: [u8; MOST_STEPS + 1],
}

impl Spine {
    /// The channels up, from the host's xbar on.
    pub(super) fn channels(&self) -> &[u32] {
        &self.channels[..usize::from(self.steps)]
    }

    /// Which cable of its group leads from an xbar `depth` steps below the spine's xbar number `step`
    /// towards it: the one at the same place as the spine's own of that rank.
    pub(super) fn cable(&self, step: usize, depth: usize) -> u8 {
        self.cables[(step + 1).saturating_sub(depth)]
    }
}

/// The spines of all hosts.
#[derive(Debug)]
pub(super) struct Spines {
    of_slot: Vec<Spine>,
}

impl Spines {
    /// Chooses the spines, one host after another.
    ///
    /// Each host takes the group of cables that has the fewest hosts in proportion to its worth, which is its
    /// cables times the hosts that the xbar above covers; so a damaged part of the tree takes fewer. Among
    /// equal groups it is the one to whose xbar above the fewest hosts come down, and then the first by
    /// place. Within the group it is the cable with the fewest hosts. Dummies fill up small leaves, so that
    /// the same place in each leaf gets the same plane.
    pub(super) fn new(tree: &Tree<'_>, reach: &Reach, order: &HostOrder) -> Self {
        let subnet = tree.subnet;
        let mut counters = Counters::new(tree, reach);
        let mut of_slot = vec![Spine::default(); subnet.destinations.slot_count()];
        for leaf in &order.leaves {
            for (place, &host) in leaf.hosts.iter().enumerate() {
                for slot in subnet.destinations.slots_of_host(host) {
                    of_slot[slot as usize] = counters.climb(leaf.xbar, place);
                }
            }
            for place in leaf.hosts.len()..order.padded {
                counters.climb(leaf.xbar, place);
            }
        }
        for (place, &host) in order.others.iter().enumerate() {
            if let Some(xbar) = subnet.xbar_of_host(host) {
                for slot in subnet.destinations.slots_of_host(host) {
                    of_slot[slot as usize] = counters.climb(xbar, place);
                }
            }
        }
        Self { of_slot }
    }

    /// The spine of a host's slot.
    pub(super) fn of_slot(&self, slot: u32) -> &Spine {
        &self.of_slot[slot as usize]
    }
}

/// How many hosts are reached down each group, cable and xbar.
struct Counters<'a> {
    tree: &'a Tree<'a>,
    of_group: Vec<u32>,
    of_channel: Vec<u32>,
    of_xbar: Vec<u32>,
    /// What one more host in each group costs.
    cost: Vec<u64>,
}

impl<'a> Counters<'a> {
    fn new(tree: &'a Tree<'a>, reach: &Reach) -> Self {
        let hosts: Vec<u32> = (0..tree.xbar_count() as u32).map(|xbar| tree.hosts_at(xbar)).collect();
        let covered: Vec<u64> = (0..tree.xbar_count() as u32)
            .into_par_iter()
            .map(|xbar| {
                let rank = tree.rank(xbar);
                let below = reach.of(xbar).iter().zip(&tree.ranks.of).zip(&hosts);
                let all = below.map(
                    |((&down, &low), &hosts)| {
                        if rank.saturating_add(down) == low { hosts } else { 0 }
                    },
                );
                u64::from(all.sum::<u32>().max(1))
            })
            .collect();
        let groups = (0..tree.up.group_count()).map(|id| tree.up.group(id));
        // Products of cables and hosts stay below 2^26, so that costs keep 14 digits below the point.
        let cost = groups
            .map(|group| (1 << 40) / (covered[group.far as usize] * tree.up.channels(group).len() as u64));
        Self {
            tree,
            cost: cost.collect(),
            of_group: vec![0; tree.up.group_count()],
            of_channel: vec![0; tree.subnet.topology.channel_count()],
            of_xbar: vec![0; tree.xbar_count()],
        }
    }

    fn climb(&mut self, from: u32, place: usize) -> Spine {
        let up = &self.tree.up;
        let mut spine = Spine::default();
        spine.cables[0] = (place % (1 << u8::BITS)) as u8;
        let mut at = from;
        while let Some(id) = up.ids(at).min_by_key(|&id| {
            let cost = self.cost[id] * (u64::from(self.of_group[id]) + 1);
            (cost, self.of_xbar[up.group(id).far as usize])
        }) {
            let group = up.group(id);
            let cables = up.channels(group).iter().copied().enumerate();
            let Some((cable, channel)) = cables.min_by_key(|&(_, cable)| self.of_channel[cable as usize])
            else {
                break;
            };
            let step = usize::from(spine.steps);
            spine.channels[step] = channel;
            spine.cables[step + 1] = cable as u8;
            spine.steps += 1;
            self.of_group[id] += 1;
            self.of_channel[channel as usize] += 1;
            self.of_xbar[group.far as usize] += 1;
            at = group.far;
        }
        spine
    }
}
