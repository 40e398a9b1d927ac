//! The channel dependencies of all layers, which many threads add to.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::wiring::Wiring;
use crate::Topology;
use crate::proof::{Cycle, UnionProof};
use crate::tables::Layers;

/// For each dependency, the layers that have it. Threads may add to these sets in any order, and the result
/// is the same.
pub(super) struct Dependencies {
    /// A dependency has `1 << shift` bits, one a layer.
    shift: u32,
    layers: u8,
    words: Vec<AtomicU64>,
}

impl Dependencies {
    pub(super) fn new(count: usize, layers: u8) -> Self {
        let shift = u32::from(layers.clamp(1, Layers::MAX)).next_power_of_two().trailing_zeros();
        let words = (count << shift).div_ceil(64);
        Self { shift, layers, words: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Adds a dependency to the layers whose bits are set.
    #[inline]
    pub(super) fn add(&self, dependency: u32, layers: u16) {
        let bit = (dependency as usize) << self.shift;
        let bits = u64::from(layers) << (bit % 64);
        let word = &self.words[bit / 64];
        // Nearly all are there already: reading does not take the cache line from other threads.
        if word.load(Ordering::Relaxed) & bits != bits {
            word.fetch_or(bits, Ordering::Relaxed);
        }
    }

    fn has(&self, dependency: u32, layer: u8) -> bool {
        let bit = ((dependency as usize) << self.shift) + usize::from(layer);
        self.words[bit / 64].load(Ordering::Relaxed) >> (bit % 64) & 1 == 1
    }

    /// A cycle of each layer that has one, by layer.
    pub(super) fn cycles(&self, topology: &Topology, wiring: &Wiring) -> Vec<(u8, Cycle)> {
        let cycle =
            |layer| self.union(topology, wiring, layer).prove_acyclic().err().map(|cycle| (layer, cycle));
        let cycles: Vec<_> = (0..self.layers).into_par_iter().map(cycle).collect();
        cycles.into_iter().flatten().collect()
    }

    fn union<'a>(&self, topology: &'a Topology, wiring: &Wiring, layer: u8) -> UnionProof<'a> {
        let mut union = UnionProof::new(topology);
        for first in 0..topology.channel_count() as u32 {
            for second in topology.channels_of(topology.head(first).xbar) {
                if self.has(wiring.dependency(topology, first, second), layer) {
                    union.add_dependency(first, second);
                }
            }
        }
        union
    }
}
