//! Effective bisection bandwidth: what flows get in random matchings, in all or in the first of them.

use std::ops::Range;

use super::patterns::Patterns;
use super::samples::{self, Bandwidths, ByPair, Flows};
use super::{PairRoutes, hosts_in_order};
use crate::{Subnet, Topology};

/// One in so many matchings already tells about how good routes are.
const ONE_OF: usize = 4;
/// Among so many hosts all matchings are looked at, which takes milliseconds.
const FEW_HOSTS: usize = 256;

/// What matchings showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bisection {
    /// Mean bandwidth of the flows of matchings: see [`Quality::effective_bisection`](super::Quality::effective_bisection).
    pub mean: f64,
    /// Standard error of that mean.
    pub error: f64,
    /// Mean bandwidth of the flows that join no service adapter above the leaves.
    pub of_others: f64,
    /// The same for matchings of only those hosts that are no service adapters, if there are both.
    pub of_hosts: Option<Mean>,
}

/// A mean value, and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

impl Bisection {
    /// What all matchings show, without any of hosts alone.
    pub(super) fn of(flows: &impl Flows, patterns: &Patterns) -> Self {
        Self::new(&samples::bandwidths(flows, patterns, 0..patterns.matchings.len()), None)
    }

    /// What all matchings show, and those of hosts alone.
    pub(super) fn of_routes(routes: &impl PairRoutes, patterns: &Patterns, seed: u64) -> Self {
        let look = |patterns: &Patterns| look(routes, patterns, 0..patterns.matchings.len());
        let alone = hosts_alone(patterns, routes.topology(), seed, |host| routes.is_service_adapter(host));
        Self::new(&look(patterns), alone.as_ref().map(look).as_deref())
    }

    fn new(all: &[Bandwidths], hosts: Option<&[Bandwidths]>) -> Self {
        let Mean { value: mean, error } = Mean::of_all(all);
        let of_others = Mean::of(all.iter().map(|bandwidths| bandwidths.of_others)).value;
        let of_hosts = hosts.map(Mean::of_all);
        Self { mean, error, of_others, of_hosts }
    }
}

impl Mean {
    /// The mean of all flows of some matchings.
    fn of_all(matchings: &[Bandwidths]) -> Self {
        Self::of(matchings.iter().map(|bandwidths| bandwidths.of_all))
    }

    /// The mean of samples. Without a sample, every flow counts as getting the whole bandwidth.
    fn of(samples: impl ExactSizeIterator<Item = f64> + Clone) -> Self {
        let count = samples.len() as f64;
        if samples.len() == 0 {
            return Self { value: 1.0, error: 0.0 };
        }
        let value = samples.clone().sum::<f64>() / count;
        let squares: f64 = samples.map(|sample| (sample - value).powi(2)).sum();
        let error = if count < 2.0 { 0.0 } else { (squares / (count - 1.0) / count).sqrt() };
        Self { value, error }
    }
}

/// The bandwidths that the flows of some matchings get.
fn look(routes: &impl PairRoutes, patterns: &Patterns, range: Range<usize>) -> Vec<Bandwidths> {
    samples::bandwidths(&ByPair { routes, patterns }, patterns, range)
}

/// Matchings of those hosts alone that are no service adapters, by their place above the leaves or by what is said of
/// them; none if there are no adapters, or nothing else.
fn hosts_alone(
    all: &Patterns,
    topology: &Topology,
    seed: u64,
    is_adapter: impl Fn(u32) -> bool,
) -> Option<Patterns> {
    let places = all.hosts.iter().zip(&all.is_service);
    let is_host = |(&host, &is_service): (&u32, &bool)| (!is_service && !is_adapter(host)).then_some(host);
    let hosts: Vec<u32> = places.filter_map(is_host).collect();
    (hosts.len() > 1 && hosts.len() < all.hosts.len())
        .then(|| Patterns::draw_matchings(topology, &hosts, seed))
}

/// The random matchings of a fabric's hosts, drawn once to measure several routings by: those that
/// [`Quality::measure`](super::Quality::measure) draws from the same seed.
#[derive(Debug)]
pub struct Matchings {
    all: Patterns,
    hosts: Option<Patterns>,
}

/// What some of the matchings showed of one routing.
#[derive(Debug, Clone)]
pub struct Measured {
    all: Vec<Bandwidths>,
}

impl Matchings {
    /// The matchings of a seed.
    pub fn draw(subnet: &Subnet, seed: u64) -> Self {
        let topology = &subnet.topology;
        let all = Patterns::draw_matchings(topology, &hosts_in_order(topology), seed);
        let hosts = hosts_alone(&all, topology, seed, |host| subnet.is_service_adapter[host as usize]);
        Self { all, hosts }
    }

    /// Whether there are service adapters, so that hosts alone are measured, too.
    pub fn tell_hosts_apart(&self) -> bool {
        self.hosts.is_some()
    }

    /// Looks at the first quarter of the matchings of all hosts, or at all matchings if there are few hosts.
    pub fn begin(&self, routes: &impl PairRoutes) -> Measured {
        let all = self.all.matchings.len();
        let first = if self.all.hosts.len() <= FEW_HOSTS { all } else { all / ONE_OF };
        Measured { all: look(routes, &self.all, 0..first) }
    }

    /// Looks at the matchings that were not looked at yet. The result has the same bits as if all had been
    /// looked at at once.
    pub fn complete(&self, routes: &impl PairRoutes, measured: &mut Measured) {
        measured.all.extend(look(routes, &self.all, measured.all.len()..self.all.matchings.len()));
    }

    /// What matchings of hosts alone show, if there are service adapters: see [`Bisection::of_hosts`].
    pub fn of_hosts(&self, routes: &impl PairRoutes) -> Option<Mean> {
        let measured =
            self.hosts.as_ref().map(|patterns| look(routes, patterns, 0..patterns.matchings.len()));
        measured.map(|measured| Mean::of_all(&measured))
    }
}

impl Measured {
    /// What the matchings showed that were looked at; nothing of hosts alone.
    pub fn bisection(&self) -> Bisection {
        Bisection::new(&self.all, None)
    }
}
