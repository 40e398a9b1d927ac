//! A grid as flat arrays, as the rules look at it: neighbours by heading, distances, datelines.

use crate::Topology;

use super::grid::{Grid, Sense};
use super::heading::Heading;

/// No router: the cables there are missing, or a line ends.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A grid as flat arrays.
#[derive(Debug, Clone)]
pub(super) struct Lattice {
    /// How many coordinates each dimension has; 1 where there is no dimension.
    pub(super) sizes: [u8; 3],
    /// Which dimensions are rings.
    pub(super) rings: [bool; 3],
    /// In each ring, the coordinate from which a step towards higher ones crosses the dateline.
    pub(super) datelines: [u8; 3],
    coordinates: Vec<[u8; 3]>,
    /// Neighbours: `next[6 * router + heading]`.
    next: Vec<u32>,
    /// Routers by place, X fastest.
    places: Vec<u32>,
    /// Whether any z link of a column is missing: `column[x + size_x * y]`.
    broken_columns: Vec<bool>,
}

impl Lattice {
    /// The lattice of a grid. Its datelines are where coordinates wrap.
    pub(super) fn new(grid: &Grid, topology: &Topology) -> Self {
        let mut sizes = [1; 3];
        let mut rings = [false; 3];
        for (i, dimension) in grid.dimensions().iter().enumerate() {
            sizes[i] = dimension.size;
            rings[i] = dimension.is_ring;
        }
        let routers = topology.xbar_count() as u32;
        let mut next = vec![NOWHERE; 6 * routers as usize];
        for router in 0..routers {
            for heading in &Heading::ALL[..2 * grid.dimensions().len()] {
                let way = if heading.is_plus() { Sense::Plus } else { Sense::Minus };
                let mut channels = grid.channels(router, heading.dimension(), way).iter();
                if let Some(&channel) = channels.find(|&&channel| !topology.is_dead(channel)) {
                    next[6 * router as usize + heading.index()] = topology.head(channel).xbar;
                }
            }
        }
        let mut lattice = Self {
            sizes,
            rings,
            datelines: sizes.map(|size| size - 1),
            coordinates: (0..routers).map(|router| grid.coordinates(router)).collect(),
            next,
            places: Vec::new(),
            broken_columns: Vec::new(),
        };
        let [size_x, size_y, size_z] = sizes;
        let rows = (0..size_z).flat_map(|z| (0..size_y).map(move |y| (y, z)));
        let places = rows.flat_map(|(y, z)| (0..size_x).map(move |x| [x, y, z]));
        lattice.places = places.map(|place| grid.xbar_at(place).unwrap_or(NOWHERE)).collect();
        let columns = (0..size_y).flat_map(|y| (0..size_x).map(move |x| (x, y)));
        lattice.broken_columns = columns.map(|(x, y)| lattice.breaks_in_column(x, y)).collect();
        lattice
    }

    fn breaks_in_column(&self, x: u8, y: u8) -> bool {
        (0..self.sizes[2]).any(|z| match self.at([x, y, z]) {
            None => true,
            Some(router) => self.is_missing(router, Heading::Z_PLUS),
        })
    }

    /// The routers, X fastest, [`NOWHERE`] where one is missing.
    pub(super) fn places(&self) -> &[u32] {
        &self.places
    }

    /// How many routers there are.
    pub(super) fn router_count(&self) -> usize {
        self.coordinates.len()
    }

    /// A router's coordinates.
    pub(super) fn coordinates(&self, router: u32) -> [u8; 3] {
        self.coordinates[router as usize]
    }

    /// The router at a place.
    pub(super) fn at(&self, [x, y, z]: [u8; 3]) -> Option<u32> {
        let [size_x, size_y, _] = self.sizes.map(usize::from);
        let at = usize::from(x) + size_x * (usize::from(y) + size_y * usize::from(z));
        self.places.get(at).copied().filter(|&router| router != NOWHERE)
    }

    /// The router that a heading leads to.
    pub(super) fn next(&self, router: u32, heading: Heading) -> Option<u32> {
        let next = self.next[6 * router as usize + heading.index()];
        (next != NOWHERE).then_some(next)
    }

    /// Whether a link leads that way.
    pub(super) fn has(&self, router: u32, heading: Heading) -> bool {
        self.next(router, heading).is_some()
    }

    /// The coordinate one step on, if the dimension goes on there.
    pub(super) fn step(&self, coordinate: u8, heading: Heading) -> Option<u8> {
        let dimension = heading.dimension();
        let (size, ring) = (self.sizes[dimension], self.rings[dimension]);
        match (heading.is_plus(), coordinate) {
            (true, at) if at + 1 < size => Some(at + 1),
            (true, _) => ring.then_some(0),
            (false, 0) => ring.then(|| size - 1),
            (false, at) => Some(at - 1),
        }
    }

    /// Whether a link that belongs there is missing, alone or together with the router behind it.
    pub(super) fn is_missing(&self, router: u32, heading: Heading) -> bool {
        let coordinate = self.coordinates(router)[heading.dimension()];
        !self.has(router, heading) && self.step(coordinate, heading).is_some()
    }

    /// Whether a step crosses a dateline.
    pub(super) fn crosses(&self, router: u32, heading: Heading) -> bool {
        let dimension = heading.dimension();
        let coordinate = self.coordinates(router)[dimension];
        self.crosses_at(coordinate, heading)
    }

    /// Whether a step from a coordinate crosses a dateline.
    pub(super) fn crosses_at(&self, coordinate: u8, heading: Heading) -> bool {
        let dimension = heading.dimension();
        if !self.rings[dimension] {
            return false;
        }
        let dateline = self.datelines[dimension];
        if heading.is_plus() {
            coordinate == dateline
        } else {
            coordinate == if dateline + 1 == self.sizes[dimension] { 0 } else { dateline + 1 }
        }
    }

    /// The routers at which the rules may choose otherwise than by default: those that miss a link, those
    /// with such a neighbour along X or Y, and those whose column is broken. The rules look no farther.
    pub(super) fn troubled(&self) -> Vec<u32> {
        let misses = |router: u32| Heading::ALL.into_iter().any(|heading| self.is_missing(router, heading));
        let near = |router: u32| {
            let beside = Heading::ALL[..4].iter().filter_map(|&heading| self.next(router, heading));
            beside.chain([router]).any(misses)
        };
        let all = 0..self.router_count() as u32;
        all.filter(|&router| self.has_broken_column(router) || near(router)).collect()
    }

    /// Whether any z link of a router's column is missing.
    pub(super) fn has_broken_column(&self, router: u32) -> bool {
        let [x, y, _] = self.coordinates(router).map(usize::from);
        self.broken_columns[x + usize::from(self.sizes[0]) * y]
    }

    /// Steps from one coordinate to another in a direction; none if a line ends before.
    pub(super) fn distance(&self, from: u8, to: u8, heading: Heading) -> Option<u8> {
        let (ahead, behind) = if heading.is_plus() { (to, from) } else { (from, to) };
        match (ahead >= behind, self.rings[heading.dimension()]) {
            (true, _) => Some(ahead - behind),
            (false, true) => Some(self.sizes[heading.dimension()] - (behind - ahead)),
            (false, false) => None,
        }
    }
}
