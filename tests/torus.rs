//! Tori that lose cables or have rows without X links: found, routed in direction order, proved.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mapper::routing::Subnet;
use mapper::routing::engines::{Engine, Settings, select};
use mapper_proto::map::Fabric;
use mapper_sim::topology::generate;

/// Ports 1 and 2 lead along X in the generator's tori.
const X: [u8; 2] = [1, 2];

/// Finds and routes a torus; tables that fail their proof are an error, too. Gives the layers.
fn route(fabric: &Fabric) -> Result<u8, String> {
    let subnet = Subnet::new(fabric, None).unwrap();
    let selection = select(&subnet, &[Engine::Torus], &Settings::default(), false);
    selection.map(|selection| selection.routing.layers.count).map_err(|refused| format!("{refused:?}"))
}

#[test]
fn rows_without_x_links_are_served() {
    for (sizes, (x, y, z)) in [("x=5,y=4,z=3", (5, 4, 3)), ("x=6,y=5,z=5", (6, 5, 5))] {
        for row in [0, y * z - 1] {
            let mut fabric = generate(&format!("torus:{sizes},hosts=1")).unwrap();
            let before = fabric.map.cables.len();
            fabric.map.cables.retain(|cable| !(X.contains(&cable.a.port) && cable.a.xbar / x == row));
            assert_eq!(before - fabric.map.cables.len(), x as usize);
            let layers = route(&fabric).unwrap();
            assert!(layers <= 4, "{sizes} without the X links of row {row}: {layers} layers");
        }
    }
}

/// The ring that a cable is part of: its dimension, and the place of the ring in the other two.
fn ring(fabric: &Fabric, cable: usize, [x, y]: [u32; 2]) -> (usize, [u32; 3]) {
    let end = fabric.map.cables[cable].a;
    let dimension = usize::from(end.port - 1) / 2;
    let mut place = [end.xbar % x, end.xbar / x % y, end.xbar / (x * y)];
    place[dimension] = 0;
    (dimension, place)
}

/// Two cables at a time, a sample of all pairs. The proof is part of the choice of an engine. Only where
/// both are of one ring, which falls apart, may there be pairs that direction order cannot connect.
#[test]
fn two_lost_cables_in_two_rings_do_no_harm() {
    for (sizes, rings) in [("x=4,y=4,z=4", [4, 4]), ("x=5,y=4,z=3", [5, 4])] {
        let whole = generate(&format!("torus:{sizes},hosts=1")).unwrap();
        let count = whole.map.cables.len();
        let pairs = (0..count).flat_map(|second| (0..second).map(move |first| (first, second)));
        for (first, second) in pairs.step_by(149) {
            let mut fabric = whole.clone();
            fabric.map.cables.remove(second);
            fabric.map.cables.remove(first);
            if let Err(why) = route(&fabric) {
                let [one, other] = [first, second].map(|cable| ring(&whole, cable, rings));
                assert_eq!(one, other, "{sizes} without cables {first} and {second}: {why}");
                assert!(why.contains("missing there"), "{why}");
            }
        }
    }
}
