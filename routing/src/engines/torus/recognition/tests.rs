mod stated;

use std::collections::BTreeSet;

use mapper_fabric::generate;
use mapper_proto::PortSet;
use mapper_proto::map::{Cable, Map, PortRef};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::{Dimension, Grid, Sense, TorusStatement};
use super::*;
use crate::Topology;

const RING: fn(u8) -> Dimension = |size| Dimension { size, is_ring: true };
const LINE: fn(u8) -> Dimension = |size| Dimension { size, is_ring: false };

fn map(spec: &str) -> Map {
    generate(spec).unwrap().map
}

fn topology(map: &Map) -> Topology {
    Topology::from_map(map).unwrap()
}

fn recognised(map: &Map) -> Result<Grid, NoTorus> {
    recognise(&topology(map), &TorusStatement::default())
}

/// A torus or mesh of any rings and lines, X fastest, cabled from port 1 as the generator does.
fn grid_map(dimensions: &[Dimension]) -> Map {
    let sizes: Vec<_> =
        ["x", "y", "z"].iter().zip(dimensions).map(|(key, d)| format!("{key}={}", d.size)).collect();
    let mut map = map(&format!("torus:{},hosts=1", sizes.join(",")));
    let size = |i: usize| dimensions.get(i).map_or(1, |d| u32::from(d.size));
    let at = |xbar: u32| [xbar % size(0), xbar / size(0) % size(1), xbar / size(0) / size(1)];
    let closes_a_line = |cable: &Cable| {
        let (a, b) = (at(cable.a.xbar), at(cable.b.xbar));
        (0..dimensions.len()).any(|i| !dimensions[i].is_ring && a[i].abs_diff(b[i]) > 1)
    };
    map.cables.retain(|cable| !closes_a_line(cable));
    map
}

/// The map with its xbars in another order, and the ports of each xbar in another order.
fn shuffled(map: &Map, seed: u64) -> (Map, Vec<u32>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<u32> = (0..map.xbars.len() as u32).collect();
    order.shuffle(&mut rng);
    let ports: Vec<Vec<u8>> = map
        .xbars
        .iter()
        .map(|xbar| {
            let mut ports: Vec<u8> = (1..=xbar.ports).collect();
            ports.shuffle(&mut rng);
            ports
        })
        .collect();
    let mut map = map.clone();
    let turn = |end: &mut PortRef| {
        let port = ports[end.xbar as usize][usize::from(end.port) - 1];
        *end = PortRef { xbar: order[end.xbar as usize], port };
    };
    for cable in &mut map.cables {
        turn(&mut cable.a);
        turn(&mut cable.b);
        *cable = Cable::new(cable.a, cable.b);
    }
    map.hosts.iter_mut().filter_map(|host| host.at.as_mut()).for_each(turn);
    map.cables.sort_unstable();
    (map, order)
}

/// Removes an xbar, its cables and hosts.
fn remove_xbar(map: &mut Map, gone: u32) {
    let is_gone = |end: PortRef| end.xbar == gone;
    map.cables.retain(|cable| !is_gone(cable.a) && !is_gone(cable.b));
    map.hosts.retain(|host| !host.at.is_some_and(is_gone));
    map.xbars.remove(gone as usize);
    let lower = |end: &mut PortRef| end.xbar -= u32::from(end.xbar > gone);
    for cable in &mut map.cables {
        lower(&mut cable.a);
        lower(&mut cable.b);
    }
    map.hosts.iter_mut().filter_map(|host| host.at.as_mut()).for_each(lower);
}

fn sorted(dimensions: &[Dimension]) -> Vec<Dimension> {
    let mut sorted = dimensions.to_vec();
    sorted.sort_unstable();
    sorted
}

/// Whether two lists of coordinates are the same apart from the order, directions and shifts of dimensions.
fn is_isomorphic(dimensions: &[Dimension], a: &[[u8; 3]], b: &[[u8; 3]]) -> bool {
    // Neighbouring places of one list must be neighbouring places of the other. For whole grids nothing more
    // is needed, and for broken ones this is what coordinates are used for.
    let steps = |coordinates: &[[u8; 3]]| {
        let mut steps = BTreeSet::new();
        let sizes: Vec<_> = dimensions.iter().map(|d| i16::from(d.size)).collect();
        for (i, x) in coordinates.iter().enumerate() {
            for (j, y) in coordinates.iter().enumerate().take(i) {
                let apart: Vec<i16> = (0..sizes.len())
                    .map(|k| {
                        let apart = (i16::from(x[k]) - i16::from(y[k])).abs();
                        if dimensions[k].is_ring { apart.min(sizes[k] - apart) } else { apart }
                    })
                    .collect();
                if apart.iter().sum::<i16>() == 1 {
                    steps.insert((i, j));
                }
            }
        }
        steps
    };
    steps(a) == steps(b)
}

/// Recognises a shuffled map, and compares with the places that the unshuffled xbars have.
fn assert_found(map: &Map, dimensions: &[Dimension], places: &[[u8; 3]], seed: u64, what: &str) {
    let (shuffled, order) = shuffled(map, seed);
    let grid = recognised(&shuffled).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(sorted(grid.dimensions()), sorted(dimensions), "{what}");
    let found: Vec<_> = order.iter().map(|&xbar| grid.coordinates(xbar)).collect();
    let canonical = canonical_order(grid.dimensions(), dimensions);
    let found: Vec<_> = found
        .iter()
        .map(|at| std::array::from_fn(|i| canonical.get(i).map_or(0, |&from| at[from])))
        .collect();
    assert!(is_isomorphic(dimensions, places, &found), "{what}");
}

/// An order of found dimensions that has the same sizes and rings as the true ones. (Which of equal ones is
/// which does not matter to neighbours.)
fn canonical_order(found: &[Dimension], truth: &[Dimension]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..found.len()).collect();
    let take = |dimension: &Dimension| {
        let place = left.iter().position(|&i| found[i] == *dimension).unwrap();
        left.remove(place)
    };
    truth.iter().map(take).collect()
}

fn places(dimensions: &[Dimension]) -> Vec<[u8; 3]> {
    let size = |i: usize| dimensions.get(i).map_or(1, |d| d.size);
    (0..size(2)).flat_map(|z| (0..size(1)).flat_map(move |y| (0..size(0)).map(move |x| [x, y, z]))).collect()
}

#[test]
fn what_is_generated_is_found_as_it_was_made() {
    for (spec, dimensions) in [
        ("torus:x=6,y=5,z=5,hosts=2", vec![RING(6), RING(5), RING(5)]),
        ("torus:x=4,y=4,z=4", vec![RING(4); 3]),
        ("torus:x=4,y=4", vec![RING(4); 2]),
        ("torus:x=3,y=3,z=3", vec![RING(3); 3]),
        ("torus:x=2,y=4,z=3", vec![LINE(2), RING(4), RING(3)]),
        ("torus:x=1,y=7", vec![RING(7)]),
        ("mesh:x=4,y=3", vec![LINE(4), LINE(3)]),
        ("mesh:x=2,y=2,z=5", vec![LINE(2), LINE(2), LINE(5)]),
        ("ring:n=3", vec![RING(3)]),
        ("ring:n=4", vec![RING(4)]),
        ("ring:n=5", vec![RING(5)]),
        ("ring:n=200", vec![RING(200)]),
        ("mesh:x=9", vec![LINE(9)]),
        ("mesh:x=2", vec![LINE(2)]),
        ("hypercube:d=1", vec![LINE(2)]),
        ("hypercube:d=2", vec![LINE(2); 2]),
        ("hypercube:d=3", vec![LINE(2); 3]),
        ("torus:x=1", vec![]),
    ] {
        let grid = recognised(&map(spec)).unwrap_or_else(|error| panic!("{spec}: {error}"));
        assert_eq!(grid.dimensions(), dimensions, "{spec}");
        let size = |i: usize| dimensions.get(i).map_or(1, |d| d.size);
        let found: Vec<_> = (0..map(spec).xbars.len() as u32).map(|xbar| grid.coordinates(xbar)).collect();
        assert_eq!(found, places(&dimensions), "{spec}: X is what the generator calls x {}", size(0));
        assert!(grid.missing_cables().is_empty() && grid.missing_xbars().is_empty(), "{spec}");
    }
    let cube = recognised(&map("hypercube:d=6")).unwrap();
    assert_eq!(cube.dimensions(), [RING(4); 3], "six dimensions of two are three rings of four");
    assert_eq!(recognised(&map("hypercube:d=4")).unwrap().dimensions().len(), 2);
}

/// The shapes of the tests: each small, and each hard in its own way.
fn small_shapes() -> Vec<Vec<Dimension>> {
    vec![
        vec![RING(4); 3],
        vec![RING(5), RING(4), RING(3)],
        vec![RING(3); 3],
        vec![LINE(4), LINE(3)],
        vec![RING(5), LINE(4)],
        vec![RING(4), RING(3), LINE(2)],
        vec![LINE(3), RING(4), LINE(3)],
        vec![RING(6), RING(5)],
    ]
}

#[test]
fn shuffled_grids_are_found_with_any_cable_missing() {
    for dimensions in small_shapes() {
        let whole = grid_map(&dimensions);
        let places = places(&dimensions);
        assert_found(&whole, &dimensions, &places, 0, "whole");
        for cut in 0..whole.cables.len() {
            let mut map = whole.clone();
            let cable = map.cables.remove(cut);
            assert_found(&map, &dimensions, &places, cut as u64, &format!("{dimensions:?} less {cable:?}"));
        }
    }
}

#[test]
fn shuffled_grids_are_found_with_two_cables_missing() {
    for dimensions in small_shapes().into_iter().filter(|shape| shape.len() == 3) {
        let whole = grid_map(&dimensions);
        let places = places(&dimensions);
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for seed in 0..150 {
            let mut map = whole.clone();
            let cut = [0, 1].map(|_| map.cables.remove(rng.random_range(0..map.cables.len())));
            assert_found(&map, &dimensions, &places, seed, &format!("{dimensions:?} less {cut:?}"));
        }
    }
}

#[test]
fn a_missing_xbar_leaves_a_hole() {
    for dimensions in
        [vec![RING(4); 3], vec![RING(5), RING(4), RING(3)], vec![LINE(5), LINE(5)], vec![RING(6), LINE(4)]]
    {
        let whole = grid_map(&dimensions);
        for gone in 0..whole.xbars.len() as u32 {
            let mut map = whole.clone();
            remove_xbar(&mut map, gone);
            let mut places = places(&dimensions);
            places.remove(gone as usize);
            assert_found(
                &map,
                &dimensions,
                &places,
                u64::from(gone),
                &format!("{dimensions:?} less xbar {gone}"),
            );
            let grid = recognised(&map).unwrap();
            assert_eq!(
                (grid.missing_xbars().len(), grid.missing_cables().len()),
                (1, 0),
                "{dimensions:?} less {gone}: {:?}",
                grid.dimensions()
            );
        }
    }
}

#[test]
fn service_rows_are_found_and_make_out_x() {
    // Rows along the last dimension have lost their links, so it is X.
    let dimensions = [RING(5), RING(5), RING(6)];
    let mut map = grid_map(&dimensions);
    let at = |xbar: u32| [xbar % 5, xbar / 5 % 5, xbar / 25];
    map.cables.retain(|cable| {
        let (a, b) = (at(cable.a.xbar), at(cable.b.xbar));
        a[2] == b[2] || a[1] != 0
    });
    let (map, _) = shuffled(&map, 3);
    let grid = recognised(&map).unwrap();
    assert_eq!(grid.dimensions()[0], RING(6));
    assert_eq!(grid.missing_cables().len(), 30);
    assert!(grid.missing_cables().iter().all(|cable| cable.dimension == 0));
}

#[test]
fn parallel_cables_are_one_step() {
    let mut map = grid_map(&[RING(5), LINE(2)]);
    for xbar in &mut map.xbars {
        xbar.ports = 40;
    }
    let twins = map.cables.iter().map(|cable| {
        let twin = |end: PortRef| PortRef { port: end.port + 20, ..end };
        Cable::new(twin(cable.a), twin(cable.b))
    });
    let twins: Vec<_> = twins.collect();
    map.cables.extend(twins);
    map.cables.sort_unstable();
    let gone = map.cables.remove(0);
    let grid = recognised(&map).unwrap();
    assert_eq!(sorted(grid.dimensions()), [LINE(2), RING(5)]);
    let missing = grid.missing_cables();
    assert_eq!(missing.len(), 1);
    assert_eq!((missing[0].present, missing[0].expected), (1, 2));
    let mut ends = missing[0].xbars;
    ends.sort_unstable();
    assert_eq!(ends, [gone.a.xbar, gone.b.xbar]);
}

#[test]
fn a_dead_cable_does_not_change_the_shape() {
    let ring = topology(&map("ring:n=5"));
    let cut = ring.without(&[ring.tail(0)].into());
    let grid = recognise(&cut, &TorusStatement::default()).unwrap();
    assert_eq!(grid.dimensions(), [RING(5)]);
    assert_eq!(grid.missing_cables().len(), 1);
    let mut map = map("ring:n=5");
    map.cables.remove(0);
    assert_eq!(recognised(&map).unwrap().dimensions(), [LINE(5)], "without the cable it is a line");
}

#[test]
fn what_is_no_torus_is_refused() {
    for spec in [
        "clos:hosts=128,ports=16",
        "clos:hosts=8,ports=4",
        "random:xbars=128,ports=36,hosts=1024,links=600,seed=1",
        "random:xbars=24,ports=8,hosts=24,links=40,seed=2",
        // Too few links for any shape; but these close circles that no mesh has.
        "random:xbars=24,ports=4,hosts=12,links=26,seed=2",
        "random:xbars=40,ports=6,hosts=20,links=60,seed=5",
        "xgft:h=2;m=4,6;w=1,4",
        "dragonfly:a=4,p=2,h=2",
        "hypercube:d=7",
    ] {
        let error = recognised(&map(spec)).unwrap_err().to_string();
        assert!(error.contains("port") && error.contains("cable"), "{spec}: {error}");
    }
    assert_eq!(recognised(&Map::default()), Err(NoTorus::NoXbars));
}

#[test]
fn a_tree_is_too_sparse_for_a_mesh() {
    let mut tree = map("mesh:x=5,y=5,z=5");
    // A spine with ribs: all along x, the first row along y, the first column along z.
    let at = |xbar: u32| [xbar % 5, xbar / 5 % 5, xbar / 25];
    tree.cables.retain(|cable| {
        let (a, b) = (at(cable.a.xbar), at(cable.b.xbar));
        a[0] != b[0] || (a[0] == 0 && (a[1] != b[1] || a[1] == 0))
    });
    let error = recognised(&tree).unwrap_err();
    assert!(matches!(error, NoTorus::Sparse { .. }), "{error}");
    assert!(error.to_string().starts_with("its cables fit a mesh of "), "{error}");
}

#[test]
fn a_chord_is_named() {
    for (dimensions, ends) in [
        (vec![RING(4); 3], [0, 21]),
        (vec![RING(5), RING(4), RING(3)], [0, 2]),
        (vec![RING(6), RING(5)], [7, 15]),
        (vec![LINE(4), LINE(4)], [0, 10]),
    ] {
        let mut map = grid_map(&dimensions);
        for xbar in &mut map.xbars {
            xbar.ports = 40;
        }
        let chord = Cable::new(PortRef { xbar: ends[0], port: 30 }, PortRef { xbar: ends[1], port: 30 });
        map.cables.push(chord);
        map.cables.sort_unstable();
        let error = recognised(&map).unwrap_err();
        let NoTorus::Chord { ends, dimensions: found } = error else { panic!("{dimensions:?}: {error}") };
        assert_eq!((ends, sorted(&found)), ([chord.a, chord.b], sorted(&dimensions)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// With many faults, the grid that is found has no more missing links than the true one, and each cable
    /// fits, which is checked as the grid is built.
    #[test]
    fn many_faults_are_survived(seed: u64, cut in 0..45_usize, holes in 0..4_u32) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let dimensions = [RING(6), RING(5), RING(5)];
        let mut map = grid_map(&dimensions);
        for _ in 0..cut {
            map.cables.remove(rng.random_range(0..map.cables.len()));
        }
        for _ in 0..holes {
            let gone = rng.random_range(0..map.xbars.len() as u32);
            remove_xbar(&mut map, gone);
        }
        let (map, _) = shuffled(&map, seed);
        let grid = recognised(&map).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(link_count(grid.dimensions()) <= link_count(&dimensions));
        prop_assert_eq!(sorted(grid.dimensions()), sorted(&dimensions));
    }

    /// No fabric causes a panic, and the answer is the same each time.
    #[test]
    fn any_fabric_is_answered(seed: u64) {
        let map = crate::fabrics::random(seed);
        prop_assert_eq!(recognised(&map), recognised(&map));
    }
}
