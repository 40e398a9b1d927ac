//! How good routes are: how evenly they load the channels, and what traffic gets of that.
//!
//! Every ordered pair of hosts is one unit of traffic. Where a pair has n routes, each carries 1/n of it.
//! Only channels between xbars count: a host's own cable carries the same whatever the routes.

mod alike_leaves;
mod bisection;
mod census;
mod counter;
mod loads;
mod patterns;
mod samples;
mod source_routes;
mod table_routes;
mod tiers;

pub use bisection::{Bisection, Matchings, Mean, Measured};
pub(crate) use census::SourceCensus;
pub use census::{Census, PairRoutes};
pub use loads::ChannelLoads;
pub(crate) use source_routes::SourceSamples;
pub use source_routes::{CountedRoutes, RouteLists, SourceRoutes};
pub use table_routes::TableRoutes;
pub use tiers::{TierHeading, TierLoads, group_by_tier};

use super::Topology;
use patterns::Patterns;
use samples::Samples;

/// How good the routes between all hosts of a fabric are.
#[derive(Debug, Clone, PartialEq)]
pub struct Quality {
    /// How many hosts are cabled to an xbar.
    pub hosts: usize,
    /// How many ordered pairs of these hosts have no route. They count nowhere else.
    pub unroutable: u64,
    /// Edge forwarding index (Heydemann, Meyer and Sotteau, 1989): routes over the channel that most cross.
    pub edge_forwarding_index: f64,
    /// Effective bisection bandwidth (Hoefler, Schneider and Lumsdaine, "Multistage switches are not
    /// crossbars", 2008), as part of the bandwidth of a host's cable.
    ///
    /// The hosts are matched at random, each with one other (the last of an odd number sits out). Both of a
    /// pair send to each other at once, and each flow gets 1/(flows on its busiest channel). This is the
    /// mean over all flows of a matching, and the mean of that over all matchings drawn.
    pub effective_bisection: f64,
    /// Standard error of the effective bisection bandwidth.
    pub effective_bisection_error: f64,
    /// How many of the hosts are service adapters above the leaves, as [`Tiers`](crate::Tiers) tells them.
    pub service_adapters: usize,
    /// What [`Self::effective_bisection`] would be if the mean were taken only over the flows that join two hosts that are
    /// no such adapters; all hosts send.
    pub effective_bisection_of_others: f64,
    /// The effective bisection bandwidth of only those hosts that are no service adapters, by their place
    /// above the leaves or by their descriptions, as if service adapters sent nothing. `None` if there are no
    /// service adapters, or nothing else, or if source routes were too many to keep.
    pub effective_bisection_of_hosts: Option<f64>,
    /// Congestion risk for all-to-all traffic (Gliksberg et al., "Dmodc", 2022): for each channel, the
    /// smaller of the numbers of different sources and of different destinations of the routes across it; and
    /// the largest of these over all channels. So many flows can meet on a channel if each host sends to one
    /// and receives from one.
    pub congestion_a2a: u32,
    /// Flows on the busiest channel if each host sends to one and receives from one, by a random permutation.
    /// It is the mean over all permutations drawn.
    pub congestion_random_permutation: f64,
    /// Flows on the busiest channel if host i sends to host i + k for one k. It is the largest number over
    /// all shifts k that were looked at. Hosts count leaf by leaf, by rising port.
    pub congestion_shift: u32,
    /// How many matchings were drawn, and as many permutations.
    pub samples: usize,
    /// How many shifts were looked at.
    pub shifts: usize,
    /// How many shifts there are: one less than hosts. If there are too many, an even part of them is looked
    /// at.
    pub all_shifts: usize,
    /// Routes over each channel.
    pub loads: Vec<f64>,
    /// How many routes cross each channel, summed up by tier and direction.
    pub tiers: Vec<TierLoads>,
}

impl Quality {
    /// Measures routes. Whatever is random comes from `seed`; the result has the same bits whatever the
    /// number of threads.
    pub fn measure(routes: &impl PairRoutes, seed: u64) -> Self {
        Self::measure_knowing(routes, seed, None)
    }

    /// The same as [`Self::measure`], in less time where it is known already what all [`Matchings`] of this seed show.
    pub fn measure_knowing(routes: &impl PairRoutes, seed: u64, known: Option<Bisection>) -> Self {
        Self::of(routes, &hosts_in_order(routes.topology()), seed, known)
    }

    /// Only the effective bisection bandwidth. It is the same to the bit as [`Self::effective_bisection`].
    pub fn bisection(routes: &impl PairRoutes, seed: u64) -> f64 {
        let patterns = Patterns::draw_matchings(routes.topology(), &hosts_in_order(routes.topology()), seed);
        Bisection::of(&samples::ByPair { routes, patterns: &patterns }, &patterns).mean
    }

    /// Measures routes between these hosts alone. Tests look at the hosts that are no service adapters.
    #[cfg(test)]
    pub(crate) fn measure_among(routes: &impl PairRoutes, hosts: &[u32], seed: u64) -> Self {
        Self::of(routes, hosts, seed, None)
    }

    fn of(routes: &impl PairRoutes, hosts: &[u32], seed: u64, known: Option<Bisection>) -> Self {
        let patterns = Patterns::draw(routes.topology(), hosts, seed, patterns::ALL_FLOWS);
        let census = routes.census();
        let bisection = known.unwrap_or_else(|| Bisection::of_routes(routes, &patterns, seed));
        let samples = Samples::of(&samples::ByPair { routes, patterns: &patterns }, &patterns, bisection);
        Self::new(routes.topology(), &patterns, census, &samples)
    }

    /// Puts together what was counted and what was sampled.
    fn new(topology: &Topology, patterns: &Patterns, census: &Census, samples: &Samples) -> Self {
        Self {
            hosts: patterns.hosts.len(),
            unroutable: census.unroutable,
            edge_forwarding_index: census.loads.iter().copied().fold(0.0, f64::max),
            effective_bisection: samples.bisection.mean,
            effective_bisection_error: samples.bisection.error,
            service_adapters: patterns.is_service.iter().filter(|&&is_service| is_service).count(),
            effective_bisection_of_others: samples.bisection.of_others,
            effective_bisection_of_hosts: samples.bisection.of_hosts.map(|mean| mean.value),
            congestion_a2a: census.congestion(),
            congestion_random_permutation: samples.permutation,
            congestion_shift: samples.shift,
            samples: patterns.matchings.len(),
            shifts: patterns.shifts.len(),
            all_shifts: patterns.hosts.len().saturating_sub(1),
            tiers: tiers::by_tier(topology, &census.loads),
            loads: census.loads.clone(),
        }
    }
}

/// The hosts that are cabled to xbars: xbar by xbar, by rising port.
pub fn hosts_in_order(topology: &Topology) -> Vec<u32> {
    let mut hosts: Vec<_> = (0..topology.host_count() as u32)
        .filter_map(|host| match topology.attachment(host) {
            super::Attachment::Port(at) => Some((at, host)),
            super::Attachment::Host(_) | super::Attachment::Nothing => None,
        })
        .collect();
    hosts.sort_unstable();
    hosts.into_iter().map(|(_, host)| host).collect()
}

#[cfg(test)]
mod tests;
