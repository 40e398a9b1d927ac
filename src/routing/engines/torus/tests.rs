//! Whole and broken grids, routed and proved.

use crate::routing::engines::Settings;

use super::fabrics::{Broken, Figures, prove};
use super::lattice::Lattice;
use super::trees::Trees;

const RING: bool = true;
const LINE: bool = false;

fn figures(broken: &Broken) -> Figures {
    let (subnet, routing) = broken.route(&Settings::default()).unwrap();
    prove(&subnet, &routing)
}

#[test]
fn routes_on_whole_grids_are_shortest_and_free_of_deadlock() {
    let grids: [(&[(u8, bool)], u8); 12] = [
        (&[(4, RING)], 2),
        (&[(7, RING)], 2),
        (&[(9, LINE)], 1),
        (&[(4, RING), (5, RING)], 4),
        (&[(4, LINE), (5, RING)], 2),
        (&[(4, RING), (4, RING), (4, RING)], 8),
        (&[(5, RING), (4, RING), (3, RING)], 4),
        (&[(5, LINE), (4, LINE), (3, LINE)], 1),
        (&[(5, LINE), (4, RING), (3, RING)], 2),
        (&[(3, RING), (3, RING), (3, RING)], 1),
        (&[(2, LINE), (2, LINE), (2, LINE)], 1),
        (&[(6, RING), (5, RING), (5, RING)], 4),
    ];
    for (dimensions, layers) in grids {
        let figures = figures(&Broken::new(dimensions, 1));
        println!("{dimensions:?} {figures:?}");
        assert_eq!(figures.steps, figures.shortest, "{dimensions:?}");
        //assert!(figures.layers <= layers, "{dimensions:?} take {} layers", figures.layers);
    }
}

fn cables(broken: &Broken) -> usize {
    broken.fabric.map.cables.len()
}

/// What came of many broken grids.
#[derive(Debug, Default)]
struct Share {
    fabrics: usize,
    routed: usize,
    steps: usize,
    shortest: usize,
    layers: u8,
}

impl Share {
    fn add(&mut self, broken: &Broken) {
        self.fabrics += 1;
        if let Ok((subnet, routing)) = broken.route(&Settings::default()) {
            let figures = prove(&subnet, &routing);
            self.routed += 1;
            self.steps += figures.steps;
            self.shortest += figures.shortest;
            self.layers = self.layers.max(figures.layers);
        }
    }
}

#[test]
fn tori_survive_each_single_fault() {
    for dimensions in [[(4, RING), (4, RING), (4, RING)], [(5, RING), (4, RING), (3, RING)]] {
        let whole = Broken::new(&dimensions, 1);
        let mut share = Share::default();
        for cable in 0..cables(&whole) {
            let mut broken = Broken::new(&dimensions, 1);
            broken.cut_cable(cable);
            share.add(&broken);
        }
        println!("{dimensions:?} single cables {share:?}");
        let mut share = Share::default();
        for xbar in 0..whole.fabric.map.xbars.len() as u32 {
            let mut broken = Broken::new(&dimensions, 1);
            broken.cut_xbar(xbar);
            share.add(&broken);
        }
        println!("{dimensions:?} single xbars {share:?}");
    }
}

#[test]
fn double_faults() {
    for dimensions in [[(3, RING), (3, RING), (3, RING)], [(4, LINE), (3, RING), (3, RING)], [(3, LINE), (3, LINE), (3, LINE)]] {
        let whole = Broken::new(&dimensions, 1);
        let mut share = Share::default();
        let mut reasons = std::collections::BTreeMap::<String, usize>::new();
        for cable in 0..cables(&whole) {
            for other in 0..cable {
                let mut broken = Broken::new(&dimensions, 1);
                broken.cut_cable(cable);
                broken.cut_cable(other);
                share.add(&broken);
                if let Err(why) = broken.route(&Settings::default()) {
                    *reasons.entry(why).or_default() += 1;
                }
            }
        }
        println!("{dimensions:?} double cables {share:?}");
        for (why, count) in reasons.iter().take(5) {
            println!("   {count} {why}");
        }
    }
}

#[test]
fn regions_work() {
    for regions in [[2, 0, 0], [3, 0, 0], [1, 2, 0], [1, 1, 2], [1, 1, 1], [2, 2, 2]] {
        let broken = Broken::new(&[(6, RING), (5, RING), (5, RING)], 1);
        let settings = Settings { regions: Some(regions), ..Settings::default() };
        match broken.route(&settings) {
            Ok((subnet, routing)) => println!("{regions:?} {:?}", prove(&subnet, &routing)),
            Err(why) => println!("{regions:?} {why}"),
        }
    }
}

#[test]
fn large() {
    let broken = Broken::new(&[(16, RING), (16, RING), (16, RING)], 1);
    let subnet = broken.subnet();
    let grid = broken.grid(&subnet);
    for _ in 0..3 {
        let start = std::time::Instant::now();
        let routing = super::compute(&subnet, &Settings::default(), &grid).unwrap();
        println!("16x16x16: {:?}, {} layers {:?}", start.elapsed(), routing.layers.count, routing.notes);
    }
    let broken = broken.cut([3, 3, 3], "x+");
    let subnet = broken.subnet();
    let grid = broken.grid(&subnet);
    for _ in 0..3 {
        let start = std::time::Instant::now();
        let routing = super::compute(&subnet, &Settings::default(), &grid).unwrap();
        println!("16x16x16 broken: {:?}, {} layers {:?}", start.elapsed(), routing.layers.count, routing.notes);
    }
}

/// The quick way must come to the same trees, and to dependencies that hold all that there are.
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
        let mut fabric = super::engine::fabric(&subnet, &Settings::default(), &lattice);
        let slow = Trees::new(&fabric);
        fabric.is_quick = true;
        let quick = Trees::new(&fabric);
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
