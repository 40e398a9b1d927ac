//! The tiers of a map, for those who describe or draw it.

use mapper_proto::map::Map;
use mapper_routing::{Tiers, Topology};

/// The xbars of a map, tier by tier from the leaves up; last those that no leaf reaches. A map that cannot be routed has
/// one tier.
pub fn tiers(map: &Map) -> Vec<Vec<usize>> {
    let Ok(topology) = Topology::from_map(map) else { return vec![(0..map.xbars.len()).collect()] };
    let tiers = Tiers::of(&topology);
    let reached = (0..map.xbars.len() as u32).filter_map(|xbar| tiers.height(xbar));
    let unreached = reached.max().map_or(0, |highest| highest + 1);
    let mut rows = vec![Vec::new(); unreached as usize + 1];
    for xbar in 0..map.xbars.len() {
        rows[tiers.height(xbar as u32).unwrap_or(unreached) as usize].push(xbar);
    }
    rows.retain(|row| !row.is_empty());
    rows
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    fn sizes(map: &Map) -> Vec<usize> {
        tiers(map).iter().map(Vec::len).collect()
    }

    #[test]
    fn trees_have_tiers_whoever_has_hosts() {
        assert_eq!(sizes(&generate("clos:hosts=1024,ports=16").unwrap().map), [128, 128, 64]);
        let cluster = "cluster:leaves=6,spines=4,hosts=48,service=every";
        assert_eq!(sizes(&generate(cluster).unwrap().map), [6, 4]);
    }

    #[test]
    fn what_no_leaf_reaches_comes_last() {
        let mut ring = generate("ring:n=4").unwrap();
        ring.map.cables.truncate(2);
        ring.map.hosts[3].at = None;
        assert_eq!(sizes(&ring.map), [3, 1]);
        ring.map.hosts.iter_mut().for_each(|host| host.at = None);
        assert_eq!(sizes(&ring.map), [4]);
    }

    #[test]
    fn a_map_that_cannot_be_routed_has_one_tier() {
        let mut ring = generate("ring:n=4").unwrap();
        ring.map.cables.push(ring.map.cables[0]);
        assert_eq!(sizes(&ring.map), [4]);
    }
}
