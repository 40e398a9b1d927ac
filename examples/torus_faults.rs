//! Breaks tori and meshes in every way and prints what direction order makes of them, beside updn and lash.
//!
//! usage: torus_faults [SHARE]
//!
//! Every single fault is tried, and every SHARE-th of the double ones (1, the default, is all of them). A
//! fault is a cable or a router. Each engine's tables are proved: every pair, loops, circles. A pair
//! counts as routed if the engine routes its whole fabric, as only whole fabrics are let out; a mean path is
//! given over the shortest, in the fabrics that all engines route.
#![allow(clippy::print_stdout, reason = "the table goes to standard output")]

use std::error::Error;

use mapper::routing::engines::torus::{Dimension, Grid, compute_on};
use mapper::routing::engines::{Engine, EngineError, Routing, Settings};
use mapper::routing::{Attachment, Far, ProofRules, Subnet, prove_tables};
use mapper_proto::map::{Fabric, PortRef};
use mapper_sim::topology::generate;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

const ENGINES: [Engine; 3] = [Engine::Torus, Engine::Updn, Engine::Lash];

/// Sizes, and whether each dimension is a ring.
type Shape = [(u8, bool); 3];

const SHAPES: [(&str, Shape); 5] = [
    ("4x4x4 torus", [(4, true), (4, true), (4, true)]),
    ("5x4x3 torus", [(5, true), (4, true), (3, true)]),
    ("4x4x4 mesh", [(4, false), (4, false), (4, false)]),
    ("5x4x3, y a line", [(5, true), (4, false), (3, true)]),
    ("5x4x3, z a line", [(5, true), (4, true), (3, false)]),
];

/// What is broken.
#[derive(Clone, Copy)]
enum Fault {
    Cable(usize),
    Router(u32),
}

fn main() -> Result<(), Box<dyn Error>> {
    let share: usize = std::env::args().nth(1).map_or(Ok(1), |share| share.parse())?;
    println!(
        "{:<16} {:<22} {:>8} {:<6} {:>9} {:>9} {:>8} {:>7}",
        "grid", "faults", "fabrics", "engine", "routed %", "pairs %", "path", "layers"
    );
    for (name, shape) in SHAPES {
        let whole = build(&shape)?;
        let cables = (0..whole.map.cables.len()).map(Fault::Cable);
        let routers = (0..whole.map.xbars.len() as u32).map(Fault::Router);
        let all: Vec<Fault> = cables.chain(routers).collect();
        let single: Vec<Vec<Fault>> = all.iter().map(|&fault| vec![fault]).collect();
        report(name, "each single", &whole, &shape, &single)?;
        let pairs = (0..all.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        let double: Vec<Vec<Fault>> =
            pairs.step_by(share.max(1)).map(|(i, j)| vec![all[i], all[j]]).collect();
        report(name, "each double", &whole, &shape, &double)?;
    }
    let shape = [(8, true), (8, true), (8, true)];
    let whole = build(&shape)?;
    for percent in [1, 2, 5] {
        let faults = whole.map.cables.len() * percent / 100;
        let mut random = ChaCha8Rng::seed_from_u64(percent as u64);
        let many: Vec<Vec<Fault>> = (0..20)
            .map(|_| {
                (0..faults).map(|_| Fault::Cable(random.random_range(0..whole.map.cables.len()))).collect()
            })
            .collect();
        report("8x8x8 torus", &format!("{percent} % of cables, random"), &whole, &shape, &many)?;
    }
    Ok(())
}

/// A grid with one host a router: the generator's torus, less what closes lines into rings.
fn build(shape: &Shape) -> Result<Fabric, Box<dyn Error>> {
    let [(x, _), (y, _), (z, _)] = shape;
    let mut fabric = generate(&format!("torus:x={x},y={y},z={z},hosts=1"))?;
    for (dimension, &(size, ring)) in shape.iter().enumerate() {
        let plus = 2 * dimension as u8 + 1;
        let closes = |end: PortRef| end.port == plus && place(shape, end.xbar)[dimension] + 1 == size;
        fabric.map.cables.retain(|cable| ring || !(closes(cable.a) || closes(cable.b)));
    }
    Ok(fabric)
}

/// A router's coordinates: X counts fastest.
fn place(shape: &Shape, router: u32) -> [u8; 3] {
    let [x, y, _] = shape.map(|(size, _)| u32::from(size));
    [router % x, router / x % y, router / (x * y)].map(|at| at as u8)
}

fn broken(whole: &Fabric, faults: &[Fault]) -> Fabric {
    let mut fabric = whole.clone();
    let dead = |i: usize| faults.iter().any(|fault| matches!(fault, Fault::Cable(cable) if *cable == i));
    let gone = |router: u32| faults.iter().any(|fault| matches!(fault, Fault::Router(one) if *one == router));
    let mut number = 0..;
    fabric
        .map
        .cables
        .retain(|cable| !number.next().is_some_and(dead) && !gone(cable.a.xbar) && !gone(cable.b.xbar));
    for host in &mut fabric.map.hosts {
        host.at = host.at.filter(|at| !gone(at.xbar));
    }
    fabric
}

/// What an engine made of a fabric.
#[derive(Clone, Copy)]
struct Routed {
    steps: usize,
    layers: u8,
}

/// A fabric: its pairs, the steps of their shortest routes, and what the engines made of it.
struct Outcome {
    pairs: usize,
    shortest: usize,
    routed: [Option<Routed>; ENGINES.len()],
}

fn report(
    name: &str,
    faults: &str,
    whole: &Fabric,
    shape: &Shape,
    all: &[Vec<Fault>],
) -> Result<(), Box<dyn Error>> {
    let outcomes: Result<Vec<Outcome>, String> =
        all.par_iter().map(|faults| route(&broken(whole, faults), shape)).collect();
    let outcomes = outcomes?;
    let pairs: usize = outcomes.iter().map(|outcome| outcome.pairs).sum();
    let by_all: Vec<&Outcome> =
        outcomes.iter().filter(|outcome| outcome.routed.iter().all(Option::is_some)).collect();
    let shortest: usize = by_all.iter().map(|outcome| outcome.shortest).sum();
    for (i, engine) in ENGINES.into_iter().enumerate() {
        let routed: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.routed[i].is_some()).collect();
        let steps: usize = by_all.iter().filter_map(|outcome| outcome.routed[i]).map(|one| one.steps).sum();
        let layers = routed.iter().filter_map(|outcome| outcome.routed[i]).map(|one| one.layers).max();
        println!(
            "{name:<16} {faults:<22} {:>8} {:<6} {:>9.3} {:>9.3} {:>8.4} {:>7}",
            outcomes.len(),
            engine.name(),
            100.0 * routed.len() as f64 / outcomes.len().max(1) as f64,
            100.0 * routed.iter().map(|outcome| outcome.pairs).sum::<usize>() as f64 / pairs.max(1) as f64,
            steps as f64 / shortest.max(1) as f64,
            layers.unwrap_or_default(),
        );
    }
    Ok(())
}

fn route(fabric: &Fabric, shape: &Shape) -> Result<Outcome, String> {
    let subnet = Subnet::new(fabric, None).map_err(|error| error.to_string())?;
    let dimensions = shape.map(|(size, is_ring)| Dimension { size, is_ring });
    let places = (0..subnet.topology.xbar_count() as u32).map(|router| place(shape, router)).collect();
    let grid = Grid::from_parts(&subnet.topology, &dimensions, places).map_err(|error| error.to_string())?;
    let (pairs, shortest) = shortest(&subnet);
    let mut routed = [None; ENGINES.len()];
    for (engine, routed) in ENGINES.into_iter().zip(&mut routed) {
        // The grid is given: recognition is tried elsewhere.
        let settings = Settings::default();
        let computed = match engine {
            Engine::Torus => compute_on(&subnet, &settings, &grid),
            _ => engine.compute(&subnet, &settings),
        };
        *routed = prove(&subnet, computed, engine)?;
    }
    Ok(Outcome { pairs, shortest, routed })
}

/// The figures of tables; none if the engine refused. Tables that do not pass the proof are an error.
fn prove(
    subnet: &Subnet,
    computed: Result<Routing, EngineError>,
    engine: Engine,
) -> Result<Option<Routed>, String> {
    let Ok(routing) = computed else { return Ok(None) };
    let rules = ProofRules { max_hops: Settings::MAX_HOPS, xbar_destinations: false };
    let proof = prove_tables(subnet, &routing.tables, &routing.layers, &rules);
    if !proof.holds() {
        return Err(format!("{engine}: {proof}"));
    }
    let topology = &subnet.topology;
    let mut steps = 0;
    for (from, to) in pairs(subnet) {
        let slot = subnet.destinations.slots_of_host(to).start;
        let mut at = subnet.xbar_of_host(from).unwrap_or_default();
        while let Far::Channel(channel) =
            topology.far(PortRef { xbar: at, port: routing.tables.port(at, slot) })
        {
            at = topology.head(channel).xbar;
            steps += 1;
        }
    }
    Ok(Some(Routed { steps, layers: routing.layers.count }))
}

/// The pairs of hosts that cables join.
fn pairs(subnet: &Subnet) -> impl Iterator<Item = (u32, u32)> + '_ {
    let topology = &subnet.topology;
    let hosts = 0..topology.host_count() as u32;
    let cabled = move |&host: &u32| matches!(topology.attachment(host), Attachment::Port(_));
    let all = hosts.clone().filter(cabled);
    all.flat_map(move |from| hosts.clone().filter(cabled).map(move |to| (from, to)))
        .filter(|&(from, to)| from != to && topology.connected(from, to))
}

/// How many pairs of hosts cables join, and the steps of their shortest routes.
fn shortest(subnet: &Subnet) -> (usize, usize) {
    let topology = &subnet.topology;
    let (mut count, mut steps) = (0, 0);
    let mut from_before = None;
    let mut distances = Vec::new();
    for (from, to) in pairs(subnet) {
        let start = subnet.xbar_of_host(from).unwrap_or_default();
        if from_before.replace(from) != Some(from) {
            distances = vec![usize::MAX; topology.xbar_count()];
            distances[start as usize] = 0;
            let mut queue = std::collections::VecDeque::from([start]);
            while let Some(xbar) = queue.pop_front() {
                for channel in topology.channels_of(xbar) {
                    let next = topology.head(channel).xbar;
                    if distances[next as usize] == usize::MAX {
                        distances[next as usize] = distances[xbar as usize] + 1;
                        queue.push_back(next);
                    }
                }
            }
        }
        count += 1;
        steps += subnet.xbar_of_host(to).map_or(0, |end| distances[end as usize]);
    }
    (count, steps)
}
