//! Tests of tori that lose cables or have rows without X links. They are recognized and routed in direction
//! order, and their tables are proved.

mod faults;
#[path = "../../../examples/torus_faults/grids.rs"]
mod grids;
mod model;

use mapper_fabric::generate;
use mapper_proto::map::Fabric;
use mapper_routing::Subnet;
use mapper_routing::engines::{Engine, Proof, Settings, select};

/// The ports that lead along X in the generator's tori.
const X: [u8; 2] = [1, 2];

/// Recognizes and routes a torus, and returns how many layers it needs. Tables that fail their proof are an
/// error, too.
fn route(fabric: &Fabric) -> Result<u8, String> {
    let subnet = Subnet::new(fabric, None).unwrap();
    let selection = select(&subnet, &[Engine::Torus], &Settings::default(), Proof::Required);
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
