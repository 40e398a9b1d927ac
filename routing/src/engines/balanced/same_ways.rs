//! Whether updn may use all shortest ways between hosts, as it may in a whole tree.

use rayon::prelude::*;

use super::ports::XbarPorts;
use super::ranks::{Order, Roots, each_bit, find_roots};
use super::search::BLOCK;
use super::ways::Ways;
use crate::engines::{Engine, Settings};
use crate::tiers::cabled_hosts;
use crate::{Subnet, Tiers};

/// Whether the ways that minhop chooses among are those of updn, wherever hosts' frames come by. As both balance
/// alike, minhop can then give these nothing that updn does not give.
///
/// Other ways may still differ: those from the middle of a tree, where no host's frame for that destination comes by.
pub(in crate::engines) fn has_minhop_the_ways_of_updn(subnet: &Subnet, settings: &Settings) -> bool {
    let topology = &subnet.topology;
    let tiers = Tiers::of(topology);
    let Ok(roots) = find_roots(subnet, settings, &tiers) else { return false };
    let ports = |engine, roots: &Roots| {
        XbarPorts::new(topology, settings, Order::of(engine, subnet, settings, &tiers, roots).as_ref())
    };
    let (shortest, up_and_down) = (ports(Engine::Minhop, &Roots::none()), ports(Engine::Updn, &roots));
    let xbars = 0..topology.xbar_count() as u32;
    let parts: Vec<u32> = xbars.clone().map(|xbar| topology.component(xbar)).collect();
    let leaves: Vec<u32> = xbars.filter(|&xbar| cabled_hosts(topology, xbar) > 0).collect();
    leaves.par_chunks(BLOCK).all(|to| {
        let find = |ports| Ways::find(ports, to, &parts, &leaves, false);
        let ways = [find(&shortest), find(&up_and_down)];
        (0..to.len()).all(|place| are_same(&shortest, &leaves, place, &ways))
    })
}

/// Whether two kinds of ways to a destination, by its place in both, are the same at all xbars that the first kind leads
/// over from the leaves.
fn are_same(ports: &XbarPorts, leaves: &[u32], place: usize, ways: &[Ways; 2]) -> bool {
    let [one, other] = ways.each_ref().map(|ways| ways.masks_to(place));
    let mut seen = vec![false; ports.xbars];
    let mut open = leaves.to_vec();
    leaves.iter().for_each(|&leaf| seen[leaf as usize] = true);
    while let Some(xbar) = open.pop() {
        let words = xbar as usize * ports.words..(xbar as usize + 1) * ports.words;
        if one[words.clone()] != other[words.clone()] {
            return false;
        }
        for word in words {
            each_bit(one[word], |bit| {
                let head = ports.heads[word * 64 + bit];
                if !std::mem::replace(&mut seen[head as usize], true) {
                    open.push(head);
                }
            });
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    #[test]
    fn only_a_tree_that_is_whole_has_no_shortest_ways_down_and_up_again() {
        let is_so = |spec: &str| {
            let subnet = Subnet::new(&generate(spec).unwrap(), None).unwrap();
            has_minhop_the_ways_of_updn(&subnet, &Settings::default())
        };
        for tree in ["clos:hosts=16,ports=4", "xgft:h=3;m=3,3,4;w=1,3,3", "xgft:h=2;m=3,4;w=1,2"] {
            assert!(is_so(tree), "{tree}");
        }
        for other in ["ring:n=6,hosts=1", "torus:x=4,y=4", "random:xbars=9,ports=12,hosts=30,links=20,seed=2"]
        {
            assert!(!is_so(other), "{other}");
        }
    }
}
