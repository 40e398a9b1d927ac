//! A torus or mesh as coordinates: where each xbar stands, and which channels lead which way.

use std::fmt;

use mapper_proto::map::PortRef;

use crate::Topology;
use mapper_fabric::names::Names;

/// A direction along a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sense {
    /// Towards higher coordinates.
    Plus,
    /// Towards lower coordinates.
    Minus,
}

impl Sense {
    /// Both directions.
    pub const BOTH: [Self; 2] = [Self::Plus, Self::Minus];

    /// The opposite direction.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Plus => Self::Minus,
            Self::Minus => Self::Plus,
        }
    }
}

/// One dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dimension {
    /// How many coordinates it has, at least 2; at least 3 in a ring. Two xbars with several cables
    /// between them are a line with parallel cables.
    pub size: u8,
    /// Whether the last coordinate is cabled to the first, anywhere.
    pub is_ring: bool,
}

impl Dimension {
    /// The coordinate one step further, unless the end of a line is reached.
    pub const fn step(self, from: u8, way: Sense) -> Option<u8> {
        match way {
            Sense::Plus if from + 1 < self.size => Some(from + 1),
            Sense::Plus if self.is_ring => Some(0),
            Sense::Minus if from > 0 => Some(from - 1),
            Sense::Minus if self.is_ring => Some(self.size - 1),
            _ => None,
        }
    }
}

/// Coordinates that do not fit a fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GridError {
    /// The dimensions are impossible.
    Shape(Vec<Dimension>),
    /// There are not as many places as xbars.
    Count {
        /// How many places are given.
        places: usize,
        /// How many xbars there are.
        xbars: usize,
    },
    /// A place is outside the grid.
    Outside {
        /// The xbar.
        xbar: u32,
        /// Its place.
        at: [u8; 3],
        /// The grid's dimensions.
        dimensions: Vec<Dimension>,
    },
    /// Two xbars are at one place.
    PlaceTwice {
        /// The xbars.
        xbars: [u32; 2],
        /// Their place.
        at: [u8; 3],
    },
    /// A cable joins xbars that are not neighbours.
    Misfit {
        /// The ports that it joins.
        ends: [PortRef; 2],
        /// The places of their xbars.
        places: [[u8; 3]; 2],
        /// The grid's dimensions.
        dimensions: Vec<Dimension>,
    },
}

impl GridError {
    /// Says what is wrong, with the names that the fabric has.
    pub fn describe(&self, names: &Names) -> String {
        match self {
            Self::Shape(dimensions) => format!(
                "a grid has one to three dimensions of at least 2 xbars, and rings have at least 3; these are {}",
                shape(dimensions)
            ),
            Self::Count { places, xbars } => {
                format!("there are {places} places for {xbars} xbars; each needs one")
            }
            Self::Outside { xbar, at, dimensions } => {
                let (xbar, at) = (names.xbar(*xbar), place(at));
                format!("{xbar} cannot stand at {at}, which is outside {}", shape(dimensions))
            }
            Self::PlaceTwice { xbars: [one, other], at } => {
                let (one, other) = (names.xbar(*one), names.xbar(*other));
                format!("{one} and {other} cannot both stand at {}", place(at))
            }
            Self::Misfit { ends, places: [from, to], dimensions } => format!(
                "the cable {} does not fit: it joins {} to {}, which are no neighbours in {}",
                names.cable(*ends),
                place(from),
                place(to),
                shape(dimensions)
            ),
        }
    }
}

impl fmt::Display for GridError {
    /// Writes the error with numbers instead of names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(&Names::default()))
    }
}

impl std::error::Error for GridError {}

/// A place in words, such as (2,0,1).
pub(crate) fn place([x, y, z]: &[u8; 3]) -> String {
    format!("({x},{y},{z})")
}

/// Dimensions in words, such as `6 (ring) x 5 (line)`.
pub(crate) fn shape(dimensions: &[Dimension]) -> String {
    if dimensions.is_empty() {
        return "a single xbar".to_owned();
    }
    let words =
        dimensions.iter().map(|d| format!("{} ({})", d.size, if d.is_ring { "ring" } else { "line" }));
    words.collect::<Vec<_>>().join(" x ")
}

/// A torus or mesh of one to three dimensions, perhaps with cables and xbars missing. (A single xbar has
/// no dimension.)
///
/// Dimensions stand by rank: X first. Coordinates count from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    dimensions: Vec<Dimension>,
    /// Each xbar's coordinates; 0 in dimensions that do not exist.
    coordinates: Vec<[u8; 3]>,
    /// The xbar at each place, X fastest; `u32::MAX` where one is missing.
    places: Vec<u32>,
    /// The channels from each xbar in each direction: parallel cables, by rising port.
    /// `channels[6 * xbar + 2 * dimension + way]`.
    channels: Vec<Vec<u32>>,
}

impl Grid {
    /// The grid whose xbars stand at these coordinates (0 in dimensions that do not exist).
    ///
    /// Every cable between two xbars must join neighbours, even a dead one, which leads nowhere. Cables that
    /// join an xbar to itself are ignored.
    ///
    /// # Errors
    /// If the dimensions are impossible, a place is outside them or taken twice, or a cable does not fit. The error names the first by xbar and port.
    pub fn from_parts(
        topology: &Topology,
        dimensions: &[Dimension],
        coordinates: Vec<[u8; 3]>,
    ) -> Result<Self, GridError> {
        let shape = dimensions.to_vec();
        let is_good = |d: &Dimension| d.size >= 2 + u8::from(d.is_ring);
        let xbars = topology.xbar_count();
        if dimensions.len() > 3 || !dimensions.iter().all(is_good) || (dimensions.is_empty() && xbars != 1) {
            return Err(GridError::Shape(shape));
        }
        if coordinates.len() != xbars {
            return Err(GridError::Count { places: coordinates.len(), xbars });
        }
        let count = dimensions.iter().map(|d| usize::from(d.size)).product();
        let mut grid = Self {
            dimensions: shape,
            coordinates,
            places: vec![u32::MAX; count],
            channels: vec![Vec::new(); 6 * xbars],
        };
        grid.fill_places()?;
        grid.fill_channels(topology)?;
        Ok(grid)
    }

    fn fill_places(&mut self) -> Result<(), GridError> {
        for (xbar, &at) in (0..).zip(&self.coordinates) {
            let Some(index) = self.index(at) else {
                return Err(GridError::Outside { xbar, at, dimensions: self.dimensions.clone() });
            };
            let place = &mut self.places[index];
            if *place != u32::MAX {
                return Err(GridError::PlaceTwice { xbars: [*place, xbar], at });
            }
            *place = xbar;
        }
        Ok(())
    }

    fn fill_channels(&mut self, topology: &Topology) -> Result<(), GridError> {
        for channel in 0..topology.channel_count() as u32 {
            let (tail, head) = (topology.tail(channel), topology.head(channel));
            if tail.xbar == head.xbar {
                continue;
            }
            let places = [self.coordinates(tail.xbar), self.coordinates(head.xbar)];
            let Some((dimension, way)) = self.direction(places[0], places[1]) else {
                let dimensions = self.dimensions.clone();
                return Err(GridError::Misfit { ends: [tail, head], places, dimensions });
            };
            if !topology.is_dead(channel) {
                self.channels[Self::slot(tail.xbar, dimension, way)].push(channel);
            }
        }
        Ok(())
    }

    fn slot(xbar: u32, dimension: usize, way: Sense) -> usize {
        6 * xbar as usize + 2 * dimension + usize::from(way == Sense::Minus)
    }

    /// Where a place stands in `places`, if it is inside.
    fn index(&self, at: [u8; 3]) -> Option<usize> {
        let mut index = 0;
        for (dimension, &at) in at.iter().enumerate().rev() {
            let size = self.dimensions.get(dimension).map_or(1, |d| d.size);
            if at >= size {
                return None;
            }
            index = index * usize::from(size) + usize::from(at);
        }
        Some(index)
    }

    /// The dimensions, X first.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// How many coordinates a dimension has; 1 for dimensions that do not exist.
    pub fn size(&self, dimension: usize) -> u8 {
        self.dimensions.get(dimension).map_or(1, |d| d.size)
    }

    /// An xbar's coordinates.
    pub fn coordinates(&self, xbar: u32) -> [u8; 3] {
        self.coordinates[xbar as usize]
    }

    /// The xbar at a place, if it is there.
    pub fn xbar_at(&self, place: [u8; 3]) -> Option<u32> {
        self.places.get(self.index(place)?).copied().filter(|&xbar| xbar != u32::MAX)
    }

    /// All places, X fastest, whether an xbar stands there or not.
    pub fn places(&self) -> impl Iterator<Item = [u8; 3]> + '_ {
        let [x, y, z] = [0, 1, 2].map(|dimension| self.size(dimension));
        (0..z).flat_map(move |c| (0..y).flat_map(move |b| (0..x).map(move |a| [a, b, c])))
    }

    /// The place one step from another, unless the end of a line is reached. There need not be an xbar there,
    /// nor a cable to it.
    pub fn step(&self, place: [u8; 3], dimension: usize, way: Sense) -> Option<[u8; 3]> {
        let mut next = place;
        next[dimension] = self.dimensions.get(dimension)?.step(place[dimension], way)?;
        Some(next)
    }

    /// The direction from a place to a neighbouring one.
    pub fn direction(&self, from: [u8; 3], to: [u8; 3]) -> Option<(usize, Sense)> {
        let directions = (0..self.dimensions.len()).flat_map(|d| Sense::BOTH.map(|way| (d, way)));
        directions.into_iter().find(|&(dimension, way)| self.step(from, dimension, way) == Some(to))
    }

    /// The channels from an xbar one step along a dimension: parallel cables, by rising port; none where
    /// the cables are missing or the edge of a line is reached.
    pub fn channels(&self, xbar: u32, dimension: usize, way: Sense) -> &[u32] {
        &self.channels[Self::slot(xbar, dimension, way)]
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    const RING: fn(u8) -> Dimension = |size| Dimension { size, is_ring: true };
    const LINE: fn(u8) -> Dimension = |size| Dimension { size, is_ring: false };

    fn topology(spec: &str) -> Topology {
        Topology::from_map(&generate(spec).unwrap().map).unwrap()
    }

    fn in_order([x, y, z]: [u8; 3]) -> Vec<[u8; 3]> {
        (0..z).flat_map(|c| (0..y).flat_map(move |b| (0..x).map(move |a| [a, b, c]))).collect()
    }

    #[test]
    fn places_and_channels_are_found_again() {
        let topology = topology("torus:x=4,y=3,z=2,hosts=1");
        let grid = Grid::from_parts(&topology, &[RING(4), RING(3), LINE(2)], in_order([4, 3, 2])).unwrap();
        assert_eq!(grid.xbar_at([3, 2, 1]), Some(23));
        assert_eq!(grid.xbar_at([4, 0, 0]), None, "outside");
        assert_eq!(grid.places().collect::<Vec<_>>(), in_order([4, 3, 2]));
        for xbar in 0..24 {
            for dimension in 0..3 {
                for way in Sense::BOTH {
                    let next = grid.step(grid.coordinates(xbar), dimension, way);
                    let heads: Vec<_> = grid.channels(xbar, dimension, way).iter().collect();
                    let heads: Vec<_> = heads.iter().map(|&&channel| topology.head(channel).xbar).collect();
                    assert_eq!(
                        heads,
                        next.and_then(|next| grid.xbar_at(next)).into_iter().collect::<Vec<_>>()
                    );
                }
            }
        }
        let cut = topology.without(&[topology.tail(0)].into());
        let grid = Grid::from_parts(&cut, &[RING(4), RING(3), LINE(2)], in_order([4, 3, 2])).unwrap();
        assert!(grid.channels(0, 0, Sense::Plus).is_empty(), "a dead cable leads nowhere");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let ring = topology("ring:n=4");
        let error = |dimensions: &[Dimension], coordinates: &[[u8; 3]]| {
            Grid::from_parts(&ring, dimensions, coordinates.to_vec()).unwrap_err().to_string()
        };
        let line = in_order([4, 1, 1]);
        assert!(error(&[RING(2)], &line).ends_with("these are 2 (ring)"));
        assert!(error(&[RING(4)], &line[1..]).starts_with("there are 3 places for 4 xbars"));
        assert_eq!(error(&[RING(3)], &line), "xbar 3 cannot stand at (3,0,0), which is outside 3 (ring)");
        assert_eq!(
            error(&[RING(4)], &[line[0], line[1], line[1], line[2]]),
            "xbar 1 and xbar 2 cannot both stand at (1,0,0)"
        );
        assert_eq!(
            error(&[LINE(4)], &line),
            "the cable from xbar 0 port 2 to xbar 3 port 1 does not fit: it joins (0,0,0) to (3,0,0), which \
             are no neighbours in 4 (line)"
        );
    }
}
