//! How high xbars stand, and the cables between them in groups.

use super::DmodcRefusal;
use crate::tiers::distances;
use crate::{Subnet, Topology};

/// All cables from an xbar to one neighbour.
pub(super) struct Group {
    /// The neighbour.
    pub(super) xbar: u32,
    /// The xbar's ports to it, in rising order.
    pub(super) ports: Vec<u8>,
}

/// How high xbars stand, and the cables between them in groups.
pub(super) struct Tiers {
    /// By xbar, how high it stands.
    heights: Vec<u32>,
    /// All xbars, the highest first.
    pub(super) from_top: Vec<u32>,
    /// By xbar, the groups of cables up and down, by rising neighbour.
    pub(super) up: Vec<Vec<Group>>,
    pub(super) down: Vec<Vec<Group>>,
    /// By xbar, how many destinations in a row leave it by one group.
    pub(super) dividers: Vec<u32>,
}

impl Tiers {
    /// Most tiers: hops are counted in a byte.
    const MOST: u32 = 100;

    /// Heights above the nearest leaf; with given roots, below the nearest root. Cables between xbars of one
    /// height belong to no group.
    ///
    /// # Errors
    /// If there are too many tiers for a tree.
    pub(super) fn new(
        subnet: &Subnet,
        roots: Option<&[u32]>,
        by_shape: &crate::Tiers,
    ) -> Result<Self, DmodcRefusal> {
        let topology = &subnet.topology;
        let all = 0..topology.xbar_count() as u32;
        let heights: Vec<u32> = match roots {
            Some(roots) => {
                let known = roots.iter().copied().filter(|root| all.contains(root));
                let known: Vec<u32> = known.collect();
                distances(topology, &known).into_iter().map(|hops| u32::MAX - hops).collect()
            }
            None => by_shape.heights().to_vec(),
        };
        let connected = heights.iter().copied().filter(|&height| height != u32::MAX && height != 0);
        let (most, least) =
            connected.fold((0, u32::MAX), |(most, least), height| (most.max(height), least.min(height)));
        if most.saturating_sub(least) > Self::MOST {
            return Err(DmodcRefusal::TooManyTiers { tiers: most - least });
        }
        let mut from_top: Vec<u32> = all.clone().collect();
        from_top.sort_by_key(|&xbar| (std::cmp::Reverse(heights[xbar as usize]), xbar));
        let side = |xbar: u32, is_there: &dyn Fn(u32, u32) -> bool| {
            groups(topology, xbar, |other| is_there(heights[other as usize], heights[xbar as usize]))
        };
        let up: Vec<Vec<Group>> = all.clone().map(|xbar| side(xbar, &|other, own| other > own)).collect();
        let down: Vec<Vec<Group>> = all.map(|xbar| side(xbar, &|other, own| other < own)).collect();
        let mut dividers = vec![1_u32; from_top.len()];
        for &xbar in from_top.iter().rev() {
            let below = down[xbar as usize].iter().map(|group| {
                let groups = up[group.xbar as usize].len() as u32;
                dividers[group.xbar as usize].saturating_mul(groups)
            });
            dividers[xbar as usize] = below.max().unwrap_or(1);
        }
        Ok(Self { heights, from_top, up, down, dividers })
    }

    /// By xbar, how far it is below the highest that there could be.
    pub(super) fn depths(&self) -> Vec<u32> {
        self.heights.iter().map(|&height| u32::MAX - height).collect()
    }
}

/// The cables from an xbar to the neighbours that are wanted.
fn groups(topology: &Topology, xbar: u32, is_wanted: impl Fn(u32) -> bool) -> Vec<Group> {
    let mut cables: Vec<(u32, u8)> = topology
        .channels_of(xbar)
        .filter(|&channel| !topology.is_dead(channel) && is_wanted(topology.head(channel).xbar))
        .map(|channel| (topology.head(channel).xbar, topology.tail(channel).port))
        .collect();
    cables.sort_unstable();
    cables
        .chunk_by(|one, other| one.0 == other.0)
        .map(|group| Group { xbar: group[0].0, ports: group.iter().map(|&(_, port)| port).collect() })
        .collect()
}
