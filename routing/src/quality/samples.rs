//! What bandwidth flows get of the channels that they share.

use std::ops::Range;

use rayon::prelude::*;

use super::PairRoutes;
use super::bisection::Bisection;
use super::patterns::Patterns;
use crate::Topology;

/// How many patterns are looked at together at most, destination by destination. The flows to one destination read
/// the same entries of the tables, which are then read from memory once for all of them.
const TOGETHER: usize = 32;

/// The most channels of which the loads of so many patterns stay in a cache of a megabyte.
const FEW_CHANNELS: usize = (1 << 20) / size_of::<[u16; TOGETHER]>();

/// The channels of each flow of each pattern.
pub(super) trait Flows: Sync {
    fn topology(&self) -> &Topology;

    /// Is called before many flows to one place are asked for.
    fn prepare(&self, _to: usize) {}

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

    fn prepare(&self, to: usize) {
        self.routes.prepare(self.patterns.hosts[to]);
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
    // All threads get equally much to do, where a few patterns are all that there is.
    let blocks = range.len().div_ceil(TOGETHER).next_multiple_of(rayon::current_num_threads());
    let together = range.len().div_ceil(blocks.max(1));
    let parts: Vec<Vec<T>> = (0..blocks)
        .into_par_iter()
        .map_init(
            || Scratch::new(flows, patterns),
            |scratch, block| {
                let start = range.end.min(range.start + block * together);
                look(scratch, start..range.end.min(start + together))
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

/// The flows of one pattern, destination by destination.
#[derive(Default)]
struct Remembered {
    /// The channels of all flows, one flow after another.
    channels: Vec<u32>,
    /// How many channels the flow to each place has; [`Self::NO_FLOW`] if none goes there.
    counts: Vec<u32>,
}

impl Remembered {
    const NO_FLOW: u32 = u32::MAX;

    /// The flows that there are: the place that each is for, and its channels.
    fn flows(&self) -> impl Iterator<Item = (usize, &[u32])> {
        let mut rest = self.channels.as_slice();
        let counts = self.counts.iter().enumerate().filter(|&(_, &count)| count != Self::NO_FLOW);
        counts.map(move |(to, &count)| {
            let (channels, others) = rest.split_at(count as usize);
            rest = others;
            (to, channels)
        })
    }
}

/// Memory that a thread uses for one block of patterns after the other.
struct Scratch<'a, F> {
    flows: &'a F,
    patterns: &'a Patterns,
    /// The flows of each pattern of a block.
    remembered: Vec<Remembered>,
    /// Flows of one pattern on each channel. A channel that more flows cross than a number can say is as good as blocked, so
    /// counting ends at the largest number.
    loads: Vec<u16>,
    /// Flows of each pattern of a block on each channel, where channels are few. Flows to one destination end on the same
    /// channels in all patterns, so what they change lies together.
    loads_together: Vec<[u16; TOGETHER]>,
}

impl<'a, F: Flows> Scratch<'a, F> {
    fn new(flows: &'a F, patterns: &'a Patterns) -> Self {
        let loads = vec![0; flows.topology().channel_count()];
        Self { flows, patterns, remembered: Vec::new(), loads, loads_together: Vec::new() }
    }

    /// Looks up all flows of some patterns. They are counted later, pattern by pattern: the loads of one pattern stay in a
    /// cache, and those of all would not.
    fn remember(&mut self, block: Range<usize>) {
        let Self { flows, patterns, remembered, .. } = self;
        remembered.resize_with(block.len(), Remembered::default);
        for Remembered { channels, counts } in remembered.iter_mut() {
            channels.clear();
            counts.clear();
        }
        for to in 0..patterns.hosts.len() {
            flows.prepare(to);
            for (pattern, Remembered { channels, counts }) in block.clone().zip(remembered.iter_mut()) {
                let start = channels.len();
                let from = patterns.sender(pattern, to);
                if from.is_some_and(|from| flows.flow(pattern, from, to, channels)) {
                    counts.push((channels.len() - start) as u32);
                } else {
                    channels.truncate(start);
                    counts.push(Remembered::NO_FLOW);
                }
            }
        }
    }

    /// Lets all flows of one of the patterns that are remembered begin.
    fn start(&mut self, at: usize) {
        self.loads.fill(0);
        for &channel in &self.remembered[at].channels {
            let load = &mut self.loads[channel as usize];
            *load = load.saturating_add(1);
        }
    }

    /// How many flows are on the busiest channel, for each of some patterns.
    fn busiest(&mut self, block: Range<usize>) -> Vec<u32> {
        if self.loads.len() <= FEW_CHANNELS {
            self.busiest_together(block)
        } else {
            self.busiest_in_turn(block)
        }
    }

    /// As [`Self::busiest`], pattern by pattern.
    fn busiest_in_turn(&mut self, block: Range<usize>) -> Vec<u32> {
        self.remember(block.clone());
        let busiest = |at| {
            self.start(at);
            self.loads.iter().copied().max().unwrap_or_default().into()
        };
        (0..block.len()).map(busiest).collect()
    }

    /// As [`Self::busiest`], all patterns together: flows are counted as soon as they are looked up.
    fn busiest_together(&mut self, block: Range<usize>) -> Vec<u32> {
        let Self { flows, patterns, loads, loads_together, .. } = self;
        loads_together.clear();
        loads_together.resize(loads.len(), [0; TOGETHER]);
        let mut channels = Vec::new();
        for to in 0..patterns.hosts.len() {
            flows.prepare(to);
            for (at, pattern) in block.clone().enumerate() {
                channels.clear();
                let from = patterns.sender(pattern, to);
                if from.is_some_and(|from| flows.flow(pattern, from, to, &mut channels)) {
                    for &channel in &channels {
                        let load = &mut loads_together[channel as usize][at];
                        *load = load.saturating_add(1);
                    }
                }
            }
        }
        let mut most = [0; TOGETHER];
        for loads in loads_together {
            most.iter_mut().zip(loads).for_each(|(most, &mut load)| *most = load.max(*most));
        }
        most[..block.len()].iter().map(|&most| most.into()).collect()
    }

    /// The bandwidths that flows get in each of some matchings. A flow that shares no channel gets all.
    fn bandwidths(&mut self, block: Range<usize>) -> Vec<Bandwidths> {
        self.remember(block.clone());
        let patterns = self.patterns;
        // How many flows share the busiest channel of each flow; 0 for places that send nothing.
        let mut shared = vec![0_u16; patterns.hosts.len()];
        let bandwidths = |(at, pattern): (usize, usize)| {
            self.start(at);
            shared.fill(0);
            for (to, channels) in self.remembered[at].flows() {
                let Some(from) = patterns.sender(pattern, to) else { continue };
                let loads = channels.iter().map(|&channel| self.loads[channel as usize]);
                shared[from] = loads.max().unwrap_or(1);
            }
            // Sums of fractions depend on what is added first: they are added by source.
            let flows = || shared.iter().copied().enumerate().filter(|&(_, shared)| shared > 0);
            let of_all = mean_bandwidth(flows().map(|(_, shared)| shared));
            if !patterns.is_service.contains(&true) {
                return Bandwidths { of_all, of_others: of_all };
            }
            let others = flows().filter(|&(from, _)| patterns.joins_others(pattern, from));
            Bandwidths { of_all, of_others: mean_bandwidth(others.map(|(_, shared)| shared)) }
        };
        block.enumerate().map(bandwidths).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::{Engine, Settings};
    use crate::quality::hosts_in_order;
    use crate::{Subnet, TableRoutes};
    use mapper_fabric::generate;

    #[test]
    fn the_busiest_channels_are_the_same_whether_patterns_are_counted_together_or_in_turn() {
        for spec in [
            "xgft:h=3;m=3,4,5;w=1,2,3",
            "random:xbars=9,ports=12,hosts=30,links=20,seed=2",
            "ring:n=7,hosts=3",
        ] {
            let subnet = Subnet::new(&generate(spec).unwrap(), None).unwrap();
            let tables = Engine::Sssp.compute(&subnet, &Settings::default()).unwrap().tables;
            let routes = TableRoutes::new(&subnet, &tables);
            let hosts = hosts_in_order(&subnet.topology);
            let patterns = Patterns::draw(&subnet.topology, &hosts, 1, crate::quality::patterns::ALL_FLOWS);
            let flows = ByPair { routes: &routes, patterns: &patterns };
            let mut scratch = Scratch::new(&flows, &patterns);
            for start in (0..patterns.count()).step_by(TOGETHER) {
                let block = start..patterns.count().min(start + TOGETHER);
                let together = scratch.busiest_together(block.clone());
                assert_eq!(together, scratch.busiest_in_turn(block), "{spec}");
            }
        }
    }
}
