//! How evenly routes load the channels.

use crate::{HostRoutes, Topology};

/// How many routes cross each channel, a route that is one of n to its destination counting 1/n.
///
/// So every pair of hosts counts 1, however many routes it has, as if each message drew one of them
/// at random.
#[derive(Clone, Debug)]
pub struct ChannelLoads<'a> {
    topology: &'a Topology,
    loads: Vec<f64>,
}

impl<'a> ChannelLoads<'a> {
    /// The loads before any routes are added, all 0.
    pub fn new(topology: &'a Topology) -> Self {
        Self { topology, loads: vec![0.0; topology.channel_count()] }
    }

    /// Adds a host's table, which must be of this topology.
    pub fn add_table(&mut self, routes: &HostRoutes) {
        for xbar in 0..self.topology.xbar_count() as u32 {
            for (search, load) in routes.load_by_search(self.topology, xbar) {
                for back in routes.entered(self.topology, search, xbar) {
                    self.loads[self.topology.reverse(back) as usize] += load;
                }
            }
        }
    }

    /// The edge forwarding index: the load of the channel that most routes cross (Heydemann, 1989).
    pub fn edge_forwarding_index(&self) -> f64 {
        self.loads.iter().copied().fold(0.0, f64::max)
    }

    /// The mean over all channels. No other routes that are as long have a smaller index than this.
    pub fn mean(&self) -> f64 {
        if self.loads.is_empty() { 0.0 } else { self.loads.iter().sum::<f64>() / self.loads.len() as f64 }
    }
}
