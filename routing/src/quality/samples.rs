//! What bandwidth flows get of the channels that they share.

use std::ops::Range;

use rayon::prelude::*;

use super::PairRoutes;
use super::bisection::Bisection;
use super::patterns::Patterns;
use crate::Topology;

/// How many patterns are looked at together, destination by destination. The flows to one destination read
/// the same entries of the tables, which are then read from memory once for all of them.
const TOGETHER: usize = 32;

/// How many flows of each of some patterns are on a channel. This fills a line of a cache. A channel that
/// more flows cross than a number can say is as good as blocked, so counting ends at the largest number.
type Loads = [u16; TOGETHER];

/// The channels of each flow of each pattern.
pub(super) trait Flows: Sync {
    fn topology(&self) -> &Topology;

    /// Appends the channels of a pattern's flow from one place to another; says whether there is one.
    fn flow(&self, pattern: usize, from: usize, to: usize, channels: &mut Vec<u32>) -> bool;
}

/// Flows that are looked up when they are needed.
pub(super) struct ByPair<'a, R> {
    pub(super) routes: &'a R,
    pub(super) patterns: &'a Patterns,
}

impl<R: PairRoutes> Flows for ByPair<'_, R> {
    fn topology(&self) -> &Topology {
        self.routes.topology()
    }

    fn flow(&self, pattern: usize, from: usize, to: usize, channels: &mut Vec<u32>) -> bool {
        let hosts = &self.patterns.hosts;
        self.routes.draw(hosts[from], hosts[to], self.patterns.choice(pattern, from), channels)
    }
}

/// What the patterns showed.
pub(super) struct Samples {
    pub(super) bisection: Bisection,
    /// The number of flows on the busiest channel, as the mean over permutations.
    pub(super) permutation: f64,
    /// The number of flows on the busiest channel, for the worst of all shifts.
    pub(super) shift: u32,
}

impl Samples {
    /// What all patterns show; `bisection` is what matchings showed.
    pub(super) fn of(flows: &impl Flows, patterns: &Patterns, bisection: Bisection) -> Self {
        let (matchings, permutations) = (patterns.matchings.len(), patterns.permutations.len());
        let worst = busiest(flows, patterns, matchings..matchings + permutations);
        let shifts = busiest(flows, patterns, matchings + permutations..patterns.count());
        let total: u64 = worst.iter().map(|&flows| u64::from(flows)).sum();
        Self {
            bisection,
            permutation: if worst.is_empty() { 0.0 } else { total as f64 / worst.len() as f64 },
            shift: shifts.into_iter().max().unwrap_or_default(),
        }
    }
}

/// The bandwidths that the flows of some matchings get, by matching.
pub(super) fn bandwidths(flows: &impl Flows, patterns: &Patterns, range: Range<usize>) -> Vec<Bandwidths> {
    by_block(flows, patterns, range, Scratch::bandwidths)
}

/// How many flows are on the busiest channel, for each of some patterns.
fn busiest(flows: &impl Flows, patterns: &Patterns, range: Range<usize>) -> Vec<u32> {
    by_block(flows, patterns, range, Scratch::busiest)
}

/// Looks at patterns, some together, and tells what each showed.
fn by_block<'a, F: Flows, T: Send>(
    flows: &'a F,
    patterns: &'a Patterns,
    range: Range<usize>,
    look: impl Fn(&mut Scratch<'a, F>, Range<usize>) -> Vec<T> + Sync,
) -> Vec<T> {
    let blocks = range.len().div_ceil(TOGETHER);
    let parts: Vec<Vec<T>> = (0..blocks)
        .into_par_iter()
        .map_init(
            || Scratch::new(flows, patterns),
            |scratch, block| {
                let start = range.start + block * TOGETHER;
                look(scratch, start..range.end.min(start + TOGETHER))
            },
        )
        .collect();
    parts.into_iter().flatten().collect()
}

/// The mean bandwidth that the flows of a matching get.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bandwidths {
    pub(super) of_all: f64,
    /// The mean bandwidth of the flows that join no service adapter above the leaves.
    pub(super) of_others: f64,
}

/// The mean bandwidth of flows, each of which gets 1/(flows on its busiest channel). Without flows it is the
/// whole bandwidth.
fn mean_bandwidth(shared: impl Iterator<Item = u16>) -> f64 {
    let (count, total) =
        shared.fold((0_u32, 0.0), |(count, total), shared| (count + 1, total + 1.0 / f64::from(shared)));
    if count == 0 { 1.0 } else { total / f64::from(count) }
}

/// Counts a flow of a pattern on its channels.
fn begin(at: usize, channels: &[u32], loads: &mut [Loads]) {
    for &channel in channels {
        let load = &mut loads[channel as usize][at];
        *load = load.saturating_add(1);
    }
}

/// Memory that a thread uses for one block of patterns after the other.
struct Scratch<'a, F> {
    flows: &'a F,
    patterns: &'a Patterns,
    /// Flows on each channel, by pattern. Flows to one destination end on the same channels in all patterns, so what
    /// they change lies together.
    loads: Vec<Loads>,
    channels: Vec<u32>,
}

impl<'a, F: Flows> Scratch<'a, F> {
    fn new(flows: &'a F, patterns: &'a Patterns) -> Self {
        let loads = vec![[0; TOGETHER]; flows.topology().channel_count()];
        Self { flows, patterns, loads, channels: Vec::new() }
    }

    /// Visits all flows of some patterns, destination by destination, with the number of the pattern among
    /// these, the flow's source, its channels, and the loads of all channels. With `remembers`, the channels
    /// of all flows stand one after another in `self.channels` in the end.
    fn visit(
        &mut self,
        block: Range<usize>,
        remembers: bool,
        mut visit: impl FnMut(usize, usize, &[u32], &mut [Loads]),
    ) {
        let Self { flows, patterns, channels, loads } = self;
        channels.clear();
        for to in 0..patterns.hosts.len() {
            for (at, pattern) in block.clone().enumerate() {
                let Some(from) = patterns.sender(pattern, to) else { continue };
                let start = if remembers { channels.len() } else { 0 };
                channels.truncate(start);
                if flows.flow(pattern, from, to, channels) {
                    visit(at, from, &channels[start..], loads);
                } else {
                    channels.truncate(start);
                }
            }
        }
    }

    /// Lets all flows of some patterns begin.
    fn start(&mut self, block: Range<usize>) {
        self.loads.fill([0; TOGETHER]);
        self.visit(block, false, |at, _, channels, loads| begin(at, channels, loads));
    }

    /// How many flows are on the busiest channel, for each of some patterns.
    fn busiest(&mut self, block: Range<usize>) -> Vec<u32> {
        self.start(block.clone());
        let mut most: Loads = [0; TOGETHER];
        for loads in &self.loads {
            most.iter_mut().zip(loads).for_each(|(most, &load)| *most = load.max(*most));
        }
        most[..block.len()].iter().map(|&most| most.into()).collect()
    }

    /// The bandwidths that flows get in each of some matchings. A flow that shares no channel gets all.
    fn bandwidths(&mut self, block: Range<usize>) -> Vec<Bandwidths> {
        let (places, patterns) = (self.patterns.hosts.len(), self.patterns);
        // Flows are looked up once, and remembered until all have begun: how many channels each has, its pattern among
        // these, and its place.
        let mut flows: Vec<(u32, u32, u32)> = Vec::with_capacity(block.len() * places);
        self.loads.fill([0; TOGETHER]);
        self.visit(block.clone(), true, |at, from, channels, loads| {
            begin(at, channels, loads);
            flows.push((channels.len() as u32, at as u32, from as u32));
        });
        // How many flows share the busiest channel of each flow; 0 for places that send nothing.
        let mut shared = vec![0_u16; block.len() * places];
        let mut rest = self.channels.as_slice();
        for (count, at, from) in flows {
            let (passed, others) = rest.split_at(count as usize);
            rest = others;
            let loads = passed.iter().map(|&channel| self.loads[channel as usize][at as usize]);
            shared[at as usize * places + from as usize] = loads.max().unwrap_or(1);
        }
        let bandwidths = |(pattern, shared): (usize, &[u16])| {
            // Sums of fractions depend on what is added first: they are added by source.
            let flows = || shared.iter().copied().enumerate().filter(|&(_, shared)| shared > 0);
            let of_all = mean_bandwidth(flows().map(|(_, shared)| shared));
            if !patterns.is_service.contains(&true) {
                return Bandwidths { of_all, of_others: of_all };
            }
            let others = flows().filter(|&(from, _)| patterns.joins_others(pattern, from));
            Bandwidths { of_all, of_others: mean_bandwidth(others.map(|(_, shared)| shared)) }
        };
        block.zip(shared.chunks_exact(places.max(1))).map(bandwidths).collect()
    }
}
