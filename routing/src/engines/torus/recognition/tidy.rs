//! Chooses among places that fit equally well, by the rule that a hole explains the links that are missing
//! around it.
//!
//! ```text
//!     a---b---c        d hangs on a and e only. It may stand in the middle, too; but then its links to
//!     |       |        b and c would be missing as well, and nothing would explain why.
//!     d---e---f
//! ```

use super::super::grid::{Dimension, Sense};
use super::frame::Placed;
use super::links::Links;

/// No xbar.
const NOBODY: u32 = u32::MAX;

/// Moves xbars into holes where fewer of their links are missing, until there is none to move.
pub(super) fn tidy(links: &Links, placed: Placed) -> Placed {
    let mut room = Room::new(placed);
    // After each move fewer links between xbars are missing, so this ends.
    let mut moved = true;
    while std::mem::take(&mut moved) {
        for hole in room.holes() {
            if let Some(xbar) = room.better_here(links, hole) {
                room.put(xbar, hole);
                moved = true;
            }
        }
    }
    (room.dimensions, room.coordinates)
}

struct Room {
    dimensions: Vec<Dimension>,
    coordinates: Vec<[u8; 3]>,
    occupants: Vec<u32>,
}

impl Room {
    fn new((dimensions, coordinates): Placed) -> Self {
        let count = dimensions.iter().map(|d| usize::from(d.size)).product();
        let mut room = Self { dimensions, coordinates, occupants: vec![NOBODY; count] };
        for xbar in 0..room.coordinates.len() {
            let index = room.index(room.coordinates[xbar]);
            room.occupants[index] = xbar as u32;
        }
        room
    }

    fn index(&self, at: [u8; 3]) -> usize {
        let digits = self.dimensions.iter().zip(at).rev();
        digits.fold(0, |index, (dimension, at)| index * usize::from(dimension.size) + usize::from(at))
    }

    fn holes(&self) -> Vec<[u8; 3]> {
        let place = |index: usize| {
            let mut rest = index;
            std::array::from_fn(|i| {
                let size = self.dimensions.get(i).map_or(1, |d| usize::from(d.size));
                let at = rest % size;
                rest /= size;
                at as u8
            })
        };
        let indices = (0..self.occupants.len()).filter(|&index| self.occupants[index] == NOBODY);
        indices.map(place).collect()
    }

    /// The xbars around a place, each with the direction that leads from there to it, as a bit.
    fn around(&self, place: [u8; 3]) -> Vec<(u32, u8)> {
        let mut around = Vec::new();
        for (i, dimension) in self.dimensions.iter().enumerate() {
            for way in Sense::BOTH {
                let Some(at) = dimension.step(place[i], way) else { continue };
                let mut next = place;
                next[i] = at;
                around.push((
                    self.occupants[self.index(next)],
                    1 << (2 * i + usize::from(way == Sense::Minus)),
                ));
            }
        }
        around.retain(|&(xbar, _)| xbar != NOBODY);
        around
    }

    /// An xbar all of whose links lead to a hole's neighbours, and that would miss fewer links there.
    fn better_here(&self, links: &Links, hole: [u8; 3]) -> Option<u32> {
        let around = self.around(hole);
        let mut others: Vec<u32> =
            around.iter().flat_map(|&(near, _)| links.of_xbar(near)).copied().collect();
        others.sort_unstable();
        others.dedup();
        others.into_iter().find(|&xbar| {
            let fits = |(i, near): (usize, &u32)| {
                let directions =
                    around.iter().filter(|&(other, _)| other == near).fold(0, |all, (_, bit)| all | bit);
                directions & links.directions(xbar, i) != 0
            };
            let neighbours_here = around.iter().filter(|&&(near, _)| near != xbar).count();
            neighbours_here < self.around(self.coordinates[xbar as usize]).len()
                && links.of_xbar(xbar).iter().enumerate().all(fits)
        })
    }

    fn put(&mut self, xbar: u32, place: [u8; 3]) {
        let (from, to) = (self.index(self.coordinates[xbar as usize]), self.index(place));
        self.occupants[from] = NOBODY;
        self.occupants[to] = xbar;
        self.coordinates[xbar as usize] = place;
    }
}
