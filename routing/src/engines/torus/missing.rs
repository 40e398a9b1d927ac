//! What a torus or mesh has lost.

use super::grid::{Grid, Sense};

/// A step of a grid that has fewer cables than it should, although both its xbars are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingCable {
    /// The xbars that it should join, the second one step up from the first.
    pub xbars: [u32; 2],
    /// The dimension along which the step leads.
    pub dimension: usize,
    /// How many cables there are.
    pub present: usize,
    /// How many there should be: as many as most steps of this dimension have.
    pub expected: usize,
}

impl Grid {
    /// The places where no xbar stands, X fastest.
    pub fn missing_xbars(&self) -> Vec<[u8; 3]> {
        self.places().filter(|&place| self.xbar_at(place).is_none()).collect()
    }

    /// The steps with fewer cables than most have, by dimension, then by place, X fastest. Cables of
    /// missing xbars are not counted.
    pub fn missing_cables(&self) -> Vec<MissingCable> {
        let mut missing = Vec::new();
        for dimension in 0..self.dimensions().len() {
            let steps: Vec<_> = self.steps(dimension).collect();
            let expected = usual(steps.iter().map(|&(_, present)| present));
            let short = steps.into_iter().filter(|&(_, present)| present < expected);
            missing.extend(short.map(|(xbars, present)| MissingCable {
                xbars,
                dimension,
                present,
                expected,
            }));
        }
        missing
    }

    /// The neighbours along a dimension, and how many cables join them.
    fn steps(&self, dimension: usize) -> impl Iterator<Item = ([u32; 2], usize)> + '_ {
        self.places().filter_map(move |place| {
            let from = self.xbar_at(place)?;
            let to = self.xbar_at(self.step(place, dimension, Sense::Plus)?)?;
            Some(([from, to], self.channels(from, dimension, Sense::Plus).len()))
        })
    }
}

/// The most frequent number other than 0, the smallest one among equally frequent ones; 1 if there is none.
fn usual(numbers: impl Iterator<Item = usize>) -> usize {
    let mut count = std::collections::BTreeMap::<usize, usize>::new();
    numbers.filter(|&number| number > 0).for_each(|number| *count.entry(number).or_default() += 1);
    let most = count.into_iter().max_by_key(|&(number, times)| (times, std::cmp::Reverse(number)));
    most.map_or(1, |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::super::Dimension;
    use super::*;
    use crate::Topology;

    #[test]
    fn lost_cables_and_xbars_are_found() {
        let fabric = generate("mesh:x=3,y=2").unwrap();
        let whole = Topology::from_map(&fabric.map).unwrap();
        let cut = whole.without(&[whole.tail(0)].into());
        let line = |size| Dimension { size, is_ring: false };
        let places = |xbar: u32| [(xbar % 3) as u8, (xbar / 3) as u8, 0];
        let grid = |topology: &Topology, rows| {
            Grid::from_parts(topology, &[line(3), line(rows)], (0..6).map(places).collect()).unwrap()
        };
        assert_eq!(grid(&whole, 2).missing_cables(), []);
        let lost = MissingCable { xbars: [0, 1], dimension: 0, present: 0, expected: 1 };
        assert_eq!(grid(&cut, 2).missing_cables(), [lost]);
        assert_eq!(grid(&cut, 3).missing_xbars(), [[0, 2, 0], [1, 2, 0], [2, 2, 0]]);
        assert_eq!(grid(&cut, 3).missing_cables(), [lost], "no cables of missing xbars");
    }
}
