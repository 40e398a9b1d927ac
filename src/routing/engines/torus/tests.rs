//! Whole and broken grids, routed and proved.

use crate::routing::engines::Settings;

use super::fabrics::{Broken, Figures, prove};

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
