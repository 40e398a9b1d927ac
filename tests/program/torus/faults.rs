//! A part of the fault search of `examples/torus_faults`. What is routed is proved, and every refusal is
//! compared with the model: no choice of datelines may connect what the engine refuses.

use mapper_proto::map::Fabric;
use mapper_routing::Subnet;
use mapper_routing::engines::torus::{self, compute_on};
use mapper_routing::engines::{Routing, Settings};
use mapper_routing::{ProofRules, prove_tables};
use proptest::prelude::*;

use super::grids::{Fault, Grid, all_faults, broken};
use super::model::Model;

/// One in this many of the cases with two faults at a time is tried. The number is prime, so that all kinds of
/// faults are met.
const SHARE: usize = 997;

fn grids() -> [Grid; 5] {
    let grid = |[x, y, z]: [u8; 3], [a, b, c]: [bool; 3]| Grid([(x, a), (y, b), (z, c)]);
    [
        grid([4, 4, 4], [true; 3]),
        grid([5, 4, 3], [true; 3]),
        grid([4, 4, 4], [false; 3]),
        grid([5, 4, 3], [true, false, true]),
        grid([5, 4, 3], [true, true, false]),
    ]
}

/// Routes a broken grid, and returns whether the engine did. Tables or a refusal that are wrong are errors.
fn is_routed(grid: Grid, fabric: &Fabric) -> Result<bool, String> {
    let subnet = Subnet::new(fabric, None).map_err(|error| error.to_string())?;
    let dimensions = grid.0.map(|(size, ring)| torus::Dimension { size, is_ring: ring && size > 2 });
    let places = (0..subnet.topology.xbar_count() as u32).map(|router| grid.place(router)).collect();
    let places = torus::Grid::from_parts(&subnet.topology, &dimensions, places);
    let places = places.map_err(|error| error.to_string())?;
    match compute_on(&subnet, &Settings::default(), &places) {
        Ok(routing) => prove(&subnet, &routing).map(|()| true),
        Err(error) => hold_against_model(&Model::new(grid, fabric), &error.why.to_string()).map(|()| false),
    }
}

/// Whether the fault is an inner router of a mesh. Whichever dimension is Z, the loss of such a router parts
/// a column, and no route by the rules leads down past it.
fn is_inner_router_of_a_mesh(grid: Grid, fault: Fault) -> bool {
    let Fault::Router(router) = fault else { return false };
    let mut axes = grid.0.into_iter().zip(grid.place(router));
    axes.all(|((size, is_ring), at)| !is_ring && at > 0 && at + 1 < size)
}

fn prove(subnet: &Subnet, routing: &Routing) -> Result<(), String> {
    let rules = ProofRules { max_hops: Settings::MAX_HOPS, xbar_destinations: false };
    let proof = prove_tables(subnet, &routing.tables, &routing.layers, &rules);
    if proof.holds() { Ok(()) } else { Err(proof.to_string()) }
}

/// Checks that a refusal is right: for every choice of datelines there is a pair that no route by the rules
/// connects. If the refusal names a pair, that one must be among them.
fn hold_against_model(model: &Model, why: &str) -> Result<(), String> {
    let pair = named_pair(why).ok_or_else(|| format!("no pair is named: {why}"))?;
    let is_sure = why.starts_with("the rules know no way");
    for datelines in model.datelines() {
        let lost = model.unconnected(datelines);
        if lost.is_empty() {
            return Err(format!("refused, but datelines {datelines:?} would do: {why}"));
        }
        if is_sure && !lost.contains(&pair) {
            return Err(format!("datelines {datelines:?} connect the pair that is named: {why}"));
        }
    }
    Ok(())
}

/// The two routers that a refusal names: "no way from xbar 4 (0,0,1) to xbar 0 (0,0,0)".
fn named_pair(why: &str) -> Option<(u32, u32)> {
    let (_, pair) = why.split_once("no way from xbar ")?;
    let (from, to) = pair.split_once(" to xbar ")?;
    let number = |text: &str| text.split(' ').next()?.parse().ok();
    Some((number(from)?, number(to)?))
}

#[test]
fn tori_and_meshes_survive_any_single_fault() {
    for grid in grids() {
        let whole = grid.fabric().unwrap();
        for fault in all_faults(&whole) {
            let routed = is_routed(grid, &broken(&whole, &[fault])).unwrap();
            assert!(routed != is_inner_router_of_a_mesh(grid, fault), "{grid:?} without {fault:?}");
        }
    }
}

#[test]
fn two_faults_are_survived_wherever_the_rules_allow_it() {
    for grid in grids() {
        let whole = grid.fabric().unwrap();
        let all = all_faults(&whole);
        let pairs = (0..all.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        for (i, j) in pairs.step_by(SHARE) {
            let faults = [all[i], all[j]];
            is_routed(grid, &broken(&whole, &faults))
                .unwrap_or_else(|why| panic!("{grid:?} {faults:?}: {why}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// In any grid with any faults, what the engine refuses cannot be connected.
    #[test]
    fn only_what_no_dateline_helps_is_refused(
        sizes in prop::array::uniform3((2_u8..5, any::<bool>())),
        cables in prop::collection::vec(any::<prop::sample::Index>(), 0..7),
        routers in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let grid = Grid(sizes);
        let whole = grid.fabric().unwrap();
        let mut faults: Vec<Fault> = Vec::new();
        faults.extend(cables.iter().map(|at| Fault::Cable(at.index(whole.map.cables.len()))));
        faults.extend(routers.iter().map(|at| Fault::Router(at.index(whole.map.xbars.len()) as u32)));
        is_routed(grid, &broken(&whole, &faults)).map_err(TestCaseError::fail)?;
    }
}
