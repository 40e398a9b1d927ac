//! Whole and broken grids, routed and proved.

use std::collections::VecDeque;

use mapper_proto::map::PortRef;
use proptest::prelude::*;

use crate::Subnet;
use crate::engines::{Routing, Settings};

use super::axes::Axes;
use super::engine::{closes_a_ring_by_any_name, compute_as_named, compute_on, fabric};
use super::fabrics::{Broken, Figures, prove};
use super::heading::Heading;
use super::lattice::Lattice;
use super::rules::Phase;
use super::statement::TorusStatement;
use super::trees::TorusTrees;

const RING: bool = true;
const LINE: bool = false;

fn figures(broken: &Broken) -> Figures {
    let (subnet, routing) = broken.route(&Settings::default()).unwrap();
    prove(&subnet, &routing)
}

fn with_regions(regions: [u8; 3]) -> Settings {
    let torus = TorusStatement { regions: Some(regions.to_vec()), ..TorusStatement::default() };
    Settings { torus, ..Settings::default() }
}

#[test]
fn routes_on_whole_grids_are_shortest_and_free_of_deadlock() {
    let grids: [(&[(u8, bool)], u8); 12] = [
        (&[(4, RING)], 1),
        (&[(7, RING)], 2),
        (&[(9, LINE)], 1),
        (&[(4, RING), (5, RING)], 2),
        (&[(4, LINE), (5, RING)], 2),
        (&[(4, RING), (4, RING), (4, RING)], 2),
        (&[(5, RING), (4, RING), (3, RING)], 2),
        (&[(5, LINE), (4, LINE), (3, LINE)], 1),
        (&[(5, LINE), (4, RING), (3, RING)], 2),
        (&[(3, RING), (3, RING), (3, RING)], 1),
        (&[(2, LINE), (2, LINE), (2, LINE)], 1),
        (&[(6, RING), (5, RING), (5, RING)], 3),
    ];
    for (dimensions, layers) in grids {
        let figures = figures(&Broken::new(dimensions, 1));
        assert_eq!(figures.steps, figures.shortest, "{dimensions:?}");
        assert!(figures.layers <= layers, "{dimensions:?} takes {} layers", figures.layers);
    }
}

#[test]
fn one_layer_is_too_few_in_a_long_ring_whatever_the_axes_are_called() {
    let one = Settings { max_layers: Some(1), ..Settings::default() };
    let grids: [&[(u8, bool)]; 5] = [
        &[(5, RING)],
        &[(3, LINE), (6, RING)],
        &[(5, RING), (3, RING), (2, LINE)],
        &[(3, RING), (3, LINE), (7, RING)],
        &[(6, RING), (5, RING), (5, RING)],
    ];
    for dimensions in grids {
        let broken = Broken::new(dimensions, 1);
        let subnet = broken.subnet();
        let grid = broken.grid(&subnet);
        assert!(closes_a_ring_by_any_name(&subnet, &one, &grid), "{dimensions:?}");
        for axes in Axes::others(&grid) {
            let renamed = axes.rename(&grid, &subnet.topology).unwrap();
            assert!(compute_as_named(&subnet, &one, &renamed).is_err(), "{dimensions:?} as {axes}");
        }
        let why = compute_on(&subnet, &one, &grid).unwrap_err().why.to_string();
        assert!(why.contains("more than the 1 layers"), "{dimensions:?}: {why}");
    }
    let short = Broken::new(&[(4, RING), (4, RING)], 1);
    let subnet = short.subnet();
    let grid = short.grid(&subnet);
    assert!(!closes_a_ring_by_any_name(&subnet, &one, &grid));
}

/// 6x5x5 with 16 hosts a router: the routes over the busiest channel are within one part in 200 of what
/// shortest routes must put on the average X channel, 28,800.
#[test]
fn the_busiest_channel_is_hardly_busier_than_it_must_be() {
    let figures = figures(&Broken::new(&[(6, RING), (5, RING), (5, RING)], 16));
    assert!(figures.busiest <= 28_928, "{}", figures.busiest);
    assert!(figures.layers <= 3);
}

#[test]
fn tori_survive_each_single_fault() {
    for dimensions in [[(4, RING), (4, RING), (4, RING)], [(5, RING), (4, RING), (3, RING)]] {
        let whole = Broken::new(&dimensions, 1);
        for cable in (0..whole.fabric.map.cables.len()).step_by(5) {
            let mut broken = Broken::new(&dimensions, 1);
            broken.cut_cable(cable);
            figures(&broken);
        }
        for xbar in (0..whole.fabric.map.xbars.len() as u32).step_by(7) {
            let mut broken = Broken::new(&dimensions, 1);
            broken.cut_xbar(xbar);
            figures(&broken);
        }
    }
}

#[test]
fn a_pair_that_cannot_be_connected_is_named_with_the_links_to_blame() {
    let broken = Broken::new(&[(2, LINE), (2, LINE), (3, LINE)], 1).cut([0, 0, 1], "z-");
    assert_eq!(
        broken.route(&Settings::default()).unwrap_err(),
        "the rules know no way from xbar 4 (0,0,1) 'n0-0-1' to xbar 0 (0,0,0) 'n0-0-0'; missing there: z- of \
         xbar 4 (0,0,1) 'n0-0-1'; 8 such pairs in all"
    );
}

#[test]
fn other_names_for_the_axes_are_found_and_told() {
    let broken = Broken::new(&[(2, LINE), (2, LINE), (3, LINE)], 1).cut([0, 0, 1], "z-");
    let subnet = broken.subnet();
    let grid = broken.grid(&subnet);
    let routing = compute_on(&subnet, &Settings::default(), &grid).unwrap();
    prove(&subnet, &routing);
    assert_eq!(routing.notes[0], "torus: served with the axes x, y, z for x, z, y");
    // If a user states which dimension is which, the names are not changed.
    let torus = TorusStatement { sizes: Some(vec![2, 2, 3]), ..TorusStatement::default() };
    let error = compute_on(&subnet, &Settings { torus, ..Settings::default() }, &grid).unwrap_err();
    assert!(error.why.to_string().starts_with("the rules know no way"), "{}", error.why);
}

/// Puts a second cable beside each cable.
fn double(broken: &mut Broken) {
    for cable in broken.fabric.map.cables.clone() {
        let beside = |at: PortRef| PortRef { port: at.port + 20, ..at };
        let cable = mapper_proto::map::Cable { a: beside(cable.a), b: beside(cable.b) };
        broken.fabric.map.cables.push(cable);
    }
    for xbar in &mut broken.fabric.map.xbars {
        xbar.ports = 40;
    }
}

#[test]
fn parallel_cables_share_the_hosts() {
    let mut broken = Broken::new(&[(3, LINE)], 8);
    double(&mut broken);
    let figures = figures(&broken);
    assert_eq!(figures.busiest, 8 * 16 / 2);
}

#[test]
fn routers_outside_a_region_look_it_up_as_one() {
    let dimensions = [(6, RING), (5, RING), (5, RING)];
    let broken = Broken::new(&dimensions, 1);
    for regions in [[2, 5, 5], [3, 5, 5], [1, 2, 5], [1, 1, 2], [1, 1, 1]] {
        let settings = with_regions(regions);
        let (subnet, routing) = broken.route(&settings).unwrap();
        let figures = prove(&subnet, &routing);
        // Regions that extend farther than half a ring lose the shorter way for some routes.
        assert!(figures.steps <= figures.shortest * 103 / 100, "{regions:?}");
        let region = |xbar: u32| {
            let place = broken.place(xbar);
            [0, 1, 2].map(|i| place[i] / regions[i])
        };
        for (one, other) in (0..150).flat_map(|one| (0..one).map(move |other| (one, other))) {
            if region(one) != region(other) {
                continue;
            }
            let slots = [one, other].map(|xbar| subnet.destinations.slot_of_xbar(xbar));
            for router in (0..150).filter(|&router| region(router) != region(one)) {
                let ports = slots.map(|slot| routing.tables.port(router, slot));
                assert_eq!(ports[0], ports[1], "{regions:?}: router {router} to {one} and {other}");
            }
        }
    }
    let settings = with_regions([2, 2, 2]);
    assert!(broken.route(&settings).unwrap_err().starts_with("regions of 2 x 2 x 2 cannot be routed as one"));
}

/// The quick way must give the same trees, and dependencies that include all real ones.
#[test]
fn the_quick_way_makes_the_same_trees() {
    for (dimensions, cuts) in [
        ([(5, RING), (4, RING), (4, RING)], vec![]),
        ([(5, RING), (4, RING), (4, RING)], vec![([1, 1, 1], "x+"), ([2, 2, 2], "z+"), ([0, 3, 0], "y+")]),
        ([(4, LINE), (4, LINE), (5, RING)], vec![([1, 1, 1], "x+"), ([2, 2, 2], "y+"), ([2, 2, 3], "z-")]),
        ([(4, RING), (4, LINE), (4, LINE)], vec![([1, 3, 1], "x+"), ([1, 1, 2], "y+")]),
    ] {
        let broken = Broken::new(&dimensions, 1);
        let broken = cuts.into_iter().fold(broken, |broken, (place, heading)| broken.cut(place, heading));
        let subnet = broken.subnet();
        let lattice = Lattice::new(&broken.grid(&subnet), &subnet.topology);
        let mut fabric = fabric(&subnet, &Settings::default(), &lattice);
        let slow = TorusTrees::new(&fabric);
        fabric.is_quick = true;
        let quick = TorusTrees::new(&fabric);
        assert_eq!(slow.lost, quick.lost);
        let routers = lattice.router_count() as u32;
        for (source, end) in (0..routers).flat_map(|one| (0..routers).map(move |other| (one, other))) {
            assert_eq!(slow.heading(source, end), quick.heading(source, end), "{source} to {end}");
            if slow.heading(source, end).is_some() {
                assert_eq!(slow.class(source, end), quick.class(source, end), "{source} to {end}");
            }
        }
        assert!(quick.dependencies.holds(&slow.dependencies));
    }
}

/// Which routers a frame can get to from one, by any route of R0 and R2: forwards, state by state.
fn within_reach(lattice: &Lattice, source: u32) -> Vec<bool> {
    let mut seen = vec![false; 3 * lattice.router_count()];
    let mut queue = VecDeque::from([(source, Phase::A)]);
    while let Some((router, phase)) = queue.pop_front() {
        if std::mem::replace(&mut seen[3 * router as usize + phase as usize], true) {
            continue;
        }
        for heading in Heading::ALL {
            if let Some(next) = lattice.next(router, heading)
                && let Some(after) = phase.after(heading, lattice.crosses(router, heading))
            {
                queue.push_back((next, after));
            }
        }
    }
    seen.chunks(3).map(|states| states.contains(&true)).collect()
}

/// The tables of a grid, and those after a cable failed while they were in force.
fn before_and_after(whole: &Broken, cable: usize) -> Option<[(Subnet, Routing); 2]> {
    let before = whole.route(&Settings::default()).ok()?;
    let settings = Settings { previous: Some(before.1.tables.clone()), ..Settings::default() };
    let mut broken = whole.clone();
    broken.cut_cable(cable);
    let after = broken.route(&settings).ok()?;
    prove(&after.0, &after.1);
    // Tables that were in force do not matter where the rules leave no choice.
    let reassigned = broken.route(&Settings { reassign: true, ..settings }).ok()?;
    let anew = broken.route(&Settings::default()).ok()?;
    assert_eq!((reassigned.1.tables, &reassigned.1.layers), (anew.1.tables, &after.1.layers));
    Some([before, after])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// If one of several parallel cables fails, only entries that name it change.
    #[test]
    fn entries_by_other_cables_stay(
        sizes in prop::array::uniform3((2_u8..5, any::<bool>())),
        cable in any::<prop::sample::Index>(),
    ) {
        let mut whole = Broken::new(&sizes, 2);
        double(&mut whole);
        let cable = cable.index(whole.fabric.map.cables.len());
        let dead = whole.fabric.map.cables[cable];
        let Some([(subnet, before), (_, after)]) = before_and_after(&whole, cable) else {
            return Err(TestCaseError::fail("a grid without broken links is refused"));
        };
        for xbar in 0..subnet.topology.xbar_count() as u32 {
            for slot in 0..subnet.destinations.slot_count() as u32 {
                let (was, is) = (before.tables.port(xbar, slot), after.tables.port(xbar, slot));
                let died = [dead.a, dead.b].contains(&PortRef { xbar, port: was });
                prop_assert_eq!(was != is, died, "xbar {}, slot {}: {} and {}", xbar, slot, was, is);
            }
        }
    }

    /// If a link fails, only routers at which the rules look at it change entries, unless a destination's
    /// routes are searched.
    #[test]
    fn entries_stay_where_the_rules_see_no_broken_link(
        sizes in prop::array::uniform3((2_u8..6, any::<bool>())),
        cable in any::<prop::sample::Index>(),
    ) {
        let whole = Broken::new(&sizes, 1);
        let cable = cable.index(whole.fabric.map.cables.len());
        let Some([(_, before), (subnet, after)]) = before_and_after(&whole, cable) else { return Ok(()) };
        if after.notes.iter().any(|note| note.contains("searched routes")) {
            return Ok(());
        }
        let mut broken = whole.clone();
        broken.cut_cable(cable);
        let troubled = broken.lattice().troubled();
        for xbar in (0..subnet.topology.xbar_count() as u32).filter(|xbar| !troubled.contains(xbar)) {
            for slot in 0..subnet.destinations.slot_count() as u32 {
                prop_assert_eq!(before.tables.port(xbar, slot), after.tables.port(xbar, slot));
            }
        }
    }

    #[test]
    fn threads_change_nothing(
        sizes in prop::array::uniform3((2_u8..5, any::<bool>())),
        cable in any::<prop::sample::Index>(),
    ) {
        let mut broken = Broken::new(&sizes, 1);
        broken.cut_cable(cable.index(broken.fabric.map.cables.len()));
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let routed = pool.install(|| broken.route(&Settings::default()));
            routed.map(|(_, routing)| (routing.tables, routing.layers))
        };
        prop_assert_eq!(on(1), on(2));
    }

    /// Whatever is broken, each pair that R0 and R2 can connect is connected, and all tables that are
    /// returned are free of loops and circles.
    #[test]
    fn every_pair_that_the_rules_can_connect_is_connected(
        sizes in prop::array::uniform3((2_u8..5, any::<bool>())),
        cables in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
        xbars in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let mut broken = Broken::new(&sizes, 1);
        for cable in cables {
            if !broken.fabric.map.cables.is_empty() {
                broken.cut_cable(cable.index(broken.fabric.map.cables.len()));
            }
        }
        for xbar in xbars {
            broken.cut_xbar(xbar.index(broken.fabric.map.xbars.len()) as u32);
        }
        let subnet = broken.subnet();
        let lattice = Lattice::new(&broken.grid(&subnet), &subnet.topology);
        let fabric = fabric(&subnet, &Settings::default(), &lattice);
        let trees = TorusTrees::new(&fabric);
        for source in 0..lattice.router_count() as u32 {
            let reach = within_reach(&lattice, source);
            for end in (0..lattice.router_count() as u32).filter(|&end| fabric.wants(source, end)) {
                prop_assert!(!reach[end as usize] || trees.heading(source, end).is_some());
            }
        }
        if let Ok((subnet, routing)) = broken.route(&Settings::default()) {
            prove(&subnet, &routing);
        }
    }
}
