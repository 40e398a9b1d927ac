//! Puts every pair of xbars into a layer.

use std::cmp::Reverse;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Subnet;
use crate::engines::first_fit::FirstFit;
use crate::engines::layer::{Dependency, DependencyNumbers};
use crate::engines::trees::Trees;
use crate::tables::Layers;

/// The layer of each pair.
#[derive(Clone)]
pub(super) struct Layering {
    /// How many layers are used.
    pub(super) count: usize,
    /// Pairs of xbars, and the layer of each.
    pairs: Vec<Placed>,
}

/// A pair of xbars, the smaller one first, and its layer.
#[derive(Clone, Copy)]
struct Placed {
    a: u32,
    b: u32,
    layer: u16,
}

impl Layering {
    /// The layer of each source and destination: `source * xbars + destination`. Pairs that were not given
    /// layers are in the first.
    pub(super) fn by_pair(&self, xbars: usize) -> Vec<u8> {
        let mut all = vec![0; xbars * xbars];
        for &Placed { a, b, layer } in &self.pairs {
            all[a as usize * xbars + b as usize] = layer as u8;
            all[b as usize * xbars + a as usize] = layer as u8;
        }
        all
    }

    /// Of two layerings the one with the smaller rank is better. It has fewer layers, or as many of which the
    /// emptiest has fewer pairs.
    fn rank(&self) -> (usize, usize) {
        (self.count, self.sizes().into_iter().min().unwrap_or_default())
    }

    fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.count];
        self.pairs.iter().for_each(|pair| sizes[usize::from(pair.layer)] += 1);
        sizes
    }
}

/// Layers that are being filled.
pub(super) struct Filler<'a> {
    subnet: &'a Subnet,
    trees: &'a Trees,
    numbers: &'a DependencyNumbers<'a>,
    layers: FirstFit<'a>,
    /// How many layers may be used.
    most: usize,
    /// How many dependencies were looked up so far.
    work: u64,
}

impl<'a> Filler<'a> {
    /// Balanced layers differ by less than this; each pair counts both ways.
    const MOST_DIFFERENCE: usize = 6;
    /// After this many rounds without a better result the best one is taken.
    const PATIENCE: usize = 60;
    /// How many channels and dependencies may be looked at in all rounds together.
    const MOST_WORK: u64 = 20_000_000;

    pub(super) fn new(
        subnet: &'a Subnet,
        trees: &'a Trees,
        numbers: &'a DependencyNumbers<'a>,
        most: u8,
    ) -> Self {
        Self { subnet, trees, numbers, layers: FirstFit::new(numbers), most: most.into(), work: 0 }
    }

    /// Puts each pair into the lowest layer that stays free of cycles with it.
    ///
    /// That depends on the order of pairs. After some orders that often serve well, the best result is filled
    /// in again and again, layer by layer in another order of layers. Pairs of one layer fit into one again,
    /// so the number of layers never grows, and often the last layer runs empty (Culberson and Luo: Exploring
    /// the k-colorable landscape with iterated greedy, 1996).
    ///
    /// One layer is too few, as the routes of all pairs were seen to close a cycle. Where only one is allowed, the result just
    /// tells the user how many would do, so the search ends as soon as all pairs fit into as many layers as there can be.
    pub(super) fn fill(&mut self, pairs: &[(u32, u32)], seed: u64) -> Layering {
        let mut current = self.first(pairs);
        let mut best = current.clone();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut patience = Self::PATIENCE;
        let enough = if self.most == 1 { usize::from(Layers::MAX) } else { 2 };
        while best.count > enough && patience > 0 && self.work() < Self::MOST_WORK {
            patience -= 1;
            let order = reordered(&current, &mut rng);
            current = self.place(order);
            if current.rank() < best.rank() {
                best = current.clone();
                patience = Self::PATIENCE;
            }
        }
        // Thus the layers at hand are those of the result, whatever was tried last.
        self.place_as_found(best)
    }

    /// The best of three layerings: of the pairs as they are listed, of near pairs first, and of far pairs first.
    fn first(&mut self, pairs: &[(u32, u32)]) -> Layering {
        let listed: Vec<Placed> = pairs.iter().map(|&(a, b)| Placed { a, b, layer: 0 }).collect();
        let mut best = self.place(listed.clone());
        for far_first in [false, true] {
            if best.count <= 2 || self.work() > Self::MOST_WORK {
                break;
            }
            let mut order = listed.clone();
            self.sort_by_hops(&mut order, far_first);
            let other = self.place(order);
            if other.rank() < best.rank() {
                best = other;
            }
        }
        best
    }

    fn sort_by_hops(&self, pairs: &mut [Placed], far_first: bool) {
        let hops = |pair: &Placed| self.trees.hops(self.subnet, pair.a, pair.b);
        pairs.sort_by_cached_key(|pair| if far_first { u32::MAX - hops(pair) } else { hops(pair) });
    }

    fn work(&self) -> u64 {
        self.layers.work() + self.work
    }

    /// Puts pairs into the layers that they were found to fit into.
    fn place_as_found(&mut self, layering: Layering) -> Layering {
        self.layers.clear();
        let mut dependencies = Vec::new();
        for pair in &layering.pairs {
            self.find_dependencies(pair.a, pair.b, &mut dependencies);
            let fits = self.layers.add(pair.layer.into(), &dependencies);
            debug_assert!(fits, "a layer that was free of cycles has one");
        }
        layering
    }

    /// Puts pairs into layers in the order in which they stand.
    fn place(&mut self, mut pairs: Vec<Placed>) -> Layering {
        self.layers.clear();
        let mut dependencies = Vec::new();
        for pair in &mut pairs {
            self.find_dependencies(pair.a, pair.b, &mut dependencies);
            self.work += dependencies.len() as u64;
            // The two shortest routes of one pair have no channel in common, so they close no cycle by themselves.
            pair.layer = self.layers.place(&dependencies) as u16;
        }
        Layering { count: self.layers.count().max(1), pairs }
    }

    /// Moves pairs from the fullest to the emptiest layer until they differ by less than
    /// [`Self::MOST_DIFFERENCE`], or nothing can be moved.
    pub(super) fn balance(&mut self, layering: &mut Layering) {
        if layering.count > self.most {
            return;
        }
        let count = layering.count;
        let mut sizes = layering.sizes();
        let mut stuck = vec![false; count * count];
        while let Some((from, to)) = worst(&sizes, &stuck) {
            for pair in &mut layering.pairs {
                if 2 * sizes[from].saturating_sub(sizes[to]) < Self::MOST_DIFFERENCE {
                    break;
                }
                if usize::from(pair.layer) == from && self.transfer(pair, from, to) {
                    pair.layer = to as u16;
                    sizes[from] -= 1;
                    sizes[to] += 1;
                }
            }
            stuck[from * count + to] = 2 * sizes[from].saturating_sub(sizes[to]) >= Self::MOST_DIFFERENCE;
        }
    }

    fn transfer(&mut self, pair: &Placed, from: usize, to: usize) -> bool {
        let mut dependencies = Vec::new();
        self.find_dependencies(pair.a, pair.b, &mut dependencies);
        self.layers.transfer(from, to, &dependencies)
    }

    fn find_dependencies(&self, a: u32, b: u32, found: &mut Vec<Dependency>) {
        found.clear();
        for pair in [(a, b), (b, a)] {
            self.trees.find_dependencies(self.subnet, self.numbers, pair, found);
        }
    }
}

/// The pairs, layer by layer. The layers stand from the last to the first, by size, or at random; which of
/// these is drawn.
fn reordered(layering: &Layering, rng: &mut ChaCha8Rng) -> Vec<Placed> {
    let sizes = layering.sizes();
    let mut layers: Vec<usize> = (0..layering.count).rev().collect();
    match rng.random_range(0..3) {
        0 => {}
        1 => layers.sort_by_key(|&layer| Reverse(sizes[layer])),
        _ => layers.shuffle(rng),
    }
    let mut rank = vec![0; layering.count];
    layers.iter().enumerate().for_each(|(place, &layer)| rank[layer] = place);
    let mut pairs = layering.pairs.clone();
    pairs.shuffle(rng);
    pairs.sort_by_key(|pair| rank[usize::from(pair.layer)]);
    pairs
}

/// The fullest layer and the emptiest that still takes from it, if they differ by enough.
fn worst(sizes: &[usize], stuck: &[bool]) -> Option<(usize, usize)> {
    let mut worst = None;
    for from in 0..sizes.len() {
        for to in (0..sizes.len()).filter(|&to| !stuck[from * sizes.len() + to]) {
            let difference = 2 * sizes[from].saturating_sub(sizes[to]);
            if difference >= Filler::MOST_DIFFERENCE && worst.is_none_or(|(most, _, _)| difference > most) {
                worst = Some((difference, from, to));
            }
        }
    }
    worst.map(|(_, from, to)| (from, to))
}
