//! Tries engines in turn, and lets no tables out that are not proved.

use std::time::Instant;

use thiserror::Error;

use super::dispersive::{AllHosts, SourceProof};
use super::shared::Shared;
use super::{Engine, Refusal, Routing, Settings, WhyNotServed};
use crate::proof::{ProofRules, TableViolation, TablesProof, prove_tables};
use crate::{Bisection, Quality, RouteOptions, Subnet, TableRoutes, Topology};

/// An engine that does not serve, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// The engine.
    pub engine: Engine,
    /// Why it did not serve.
    pub why_not: WhyNotServed,
}

impl Tried {
    /// Why it did not serve, by the names of the fabric.
    pub fn describe(&self, subnet: &Subnet) -> String {
        let failed = match &self.why_not {
            WhyNotServed::Unproved(proof) => proof.describe_failure(subnet),
            _ => None,
        };
        failed.unwrap_or_else(|| self.why_not.to_string())
    }

    /// The same, without the advice to use this engine instead, as it is known not to serve either.
    pub fn describe_without(&self, useless: Engine, subnet: &Subnet) -> String {
        match &self.why_not {
            WhyNotServed::Refused(refusal) if refusal.instead() == Some(useless) => refusal.without_instead(),
            _ => self.describe(subnet),
        }
    }
}

/// Tables, and how they came to be.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The engine that served.
    pub engine: Engine,
    /// Those that were tried before it.
    pub tried: Vec<Tried>,
    /// What it computed.
    pub routing: Routing,
    /// What was proved of that. It holds, unless the caller asked for unproved tables.
    pub proof: TablesProof,
    /// How long the engine took, in milliseconds. Among engines that are tried side by side, what several of them begin with
    /// counts for the first that needed it.
    pub compute_ms: f64,
    /// The bisection by all matchings of the settings' seed, if it was measured.
    pub bisection: Option<Bisection>,
}

impl Selection {
    /// The effective bisection bandwidth by the seed of the settings, which is measured unless it is known.
    pub fn effective_bisection(&self, subnet: &Subnet, seed: u64) -> f64 {
        let measure = || {
            Quality::bisection(&TableRoutes::proved(subnet, &self.routing.tables, self.proof.max_hops), seed)
        };
        self.bisection.map_or_else(measure, |bisection| bisection.mean)
    }
}

/// No engine served.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("no engine serves this fabric: {}", list(.tried))]
pub struct NotRouted {
    /// All that were tried, and why each did not serve.
    pub tried: Vec<Tried>,
}

fn list(tried: &[Tried]) -> String {
    let each = |tried: &Tried| format!("{}: {}", tried.engine, tried.why_not);
    tried.iter().map(each).collect::<Vec<_>>().join("; ")
}

/// Source routes, and how they came to be.
#[derive(Debug, Clone)]
pub struct SourceSelection<'a> {
    /// The engine that served.
    pub engine: Engine,
    /// Those that were tried before it.
    pub tried: Vec<Tried>,
    /// The routes that it computed. They are computed again each time that they are read.
    pub routes: AllHosts<'a>,
    /// What was proved of that. It holds, unless the caller asked for unproved routes.
    pub proof: SourceProof,
    /// How good it is.
    pub quality: Quality,
    /// How long the engine took for all hosts, in milliseconds.
    pub compute_ms: f64,
}

/// What the engine that served computed.
#[derive(Debug, Clone)]
pub enum Answer<'a> {
    /// Forwarding tables.
    Tables(Box<Selection>),
    /// Source routes of all hosts.
    SourceRoutes(Box<SourceSelection<'a>>),
}

/// Whether only what is proved may serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// An engine serves only if the proof of its answer holds.
    Required,
    /// The first engine that computes anything serves; the proof says what is wrong with it. Packets may wait for each other for
    /// ever by such tables, so they are to be looked at, and not to be used.
    Reported,
}

/// The answer of the first engine that serves: tables, or source routes if it is [`Engine::Dispersive`].
///
/// # Errors
/// If no engine serves.
pub fn answer<'a>(
    subnet: &'a Subnet,
    engines: &[Engine],
    settings: &Settings,
    proof: Proof,
) -> Result<Answer<'a>, NotRouted> {
    let (mut answer, refused) = first_that_serves(engines, |engine| match engine {
        Engine::Dispersive => {
            let served = source_routes(subnet, settings, proof);
            served.map(|selection| Answer::SourceRoutes(Box::new(selection)))
        }
        _ => {
            let served = tables(subnet, engine, settings, proof);
            served.map(|selection| Answer::Tables(Box::new(selection)))
        }
    })?;
    match &mut answer {
        Answer::Tables(selection) => selection.tried = refused,
        Answer::SourceRoutes(selection) => selection.tried = refused,
    }
    Ok(answer)
}

/// The tables of the first engine that serves. [`Engine::Dispersive`] computes none: [`answer`] takes it, too.
///
/// # Errors
/// If no engine serves.
pub fn select(
    subnet: &Subnet,
    engines: &[Engine],
    settings: &Settings,
    proof: Proof,
) -> Result<Selection, NotRouted> {
    let (selection, tried) = first_that_serves(engines, |engine| tables(subnet, engine, settings, proof))?;
    Ok(Selection { tried, ..selection })
}

/// What the first engine that serves gives, and why those before it do not.
fn first_that_serves<T>(
    engines: &[Engine],
    try_engine: impl Fn(Engine) -> Result<T, WhyNotServed>,
) -> Result<(T, Vec<Tried>), NotRouted> {
    let mut tried = Vec::new();
    for &engine in engines {
        match try_engine(engine) {
            Ok(served) => return Ok((served, tried)),
            Err(why_not) => tried.push(Tried { engine, why_not }),
        }
    }
    Err(NotRouted { tried })
}

/// An engine's tables, or why it does not serve.
fn tables(
    subnet: &Subnet,
    engine: Engine,
    settings: &Settings,
    proof: Proof,
) -> Result<Selection, WhyNotServed> {
    let shared = Shared::new(subnet, settings);
    let computed = compute(subnet, engine, settings, &shared, proof)?;
    let proved = computed.prove(subnet, settings);
    if proof == Proof::Required && !proved.holds() {
        return Err(WhyNotServed::Unproved(Box::new(proved)));
    }
    Ok(computed.selected(engine, proved))
}

/// What an engine computed, which is not proved yet.
#[derive(Debug)]
pub(super) struct Computed {
    pub(super) routing: Routing,
    compute_ms: f64,
}

/// Has an engine compute tables, with what it shares with others.
///
/// # Errors
/// If the engine cannot serve; if proof is required, also if no engine can, as hosts are too far apart.
pub(super) fn compute(
    subnet: &Subnet,
    engine: Engine,
    settings: &Settings,
    shared: &Shared<'_>,
    proof: Proof,
) -> Result<Computed, WhyNotServed> {
    if engine == Engine::Dispersive {
        return Err(WhyNotServed::Refused(Refusal::NoTables));
    }
    if proof == Proof::Required
        && let Some(violation) = too_far(subnet, settings.max_hops)
    {
        let proof = TablesProof { violations: vec![violation], violation_count: 1, ..TablesProof::default() };
        return Err(WhyNotServed::Unproved(Box::new(proof)));
    }
    let started = Instant::now();
    let routing = engine.compute_sharing(subnet, settings, shared);
    let routing = routing.map_err(|error| WhyNotServed::Refused(error.why))?;
    Ok(Computed { routing, compute_ms: started.elapsed().as_secs_f64() * 1e3 })
}

impl Computed {
    pub(super) fn prove(&self, subnet: &Subnet, settings: &Settings) -> TablesProof {
        let rules = ProofRules { max_hops: settings.max_hops, xbar_destinations: settings.xbar_destinations };
        prove_tables(subnet, &self.routing.tables, &self.routing.layers, &rules)
    }

    pub(super) fn selected(self, engine: Engine, proof: TablesProof) -> Selection {
        let Self { routing, compute_ms } = self;
        Selection { engine, tried: Vec::new(), routing, proof, compute_ms, bisection: None }
    }
}

/// Two hosts that are farther apart than the longest route that is allowed, if a quick look finds some. No
/// engine serves then, and the tables of a large fabric need not be computed to know that.
///
/// It searches from the first xbar with hosts of each part, and again from the one that is farthest from
/// that. So it may miss such hosts, which the proof then finds; but those that it finds are too far apart.
fn too_far(subnet: &Subnet, max_hops: u8) -> Option<TableViolation> {
    let topology = &subnet.topology;
    let mut hops = vec![0_u32; topology.xbar_count()];
    let leaves = (0..topology.xbar_count() as u32).filter(|&xbar| has_cabled_host(subnet, xbar));
    for leaf in leaves {
        // Each part is looked at only once.
        if hops[leaf as usize] > 0 {
            continue;
        }
        let seen = search(topology, leaf, &mut hops);
        let farthest = |seen: &[u32], hops: &[u32]| {
            let hosts = seen.iter().copied().filter(|&xbar| has_cabled_host(subnet, xbar));
            hosts.max_by_key(|&xbar| hops[xbar as usize])
        };
        let from = farthest(&seen, &hops)?;
        seen.iter().for_each(|&xbar| hops[xbar as usize] = 0);
        let seen = search(topology, from, &mut hops);
        let to = farthest(&seen, &hops)?;
        let least = hops[to as usize];
        if least > max_hops.into() {
            let slot = subnet.destinations.host_slots_of(to).start;
            return Some(TableViolation::TooFar { from, slot, hops: least as usize, max_hops });
        }
    }
    None
}

fn has_cabled_host(subnet: &Subnet, xbar: u32) -> bool {
    !subnet.destinations.host_slots_of(xbar).is_empty()
}

/// Writes for each xbar to which cables lead how many xbars the shortest way to it passes, with both ends
/// counted, and returns these xbars, the nearest first. Xbars whose number is not 0 are passed over.
fn search(topology: &Topology, from: u32, hops: &mut [u32]) -> Vec<u32> {
    hops[from as usize] = 1;
    let mut seen = vec![from];
    let mut next = 0;
    while let Some(&xbar) = seen.get(next) {
        next += 1;
        for channel in topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel)) {
            let there = topology.head(channel).xbar;
            if hops[there as usize] == 0 {
                hops[there as usize] = hops[xbar as usize] + 1;
                seen.push(there);
            }
        }
    }
    seen
}

/// The source routes of all hosts, or why the engine does not serve.
fn source_routes<'a>(
    subnet: &'a Subnet,
    settings: &Settings,
    proof: Proof,
) -> Result<SourceSelection<'a>, WhyNotServed> {
    Engine::Dispersive.check(subnet, settings).map_err(|error| WhyNotServed::Refused(error.why))?;
    let max_hops = settings.max_hops.min(RouteOptions::MAX_HOPS);
    if proof == Proof::Required
        && let Some(violation) = too_far(subnet, max_hops)
    {
        let told = violation.describe(subnet);
        return Err(WhyNotServed::TooFar(violation, told));
    }
    let options = RouteOptions { passes: settings.passes, max_hops };
    let routes = AllHosts::new(&subnet.topology, options, false);
    let measured = routes.prove_and_measure(settings.seed);
    let (proved, quality, computing) = measured.map_err(|error| {
        let told = error.describe(&subnet.names, &subnet.topology);
        WhyNotServed::NoSourceRoutes(error, told)
    })?;
    if proof == Proof::Required && !proved.holds() {
        return Err(WhyNotServed::UnprovedRoutes(Box::new(proved)));
    }
    Ok(SourceSelection {
        engine: Engine::Dispersive,
        tried: Vec::new(),
        routes,
        proof: proved,
        quality,
        compute_ms: computing.as_secs_f64() * 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Subnet;
    use mapper_fabric::generate;

    #[test]
    fn source_routes_serve_in_their_turn() {
        let subnet = Subnet::new(&generate("clos:hosts=16,ports=4").unwrap(), None).unwrap();
        // No tables are given to load.
        let engines = [Engine::File, Engine::Dispersive, Engine::Minhop];
        let served = answer(&subnet, &engines, &Settings::default(), Proof::Required).unwrap();
        let Answer::SourceRoutes(selection) = served else { panic!("{served:?}") };
        assert_eq!((selection.engine, selection.tried.len()), (Engine::Dispersive, 1));
        assert_eq!(selection.tried[0].engine, Engine::File);
        assert!(selection.proof.holds() && selection.compute_ms > 0.0);
        let none = select(&subnet, &[Engine::Dispersive], &Settings::default(), Proof::Required).unwrap_err();
        assert_eq!(none.tried[0].engine, Engine::Dispersive);
    }

    #[test]
    fn who_cannot_serve_says_why() {
        let subnet = Subnet::new(&generate("ring:n=5").unwrap(), None).unwrap();
        let settings = Settings { max_hops: 2, ..Settings::default() };
        let error = answer(&subnet, &[Engine::Dispersive], &settings, Proof::Required).unwrap_err();
        assert!(error.to_string().contains("at most 2 are allowed"), "{error}");
        let settings = Settings { passes: 65, ..Settings::default() };
        let error = answer(&subnet, &[Engine::Dispersive], &settings, Proof::Required).unwrap_err();
        assert!(error.to_string().contains("give 1 to 64"), "{error}");
    }
}
