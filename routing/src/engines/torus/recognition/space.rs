//! The places that xbars can be put at while it is not known yet where lines begin.

use super::super::grid::Dimension;

/// A place: coordinates modulo the size in rings, from an arbitrary origin in lines.
pub(super) type GridPlace = [u16; 3];

/// No xbar.
const NOBODY: u32 = u32::MAX;

/// Places of one to three dimensions, and the xbars that stand there.
///
/// Of a line only as many coordinates may be in use as it is long. Which these are shows only while xbars are
/// put down, so there is room for the line on both sides of the first xbar.
#[derive(Debug, Clone)]
pub(super) struct Space {
    dimensions: Vec<Dimension>,
    width: [u16; 3],
    occupants: Vec<u32>,
    /// The least and the greatest coordinate in use.
    used: [(u16, u16); 3],
    /// How many xbars are off the first one's coordinate.
    moved: [u32; 3],
}

/// What a space looked like before an xbar was put down.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    used: [(u16, u16); 3],
}

impl Space {
    pub(super) fn new(dimensions: &[Dimension]) -> Self {
        let width = std::array::from_fn(|i| match dimensions.get(i) {
            None => 1,
            Some(&Dimension { size, is_ring: true }) => u16::from(size),
            Some(&Dimension { size, is_ring: false }) => 2 * u16::from(size) - 1,
        });
        let count = width.iter().map(|&width| usize::from(width)).product();
        let mut space = Self {
            dimensions: dimensions.to_vec(),
            width,
            occupants: vec![NOBODY; count],
            used: [(0, 0); 3],
            moved: [0; 3],
        };
        space.used = space.origin().map(|at| (at, at));
        space
    }

    /// Where the first xbar goes: in the middle of lines.
    pub(super) fn origin(&self) -> GridPlace {
        std::array::from_fn(|i| match self.dimensions.get(i) {
            Some(&Dimension { size, is_ring: false }) => u16::from(size) - 1,
            _ => 0,
        })
    }

    pub(super) fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The dimensions, where lines are only as long as they are in use.
    pub(super) fn used_dimensions(&self) -> Vec<Dimension> {
        let used = self.dimensions.iter().zip(self.used);
        let shrunk = used.map(|(&d, (least, greatest))| match d.is_ring {
            true => d,
            false => Dimension { size: (greatest - least + 1) as u8, ..d },
        });
        shrunk.collect()
    }

    fn index(&self, [x, y, z]: GridPlace) -> usize {
        let [width, height, _] = self.width.map(usize::from);
        usize::from(x) + width * (usize::from(y) + height * usize::from(z))
    }

    /// The xbar that stands at a place.
    pub(super) fn occupant(&self, place: GridPlace) -> Option<u32> {
        Some(self.occupants[self.index(place)]).filter(|&xbar| xbar != NOBODY)
    }

    /// Whether an xbar may be put at a place.
    pub(super) fn is_free(&self, place: GridPlace) -> bool {
        self.occupants[self.index(place)] == NOBODY
    }

    /// The place one step from another: direction `2 * dimension`, or 1 more for a step down.
    pub(super) fn step(&self, from: GridPlace, direction: usize) -> Option<GridPlace> {
        let i = direction / 2;
        let Dimension { size, is_ring } = self.dimensions[i];
        let (size, at) = (u16::from(size), from[i]);
        let (least, greatest) = self.used[i];
        let next = match (direction.is_multiple_of(2), is_ring) {
            (true, true) => (at + 1) % size,
            (false, true) => (at + size - 1) % size,
            (true, false) if at + 1 < least + size => at + 1,
            (false, false) if at + size > greatest + 1 => at - 1,
            (_, false) => return None,
        };
        let mut place = from;
        place[i] = next;
        Some(place)
    }

    /// The direction from a place to a neighbouring one, as a bit; 0 if they are no neighbours.
    pub(super) fn direction(&self, from: GridPlace, to: GridPlace) -> u8 {
        let mut differing = (0..3).filter(|&i| from[i] != to[i]);
        let (Some(i), None) = (differing.next(), differing.next()) else { return 0 };
        let Dimension { size, is_ring } = self.dimensions[i];
        let wraps = |low: u16, high: u16| is_ring && low == 0 && high + 1 == u16::from(size);
        if to[i] == from[i] + 1 || wraps(to[i], from[i]) {
            1 << (2 * i)
        } else if from[i] == to[i] + 1 || wraps(from[i], to[i]) {
            2 << (2 * i)
        } else {
            0
        }
    }

    /// All places that are free, in order.
    pub(super) fn free(&self) -> Vec<GridPlace> {
        let range = |i: usize| match self.dimensions.get(i) {
            Some(&Dimension { size, is_ring: false }) => {
                let (least, greatest) = self.used[i];
                (greatest + 1).saturating_sub(u16::from(size))..least + u16::from(size)
            }
            _ => 0..self.width[i],
        };
        let mut free = Vec::new();
        for z in range(2) {
            for y in range(1) {
                free.extend(range(0).map(|x| [x, y, z]).filter(|&place| self.is_free(place)));
            }
        }
        free
    }

    /// Whether this direction is like an earlier one, since nothing stands off the first xbar's
    /// coordinate along it yet.
    pub(super) fn is_like_an_earlier(&self, direction: usize) -> bool {
        let i = direction / 2;
        let is_untouched = |i: usize| self.moved[i] == 0;
        let alike = |j: usize| is_untouched(j) && self.dimensions[j] == self.dimensions[i];
        is_untouched(i) && (direction % 2 == 1 || (0..i).any(alike))
    }

    /// Puts an xbar down.
    pub(super) fn put(&mut self, xbar: u32, place: GridPlace) -> Before {
        let before = Before { used: self.used };
        let (index, origin) = (self.index(place), self.origin());
        self.occupants[index] = xbar;
        for i in 0..3 {
            self.used[i] = (self.used[i].0.min(place[i]), self.used[i].1.max(place[i]));
            self.moved[i] += u32::from(place[i] != origin[i]);
        }
        before
    }

    /// Takes the xbar away that was put down last.
    pub(super) fn take(&mut self, place: GridPlace, before: Before) {
        let (index, origin) = (self.index(place), self.origin());
        self.occupants[index] = NOBODY;
        self.used = before.used;
        for i in 0..3 {
            self.moved[i] -= u32::from(place[i] != origin[i]);
        }
    }

    /// The coordinates of a place in the end, with lines that begin at 0.
    pub(super) fn coordinates(&self, place: GridPlace) -> [u8; 3] {
        std::array::from_fn(|i| match self.dimensions.get(i) {
            Some(Dimension { is_ring: false, .. }) => (place[i] - self.used[i].0) as u8,
            _ => place[i] as u8,
        })
    }
}
