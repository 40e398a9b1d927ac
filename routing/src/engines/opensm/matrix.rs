//! The hops from every port to every xbar: what OpenSM calls lid matrices.

use rayon::prelude::*;

use super::hops::{Hops, NO_PATH, Search};
use crate::Topology;

/// The hops from every port to every xbar, by which routes are the shortest that an engine may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HopMatrix {
    channels: usize,
    xbars: usize,
    /// The hops by each channel, destination by destination.
    by_channel: Vec<u8>,
    /// The least hops from each xbar, destination by destination.
    least: Vec<u8>,
}

impl HopMatrix {
    /// The hops where no way leads on.
    pub const NO_PATH: u8 = NO_PATH;

    /// The matrix of a topology, without a way from anywhere to anywhere.
    pub fn unknown(topology: &Topology) -> Self {
        let (channels, xbars) = (topology.channel_count(), topology.xbar_count());
        let (by_channel, least) = (vec![NO_PATH; channels * xbars], vec![NO_PATH; xbars * xbars]);
        Self { channels, xbars, by_channel, least }
    }

    /// The hops that a search finds.
    pub(super) fn of(search: &dyn Search) -> Self {
        let topology = search.topology();
        let mut matrix = Self::unknown(topology);
        let (channels, xbars) = (matrix.channels, matrix.xbars);
        if channels == 0 {
            matrix.least.iter_mut().step_by(xbars + 1).for_each(|own| *own = 0);
            return matrix;
        }
        let rows = matrix.by_channel.par_chunks_mut(channels).zip(matrix.least.par_chunks_mut(xbars));
        rows.enumerate().for_each_init(
            || Hops::new(topology),
            |hops, (destination, (by_channel, least))| {
                search.fill(destination as u32, hops);
                by_channel.copy_from_slice(&hops.by_channel);
                least.copy_from_slice(&hops.least);
            },
        );
        matrix
    }

    /// Whether the matrix is for a topology of this size.
    pub(super) fn is_of(&self, topology: &Topology) -> bool {
        (self.channels, self.xbars) == (topology.channel_count(), topology.xbar_count())
    }

    /// The hops from the xbar that a channel leaves to a destination xbar, if the first step is this
    /// channel; or [`Self::NO_PATH`].
    pub fn by_channel(&self, channel: u32, destination: u32) -> u8 {
        self.by_channel[destination as usize * self.channels + channel as usize]
    }

    /// Sets the hops by a channel.
    pub fn set_by_channel(&mut self, channel: u32, destination: u32, hops: u8) {
        self.by_channel[destination as usize * self.channels + channel as usize] = hops;
    }

    /// The least hops between two xbars, or [`Self::NO_PATH`].
    pub fn least(&self, from: u32, destination: u32) -> u8 {
        self.least[destination as usize * self.xbars + from as usize]
    }

    /// Sets the least hops between two xbars.
    pub fn set_least(&mut self, from: u32, destination: u32, hops: u8) {
        self.least[destination as usize * self.xbars + from as usize] = hops;
    }
}
