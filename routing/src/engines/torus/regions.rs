//! Regions: a router looks up the routers of its own region one by one, and each other region as one.

use super::lattice::Lattice;
use super::refusal::TorusRefusal;
use super::rules::Aim;

/// The fabric cut into boxes of routers.
///
/// A router has a *local* table with an entry for each router of its own region, and a *global* table with
/// one entry for each other region. It looks up what the next router does: in the local table, if the
/// destination is in its own region or the exit port leads into the destination's; else in the global one.
///
/// ```text
///    region 0   | region 1
///   S-->o-->o-->|-->o-->D     up to the boundary: one entry for the whole of region 1;
///               |             behind it: an entry for D
/// ```
///
/// Without regions the whole fabric is one, and all tables are local.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Regions {
    size: [u8; 3],
}

impl Regions {
    /// Regions of this size; those at the upper edge are smaller if it does not divide the fabric's.
    pub(super) fn new(lattice: &Lattice, size: Option<[u8; 3]>) -> Self {
        let size = size.unwrap_or(lattice.sizes);
        let clamp = |dimension: usize| match size[dimension] {
            0 => lattice.sizes[dimension],
            size => size.min(lattice.sizes[dimension]),
        };
        Self { size: [clamp(0), clamp(1), clamp(2)] }
    }

    /// Why no frame could follow these regions' tables; `None` if frames can.
    ///
    /// A frame that comes into a region from a higher y came by y-, and cannot go along X any more. One that
    /// came by z- can go neither along X nor along Y. So if regions cut a dimension, they must be one router
    /// wide in all dimensions before it.
    pub(super) fn refusal(&self, lattice: &Lattice) -> Option<TorusRefusal> {
        let cut = (0..3).rev().find(|&dimension| self.size[dimension] < lattice.sizes[dimension])?;
        let wide = (0..cut).find(|&dimension| self.size[dimension] > 1)?;
        let name = |dimension: usize| ["x", "y", "z"][dimension];
        Some(TorusRefusal::Regions { size: self.size, cut: name(cut), wide: name(wide) })
    }

    /// Whether there is only one region.
    pub(super) fn is_whole(&self, lattice: &Lattice) -> bool {
        self.size == lattice.sizes
    }

    /// The region of a place, by how many regions are before it along each dimension.
    pub(super) fn of(&self, place: [u8; 3]) -> [u8; 3] {
        [place[0] / self.size[0], place[1] / self.size[1], place[2] / self.size[2]]
    }

    /// The whole fabric as an aim.
    pub(super) fn fabric(lattice: &Lattice) -> Aim {
        Aim { first: [0; 3], size: lattice.sizes }
    }

    /// A region as something to aim at.
    pub(super) fn aim(&self, lattice: &Lattice, region: [u8; 3]) -> Aim {
        let first = [0, 1, 2].map(|dimension| region[dimension] * self.size[dimension]);
        let size = [0, 1, 2].map(|d: usize| self.size[d].min(lattice.sizes[d] - first[d]));
        Aim { first, size }
    }

    /// All regions.
    pub(super) fn all(&self, lattice: &Lattice) -> Vec<[u8; 3]> {
        let count = [0, 1, 2].map(|dimension: usize| lattice.sizes[dimension].div_ceil(self.size[dimension]));
        let rows = (0..count[2]).flat_map(|z| (0..count[1]).map(move |y| (y, z)));
        rows.flat_map(|(y, z)| (0..count[0]).map(move |x| [x, y, z])).collect()
    }
}
