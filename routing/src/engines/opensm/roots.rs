//! Which xbars updn takes for roots if none are named.

use super::hops::{Hops, NO_PATH, Search};
use crate::Subnet;
use rayon::prelude::*;

/// Most hops that are told apart.
const BINS: usize = 64;

/// The xbars from which almost all hosts are equally far: of each one's histogram of hops to the
/// hosts' xbars exactly one bin holds more than 0.9 of the hosts, and exactly one more than 0.05.
pub(super) fn detect(subnet: &Subnet, search: &dyn Search) -> Vec<u32> {
    let topology = &subnet.topology;
    let xbars = topology.xbar_count();
    let count = |xbar: u32| topology.hosts_of(xbar).iter().filter(|&&host| is_cabled(subnet, host)).count();
    let leaves: Vec<(u32, u32)> =
        (0..xbars as u32).map(|xbar| (xbar, count(xbar) as u32)).filter(|&(_, hosts)| hosts > 0).collect();
    let add = |mut sums: Vec<u32>, more: Vec<u32>| {
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        sums
    };
    let (histograms, _) = leaves
        .par_iter()
        .fold(
            || (vec![0; xbars * BINS], Hops::new(topology)),
            |(mut histograms, mut hops), &(leaf, hosts)| {
                search.fill(leaf, &mut hops);
                for (bins, &least) in histograms.chunks_exact_mut(BINS).zip(&hops.least) {
                    if usize::from(least) < BINS && least != NO_PATH {
                        bins[usize::from(least)] += hosts;
                    }
                }
                (histograms, hops)
            },
        )
        .reduce(
            || (vec![0; xbars * BINS], Hops::new(topology)),
            |(sums, hops), (more, _)| (add(sums, more), hops),
        );
    let hosts = f64::from(leaves.iter().map(|&(_, hosts)| hosts).sum::<u32>());
    let over = |bins: &[u32], part: f64| bins.iter().filter(|&&bin| f64::from(bin) > hosts * part).count();
    let is_root = |bins: &[u32]| over(bins, 0.9) == 1 && over(bins, 0.05) == 1;
    (0..).zip(histograms.chunks_exact(BINS)).filter(|(_, bins)| is_root(bins)).map(|(xbar, _)| xbar).collect()
}

fn is_cabled(subnet: &Subnet, host: u32) -> bool {
    subnet.xbar_of_host(host).is_some()
}
