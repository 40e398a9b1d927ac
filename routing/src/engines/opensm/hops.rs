//! Hops from every port to every destination xbar, and which ports begin the shortest routes.

use std::collections::BTreeMap;

use mapper_proto::map::PortRef;
use rayon::prelude::*;

use super::matrix::HopMatrix;
use crate::Topology;

/// The value that stands for no way, which is more hops than there can be.
pub(super) const NO_PATH: u8 = u8::MAX;

/// The hops to one destination xbar.
pub(super) struct Hops {
    /// The hops from the xbar that each channel leaves, if the first step is this channel.
    pub(super) by_channel: Vec<u8>,
    /// The least hops from each xbar.
    pub(super) least: Vec<u8>,
    /// The xbars to visit, and what is known of them. They are kept between searches to reuse their memory.
    pub(super) visits: super::ranked::Visits,
    buckets: Vec<Vec<u32>>,
}

impl Hops {
    pub(super) fn new(topology: &Topology) -> Self {
        Self {
            by_channel: vec![NO_PATH; topology.channel_count()],
            least: vec![NO_PATH; topology.xbar_count()],
            visits: super::ranked::Visits::new(topology.xbar_count()),
            buckets: Vec::new(),
        }
    }

    /// Forgets all hops.
    pub(super) fn clear(&mut self) {
        self.by_channel.fill(NO_PATH);
        self.least.fill(NO_PATH);
    }

    /// Sets the hops by a channel from an xbar.
    pub(super) fn set(&mut self, xbar: u32, channel: u32, hops: u8) {
        self.by_channel[channel as usize] = hops;
        let least = &mut self.least[xbar as usize];
        *least = hops.min(*least);
    }
}

/// A way to reckon hops.
pub(super) trait Search: Sync {
    /// The topology that is searched.
    fn topology(&self) -> &Topology;

    /// Finds the hops to a destination xbar.
    fn fill(&self, destination: u32, hops: &mut Hops);
}

/// The shortest routes by the sum of their steps' weights. Sums above 254 count as no way.
pub(super) struct WeightedHops<'a> {
    topology: &'a Topology,
    /// What a step along each channel counts.
    weights: Vec<u8>,
}

impl<'a> WeightedHops<'a> {
    pub(super) fn new(topology: &'a Topology, weights: &BTreeMap<PortRef, u8>) -> Self {
        let weight = |channel| weights.get(&topology.tail(channel)).map_or(1, |&weight| weight.max(1));
        Self { topology, weights: (0..topology.channel_count() as u32).map(weight).collect() }
    }
}

impl Search for WeightedHops<'_> {
    fn topology(&self) -> &Topology {
        self.topology
    }

    fn fill(&self, destination: u32, hops: &mut Hops) {
        let topology = self.topology;
        hops.clear();
        hops.buckets.resize_with(usize::from(NO_PATH), Vec::new);
        hops.least[destination as usize] = 0;
        hops.buckets[0].push(destination);
        for sum in 0..NO_PATH {
            while let Some(xbar) = hops.buckets[usize::from(sum)].pop() {
                if hops.least[xbar as usize] != sum {
                    continue;
                }
                for out in topology.channels_of(xbar).filter(|&out| !topology.is_dead(out)) {
                    let (channel, from) = (topology.reverse(out), topology.head(out).xbar);
                    let there = sum.saturating_add(self.weights[channel as usize]);
                    if from == xbar || there == NO_PATH {
                        continue;
                    }
                    hops.by_channel[channel as usize] = there;
                    if there < hops.least[from as usize] {
                        hops.least[from as usize] = there;
                        hops.buckets[usize::from(there)].push(from);
                    }
                }
            }
        }
    }
}

/// For each destination xbar, the channels that begin its shortest routes, a bit for each channel.
pub(super) struct LeastHops {
    words: usize,
    bits: Vec<u64>,
}

impl LeastHops {
    pub(super) fn of(search: &dyn Search) -> Self {
        let topology = search.topology();
        let words = topology.channel_count().div_ceil(64);
        let mut bits = vec![0; words * topology.xbar_count()];
        bits.par_chunks_mut(words.max(1)).enumerate().for_each_init(
            || Hops::new(topology),
            |hops, (destination, row)| {
                search.fill(destination as u32, hops);
                mark(topology, destination as u32, hops, row);
            },
        );
        Self { words, bits }
    }

    /// The channels out of an xbar, as a range, that begin shortest routes to a destination xbar:
    /// their places in the range, rising.
    pub(super) fn places(
        &self,
        channels: std::ops::Range<u32>,
        destination: u32,
    ) -> impl Iterator<Item = u8> + '_ {
        let row = &self.bits[self.words * destination as usize..];
        let (first, last) = (channels.start as usize, channels.end as usize);
        (first / 64..last.div_ceil(64)).flat_map(move |word| {
            let mut bits = row[word];
            if word == first / 64 {
                bits &= u64::MAX << (first % 64);
            }
            if last < 64 * (word + 1) {
                bits &= (1 << (last % 64)) - 1;
            }
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros() as usize;
                (bit < 64).then(|| {
                    bits &= bits - 1;
                    (64 * word + bit - first) as u8
                })
            })
        })
    }

    /// The channels that begin shortest routes by hops that are given.
    pub(super) fn of_matrix(topology: &Topology, matrix: &HopMatrix) -> Self {
        let words = topology.channel_count().div_ceil(64);
        let mut bits = vec![0; words * topology.xbar_count()];
        bits.par_chunks_mut(words.max(1)).enumerate().for_each(|(destination, row)| {
            for xbar in 0..topology.xbar_count() as u32 {
                let least = matrix.least(xbar, destination as u32);
                let alive = topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel));
                for channel in alive.filter(|_| least != NO_PATH && xbar != destination as u32) {
                    if matrix.by_channel(channel, destination as u32) == least {
                        row[channel as usize / 64] |= 1 << (channel % 64);
                    }
                }
            }
        });
        Self { words, bits }
    }

    /// Whether a channel begins a shortest route to a destination xbar.
    pub(super) fn contains(&self, channel: u32, destination: u32) -> bool {
        let word = self.bits[self.words * destination as usize + channel as usize / 64];
        word >> (channel % 64) & 1 == 1
    }
}

/// Marks the channels whose hops are the least of their xbar.
fn mark(topology: &Topology, destination: u32, hops: &Hops, row: &mut [u64]) {
    for (xbar, &least) in (0..).zip(&hops.least) {
        if least == NO_PATH || xbar == destination {
            continue;
        }
        for channel in topology.channels_of(xbar) {
            if hops.by_channel[channel as usize] == least && !topology.is_dead(channel) {
                row[channel as usize / 64] |= 1 << (channel % 64);
            }
        }
    }
}
