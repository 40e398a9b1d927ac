//! Recognises a folded Clos, even if it has lost cables.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rayon::prelude::*;

use super::reach::{BLOCK, legal_is_shortest};
use super::{Orientation, Shape, positions};
use crate::Topology;
use crate::tiers::{Tiers, with_one_top};

/// The orientation by tiers, if the topology is a Clos as [`Orientation::new`] defines it.
pub(super) fn recognise(topology: &Topology) -> Option<Orientation> {
    let tiers = Tiers::of(topology);
    let count = tiers.count_if_stepwise(topology)?;
    let by_height = positions(topology.xbar_count(), |xbar| Reverse(tiers.heights()[xbar as usize]));
    let position = if tiers.served().is_empty() {
        by_height
    } else {
        with_one_top(topology, &tiers, &by_height, tiers.served())
    };
    let orientation = Orientation::by_position(topology, Shape::Clos { tiers: count }, position);
    let leaves = tiers.leaves();
    one_of_each_kind(topology, &orientation, leaves)
        .par_chunks(BLOCK)
        .all(|sources| legal_is_shortest(topology, &orientation, sources, leaves))
        .then_some(orientation)
}

/// Of each kind of leaves one: leaves of a kind have cables to the same xbars, in the same directions.
///
/// If two of them change places, all else of the fabric stays as it is, so routes from one are legal and as short as any if
/// those from the other are.
fn one_of_each_kind(topology: &Topology, orientation: &Orientation, leaves: &[u32]) -> Vec<u32> {
    let mut kinds = BTreeSet::new();
    let is_first = |&leaf: &u32| {
        let steps = topology.channels_of(leaf);
        let steps = steps.map(|channel| (topology.head(channel).xbar, orientation.direction(channel) as u8));
        let mut steps: Vec<(u32, u8)> = steps.collect();
        steps.sort_unstable();
        steps.dedup();
        kinds.insert(steps)
    };
    leaves.iter().copied().filter(is_first).collect()
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;
    use crate::Subnet;

    #[test]
    fn one_leaf_of_each_kind_tells_what_all_leaves_tell() {
        let (mut legal, mut others) = (0, 0);
        for spec in [
            "xgft:h=3;m=3,3,4;w=1,3,3",
            "xgft:h=2;m=4,6;w=1,3",
            "cluster:leaves=9,spines=5,hosts=60,cables=2,missing=3",
            "cluster:leaves=8,spines=4,hosts=40,service=every,missing=2",
        ] {
            for lost in 0..40 {
                let mut fabric = generate(spec).unwrap();
                let cables = fabric.map.cables.len();
                for nth in 0..lost % 6 {
                    fabric.map.cables.remove((lost * 7 + nth * 13) % (cables - 6));
                }
                let topology = Subnet::new(&fabric, None).unwrap().topology;
                let tiers = Tiers::of(&topology);
                let by_height =
                    positions(topology.xbar_count(), |xbar| Reverse(tiers.heights()[xbar as usize]));
                let shape = Shape::Clos { tiers: 2 };
                let orientation = Orientation::by_position(&topology, shape, by_height);
                let leaves = tiers.leaves();
                let of_all = legal_is_shortest(&topology, &orientation, leaves, leaves);
                let firsts = one_of_each_kind(&topology, &orientation, leaves);
                assert!(firsts.len() <= leaves.len());
                assert_eq!(
                    legal_is_shortest(&topology, &orientation, &firsts, leaves),
                    of_all,
                    "{spec} {lost}"
                );
                *(if of_all { &mut legal } else { &mut others }) += 1;
            }
        }
        assert!(legal > 10 && others > 10, "{legal} {others}");
    }
}
