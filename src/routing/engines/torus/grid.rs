//! A torus or mesh as coordinates: where each xbar stands, and which channels lead which way.

/// A direction along a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// Towards higher coordinates.
    Plus,
    /// Towards lower coordinates.
    Minus,
}

/// One dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimension {
    /// How many coordinates it has, at least 2.
    pub size: u8,
    /// Whether the last coordinate is cabled to the first, anywhere.
    pub is_ring: bool,
}

/// A torus or mesh of one to three dimensions, perhaps with cables and xbars missing.
///
/// Dimensions stand by rank: X first. Coordinates count from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    dimensions: Vec<Dimension>,
    /// Each xbar's coordinates; 0 in dimensions that there are not.
    coordinates: Vec<[u8; 3]>,
    /// The xbar at each place, X fastest; `u32::MAX` where one is missing.
    places: Vec<u32>,
    /// The channels from each xbar in each direction: parallel cables, by rising port.
    /// `channels[6 * xbar + 2 * dimension + way]`.
    channels: Vec<Vec<u32>>,
}

impl Grid {
    /// The dimensions, X first.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// An xbar's coordinates.
    pub fn coordinates(&self, xbar: u32) -> [u8; 3] {
        self.coordinates[xbar as usize]
    }

    /// The xbar at a place, if it is there.
    pub fn xbar_at(&self, place: [u8; 3]) -> Option<u32> {
        let size = |dimension: usize| self.dimensions.get(dimension).map_or(1, |d| usize::from(d.size));
        let [x, y, z] = place.map(usize::from);
        self.places.get(x + size(0) * (y + size(1) * z)).copied().filter(|&xbar| xbar != u32::MAX)
    }

    /// The channels from an xbar one step along a dimension: parallel cables, by rising port; none where
    /// the cables are missing or the edge of a line is reached.
    pub fn channels(&self, xbar: u32, dimension: usize, way: Way) -> &[u32] {
        &self.channels[6 * xbar as usize + 2 * dimension + usize::from(way == Way::Minus)]
    }
}
