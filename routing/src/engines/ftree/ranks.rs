//! Each xbar's rank: how many steps below the roots it is.

use std::collections::{BTreeMap, VecDeque};

use mapper_proto::map::PortRef;

use super::order::HostOrder;
use super::refusal::{FtreeRefusal, host_name, xbar_name};
use super::{Settings, Subnet};
use crate::Tiers;

/// Most ranks of a tree.
const MOST_RANKS: usize = 8;

/// Fewest ranks of a tree.
const FEWEST_RANKS: usize = 2;

/// Each xbar's rank; 0 at the roots of each connected part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ranks {
    /// The rank of each xbar.
    pub(super) of: Vec<u8>,
    /// The xbars of each rank, by index.
    pub(super) xbars: Vec<Vec<u32>>,
}

impl Ranks {
    /// Ranks are found by the distance from the given roots. Without roots, and in parts of the fabric that
    /// have none of them, they are found by the distance from all xbars with hosts, where the farthest ones
    /// are the roots. If that makes no tree and some hosts are no compute nodes, which may be anywhere, they
    /// are found by the distance from the xbars with compute nodes.
    ///
    /// # Errors
    /// If a cable joins two xbars of a rank, compute nodes are on different ranks, or ranks are too many
    /// or too few.
    pub(super) fn new(
        subnet: &Subnet,
        settings: &Settings,
        order: &HostOrder,
        tiers: &Tiers,
    ) -> Result<Self, FtreeRefusal> {
        let of_compute_nodes: Vec<u32> = order.leaves.iter().map(|leaf| leaf.xbar).collect();
        let found = Self::above(subnet, settings, order, tiers.leaves());
        if found.is_ok() || settings.roots.is_some() || of_compute_nodes == tiers.leaves() {
            return found;
        }
        Self::above(subnet, settings, order, &of_compute_nodes)
    }

    /// Ranks by the distance from the given roots, or else from these leaves; in parts without either, from
    /// the first xbar.
    fn above(
        subnet: &Subnet,
        settings: &Settings,
        order: &HostOrder,
        leaves: &[u32],
    ) -> Result<Self, FtreeRefusal> {
        let topology = &subnet.topology;
        let count = topology.xbar_count();
        let roots = settings.roots.as_deref().unwrap_or_default();
        let mut distances = vec![u32::MAX; count];
        search(subnet, roots.iter().copied(), &mut distances);
        let ranked: Vec<bool> = distances.iter().map(|&distance| distance != u32::MAX).collect();
        let leaves = leaves.iter().copied().filter(|&leaf| !ranked[leaf as usize]);
        search(subnet, leaves, &mut distances);
        for xbar in 0..count as u32 {
            // This part has no hosts, so only the xbars' own addresses are routed there.
            if distances[xbar as usize] == u32::MAX {
                search(subnet, std::iter::once(xbar), &mut distances);
            }
        }
        // Distances in parts that were ranked from below are turned over.
        let mut tallest = vec![0; count];
        for xbar in (0..count).filter(|&xbar| !ranked[xbar]) {
            let part = &mut tallest[topology.component(xbar as u32) as usize];
            *part = distances[xbar].max(*part);
        }
        for xbar in (0..count).filter(|&xbar| !ranked[xbar]) {
            distances[xbar] = tallest[topology.component(xbar as u32) as usize] - distances[xbar];
        }
        check(subnet, settings, order, &distances)?;
        let of: Vec<u8> = distances.iter().map(|&rank| rank as u8).collect();
        let mut xbars = vec![Vec::new(); of.iter().max().map_or(0, |&rank| usize::from(rank) + 1)];
        (0..).zip(&of).for_each(|(xbar, &rank)| xbars[usize::from(rank)].push(xbar));
        Ok(Self { of, xbars })
    }
}

/// Breadth first from the given xbars over those without a distance.
fn search(subnet: &Subnet, from: impl Iterator<Item = u32>, distances: &mut [u32]) {
    let topology = &subnet.topology;
    let mut queue = VecDeque::new();
    for xbar in from {
        if distances[xbar as usize] == u32::MAX {
            distances[xbar as usize] = 0;
            queue.push_back(xbar);
        }
    }
    while let Some(xbar) = queue.pop_front() {
        for channel in topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel)) {
            let next = topology.head(channel).xbar as usize;
            if distances[next] == u32::MAX {
                distances[next] = distances[xbar as usize] + 1;
                queue.push_back(next as u32);
            }
        }
    }
}

fn check(subnet: &Subnet, settings: &Settings, order: &HostOrder, ranks: &[u32]) -> Result<(), FtreeRefusal> {
    let topology = &subnet.topology;
    let mut has_hosts = vec![false; topology.xbar_count()];
    for xbar in (0..topology.xbar_count() as u32).filter(|&xbar| subnet.is_leaf(xbar)) {
        has_hosts[topology.component(xbar) as usize] = true;
    }
    for channel in (0..topology.channel_count() as u32).filter(|&channel| !topology.is_dead(channel)) {
        let (a, b) = (topology.tail(channel), topology.head(channel));
        let routed = has_hosts[topology.component(a.xbar) as usize];
        if routed && a.xbar != b.xbar && ranks[a.xbar as usize].abs_diff(ranks[b.xbar as usize]) != 1 {
            let end = |at: PortRef| (xbar_name(subnet, at.xbar), at.port, ranks[at.xbar as usize]);
            let are_roots_named = settings.roots.is_some();
            return Err(FtreeRefusal::CableAcrossRanks { ends: [end(a), end(b)], are_roots_named });
        }
    }
    let deepest = (0..).zip(ranks).max_by_key(|&(xbar, &rank)| (rank, std::cmp::Reverse(xbar)));
    if let Some((xbar, &rank)) = deepest
        && !(FEWEST_RANKS..=MOST_RANKS).contains(&(rank as usize + 1))
    {
        let lowest = xbar_name(subnet, xbar);
        let (fewest, most) = (FEWEST_RANKS, MOST_RANKS);
        return Err(FtreeRefusal::Ranks { ranks: rank + 1, lowest, fewest, most });
    }
    let mut first_of_part: BTreeMap<u32, &super::LeafOrder> = BTreeMap::new();
    for leaf in &order.leaves {
        let first = *first_of_part.entry(topology.component(leaf.xbar)).or_insert(leaf);
        let (rank, other) = (ranks[leaf.xbar as usize], ranks[first.xbar as usize]);
        if rank != other {
            let node = |leaf: &super::LeafOrder, rank| (host_name(subnet, leaf.hosts[0]), rank);
            return Err(FtreeRefusal::ComputeNodesApart { nodes: [node(leaf, rank), node(first, other)] });
        }
    }
    Ok(())
}
