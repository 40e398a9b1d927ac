//! Other names for the axes of a grid: another dimension may be X, and a dimension may be counted the other
//! way.
//!
//! Direction order treats X, Y, Z, + and - unlike. A broken z link of a mesh cannot be gone round, as after
//! z- only z may follow; a broken x link can, by y+ or z+ before X is done. So unless a user named the axes,
//! other names may serve.

use std::fmt;

use crate::Topology;

use super::grid::{Grid, GridError};

/// Most pairs of routers that are looked at under other names, all names together. One of the largest grids is
/// looked at under [`FEWEST_NAMES`].
const MOST_PAIRS: usize = 1 << 26;

/// How many other names are tried in any case: all other orders of three dimensions.
const FEWEST_NAMES: usize = 5;

/// Which dimension of a grid each new one is, and whether it is mirrored. X first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Axes(Vec<(usize, bool)>);

impl Axes {
    /// All other names for a grid's axes, as many as a grid of its size may be tried with. Rings come last (a
    /// broken link of a ring can be gone round the other way, also along Z), and mirrored ones after all others.
    pub(super) fn others(grid: &Grid) -> Vec<Self> {
        let count = grid.dimensions().len();
        let mut all: Vec<Self> = Vec::new();
        for order in orders(count) {
            for mirrored in 0..1_usize << count {
                all.push(Self(order.iter().map(|&from| (from, mirrored >> from & 1 == 1)).collect()));
            }
        }
        all.retain(|axes| !axes.0.iter().copied().eq((0..count).map(|dimension| (dimension, false))));
        all.sort_by_key(|Self(axes)| {
            let mirrored = axes.iter().filter(|axis| axis.1).count();
            let lines_behind: usize = axes
                .iter()
                .enumerate()
                .filter(|(_, axis)| !grid.dimensions()[axis.0].is_ring)
                .map(|(place, _)| place)
                .sum();
            (mirrored, lines_behind)
        });
        let routers = grid.places().count().max(1);
        all.truncate((MOST_PAIRS / routers.pow(2)).max(FEWEST_NAMES));
        all
    }

    /// A grid with its axes named so.
    ///
    /// # Errors
    /// If the grid is not of this topology.
    pub(super) fn rename(&self, grid: &Grid, topology: &Topology) -> Result<Grid, GridError> {
        let dimensions: Vec<_> = self.0.iter().map(|&(from, _)| grid.dimensions()[from]).collect();
        let moved = |xbar: u32| {
            let old = grid.coordinates(xbar);
            let mut new = [0; 3];
            for (at, &(from, mirrored)) in new.iter_mut().zip(&self.0) {
                *at = if mirrored { grid.size(from) - 1 - old[from] } else { old[from] };
            }
            new
        };
        let coordinates = (0..topology.xbar_count() as u32).map(moved).collect();
        Grid::from_parts(topology, &dimensions, coordinates)
    }
}

/// A grid under all other names for its axes that are worth a try, the likeliest first.
pub fn under_other_names(grid: &Grid, topology: &Topology) -> impl Iterator<Item = Grid> {
    Axes::others(grid).into_iter().filter_map(move |axes| axes.rename(grid, topology).ok())
}

impl fmt::Display for Axes {
    /// Writes the names such as `x, y, z for y, -z, x`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["x", "y", "z"];
        let old = self
            .0
            .iter()
            .map(|&(from, mirrored)| format!("{}{}", if mirrored { "-" } else { "" }, names[from]));
        write!(f, "{} for {}", names[..self.0.len()].join(", "), old.collect::<Vec<_>>().join(", "))
    }
}

/// All orders of so many dimensions.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for next in 0..count {
        all = all
            .into_iter()
            .flat_map(|order| {
                (0..=order.len()).map(move |place| [&order[..place], &[next], &order[place..]].concat())
            })
            .collect();
    }
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use crate::engines::torus::fabrics::Broken;

    use super::*;

    #[test]
    fn rings_become_z_first_and_mirrors_come_last() {
        let broken = Broken::new(&[(4, true), (3, false)], 1);
        let topology = Topology::from_map(&broken.fabric.map).unwrap();
        let places = (0..12).map(|xbar| broken.place(xbar)).collect();
        let dimensions =
            [(4, true), (3, false)].map(|(size, is_ring)| super::super::Dimension { size, is_ring });
        let grid = Grid::from_parts(&topology, &dimensions, places).unwrap();
        let names: Vec<String> = Axes::others(&grid).iter().map(Axes::to_string).collect();
        assert_eq!(names.len(), 7);
        assert_eq!(names[0], "x, y for y, x");
        assert_eq!(names[6], "x, y for -x, -y");
        let renamed = Axes(vec![(1, true), (0, false)]).rename(&grid, &topology).unwrap();
        assert_eq!(renamed.dimensions(), [dimensions[1], dimensions[0]]);
        assert_eq!(renamed.coordinates(broken.at([3, 0, 0])), [2, 3, 0]);
    }

    #[test]
    fn three_dimensions_have_forty_eight_names() {
        let all: std::collections::BTreeSet<_> = orders(3).into_iter().collect();
        assert_eq!(all.len(), 6);
        let broken = Broken::new(&[(3, false), (3, false), (3, false)], 1);
        let topology = Topology::from_map(&broken.fabric.map).unwrap();
        let grid = super::super::recognise(&topology, &Default::default()).unwrap();
        assert_eq!(Axes::others(&grid).len(), 47);
    }
}
