//! The agents' own engine: repeated searches for cheap shortest routes, in random port order.
//!
//! After "How does the Mapper work in GM-2?" (Myricom, 2003): Dijkstra's algorithm with link costs
//! incremented for each route that goes across them, a random order of ports, several routes a
//! destination, and several searches for every set of routes, among which destinations take turns.
//!
//! Hops come first and never change, so what Dijkstra's algorithm would find again in each search is
//! found once: the states in the order of their distance (`distances`), and for each the channels by
//! which a shortest legal route may enter it (`choices`). A search then picks one entry a state:
//! first one that makes a route unlike all earlier ones, then the one with the least load on the way,
//! then the first in random order (`search`). As soon as an xbar with hosts has its route, the
//! channels on it carry so many routes more (`loads`).

mod all_hosts;
mod choices;
mod distances;
mod loads;
mod search;

use mapper_proto::Mac;
use mapper_proto::map::MapVersion;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::algorithm::Algorithm;
use super::{Engine, EngineError, Refusal, Routing, Setting, Settings};
use crate::host_routes::Source;
use crate::{HostRoutes, Orientation, RouteOptions, RoutingError, Subnet, Topology};
pub use all_hosts::{AllHosts, SourceProof};
use choices::Choices;
use distances::Distances;
use search::Searches;

/// The agents' own source routes.
pub(super) struct Dispersive;

impl Algorithm for Dispersive {
    fn name(&self) -> &'static str {
        "dispersive"
    }

    fn summary(&self) -> &'static str {
        "the agents' own source routes, several a pair; no forwarding tables"
    }

    fn obeys(&self, _: &Settings) -> &'static [Setting] {
        &[Setting::Passes]
    }

    fn compute(&self, _: &Subnet, _: &Settings) -> Result<Routing, EngineError> {
        Err(EngineError::refuse(Engine::Dispersive, Refusal::NoTables))
    }
}

/// What becomes of destinations that are farther than [`RouteOptions::max_hops`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beyond {
    /// They are an error of the fabric.
    Refused,
    /// They get no routes.
    LeftOut,
}

/// Computes a host's routes. Randomness is seeded by the map's version and the host's address: each
/// host disperses differently, and each finds the same again.
///
/// # Errors
/// As for [`HostRoutes::compute`].
pub fn compute(
    topology: &Topology,
    orientation: &Orientation,
    from: u32,
    options: &RouteOptions,
    beyond: Beyond,
) -> Result<HostRoutes, RoutingError> {
    if !(1..=RouteOptions::MAX_PASSES).contains(&options.passes) {
        return Err(RoutingError::Passes(options.passes));
    }
    if !(1..=RouteOptions::MAX_HOPS).contains(&options.max_hops) {
        return Err(RoutingError::MaxHops(options.max_hops));
    }
    if from as usize >= topology.host_count() {
        return Err(RoutingError::NoSuchHost { host: from, hosts: topology.host_count() });
    }
    let source = Source::of(topology, from);
    let mut routes = HostRoutes {
        from,
        source,
        options: *options,
        xbars: topology.xbar_count(),
        phases: orientation.phases(),
        entries: Vec::new(),
        backwards: orientation.backwards().clone(),
        distinct: Vec::new(),
        lost: Vec::new(),
    };
    if let Source::Xbar(xbar) = source {
        let most_steps = match beyond {
            Beyond::Refused => u16::MAX,
            // The last hop leaves for the host.
            Beyond::LeftOut => u16::from(options.max_hops) - 1,
        };
        let distances = Distances::from(topology, orientation, xbar, most_steps);
        distances.check_limit(topology, from, options.max_hops)?;
        let mut rng = seeded(topology.version(), topology.mac(from));
        let choices = Choices::of(topology, orientation, &distances, &mut rng);
        routes.distinct = vec![0; topology.xbar_count()];
        // To hosts at its own xbar there is one route, and no search is needed for it.
        routes.distinct[xbar as usize] = 1;
        Searches::new(topology, &choices, &mut routes).run(&mut rng);
    }
    Ok(routes)
}

/// The generator of a host's table.
fn seeded(version: MapVersion, mac: Mac) -> ChaCha8Rng {
    let mut seed = [0; 32];
    seed[..6].copy_from_slice(&version.mac.0);
    seed[6..10].copy_from_slice(&version.counter.to_be_bytes());
    seed[10..16].copy_from_slice(&mac.0);
    ChaCha8Rng::from_seed(seed)
}

/// A number below `count`, near enough to uniform for choosing among ports.
fn below(rng: &mut ChaCha8Rng, count: usize) -> usize {
    ((u64::from(rng.next_u32()) * count as u64) >> 32) as usize
}
