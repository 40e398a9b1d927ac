//! Breaks circles by moving the routes of their weakest dependencies to the next layer.

use std::cmp::Reverse;

use crate::Subnet;
use crate::engines::acyclic::AcyclicGraph;
use crate::engines::layer::{Dependency, DependencyNumbers, Layer};
use crate::engines::trees::Trees;

/// Pairs of xbars, source and destination, that share a layer.
pub(super) type PairSet = Vec<(u32, u32)>;

/// Routes that are being put into layers.
pub(super) struct Breaking<'a> {
    subnet: &'a Subnet,
    trees: &'a Trees,
    numbers: &'a DependencyNumbers<'a>,
}

impl<'a> Breaking<'a> {
    pub(super) fn new(subnet: &'a Subnet, trees: &'a Trees, numbers: &'a DependencyNumbers<'a>) -> Self {
        Self { subnet, trees, numbers }
    }

    /// The pairs of each layer.
    ///
    /// In each layer the dependencies are put into a graph without circles, those that most routes make
    /// first. A dependency that does not fit closes a circle in which all others are made by as many routes
    /// or more. So it is the weakest there, and the routes that make it leave the layer. Some of these fit
    /// again once the others have left.
    pub(super) fn layers(&self, pairs: &[(u32, u32)]) -> Vec<PairSet> {
        let mut layers = Vec::new();
        let mut waiting = pairs.to_vec();
        while !waiting.is_empty() {
            let (kept, moved) = self.split(&waiting);
            layers.push(kept);
            waiting = moved;
        }
        layers
    }

    /// The pairs that stay in a layer, and those that do not fit into it.
    fn split(&self, pairs: &[(u32, u32)]) -> (PairSet, PairSet) {
        let broken = self.weakest(pairs);
        let mut layer = Layer::new(self.numbers);
        let (mut kept, mut moved) = (Vec::new(), Vec::new());
        let mut dependencies = Vec::new();
        for &pair in pairs {
            self.find_dependencies(pair, &mut dependencies);
            let stays = dependencies.iter().all(|dependency| !broken[dependency.number as usize]);
            // The dependencies that are not broken close no circle.
            if stays && layer.add(&dependencies) {
                kept.push(pair);
            } else {
                moved.push(pair);
            }
        }
        moved.retain(|&pair| {
            self.find_dependencies(pair, &mut dependencies);
            let fits = layer.add(&dependencies);
            kept.extend(fits.then_some(pair));
            !fits
        });
        (kept, moved)
    }

    /// For each dependency, by its number, whether its routes are to leave.
    fn weakest(&self, pairs: &[(u32, u32)]) -> Vec<bool> {
        let mut routes = vec![0_u32; self.numbers.count()];
        let mut made = Vec::new();
        let mut dependencies = Vec::new();
        for &pair in pairs {
            self.find_dependencies(pair, &mut dependencies);
            for &dependency in &dependencies {
                let count = &mut routes[dependency.number as usize];
                if *count == 0 {
                    made.push(dependency);
                }
                *count += 1;
            }
        }
        made.sort_unstable_by_key(|made| (Reverse(routes[made.number as usize]), made.number));
        let mut graph = AcyclicGraph::new(self.numbers.topology.channel_count());
        let mut broken = vec![false; self.numbers.count()];
        for Dependency { number, held, wanted } in made {
            broken[number as usize] = !graph.insert(held, wanted);
        }
        broken
    }

    /// The dependencies that the routes of a pair make in all its trees.
    fn find_dependencies(&self, pair: (u32, u32), found: &mut Vec<Dependency>) {
        found.clear();
        self.trees.find_dependencies(self.subnet, self.numbers, pair, found);
    }
}
