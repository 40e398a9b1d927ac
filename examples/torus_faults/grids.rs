//! Tori and meshes with rings and lines mixed, and what breaks in them.

use std::error::Error;

use mapper_fabric::generate;
use mapper_proto::map::{Fabric, PortRef};

/// A grid of three dimensions: sizes, and whether each is a ring. Dimensions of two are lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid(pub(super) [(u8, bool); 3]);

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// A cable, by its place among the map's.
    Cable(usize),
    /// A router, by its number: all its cables, and its hosts'.
    Router(u32),
}

impl Grid {
    /// The whole grid with one host a router: the generator's torus, less what closes lines into rings. Its
    /// ports 1 to 6 lead x+, x-, y+, y-, z+, z-.
    pub(super) fn fabric(self) -> Result<Fabric, Box<dyn Error>> {
        let [(x, _), (y, _), (z, _)] = self.0;
        let mut fabric = generate(&format!("torus:x={x},y={y},z={z},hosts=1"))?;
        for (dimension, (size, ring)) in self.0.into_iter().enumerate() {
            let plus = 2 * dimension as u8 + 1;
            let closes =
                |end: PortRef| size > 2 && end.port == plus && self.place(end.xbar)[dimension] + 1 == size;
            fabric.map.cables.retain(|cable| ring || !(closes(cable.a) || closes(cable.b)));
        }
        Ok(fabric)
    }

    /// A router's coordinates: X counts fastest.
    pub(super) fn place(self, router: u32) -> [u8; 3] {
        let [x, y, _] = self.0.map(|(size, _)| u32::from(size));
        [router % x, router / x % y, router / (x * y)].map(|at| at as u8)
    }
}

/// Every cable between routers, and every router.
pub(super) fn all_faults(whole: &Fabric) -> Vec<Fault> {
    let cables = (0..whole.map.cables.len()).map(Fault::Cable);
    cables.chain((0..whole.map.xbars.len() as u32).map(Fault::Router)).collect()
}

/// What is left of a fabric. Routers that are gone stand there still, without any cable.
pub(super) fn broken(whole: &Fabric, faults: &[Fault]) -> Fabric {
    let mut fabric = whole.clone();
    let gone = |router: u32| faults.contains(&Fault::Router(router));
    let mut number = 0..;
    fabric.map.cables.retain(|cable| {
        let dead = number.next().is_some_and(|number| faults.contains(&Fault::Cable(number)));
        !dead && !gone(cable.a.xbar) && !gone(cable.b.xbar)
    });
    for host in &mut fabric.map.hosts {
        host.at = host.at.filter(|at| !gone(at.xbar));
    }
    fabric
}
