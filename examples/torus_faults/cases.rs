//! Which faults are tried, and how much each case counts.

use std::collections::BTreeMap;

use mapper_proto::map::Fabric;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::grids::{Fault, Grid, all_faults};

/// Faults that are tried together.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) faults: Vec<Fault>,
    /// How many cases this one stands for.
    pub(super) weight: usize,
    /// Which cases are the same but for a shift along rings: these have the same number.
    pub(super) class: usize,
}

/// Each fault alone.
pub(super) fn singles(whole: &Fabric) -> Vec<Case> {
    each(all_faults(whole).into_iter().map(|fault| vec![fault]))
}

/// Every two faults.
pub(super) fn doubles(whole: &Fabric) -> Vec<Case> {
    each(pairs(&all_faults(whole)).into_iter().map(|pair| pair.to_vec()))
}

fn each(all: impl Iterator<Item = Vec<Fault>>) -> Vec<Case> {
    all.enumerate().map(|(class, faults)| Case { faults, weight: 1, class }).collect()
}

fn pairs(all: &[Fault]) -> Vec<[Fault; 2]> {
    (0..all.len()).flat_map(|i| (0..i).map(move |j| [all[i], all[j]])).collect()
}

/// Two of all pairs of faults that are the same but for a shift along rings: the first and the last one,
/// which together count as much as all of them.
pub(super) fn doubles_by_shift(whole: &Fabric, grid: Grid) -> Vec<Case> {
    let mut classes: BTreeMap<[Site; 2], Vec<[Fault; 2]>> = BTreeMap::new();
    for pair in pairs(&all_faults(whole)) {
        let sites = pair.map(|fault| Site::of(whole, grid, fault));
        let shifted = [(0, [0, 1]), (1, [1, 0])].map(|(to, order)| {
            let by = sites[to].place;
            order.map(|i: usize| sites[i].shifted(grid, by))
        });
        classes.entry(shifted.into_iter().min().unwrap_or(sites)).or_default().push(pair);
    }
    let both = classes.into_values().enumerate().flat_map(|(class, all)| {
        let half = all.len() / 2;
        let case = move |pair: Option<&[Fault; 2]>, weight| {
            pair.filter(|_| weight > 0).map(|pair| Case { faults: pair.to_vec(), weight, class })
        };
        [case(all.first(), all.len() - half), case(all.last(), half)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    });
    both.collect()
}

/// So many cases of random cables and routers that are broken, the same each time.
pub(super) fn random(whole: &Fabric, cables: usize, routers: usize, cases: usize) -> Vec<Case> {
    let mut random = ChaCha8Rng::seed_from_u64((cables + 1_000 * routers) as u64);
    let one = |_| {
        let cables = (0..cables).map(|_| Fault::Cable(random.random_range(0..whole.map.cables.len())));
        let mut faults: Vec<Fault> = cables.collect();
        let count = whole.map.xbars.len() as u32;
        faults.extend((0..routers).map(|_| Fault::Router(random.random_range(0..count))));
        faults
    };
    each((0..cases).map(one).collect::<Vec<_>>().into_iter())
}

/// Where a fault is: what a shift moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Site {
    /// The dimension of a cable; 3 for a router.
    kind: usize,
    /// The router, or the cable's end from which it leads up.
    place: [u8; 3],
}

impl Site {
    fn of(whole: &Fabric, grid: Grid, fault: Fault) -> Self {
        match fault {
            Fault::Router(router) => Self { kind: 3, place: grid.place(router) },
            Fault::Cable(number) => {
                let cable = &whole.map.cables[number];
                let end = if cable.a.port % 2 == 1 { cable.a } else { cable.b };
                Self { kind: usize::from(end.port - 1) / 2, place: grid.place(end.xbar) }
            }
        }
    }

    /// Where it is after a shift along rings that brings a place to 0.
    fn shifted(mut self, grid: Grid, to_zero: [u8; 3]) -> Self {
        for (dimension, (size, ring)) in grid.0.into_iter().enumerate() {
            if ring {
                self.place[dimension] = (self.place[dimension] + size - to_zero[dimension]) % size;
            }
        }
        self
    }
}
