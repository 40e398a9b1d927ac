//! How high xbars stand, and the cables between them in groups.

use std::collections::BTreeMap;

use super::DmodcRefusal;
use crate::engines::port_runs::{PortRuns, Run, run_of};
use crate::tiers::distances;
use crate::{Subnet, Topology};

/// The cables from xbars to those on one side, in groups: all cables to one neighbour are a group.
pub(super) struct Groups {
    /// Where each xbar's groups begin; one more for the end.
    first: Vec<u32>,
    /// The neighbour of each group. Those of an xbar stand by rising number.
    neighbours: Vec<u32>,
    /// Where each group's ports begin; one more for the end.
    first_port: Vec<u32>,
    /// By group, the ports to the neighbour, in rising order.
    ports: Vec<u8>,
}

impl Groups {
    /// The groups to those neighbours for which `is_wanted` is true of the xbar and the neighbour.
    fn new(topology: &Topology, is_wanted: impl Fn(u32, u32) -> bool) -> Self {
        let mut groups =
            Self { first: vec![0], neighbours: Vec::new(), first_port: vec![0], ports: Vec::new() };
        for xbar in 0..topology.xbar_count() as u32 {
            let live = topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel));
            let mut cables: Vec<(u32, u8)> = live
                .map(|channel| (topology.head(channel).xbar, topology.tail(channel).port))
                .filter(|&(head, _)| is_wanted(xbar, head))
                .collect();
            cables.sort_unstable();
            for group in cables.chunk_by(|one, other| one.0 == other.0) {
                groups.neighbours.push(group[0].0);
                groups.ports.extend(group.iter().map(|&(_, port)| port));
                groups.first_port.push(groups.ports.len() as u32);
            }
            groups.first.push(groups.neighbours.len() as u32);
        }
        groups
    }

    /// The neighbours of an xbar, by rising number.
    pub(super) fn of(&self, xbar: u32) -> &[u32] {
        let xbar = xbar as usize;
        &self.neighbours[self.first[xbar] as usize..self.first[xbar + 1] as usize]
    }

    /// The ports of an xbar to the neighbour at a place among its neighbours.
    pub(super) fn ports(&self, xbar: u32, place: u32) -> &[u8] {
        let group = (self.first[xbar as usize] + place) as usize;
        &self.ports[self.first_port[group] as usize..self.first_port[group + 1] as usize]
    }
}

/// Xbars of one class have the same neighbours above, so that they are as far from any destination that is not
/// below them, and go on to the same neighbours.
pub(super) struct Classes {
    of: Vec<u32>,
    /// The highest xbar of each class, the highest first.
    firsts_from_top: Vec<u32>,
}

impl Classes {
    fn new(up: &Groups, from_top: &[u32]) -> Self {
        let mut known = BTreeMap::new();
        let mut of = vec![0; from_top.len()];
        let mut firsts_from_top = Vec::new();
        for &xbar in from_top {
            of[xbar as usize] = *known.entry(up.of(xbar)).or_insert_with(|| {
                firsts_from_top.push(xbar);
                firsts_from_top.len() as u32 - 1
            });
        }
        Self { of, firsts_from_top }
    }

    /// The class of an xbar.
    pub(super) fn of(&self, xbar: u32) -> usize {
        self.of[xbar as usize] as usize
    }

    /// How many classes there are.
    pub(super) fn count(&self) -> usize {
        self.firsts_from_top.len()
    }

    /// The highest xbar of each class, the highest first.
    pub(super) fn firsts_from_top(&self) -> &[u32] {
        &self.firsts_from_top
    }
}

/// Xbars of one kind have the same neighbours above, the same ports to each of them and the same divider, so that all their
/// entries are the same for a destination that is not below them.
pub(super) struct Kinds {
    of: Vec<u32>,
    /// The first xbar of each kind, and the run of all ports up of such xbars.
    runs_up: Vec<(u32, Run)>,
}

impl Kinds {
    fn new(up: &Groups, classes: &Classes, dividers: &[u32]) -> Self {
        let mut known = BTreeMap::new();
        let mut runs_up = Vec::new();
        let mut kind = |xbar: u32| {
            let ports = (0..up.of(xbar).len() as u32).map(|place| up.ports(xbar, place));
            let ports: Vec<&[u8]> = ports.collect();
            let next = known.len() as u32;
            let run_up = run_of(ports.iter().copied().flatten().copied()).unwrap_or(PortRuns::ANY);
            *known.entry((classes.of(xbar), dividers[xbar as usize], ports)).or_insert_with(|| {
                runs_up.push((xbar, run_up));
                next
            })
        };
        let of = (0..dividers.len() as u32).map(&mut kind).collect();
        Self { of, runs_up }
    }

    /// How many kinds there are.
    pub(super) fn count(&self) -> usize {
        self.runs_up.len()
    }

    /// The kinds of all xbars.
    pub(super) fn each(&self) -> &[u32] {
        &self.of
    }

    /// The first xbar of each kind, and the run of all ports up of such xbars; [`PortRuns::ANY`] if they are no single run.
    pub(super) fn runs_up(&self) -> &[(u32, Run)] {
        &self.runs_up
    }

    /// The kind of an xbar.
    pub(super) fn of(&self, xbar: u32) -> usize {
        self.of[xbar as usize] as usize
    }
}

/// How high xbars stand, and the cables between them in groups.
pub(super) struct Tiers {
    /// By xbar, how high it stands.
    heights: Vec<u32>,
    /// All xbars, the highest first.
    pub(super) from_top: Vec<u32>,
    /// The cables up, and those down.
    pub(super) up: Groups,
    pub(super) down: Groups,
    /// For each group of [`Self::up`], the place of the xbar among the neighbours below its neighbour.
    places_below: Vec<u32>,
    /// The classes of xbars with the same neighbours above.
    pub(super) classes: Classes,
    /// The kinds of xbars with the same entries.
    pub(super) kinds: Kinds,
    /// By xbar, how many destinations in a row leave it by one group.
    pub(super) dividers: Vec<u32>,
}

impl Tiers {
    /// Most tiers: hops are counted in a byte.
    const MOST: u32 = 100;

    /// Finds the tiers: heights above the nearest leaf, or with given roots, depths below the nearest root.
    /// Cables between xbars of one height belong to no group.
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
        let mut from_top: Vec<u32> = all.collect();
        from_top.sort_by_key(|&xbar| (std::cmp::Reverse(heights[xbar as usize]), xbar));
        let height = |xbar: u32| heights[xbar as usize];
        let up = Groups::new(topology, |xbar, other| height(other) > height(xbar));
        let down = Groups::new(topology, |xbar, other| height(other) < height(xbar));
        let places_below = places_among(&up, &down);
        let classes = Classes::new(&up, &from_top);
        let mut dividers = vec![1_u32; from_top.len()];
        for &xbar in from_top.iter().rev() {
            let below = down.of(xbar).iter().map(|&below| {
                let groups = up.of(below).len() as u32;
                dividers[below as usize].saturating_mul(groups)
            });
            dividers[xbar as usize] = below.max().unwrap_or(1);
        }
        let kinds = Kinds::new(&up, &classes, &dividers);
        Ok(Self { heights, from_top, up, down, places_below, classes, kinds, dividers })
    }

    /// For each neighbour above an xbar, the place of the xbar among the neighbours below that one.
    pub(super) fn places_below(&self, xbar: u32) -> &[u32] {
        let groups = self.up.first[xbar as usize] as usize..self.up.first[xbar as usize + 1] as usize;
        &self.places_below[groups]
    }

    /// For each xbar, how far it is below the greatest possible height.
    pub(super) fn depths(&self) -> Vec<u32> {
        self.heights.iter().map(|&height| u32::MAX - height).collect()
    }
}

/// For each group of cables up, the place of the xbar among the neighbours below its neighbour.
fn places_among(up: &Groups, down: &Groups) -> Vec<u32> {
    // Xbars are met by rising number, as they stand among the neighbours below each.
    let mut met = vec![0; up.first.len() - 1];
    let next = |&above: &u32| {
        let place = &mut met[above as usize];
        *place += 1;
        *place - 1
    };
    let places: Vec<u32> = up.neighbours.iter().map(next).collect();
    debug_assert!((0..).zip(met).all(|(xbar, met)| met as usize == down.of(xbar).len()));
    places
}
