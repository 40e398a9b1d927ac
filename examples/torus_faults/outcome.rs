//! What engines make of a broken fabric, proved and measured.

use std::collections::VecDeque;

use mapper_proto::map::{Fabric, PortRef};
use mapper_routing::engines::torus::{self, compute_on};
use mapper_routing::engines::{Engine, EngineError, Routing, Settings};
use mapper_routing::{Attachment, Far, ProofRules, Subnet, prove_tables};

use super::grids::Grid;

/// The engines that are compared.
pub(super) const ENGINES: [Engine; 3] = [Engine::Torus, Engine::Updn, Engine::Lash];

/// What an engine made of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was not asked.
    Untried,
    /// It refused.
    Refused,
    /// Its tables are proved.
    Routed {
        /// Steps from router to router, over all pairs.
        steps: usize,
        layers: u8,
    },
}

/// A fabric: its pairs, the steps of their shortest routes, and what the engines made of it.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// Pairs of hosts that cables join.
    pub(super) pairs: usize,
    /// Steps of the shortest routes that there are, whether or not they can deadlock.
    pub(super) shortest: usize,
    /// By engine.
    pub(super) fates: [Fate; ENGINES.len()],
}

impl Outcome {
    /// Routes a fabric by each engine; by lash, which takes far longer than the others, only if asked to.
    ///
    /// # Errors
    /// If any engine's tables fail their proof.
    pub(super) fn of(fabric: &Fabric, grid: Grid, with_lash: bool) -> Result<Self, String> {
        let subnet = Subnet::new(fabric, None).map_err(|error| error.to_string())?;
        let dimensions = grid.0.map(|(size, is_ring)| torus::Dimension { size, is_ring });
        let places = (0..subnet.topology.xbar_count() as u32).map(|router| grid.place(router)).collect();
        // The places are given: how they are found is tried elsewhere.
        let places = torus::Grid::from_parts(&subnet.topology, &dimensions, places);
        let places = places.map_err(|error| error.to_string())?;
        let (pairs, shortest) = shortest(&subnet);
        // A torus has no root of its own: any serves updn.
        let root = hosts(&subnet).next().and_then(|host| subnet.xbar_of_host(host));
        let rooted = Settings { roots: Some(root.into_iter().collect()), ..Settings::default() };
        let mut fates = [Fate::Untried; ENGINES.len()];
        for (engine, fate) in ENGINES.into_iter().zip(&mut fates) {
            let computed = match engine {
                Engine::Torus => compute_on(&subnet, &Settings::default(), &places),
                Engine::Lash if !with_lash => continue,
                Engine::Lash => engine.compute(&subnet, &Settings::default()),
                _ => engine.compute(&subnet, &rooted),
            };
            *fate = prove(&subnet, computed, engine)?;
        }
        Ok(Self { pairs, shortest, fates })
    }
}

/// The figures of tables. Tables that do not pass the proof are an error: a pair without a route, a loop, or a
/// circle of channel dependencies in a layer.
fn prove(subnet: &Subnet, computed: Result<Routing, EngineError>, engine: Engine) -> Result<Fate, String> {
    let Ok(routing) = computed else { return Ok(Fate::Refused) };
    let rules = ProofRules { max_hops: Settings::MAX_HOPS, xbar_destinations: false };
    let proof = prove_tables(subnet, &routing.tables, &routing.layers, &rules);
    if !proof.holds() {
        return Err(format!("{engine}: {proof}"));
    }
    let senders =
        hosts(subnet).fold(vec![0; subnet.topology.xbar_count()], |mut senders: Vec<usize>, host| {
            senders[subnet.xbar_of_host(host).unwrap_or_default() as usize] += 1;
            senders
        });
    let steps = hosts(subnet).map(|to| steps_to(subnet, &routing, to, &senders)).sum();
    Ok(Fate::Routed { steps, layers: routing.layers.count })
}

/// The steps of all routes to a host. Each router's are counted once, after those of the next one: the tables
/// are proved, so each route ends.
fn steps_to(subnet: &Subnet, routing: &Routing, to: u32, senders: &[usize]) -> usize {
    let topology = &subnet.topology;
    let slot = subnet.destinations.slots_of_host(to).start;
    let end = subnet.xbar_of_host(to).unwrap_or_default();
    let mut steps: Vec<Option<usize>> = vec![None; topology.xbar_count()];
    steps[end as usize] = Some(0);
    let mut sum = 0;
    for start in (0..topology.xbar_count() as u32).filter(|&xbar| senders[xbar as usize] > 0) {
        if topology.component(start) != topology.component(end) {
            continue;
        }
        let mut way = Vec::new();
        let mut at = start;
        while steps[at as usize].is_none() {
            way.push(at);
            let port = routing.tables.port(at, slot);
            let Far::Channel(channel) = topology.far(PortRef { xbar: at, port }) else { break };
            at = topology.head(channel).xbar;
        }
        let rest = steps[at as usize].unwrap_or_default();
        for (count, router) in (rest + 1..).zip(way.into_iter().rev()) {
            steps[router as usize] = Some(count);
        }
        sum += senders[start as usize] * steps[start as usize].unwrap_or_default();
    }
    sum
}

/// Hosts that are cabled to a router.
fn hosts(subnet: &Subnet) -> impl Iterator<Item = u32> + '_ {
    let all = 0..subnet.topology.host_count() as u32;
    all.filter(|&host| matches!(subnet.topology.attachment(host), Attachment::Port(_)))
}

/// How many pairs of hosts cables join, and the steps of their shortest routes.
fn shortest(subnet: &Subnet) -> (usize, usize) {
    let topology = &subnet.topology;
    let (mut count, mut steps) = (0, 0);
    for from in hosts(subnet) {
        let start = subnet.xbar_of_host(from).unwrap_or_default();
        let mut distances = vec![None; topology.xbar_count()];
        distances[start as usize] = Some(0_usize);
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((xbar, distance)) = queue.pop_front() {
            for channel in topology.channels_of(xbar) {
                let next = topology.head(channel).xbar;
                if distances[next as usize].is_none() {
                    distances[next as usize] = Some(distance + 1);
                    queue.push_back((next, distance + 1));
                }
            }
        }
        for to in hosts(subnet).filter(|&to| to != from) {
            if let Some(distance) = subnet.xbar_of_host(to).and_then(|end| distances[end as usize]) {
                count += 1;
                steps += distance;
            }
        }
    }
    (count, steps)
}
