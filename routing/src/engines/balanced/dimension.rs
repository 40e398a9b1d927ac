//! Dimension order: of the shortest ways only those to the neighbour that the first port leads to.

use super::ports::XbarPorts;
use super::ways::Ways;
use crate::engines::Settings;

/// The first port of a set, in the order that a user gave or by number.
///
/// In a mesh or a hypercube whose cables are plugged in the same order of dimensions at each xbar, the first
/// port is that of the first dimension in which a frame must go on.
pub(super) struct FirstPort {
    /// For each xbar its bits, in the order that a user gave; empty if none was given.
    orders: Vec<Vec<usize>>,
}

impl FirstPort {
    pub(super) fn new(ports: &XbarPorts, settings: &Settings) -> Self {
        let order = |xbar: u32| {
            let listed = settings.port_order.get(&xbar).into_iter().flatten();
            listed.filter_map(|&port| ports.bit_of_port(port)).collect()
        };
        Self { orders: (0..ports.xbars as u32).map(order).collect() }
    }

    /// Leaves only the ways to the first port's neighbour.
    pub(super) fn reduce(&self, ports: &XbarPorts, ways: &mut Ways) {
        let words = ports.words;
        for masks in ways.masks_mut() {
            for (xbar, set) in masks.chunks_exact_mut(words).enumerate() {
                self.reduce_set(ports, xbar, set);
            }
        }
    }

    fn reduce_set(&self, ports: &XbarPorts, xbar: usize, set: &mut [u64]) {
        let Some(first) = self.first(xbar, set) else { return };
        let base = xbar * ports.words * 64;
        let neighbour = ports.heads[base + first];
        for (word, mask) in set.iter_mut().enumerate() {
            super::ranks::each_bit(*mask, |bit| {
                if ports.heads[base + word * 64 + bit] != neighbour {
                    *mask &= !(1 << bit);
                }
            });
        }
    }

    fn first(&self, xbar: usize, set: &[u64]) -> Option<usize> {
        let listed = self.orders[xbar].iter().copied().find(|&bit| set[bit / 64] >> (bit % 64) & 1 == 1);
        listed.or_else(|| {
            let word = set.iter().position(|&mask| mask != 0)?;
            Some(word * 64 + set[word].trailing_zeros() as usize)
        })
    }
}
