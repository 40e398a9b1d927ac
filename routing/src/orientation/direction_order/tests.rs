//! What must be true of direction order without virtual channels.

use std::collections::{BTreeSet, VecDeque};

use mapper_fabric::generate;
use proptest::prelude::*;

use super::*;
use crate::{Attachment, HostRoutes, RouteOptions, prove_host};

fn topology(spec: &str, cut: &[usize]) -> Topology {
    let mut map = generate(spec).unwrap().map;
    let mut cut: Vec<usize> = cut.iter().map(|&cable| cable % map.cables.len()).collect();
    cut.sort_unstable();
    cut.dedup();
    cut.into_iter().rev().for_each(|cable| {
        map.cables.remove(cable);
    });
    Topology::from_map(&map).unwrap()
}

/// Specs of tori and meshes of two and three dimensions.
fn specs() -> impl Strategy<Value = String> {
    let sizes = proptest::collection::vec(2_u8..6, 2..4);
    (prop_oneof![Just("torus"), Just("mesh")], sizes).prop_map(|(kind, sizes)| {
        let sizes: Vec<_> = ["x", "y", "z"].iter().zip(sizes).map(|(d, n)| format!("{d}={n}")).collect();
        format!("{kind}:{},hosts=1", sizes.join(","))
    })
}

/// The xbars that legal routes lead to, by a plain search over xbars and phases.
fn reached(topology: &Topology, passages: &[Passage], from: u32) -> BTreeSet<u32> {
    let mut seen = BTreeSet::from([(from, 0)]);
    let mut queue = VecDeque::from([(from, 0)]);
    while let Some((xbar, phase)) = queue.pop_front() {
        for channel in topology.channels_of(xbar) {
            let Passage { until, then } = passages[channel as usize];
            let next = (topology.head(channel).xbar, phase.max(then));
            if phase <= until && then < PHASES && seen.insert(next) {
                queue.push_back(next);
            }
        }
    }
    seen.into_iter().map(|(xbar, _)| xbar).collect()
}

proptest! {
    #[test]
    fn legal_steps_close_no_circle_wherever_the_datelines_are(
        spec in specs(),
        at in proptest::collection::vec(any::<u8>(), 32),
    ) {
        let topology = topology(&spec, &[]);
        let grid = recognise(&topology, &TorusStatement::default()).unwrap();
        let [x, y, z] = [0, 1, 2].map(|dimension| grid.size(dimension));
        let draw = |count: u8, size: u8| at.iter().cycle().take(count.into()).map(|&at| at % size).collect();
        let datelines = Datelines { x: draw(y * z, x), y: draw(z, y), z: at[0] % z };
        let passages = passages(&topology, &grid, &datelines);
        let allows = |a: u32, b: u32| passages[a as usize].leads_on_to(passages[b as usize]);
        prop_assert!(numbers::rising(&topology, allows).is_some());
    }

    #[test]
    fn all_are_joined_exactly_if_a_plain_search_finds_all(
        spec in specs(),
        cut in proptest::collection::vec(any::<usize>(), 0..9),
        shift in 0..4_u8,
    ) {
        let topology = topology(&spec, &cut);
        let Ok(grid) = recognise(&topology, &TorusStatement::default()) else { return Ok(()) };
        let passages = passages(&topology, &grid, &Datelines::new(&topology, &grid, shift));
        let allows = |a: u32, b: u32| passages[a as usize].leads_on_to(passages[b as usize]);
        let numbers = numbers::rising(&topology, allows).unwrap();
        let xbars = 0..topology.xbar_count() as u32;
        let plain = xbars.clone().all(|from| {
            let reached = reached(&topology, &passages, from);
            xbars.clone().all(|to| topology.component(to) != topology.component(from) || reached.contains(&to))
        });
        prop_assert_eq!(joins_all(&topology, &numbers, &passages), plain);
    }
}

#[test]
fn a_grid_that_lost_any_one_cable_is_still_routed_in_direction_order() {
    let specs = ["torus:x=4,y=4", "torus:x=5,y=3", "torus:x=4,y=3,z=3", "mesh:x=4,y=3", "mesh:x=3,y=3,z=3"];
    for spec in specs.map(|spec| format!("{spec},hosts=1")) {
        for cable in 0..generate(&spec).unwrap().map.cables.len() {
            let topology = topology(&spec, &[cable]);
            let orientation = orient(&topology).unwrap();
            let table = HostRoutes::compute(&topology, &orientation, 0, &RouteOptions::default()).unwrap();
            prove_host(&topology, &orientation, &table).unwrap();
        }
    }
}

#[test]
fn a_mesh_that_direction_order_cannot_join_goes_up_and_down() {
    let spec = "mesh:x=3,y=3,z=3,hosts=1";
    let whole = topology(spec, &[]);
    let grid = recognise(&whole, &TorusStatement::default()).unwrap();
    // Whichever dimension is Z, only z may follow z-, so no way leads round the broken link.
    let middle = grid.xbar_at([1, 1, 1]).unwrap();
    let dead = [0, 1, 2].map(|dimension| whole.tail(grid.channels(middle, dimension, Sense::Minus)[0]));
    let mut map = generate(spec).unwrap().map;
    map.cables.retain(|cable| !dead.contains(&cable.a) && !dead.contains(&cable.b));
    let topology = Topology::from_map(&map).unwrap();
    assert!(orient(&topology).is_none());
    assert!(matches!(Orientation::new(&topology, false).shape(), Shape::UpDown { .. }));
}

#[test]
fn beside_a_dateline_routes_go_the_long_way_round_and_nowhere_else() {
    let topology = topology("torus:x=6,y=5,hosts=1", &[]);
    let orientation = orient(&topology).unwrap();
    let grid = recognise(&topology, &TorusStatement::default()).unwrap();
    let around = |from: u8, to: u8, size: u8| from.abs_diff(to).min(size - from.abs_diff(to));
    let mut longer = 0;
    for from in 0..topology.host_count() as u32 {
        let table = HostRoutes::compute(&topology, &orientation, from, &RouteOptions::default()).unwrap();
        for to in (0..topology.host_count() as u32).filter(|&to| to != from) {
            let ends = [from, to].map(|host| match topology.attachment(host) {
                Attachment::Port(at) => grid.coordinates(at.xbar),
                _ => unreachable!("each host has an xbar"),
            });
            let shortest = around(ends[0][0], ends[1][0], 6) + around(ends[0][1], ends[1][1], 5);
            let hops = table.routes_to(&topology, to).next().unwrap().len() - 1;
            assert!(hops <= usize::from(shortest) + 3, "{ends:?}: {hops}");
            longer += usize::from(hops > usize::from(shortest));
        }
    }
    assert!(longer > 0 && longer < 30 * 29 / 5, "{longer} of {}", 30 * 29);
}

#[test]
fn lines_and_small_squares_are_left_to_up_and_down() {
    for spec in ["ring:n=6,hosts=1", "mesh:x=5,hosts=1", "mesh:x=5,y=2,hosts=1", "hypercube:d=3,hosts=1"] {
        assert!(orient(&topology(spec, &[])).is_none(), "{spec}");
    }
}
