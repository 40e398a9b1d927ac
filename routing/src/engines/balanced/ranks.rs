//! Roots, ranks, and the order of xbars in which routes go up and then down.

use rayon::prelude::*;
use thiserror::Error;

use crate::engines::{Engine, Settings};
use crate::tiers::{cabled_hosts, distances, leaves_apart, with_one_top};
use crate::{Orientation, Subnet, Tiers, Topology};

/// The xbars that routes of `updn` turn at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engines) struct Roots {
    /// The roots, by rising number.
    pub(in crate::engines) xbars: Vec<u32>,
    /// How the roots were guessed, if a user should know.
    pub(in crate::engines) note: Option<String>,
    /// Whether they are the top tier of a tree in which every xbar stands by its tier.
    pub(in crate::engines) are_tops: bool,
}

impl Roots {
    /// The roots of an engine whose routes turn at none.
    pub(in crate::engines) fn none() -> Self {
        Self { xbars: Vec::new(), note: None, are_tops: false }
    }
}

/// Why no xbar is a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(in crate::engines) enum NoRoots {
    /// None of the roots that were named is in the fabric.
    #[error("none of the roots that were named is in this fabric; name others (--root-guid-file), or none")]
    Named,
    /// No root was named, and none was found.
    #[error(
        "no xbar is as far from nearly all hosts as a root is, and the fabric is no folded Clos; \
         name the roots (--root-guid-file)"
    )]
    Found,
}

/// The roots that the settings name; or else the top tier of a folded Clos, or of each part of a tree or of a fabric with
/// service adapters above its leaves; or else, of the xbars that [`detect_roots`] finds, those that are farthest from all
/// hosts.
///
/// In a tree of many branches [`detect_roots`] finds nearly every xbar: from a leaf, too, nearly all
/// hosts are equally far. Then routes would turn anywhere. So only the highest tier of them serves.
///
/// # Errors
/// If there are no roots.
pub(in crate::engines) fn find_roots(
    subnet: &Subnet,
    settings: &Settings,
    tiers: &Tiers,
) -> Result<Roots, NoRoots> {
    let topology = &subnet.topology;
    if let Some(named) = &settings.roots {
        let mut xbars: Vec<u32> =
            named.iter().copied().filter(|&xbar| (xbar as usize) < topology.xbar_count()).collect();
        xbars.sort_unstable();
        xbars.dedup();
        if xbars.is_empty() {
            return Err(NoRoots::Named);
        }
        return Ok(Roots { xbars, note: None, are_tops: false });
    }
    let of_clos = if tiers.served().is_empty() { top_of_clos(topology, tiers) } else { Vec::new() };
    let are_tops = of_clos.is_empty() && is_tree(topology, tiers);
    let xbars = if are_tops { tops(topology, tiers) } else { of_clos };
    if !xbars.is_empty() {
        let kind = if are_tops { "tree" } else { "folded Clos" };
        let note = if let [_] = xbars[..] {
            format!("the root is the xbar of the top tier of this {kind}")
        } else {
            format!("the roots are the {} xbars of the top tier of this {kind}", xbars.len())
        };
        return Ok(Roots { xbars, note: Some(note), are_tops });
    }
    let found = detect_roots(topology);
    let height = |xbar: u32| tiers.heights()[xbar as usize];
    let top = found.iter().map(|&xbar| height(xbar)).max();
    let xbars: Vec<u32> = found.into_iter().filter(|&xbar| Some(height(xbar)) == top).collect();
    if xbars.is_empty() {
        return Err(NoRoots::Found);
    }
    let note = if let [_] = xbars[..] {
        "the root is the xbar that is as far from nearly all hosts".to_owned()
    } else {
        format!("the roots are the {} xbars that are as far from nearly all hosts", xbars.len())
    };
    Ok(Roots { xbars, note: Some(note), are_tops: false })
}

/// The xbars that are as far from nearly all hosts: exactly one distance is that of more than 90 % of
/// them, and no other that of more than 5 %.
///
/// This is how OpenSM finds roots. It finds none in trees that are not symmetric.
pub(in crate::engines) fn detect_roots(topology: &Topology) -> Vec<u32> {
    let hosts: Vec<u64> =
        (0..topology.xbar_count() as u32).map(|xbar| cabled_hosts(topology, xbar) as u64).collect();
    let xbars: Vec<u32> = (0..topology.xbar_count() as u32).collect();
    xbars.par_chunks(64).flat_map_iter(|block| roots_among(topology, &hosts, block)).collect()
}

/// Searches from up to 64 xbars at once, a bit each; an xbar drops out as soon as it cannot be a root.
fn roots_among(topology: &Topology, hosts: &[u64], block: &[u32]) -> Vec<u32> {
    let total: u64 = hosts.iter().sum();
    let mut reached = vec![0_u64; topology.xbar_count()];
    let mut fresh = vec![0_u64; topology.xbar_count()];
    for (bit, &xbar) in block.iter().enumerate() {
        reached[xbar as usize] = 1 << bit;
        fresh[xbar as usize] = 1 << bit;
    }
    let mut frontier = block.to_vec();
    let mut alive = u64::MAX;
    // For each xbar of the block, how many distances are those of more than 90 % and of more than 5 % of the
    // hosts, and how many hosts have not been reached.
    let (mut most, mut many, mut rest) = ([0_u8; 64], [0_u8; 64], [0_u64; 64]);
    while !frontier.is_empty() && alive != 0 {
        let mut here = [0_u64; 64];
        for &xbar in frontier.iter().filter(|&&xbar| hosts[xbar as usize] > 0) {
            each_bit(fresh[xbar as usize], |bit| here[bit] += hosts[xbar as usize]);
        }
        for (bit, &here) in here.iter().enumerate() {
            let nearly_all = 10 * here > 9 * total;
            most[bit] += u8::from(nearly_all);
            many[bit] += u8::from(20 * here > total);
            rest[bit] += if nearly_all { 0 } else { here };
            if many[bit] > 1 || 10 * rest[bit] > total {
                alive &= !(1 << bit);
            }
        }
        frontier = step(topology, &frontier, &mut fresh, &mut reached, alive);
    }
    let is_root = |bit: &usize| alive >> bit & 1 == 1 && most[*bit] == 1 && many[*bit] == 1;
    (0..block.len()).filter(is_root).map(|bit| block[bit]).collect()
}

/// Takes one step of the searches that are alive. Returns the xbars that any of them has newly reached.
fn step(
    topology: &Topology,
    frontier: &[u32],
    fresh: &mut [u64],
    reached: &mut [u64],
    alive: u64,
) -> Vec<u32> {
    let mut gained: Vec<(u32, u64)> = Vec::new();
    for &xbar in frontier {
        let bits = fresh[xbar as usize] & alive;
        for channel in topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel)) {
            let head = topology.head(channel).xbar;
            let new = bits & !reached[head as usize];
            if new != 0 {
                reached[head as usize] |= new;
                gained.push((head, new));
            }
        }
    }
    frontier.iter().for_each(|&xbar| fresh[xbar as usize] = 0);
    let mut next = Vec::new();
    for (xbar, new) in gained {
        if fresh[xbar as usize] == 0 {
            next.push(xbar);
        }
        fresh[xbar as usize] |= new;
    }
    next
}

/// Calls `call` with the number of each bit that is set, by rising number.
pub(super) fn each_bit(mut bits: u64, mut call: impl FnMut(usize)) {
    while bits != 0 {
        call(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

/// Whether the xbars of a fabric stand in tiers: there are service adapters above its leaves, or it has several tiers and
/// every cable joins neighbouring ones.
fn is_tree(topology: &Topology, tiers: &Tiers) -> bool {
    !tiers.served().is_empty() || tiers.count_if_stepwise(topology).is_some_and(|count| count > 1)
}

/// The highest tier of a folded Clos; empty if the fabric is no folded Clos, or has only one tier.
fn top_of_clos(topology: &Topology, tiers: &Tiers) -> Vec<u32> {
    let Some(count) = Orientation::clos_tiers(topology) else { return Vec::new() };
    let is_top = |&xbar: &u32| count > 1 && tiers.height(xbar) == Some(count - 1);
    (0..topology.xbar_count() as u32).filter(is_top).collect()
}

/// The highest tier of each part of a fabric.
fn tops(topology: &Topology, tiers: &Tiers) -> Vec<u32> {
    let mut highest = vec![None; topology.xbar_count()];
    for xbar in 0..topology.xbar_count() as u32 {
        let highest: &mut Option<u32> = &mut highest[topology.component(xbar) as usize];
        *highest = tiers.height(xbar).max(*highest);
    }
    let is_top = |&xbar: &u32| {
        tiers.height(xbar).is_some() && tiers.height(xbar) == highest[topology.component(xbar) as usize]
    };
    (0..topology.xbar_count() as u32).filter(is_top).collect()
}

/// The order of xbars that legal routes keep to: first towards its beginning, then towards its end.
///
/// For `updn` the roots come first, and up is towards the beginning. For `dnup` the xbars farthest from
/// all hosts come first, and down is towards the beginning. No two xbars share a place, so routes
/// that keep to it cannot wait for each other in a circle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engines) struct Order {
    place: Vec<u32>,
    /// Whether it has one top: see [`Self::with_one_top`].
    has_one_top: bool,
}

impl Order {
    /// The order that an engine keeps to with these roots, by which service adapters above the leaves are reached as
    /// well, and all leaves of a tree if its top tier are the roots. `None` for dor, and for minhop if there are no
    /// such adapters.
    pub(super) fn of(
        engine: Engine,
        subnet: &Subnet,
        settings: &Settings,
        tiers: &Tiers,
        roots: &Roots,
    ) -> Option<Self> {
        let mut joined = tiers.served().to_vec();
        let order = match engine {
            Engine::Updn if roots.are_tops => {
                // By tiers: an xbar that no cable joins with a root is no lower than a leaf for that.
                let ranks: Vec<u32> = tiers.heights().iter().map(|&height| u32::MAX - height).collect();
                joined.extend(leaves_apart(&subnet.topology, tiers));
                Self::updn(subnet, settings, &ranks)
            }
            Engine::Updn => Self::updn(subnet, settings, &distances(&subnet.topology, &roots.xbars)),
            Engine::Dnup => Self::dnup(subnet, settings, tiers.heights()),
            // Shortest routes to service adapters above the leaves close circles, unless they keep to an order.
            Engine::Minhop if !tiers.served().is_empty() => Self::dnup(subnet, settings, tiers.heights()),
            _ => return None,
        };
        Some(order.with_one_top_over(&subnet.topology, tiers, &joined))
    }

    /// The order of `updn`, by [`distances`] from the roots. UP is towards the lower rank; between equal
    /// ranks, towards the smaller id.
    pub(in crate::engines) fn updn(subnet: &Subnet, settings: &Settings, ranks: &[u32]) -> Self {
        Self { place: places(subnet, settings, |xbar| ranks[xbar as usize]), has_one_top: false }
    }

    /// The order of `dnup`, by the heights of xbars above the leaves. UP is towards the lower rank;
    /// between equal ranks, towards the smaller id if ids are given. Else it is away from the [`lowest`]
    /// xbars, then towards the smaller GUID: so where all xbars have hosts, ways down from everywhere
    /// lead to one xbar, and all pairs can meet.
    pub(in crate::engines) fn dnup(subnet: &Subnet, settings: &Settings, ranks: &[u32]) -> Self {
        let topology = &subnet.topology;
        let away = if settings.ids.is_empty() {
            distances(topology, &lowest(subnet, ranks))
        } else {
            vec![0; ranks.len()]
        };
        let last = (ranks.len() as u32).saturating_sub(1);
        let key = |xbar: u32| (ranks[xbar as usize], std::cmp::Reverse(away[xbar as usize]));
        let place = places(subnet, settings, key).into_iter().map(|place| last - place).collect();
        Self { place, has_one_top: false }
    }

    /// This order if all service adapters are on leaves. Otherwise a leaf is put above the xbars that have
    /// some, so that these reach each other and all leaves by going up and then down. Routes between leaves
    /// stay as they are.
    pub(in crate::engines) fn with_one_top(self, topology: &Topology, tiers: &Tiers) -> Self {
        self.with_one_top_over(topology, tiers, tiers.served())
    }

    /// Does the same for the connected parts of these xbars, whether or not they have service adapters.
    /// Without any xbars it is this order.
    pub(in crate::engines) fn with_one_top_over(
        self,
        topology: &Topology,
        tiers: &Tiers,
        xbars: &[u32],
    ) -> Self {
        if xbars.is_empty() {
            return self;
        }
        Self { place: with_one_top(topology, tiers, &self.place, xbars), has_one_top: true }
    }

    /// Whether some xbars of the tree stand below a leaf, so that their service adapters are reached.
    pub(super) fn has_one_top(&self) -> bool {
        self.has_one_top
    }

    /// Where an xbar stands, counted from the beginning.
    pub(in crate::engines) fn place(&self, xbar: u32) -> u32 {
        self.place[xbar as usize]
    }

    /// Whether a step between two xbars leads towards the beginning.
    pub(in crate::engines) fn climbs(&self, from: u32, to: u32) -> bool {
        self.place[to as usize] < self.place[from as usize]
    }
}

/// In each connected part the xbars of the highest rank. If all xbars have hosts, it is only one of these:
/// the one with the most cables, and among equals the one with the smallest GUID.
fn lowest(subnet: &Subnet, ranks: &[u32]) -> Vec<u32> {
    let topology = &subnet.topology;
    let mut highest = vec![0; ranks.len()];
    for (xbar, &rank) in (0..).zip(ranks) {
        let highest = &mut highest[topology.component(xbar) as usize];
        *highest = rank.max(*highest);
    }
    let highest = |xbar: u32| highest[topology.component(xbar) as usize];
    let cables = |xbar: u32| topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel)).count();
    let key = |xbar: u32| (cables(xbar), std::cmp::Reverse(subnet.xbar_guids[xbar as usize]));
    let mut middle = vec![None; ranks.len()];
    for xbar in (0..ranks.len() as u32).filter(|&xbar| highest(xbar) == 0) {
        let middle: &mut Option<u32> = &mut middle[topology.component(xbar) as usize];
        if middle.is_none_or(|best| key(xbar) > key(best)) {
            *middle = Some(xbar);
        }
    }
    let low = |&xbar: &u32| highest(xbar) > 0 && ranks[xbar as usize] == highest(xbar);
    (0..ranks.len() as u32).filter(low).chain(middle.into_iter().flatten()).collect()
}

/// Each xbar's place by a key, then id, then number.
fn places<K: Ord>(subnet: &Subnet, settings: &Settings, key: impl Fn(u32) -> K) -> Vec<u32> {
    let count = subnet.topology.xbar_count();
    let id = |xbar: u32| settings.ids.get(&xbar).copied().unwrap_or(subnet.xbar_guids[xbar as usize]);
    let mut order: Vec<u32> = (0..count as u32).collect();
    order.sort_by_key(|&xbar| (key(xbar), id(xbar), xbar));
    let mut places = vec![0; count];
    for (place, &xbar) in (0..).zip(&order) {
        places[xbar as usize] = place;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_fabric::generate;

    fn subnet(spec: &str) -> Subnet {
        Subnet::new(&generate(spec).unwrap(), None).unwrap()
    }

    #[test]
    fn the_roots_of_a_symmetric_tree_are_its_top_tier() {
        let subnet = subnet("xgft:h=3;m=4,4,24;w=1,4,4");
        let tiers = Tiers::of(&subnet.topology);
        let found = find_roots(&subnet, &Settings::default(), &tiers).unwrap();
        assert_eq!(found.xbars.len(), 16);
        assert!(found.xbars.iter().all(|&root| tiers.height(root) == Some(2)));
        // From everywhere in this tree more than 90 % of the hosts are equally far.
        assert_eq!(detect_roots(&subnet.topology).len(), subnet.topology.xbar_count());
    }

    #[test]
    fn the_rule_finds_the_spines_of_a_small_tree() {
        let subnet = subnet("xgft:h=2;m=4,4;w=1,4");
        let tiers = Tiers::of(&subnet.topology);
        assert_eq!(detect_roots(&subnet.topology), top_of_clos(&subnet.topology, &tiers));
    }

    #[test]
    fn a_fabric_without_a_top_has_no_roots() {
        let subnet = subnet("random:xbars=12,ports=12,hosts=24,links=20,seed=3");
        let why = find_roots(&subnet, &Settings::default(), &Tiers::of(&subnet.topology));
        assert!(why.is_err_and(|why| why.to_string().contains("name the roots")));
    }

    #[test]
    fn named_roots_are_taken_and_unknown_ones_are_not() {
        let subnet = subnet("ring:n=5,hosts=1");
        let settings = Settings { roots: Some(vec![3, 1, 3, 77]), ..Settings::default() };
        let tiers = Tiers::of(&subnet.topology);
        assert_eq!(find_roots(&subnet, &settings, &tiers).unwrap().xbars, [1, 3]);
        let settings = Settings { roots: Some(vec![77]), ..Settings::default() };
        assert!(find_roots(&subnet, &settings, &tiers).is_err());
    }

    #[test]
    fn dnup_joins_all_pairs_where_all_xbars_have_hosts() {
        let subnet = subnet("random:xbars=24,ports=16,hosts=96,links=60,seed=3");
        let topology = &subnet.topology;
        let leaves: Vec<u32> = (0..24).filter(|&xbar| subnet.is_leaf(xbar)).collect();
        assert_eq!(leaves.len(), 24);
        let order = Order::dnup(&subnet, &Settings::default(), &distances(topology, &leaves));
        let leads_down = |&xbar: &u32| {
            topology.channels_of(xbar).any(|channel| order.climbs(xbar, topology.head(channel).xbar))
        };
        let ends: Vec<u32> = (0..24).filter(|xbar| !leads_down(xbar)).collect();
        assert_eq!(ends.len(), 1, "{ends:?}");
    }

    #[test]
    fn equal_ranks_go_up_to_the_smaller_id() {
        let subnet = subnet("ring:n=5,hosts=1");
        let ranks = distances(&subnet.topology, &[0]);
        assert_eq!(ranks, [0, 1, 2, 2, 1]);
        let order = Order::updn(&subnet, &Settings::default(), &ranks);
        assert!(order.climbs(3, 2) && !order.climbs(2, 3) && order.climbs(1, 0));
        let settings = Settings { ids: [(2, 9), (3, 8)].into(), ..Settings::default() };
        assert!(Order::updn(&subnet, &settings, &ranks).climbs(2, 3));
        assert!(Order::dnup(&subnet, &settings, &ranks).climbs(3, 2));
    }
}
