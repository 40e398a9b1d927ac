//! What flows get of the channels that they share.

use rayon::prelude::*;

use super::PairRoutes;
use super::patterns::Patterns;
use crate::Topology;

/// The channels of each flow of each pattern.
pub(super) trait Flows: Sync {
    fn topology(&self) -> &Topology;

    /// Appends the channels of a place's flow; says whether there is one.
    fn flow(&self, pattern: usize, place: usize, channels: &mut Vec<u32>) -> bool;
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

    fn flow(&self, pattern: usize, place: usize, channels: &mut Vec<u32>) -> bool {
        let Some(to) = self.patterns.target(pattern, place) else { return false };
        let (from, to) = (self.patterns.hosts[place], self.patterns.hosts[to]);
        self.routes.draw(from, to, self.patterns.choice(pattern, place), channels)
    }
}

/// What the patterns showed.
pub(super) struct Samples {
    /// Mean bandwidth of the flows of matchings.
    pub(super) bisection: f64,
    /// Standard error of that bandwidth.
    pub(super) bisection_error: f64,
    /// Mean over permutations of the flows on the busiest channel.
    pub(super) permutation: f64,
    /// The largest of all shifts, of the flows on the busiest channel.
    pub(super) shift: u32,
}

impl Samples {
    pub(super) fn of(flows: &impl Flows, patterns: &Patterns) -> Self {
        let (matchings, permutations) = (patterns.matchings.len(), patterns.permutations.len());
        let scratch = || Scratch::new(flows.topology(), patterns.hosts.len());
        let bandwidths: Vec<f64> = (0..matchings)
            .into_par_iter()
            .map_init(scratch, |scratch, pattern| scratch.bandwidth(flows, pattern))
            .collect();
        let busiest = |range: std::ops::Range<usize>| -> Vec<u32> {
            range
                .into_par_iter()
                .map_init(scratch, |scratch, pattern| scratch.busiest(flows, pattern))
                .collect()
        };
        let worst = busiest(matchings..matchings + permutations);
        let shifts = busiest(matchings + permutations..patterns.count());
        let total: u64 = worst.iter().map(|&flows| u64::from(flows)).sum();
        let (bisection, bisection_error) = mean_and_error(&bandwidths);
        Self {
            bisection,
            bisection_error,
            permutation: if worst.is_empty() { 0.0 } else { total as f64 / worst.len() as f64 },
            shift: shifts.into_iter().max().unwrap_or_default(),
        }
    }
}

/// The mean, and its standard error. Without a sample, nothing stands in anybody's way.
fn mean_and_error(samples: &[f64]) -> (f64, f64) {
    let count = samples.len() as f64;
    if samples.is_empty() {
        return (1.0, 0.0);
    }
    let mean = samples.iter().sum::<f64>() / count;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    let error = if samples.len() < 2 { 0.0 } else { (squares / (count - 1.0) / count).sqrt() };
    (mean, error)
}

/// Memory that a thread uses for one pattern after the other.
struct Scratch {
    places: usize,
    /// Flows on each channel.
    loads: Vec<u32>,
    channels: Vec<u32>,
    /// Where each flow's channels end.
    ends: Vec<usize>,
}

impl Scratch {
    fn new(topology: &Topology, places: usize) -> Self {
        Self { places, loads: vec![0; topology.channel_count()], channels: Vec::new(), ends: Vec::new() }
    }

    /// Lets all flows of a pattern begin.
    fn start(&mut self, flows: &impl Flows, pattern: usize) {
        self.loads.fill(0);
        self.channels.clear();
        self.ends.clear();
        for place in 0..self.places {
            let start = self.channels.len();
            if flows.flow(pattern, place, &mut self.channels) {
                self.ends.push(self.channels.len());
            } else {
                self.channels.truncate(start);
            }
        }
        self.channels.iter().for_each(|&channel| self.loads[channel as usize] += 1);
    }

    /// The flows on the busiest channel.
    fn busiest(&mut self, flows: &impl Flows, pattern: usize) -> u32 {
        self.start(flows, pattern);
        self.loads.iter().copied().max().unwrap_or_default()
    }

    /// What a flow gets, in the mean. A flow that shares no channel gets all.
    fn bandwidth(&mut self, flows: &impl Flows, pattern: usize) -> f64 {
        self.start(flows, pattern);
        let (mut start, mut total) = (0, 0.0);
        for &end in &self.ends {
            let shared = self.channels[start..end].iter().map(|&channel| self.loads[channel as usize]).max();
            total += 1.0 / f64::from(shared.unwrap_or(1));
            start = end;
        }
        if self.ends.is_empty() { 1.0 } else { total / self.ends.len() as f64 }
    }
}
