//! The rules of direction order, R0 to R6: one router's choice for one aim.
//!
//! Source: the routing of a torus machine whose routers order directions rather than dimensions
//! (X+ X- Y+ Z+, then Y+ Y- Z+, then Z+ Z-), so that a frame can go round a broken link without another
//! virtual channel. The rules look one router ahead. So they alone do not prove that several faults are
//! survived: see [`super::tree`], which traces what they choose, and [`super::search`], which chooses where
//! they fail.

mod dateline;
mod dodge;
mod phases;
mod shorter_way;
mod x_links;
mod y_links;
mod z_links;

pub(super) use dateline::place_datelines;
pub(super) use dodge::after_dodge;
pub(super) use phases::Phase;
pub(super) use shorter_way::{along, wanted};

use super::heading::Heading;
use super::lattice::Lattice;
use super::regions::Regions;

/// Where frames are to get to: a destination's router, or a region of routers that is looked up as one. It is
/// a box of coordinates that does not extend across the place where they wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Aim {
    /// Its smallest coordinates.
    pub(super) first: [u8; 3],
    /// How many coordinates it has along each dimension.
    pub(super) size: [u8; 3],
}

impl Aim {
    /// One router.
    pub(super) fn router(coordinates: [u8; 3]) -> Self {
        Self { first: coordinates, size: [1; 3] }
    }

    /// Whether a coordinate along a dimension is one of its.
    pub(super) fn holds(&self, dimension: usize, at: u8) -> bool {
        at >= self.first[dimension] && at - self.first[dimension] < self.size[dimension]
    }

    /// Whether a place is inside.
    pub(super) fn contains(&self, place: [u8; 3]) -> bool {
        (0..3).all(|dimension| self.holds(dimension, place[dimension]))
    }

    /// Its first and last coordinate along a dimension.
    fn ends(&self, dimension: usize) -> (u8, u8) {
        (self.first[dimension], self.first[dimension] + (self.size[dimension] - 1))
    }
}

/// The heading that the rules choose for frames with this aim; `None` at the aim, and if the rules know no
/// way.
pub(super) fn choose(lattice: &Lattice, regions: &Regions, router: u32, aim: &Aim) -> Option<Heading> {
    let heading = wanted(lattice, router, aim)?;
    match heading.dimension() {
        0 => x_links::choose(lattice, regions, router, aim, heading),
        1 => y_links::choose(lattice, router, aim, heading),
        _ => z_links::choose(lattice, router, aim),
    }
}

/// Whether a link leads that way and does not cross its dateline: frames can take it and still turn to a
/// higher dimension.
fn is_open(lattice: &Lattice, router: u32, heading: Heading) -> bool {
    lattice.has(router, heading) && !lattice.crosses(router, heading)
}
