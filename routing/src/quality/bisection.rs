//! Effective bisection bandwidth: what flows get in random matchings, in all or in the first of them.

use std::ops::Range;

use super::PairRoutes;
use super::hosts_in_order;
use super::patterns::Patterns;
use super::samples::{self, Bandwidths, ByPair, Flows};
use crate::Topology;

/// Of all matchings, the first ones tell about how good routes are: one in so many.
const ONE_OF: usize = 8;
/// Fewest matchings that tell about how good routes are.
const LEAST_FIRST: usize = 16;

/// What matchings showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bisection {
    /// Mean bandwidth of the flows of matchings: see [`Quality::effective_bisection`](super::Quality::effective_bisection).
    pub mean: f64,
    /// Standard error of that mean.
    pub error: f64,
    /// Mean bandwidth of those of the flows that join no service adapter above the leaves.
    pub of_others: f64,
}

impl Bisection {
    /// Of all matchings.
    pub(super) fn of(flows: &impl Flows, patterns: &Patterns) -> Self {
        Self::from(&samples::bandwidths(flows, patterns, 0..patterns.matchings.len())[..])
    }
}

impl From<&[Bandwidths]> for Bisection {
    fn from(bandwidths: &[Bandwidths]) -> Self {
        let of_all: Vec<f64> = bandwidths.iter().map(|bandwidths| bandwidths.of_all).collect();
        let of_others: Vec<f64> = bandwidths.iter().map(|bandwidths| bandwidths.of_others).collect();
        let (mean, error) = mean_and_error(&of_all);
        Self { mean, error, of_others: mean_and_error(&of_others).0 }
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

/// The random matchings of a fabric's hosts, drawn once to measure several routings by: those that
/// [`Quality::measure`](super::Quality::measure) draws from the same seed.
#[derive(Debug)]
pub struct Matchings(Patterns);

/// What some of the matchings showed of one routing.
#[derive(Debug, Clone)]
pub struct Measured(Vec<Bandwidths>);

impl Matchings {
    /// The matchings of a seed.
    pub fn draw(topology: &Topology, seed: u64) -> Self {
        Self(Patterns::draw_matchings(topology, &hosts_in_order(topology), seed))
    }

    /// Looks at the first matchings: an eighth of them, but not fewer than 16, if there are so many.
    pub fn begin(&self, routes: &impl PairRoutes) -> Measured {
        let all = self.0.matchings.len();
        Measured(self.look(routes, 0..(all / ONE_OF).max(LEAST_FIRST).min(all)))
    }

    /// Looks at all that were not looked at yet. What comes out has the same bits as if all had been looked at at once.
    pub fn complete(&self, routes: &impl PairRoutes, measured: &mut Measured) {
        measured.0.extend(self.look(routes, measured.0.len()..self.0.matchings.len()));
    }

    fn look(&self, routes: &impl PairRoutes, range: Range<usize>) -> Vec<Bandwidths> {
        samples::bandwidths(&ByPair { routes, patterns: &self.0 }, &self.0, range)
    }
}

impl Measured {
    /// What the matchings showed that were looked at.
    pub fn bisection(&self) -> Bisection {
        Bisection::from(&self.0[..])
    }
}
