//! The dependencies of one layer, kept free of circles.

use super::heading::Heading;
use super::lattice::Lattice;
use crate::engines::acyclic::AcyclicGraph;

/// The dependencies of a layer. A channel is numbered `6 * router + heading`.
pub(super) struct TorusLayer {
    graph: AcyclicGraph,
    /// The headings that follow each channel, a bit each.
    onward: Vec<u8>,
    /// The new dependencies of the route that is being added.
    added: Vec<(u32, u32)>,
}

impl TorusLayer {
    /// A layer without dependencies.
    pub(super) fn new(lattice: &Lattice) -> Self {
        let channels = 6 * lattice.router_count();
        Self { graph: AcyclicGraph::new(channels), onward: vec![0; channels], added: Vec::new() }
    }

    /// A layer with these headings after each channel, a bit each. `ranks` rise from each channel to all that
    /// follow it.
    pub(super) fn with(lattice: &Lattice, onward: Vec<u8>, ranks: &[u32]) -> Self {
        let mut order: Vec<u32> = (0..onward.len() as u32).collect();
        order.sort_unstable_by_key(|&channel| (ranks[channel as usize], channel));
        let mut places = vec![0; order.len()];
        (0..).zip(order).for_each(|(place, channel)| places[channel as usize] = place);
        let mut graph = AcyclicGraph::in_order(&places);
        for (channel, &bits) in (0..).zip(&onward) {
            let Some(heading) = Heading::from_index((channel % 6) as u8) else { continue };
            let Some(head) = lattice.next(channel / 6, heading) else { continue };
            for next in (0..6).filter(|next| bits >> next & 1 == 1) {
                let in_order = graph.insert(channel, 6 * head + next);
                debug_assert!(in_order, "ranks rise along dependencies");
            }
        }
        Self { graph, onward, added: Vec::new() }
    }

    /// Adds a route, as the channels that it passes. Returns false if that would close a circle; nothing is
    /// added then.
    pub(super) fn add(&mut self, channels: &[u32]) -> bool {
        self.added.clear();
        for pair in channels.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            let bit = 1 << (second % 6);
            if self.onward[first as usize] & bit != 0 {
                continue;
            }
            if !self.graph.insert(first, second) {
                for &(channel, next) in &self.added {
                    self.onward[channel as usize] &= !(1 << (next % 6));
                    self.graph.remove(channel, next);
                }
                return false;
            }
            self.onward[first as usize] |= bit;
            self.added.push((first, second));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::torus::fabrics::Broken;

    #[test]
    fn a_circle_is_found_and_leaves_nothing_behind() {
        let broken = Broken::new(&[(4, true)], 1);
        let subnet = broken.subnet();
        let lattice = Lattice::new(&broken.grid(&subnet), &subnet.topology);
        let mut layer = TorusLayer::new(&lattice);
        // Channels x+ of a ring of four: 0, 6, 12, 18.
        assert!(layer.add(&[12, 18]));
        assert!(layer.add(&[0, 6, 12]));
        assert!(!layer.add(&[18, 0]));
        assert!(!layer.add(&[6, 12, 18, 0]));
        assert!(layer.add(&[6, 12, 18]));
        // The other way round is free.
        assert!(layer.add(&[1, 19, 13]));
        assert!(!layer.add(&[13, 7, 1]) || !layer.add(&[7, 1, 19]));
    }
}
