//! The routes of all hosts. They are computed a block at a time, as all together may need more memory than
//! there is.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::proof::{Cycle, UnionProof, Violation, prove_host};
use crate::quality::{Quality, SourceCensus, SourceSamples};
use crate::{HostRoutes, Orientation, RouteOptions, RoutingError, Topology};

/// The source routes of all hosts of a fabric, as their agents would compute them.
///
/// They are not kept. Whoever reads them has them computed block by block, and always gets the same.
#[derive(Clone, Debug)]
pub struct AllHosts<'a> {
    topology: &'a Topology,
    orientation: Orientation,
    options: RouteOptions,
}

/// What was proved of the source routes of all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceProof {
    /// Every two hosts that cables join have a route in each direction.
    pub reachable: bool,
    /// No route passes an xbar twice.
    pub loop_free: bool,
    /// The channel dependencies of all hosts' routes together close no circle.
    pub deadlock_free: bool,
    /// Hops of the longest route.
    pub max_hops: usize,
    /// How many routes there are; if a pair of hosts has several, each counts.
    pub routes: u64,
    /// Different channel dependencies.
    pub dependencies: usize,
    /// Hosts without a cable, and hosts outside the largest part of the fabric: no route can join them.
    pub cut_off: Vec<u32>,
    /// The first violations found, at most [`Self::MAX_LISTED`], and one for each host.
    pub violations: Vec<Violation>,
    /// How many hosts have routes that violate something.
    pub violation_count: u64,
    /// A circle of channel dependencies, if there is one.
    pub cycle: Option<Cycle>,
}

impl SourceProof {
    /// Most violations that are kept.
    pub const MAX_LISTED: usize = 16;

    /// Whether everything that was to be proved holds.
    pub fn holds(&self) -> bool {
        self.violation_count == 0 && self.cycle.is_none()
    }

    /// What is wrong, in a phrase.
    pub fn summary(&self) -> String {
        match (self.violations.first(), &self.cycle) {
            (Some(violation), _) if self.violation_count > 1 => {
                format!("{violation}, and {} more hosts' routes fail", self.violation_count - 1)
            }
            (Some(violation), _) => violation.to_string(),
            (None, Some(cycle)) => cycle.to_string(),
            (None, None) => "nothing is wrong".to_owned(),
        }
    }

    fn add_violation(&mut self, violation: Violation) {
        match violation {
            Violation::NoRoute { .. } => self.reachable = false,
            Violation::Loop { .. } => self.loop_free = false,
            // Where the routes of a table lead that is wrong in another way is not known.
            _ => (self.reachable, self.loop_free) = (false, false),
        }
        self.violation_count += 1;
        if self.violations.len() < Self::MAX_LISTED {
            self.violations.push(violation);
        }
    }
}

impl<'a> AllHosts<'a> {
    /// How many hosts' routes are in memory at once: enough for all threads to have work, and some 25 MB in a
    /// fabric of 27,648 hosts.
    const BLOCK_HOSTS: u32 = 256;

    /// The routes of all hosts of a topology. `non_clos` forces up*/down*: see [`Orientation::new`].
    pub fn new(topology: &'a Topology, options: RouteOptions, non_clos: bool) -> Self {
        Self { topology, orientation: Orientation::new(topology, non_clos), options }
    }

    /// The topology that the routes are of.
    pub fn topology(&self) -> &'a Topology {
        self.topology
    }

    /// The orientation that all hosts share.
    pub fn orientation(&self) -> &Orientation {
        &self.orientation
    }

    /// What was asked for.
    pub fn options(&self) -> &RouteOptions {
        &self.options
    }

    /// Shows each host's routes, by rising host. Phantoms have none.
    ///
    /// # Errors
    /// If [`HostRoutes::compute`] fails, or `visit` does.
    pub fn for_each<E: From<RoutingError>>(
        &self,
        mut visit: impl FnMut(&HostRoutes) -> Result<(), E>,
    ) -> Result<(), E> {
        self.for_each_block(|tables, _| tables.iter().try_for_each(&mut visit))
    }

    /// Shows blocks of hosts' routes, by rising host, and how long each took to compute.
    fn for_each_block<E: From<RoutingError>>(
        &self,
        mut visit: impl FnMut(&[HostRoutes], Duration) -> Result<(), E>,
    ) -> Result<(), E> {
        let hosts = self.topology.host_count() as u32;
        for first in (0..hosts).step_by(Self::BLOCK_HOSTS as usize) {
            let block = first..hosts.min(first + Self::BLOCK_HOSTS);
            let started = Instant::now();
            let computed: Vec<Result<HostRoutes, RoutingError>> = block
                .into_par_iter()
                .filter(|&host| !self.topology.is_phantom(host))
                .map(|host| HostRoutes::compute(self.topology, &self.orientation, host, &self.options))
                .collect();
            // The error of the first host counts, whichever thread was first.
            let tables = computed.into_iter().collect::<Result<Vec<_>, _>>()?;
            visit(&tables, started.elapsed())?;
        }
        Ok(())
    }

    /// Does what [`Self::prove`] does, and measures the routes at the same time. Random choices are drawn
    /// from `seed`.
    ///
    /// # Errors
    /// As [`HostRoutes::compute`].
    pub fn prove_and_measure(&self, seed: u64) -> Result<(SourceProof, Quality, Duration), RoutingError> {
        let mut prover = Prover::new(self);
        let mut census = SourceCensus::new(self.topology);
        let mut samples = SourceSamples::new(self.topology, seed);
        let mut computing = Duration::ZERO;
        self.for_each_block(|tables, took| {
            computing += took;
            prover.add(tables);
            census.add_tables(self.topology, tables);
            tables.iter().for_each(|table| samples.add(table));
            Ok::<_, RoutingError>(())
        })?;
        Ok((prover.finish(), samples.finish(census), computing))
    }

    /// Proves the routes of each host by itself, and searches the dependencies of all together for a circle.
    /// Returns how long the routes took to compute, too.
    ///
    /// # Errors
    /// As [`HostRoutes::compute`].
    pub fn prove(&self) -> Result<(SourceProof, Duration), RoutingError> {
        let mut prover = Prover::new(self);
        let mut computing = Duration::ZERO;
        self.for_each_block(|tables, took| {
            computing += took;
            prover.add(tables);
            Ok::<_, RoutingError>(())
        })?;
        Ok((prover.finish(), computing))
    }
}

/// Proves blocks of tables, and all together.
struct Prover<'a> {
    routes: &'a AllHosts<'a>,
    union: UnionProof<'a>,
    proof: SourceProof,
}

impl<'a> Prover<'a> {
    fn new(routes: &'a AllHosts<'a>) -> Self {
        let proof = SourceProof { reachable: true, loop_free: true, ..SourceProof::default() };
        Self { routes, union: UnionProof::new(routes.topology), proof }
    }

    fn add(&mut self, tables: &[HostRoutes]) {
        let topology = self.routes.topology;
        let proofs: Vec<_> =
            tables.par_iter().map(|table| prove_host(topology, &self.routes.orientation, table)).collect();
        for proof in proofs {
            match proof {
                Ok(proof) => {
                    self.proof.max_hops = self.proof.max_hops.max(proof.longest_hops);
                    self.proof.routes += proof.routes as u64;
                }
                Err(violation) => self.proof.add_violation(violation),
            }
        }
        let empty = || Ok(UnionProof::new(topology));
        let add = |union: Result<UnionProof<'a>, Violation>, table| {
            let mut union = union?;
            union.add_table(table)?;
            Ok(union)
        };
        let join = |one: Result<UnionProof<'a>, Violation>, other| {
            let (mut one, other): (_, UnionProof<'_>) = (one?, other?);
            one.merge(&other);
            Ok(one)
        };
        match tables.par_iter().fold(empty, add).reduce(empty, join) {
            Ok(union) => self.union.merge(&union),
            Err(violation) => self.proof.add_violation(violation),
        }
    }

    fn finish(mut self) -> SourceProof {
        self.proof.cycle = self.union.prove_acyclic().err();
        self.proof.deadlock_free = self.proof.cycle.is_none();
        self.proof.dependencies = self.union.dependency_count();
        self.proof.cut_off = self.routes.topology.cut_off();
        self.proof
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabrics;

    fn all(map: &mapper_proto::map::Map) -> (Topology, RouteOptions) {
        (Topology::from_map(map).unwrap(), RouteOptions::default())
    }

    #[test]
    fn every_hosts_routes_are_those_it_computes_itself() {
        let (topology, options) = all(&fabrics::fat_tree(6));
        let routes = AllHosts::new(&topology, options, false);
        let mut hosts = 0;
        routes
            .for_each(|table| {
                let own = HostRoutes::compute(&topology, routes.orientation(), hosts, &options)?;
                assert_eq!((table.from(), table), (hosts, &own));
                hosts += 1;
                Ok::<_, RoutingError>(())
            })
            .unwrap();
        assert_eq!(hosts, 54);
        let (proof, _) = routes.prove().unwrap();
        assert!(proof.holds() && proof.reachable && proof.loop_free && proof.deadlock_free);
        assert_eq!((proof.max_hops, proof.cut_off), (5, Vec::new()));
        // 2 hosts at the same leaf by 1 route, 6 in the pod by 3, 45 elsewhere by 8.
        assert_eq!(proof.routes, 54 * (2 + 6 * 3 + 45 * 8));
    }

    #[test]
    fn the_same_whatever_the_number_of_threads() {
        let (topology, options) = all(&fabrics::random(11));
        let proof = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| AllHosts::new(&topology, options, false).prove().unwrap().0)
        };
        assert_eq!(proof(1), proof(4));
    }

    #[test]
    fn hosts_outside_the_largest_part_are_cut_off() {
        let mut map = fabrics::ring(5);
        // Xbars 0 and 1 stand alone: the cables 1-2 and 4-0 are gone.
        map.cables.retain(|cable| {
            let ends = (cable.a.xbar, cable.b.xbar);
            ends != (1, 2) && ends != (0, 4)
        });
        map.hosts[4].at = None;
        let (topology, options) = all(&map);
        let (proof, _) = AllHosts::new(&topology, options, false).prove().unwrap();
        assert!(proof.holds() && proof.reachable);
        assert_eq!(proof.cut_off, [2, 3, 4], "as many hosts as in the first part, which wins");
    }

    #[test]
    fn a_host_that_is_too_far_is_an_error_whatever_the_block() {
        let (topology, mut options) = all(&fabrics::ring(9));
        options.max_hops = 4;
        let error = AllHosts::new(&topology, options, false).prove().unwrap_err();
        assert!(matches!(error, RoutingError::TooLong { from, .. } if from == topology.mac(0)), "{error}");
    }
}
