//! What crosses each channel, counted over all pairs of hosts.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::hosts_in_order;
use crate::Topology;

/// The routes between the hosts of a fabric, whoever computed them: all that measures of quality need.
pub trait PairRoutes: Sync {
    /// The topology that the routes are of.
    fn topology(&self) -> &Topology;

    /// Appends the channels between xbars of a route from one host to another, in order, and says whether
    /// there is a route. Where there are several, `draw` chooses one; each route is chosen by equally many
    /// values.
    ///
    /// If there is no route, what was appended means nothing.
    fn draw(&self, from: u32, to: u32, draw: u32, channels: &mut Vec<u32>) -> bool;

    /// Is called before routes to a host are drawn from many others, so that what they all read can be fetched at once.
    fn prepare(&self, _to: u32) {}

    /// What crosses each channel.
    fn census(&self) -> &Census;

    /// Whether a host is known to be a service adapter, wherever it stands.
    fn is_service_adapter(&self, _host: u32) -> bool {
        false
    }
}

/// What crosses each channel, all pairs of hosts counted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Census {
    /// Routes, one of n of a pair counting 1/n.
    pub loads: Vec<f64>,
    /// Different hosts whose routes cross.
    pub sources: Vec<u32>,
    /// Different hosts that routes which cross lead to.
    pub destinations: Vec<u32>,
    /// Ordered pairs of cabled hosts without a route.
    pub unroutable: u64,
}

impl Census {
    /// The most flows that can meet on a channel: see
    /// [`Quality::congestion_a2a`](super::Quality::congestion_a2a).
    pub fn congestion(&self) -> u32 {
        self.sources.iter().zip(&self.destinations).map(|(&from, &to)| from.min(to)).max().unwrap_or_default()
    }
}

/// A census that is counted source by source.
pub(crate) struct SourceCensus {
    /// The place of each host in the order of hosts; `u32::MAX` if it has none.
    places: Vec<u32>,
    loads: Vec<f64>,
    sources: Vec<u32>,
    /// Which places routes across a channel lead to: a bit each, `words` words for each channel. All threads
    /// set bits here, and the result does not depend on which was first.
    reached: Vec<AtomicU64>,
    words: usize,
    /// How many pairs have a route.
    routable: u64,
    hosts: u64,
}

/// The counts that one source adds to the census.
pub(crate) struct Source<'a> {
    census: &'a SourceCensus,
    loads: &'a mut [f64],
    crossed: &'a mut [bool],
    routable: &'a mut u64,
}

impl Source<'_> {
    /// Adds a route that `flows` of this source's flows take, and the hosts that they go to.
    pub(crate) fn add_route(&mut self, channels: &[u32], flows: f64, to: &[u32]) {
        for &channel in channels {
            let channel = channel as usize;
            self.loads[channel] += flows;
            self.crossed[channel] = true;
            for &host in to {
                let place = self.census.places[host as usize];
                let word = &self.census.reached[channel * self.census.words + place as usize / 64];
                let bit = 1 << (place % 64);
                if word.load(Ordering::Relaxed) & bit == 0 {
                    word.fetch_or(bit, Ordering::Relaxed);
                }
            }
        }
    }

    /// Counts pairs that have a route.
    pub(crate) fn add_routable(&mut self, pairs: usize) {
        *self.routable += pairs as u64;
    }
}

impl SourceCensus {
    /// How many sources one thread sums up. Sums of fractions depend on what is added first, so these blocks
    /// must not depend on the number of threads.
    const BLOCK: usize = 32;

    pub(crate) fn new(topology: &Topology) -> Self {
        let hosts = hosts_in_order(topology);
        let mut places = vec![u32::MAX; topology.host_count()];
        (0..).zip(&hosts).for_each(|(place, &host)| places[host as usize] = place);
        let (channels, words) = (topology.channel_count(), hosts.len().div_ceil(64));
        Self {
            places,
            loads: vec![0.0; channels],
            sources: vec![0; channels],
            reached: (0..channels * words).map(|_| AtomicU64::new(0)).collect(),
            words,
            routable: 0,
            hosts: hosts.len() as u64,
        }
    }

    /// Whether a host counts, as one does that is cabled to an xbar.
    pub(crate) fn counts(&self, host: u32) -> bool {
        self.places[host as usize] != u32::MAX
    }

    /// Adds the routes of some sources; `visit` adds those of each.
    pub(crate) fn add<S: Sync>(&mut self, sources: &[S], visit: impl Fn(&S, &mut Source<'_>) + Sync) {
        let channels = self.loads.len();
        // Some blocks at a time, so that not the sums of all are in memory.
        for some in sources.chunks(Self::BLOCK * 32) {
            let count = |block: &[S]| {
                let (mut loads, mut counts) = (vec![0.0; channels], vec![0_u32; channels]);
                let (mut crossed, mut routable) = (vec![false; channels], 0);
                for source in block {
                    crossed.fill(false);
                    let mut adds = Source {
                        census: self,
                        loads: &mut loads,
                        crossed: &mut crossed,
                        routable: &mut routable,
                    };
                    visit(source, &mut adds);
                    counts
                        .iter_mut()
                        .zip(&crossed)
                        .for_each(|(count, &crossed)| *count += u32::from(crossed));
                }
                (loads, counts, routable)
            };
            let parts: Vec<_> = some.par_chunks(Self::BLOCK).map(count).collect();
            for (loads, counts, routable) in parts {
                self.loads.iter_mut().zip(loads).for_each(|(sum, load)| *sum += load);
                self.sources.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                self.routable += routable;
            }
        }
    }

    pub(crate) fn finish(self) -> Census {
        let reached = |channel: usize| {
            let words = &self.reached[channel * self.words..][..self.words];
            words.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum()
        };
        Census {
            destinations: (0..self.loads.len()).map(reached).collect(),
            loads: self.loads,
            sources: self.sources,
            unroutable: (self.hosts * self.hosts.saturating_sub(1)).saturating_sub(self.routable),
        }
    }
}
