//! What a user states of a torus, where the map alone does not tell, or tells otherwise.

use std::collections::BTreeSet;

use mapper_proto::map::PortRef;
use thiserror::Error;

use super::grid::Dimension;

/// Every direction of three dimensions.
pub(super) const ALL_DIRECTIONS: u8 = 0b11_1111;

/// What a user states of a torus or mesh. Whatever is left out is found from the map.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TorusStatement {
    /// The size of each dimension, X first.
    pub sizes: Option<Vec<u8>>,
    /// Whether each dimension is a ring; needs `sizes`.
    pub rings: Option<Vec<bool>>,
    /// The xbar at 0 in each dimension; in a line it must be at an end.
    pub origin: Option<u32>,
    /// For each ring, the coordinate that the dateline is just below: 0 is between the last one and 0.
    pub datelines: Option<Vec<u8>>,
    /// How many coordinates a region has in each dimension.
    pub regions: Option<Vec<u8>>,
    /// The ports that lead x-plus, x-minus, y-plus, y-minus, z-plus, z-minus, alike at each xbar.
    pub ports: [BTreeSet<u8>; 6],
}

impl TorusStatement {
    /// The directions as files name them, in the order of `ports`.
    pub const DIRECTIONS: [&'static str; 6] = ["x-plus", "x-minus", "y-plus", "y-minus", "z-plus", "z-minus"];

    /// The shapes that are stated, or none if no sizes are.
    pub(super) fn shapes(&self) -> Option<Vec<Vec<Dimension>>> {
        let sizes = self.sizes.as_ref()?;
        let mut shapes = vec![Vec::new()];
        for (i, &size) in sizes.iter().enumerate() {
            let stated = self.rings.as_ref().and_then(|rings| rings.get(i)).copied();
            let may_be = |is_ring: bool| {
                is_ring <= (size > 2) && stated.is_none_or(|ring| (ring && size > 2) == is_ring)
            };
            let choices = [false, true].into_iter().filter(|&is_ring| may_be(is_ring));
            let choices: Vec<_> = choices.map(|is_ring| Dimension { size, is_ring }).collect();
            let longer = shapes.iter().flat_map(|shape: &Vec<Dimension>| {
                choices.iter().map(|&dimension| [shape.as_slice(), &[dimension]].concat())
            });
            shapes = longer.collect();
        }
        Some(shapes)
    }

    /// Which directions a port leads, a bit each in the order of `ports`. All, if it is not stated.
    pub(super) fn directions_of(&self, port: PortRef) -> u8 {
        let bits = (0..6).filter(|&i| self.ports[i].contains(&port.port)).fold(0, |bits, i| bits | 1 << i);
        if bits == 0 { ALL_DIRECTIONS } else { bits }
    }

    /// Whether any port's direction is stated.
    pub(super) fn has_ports(&self) -> bool {
        self.ports.iter().any(|ports| !ports.is_empty())
    }

    /// Checks what can be checked without a fabric.
    ///
    /// # Errors
    /// The first that cannot be.
    pub fn check(&self) -> Result<(), BadStatement> {
        let lists = [
            ("sizes", self.sizes.as_ref().map(Vec::len)),
            ("rings", self.rings.as_ref().map(Vec::len)),
            ("datelines", self.datelines.as_ref().map(Vec::len)),
            ("regions", self.regions.as_ref().map(Vec::len)),
        ];
        for (key, length) in lists {
            let Some(length) = length else { continue };
            if !(1..=3).contains(&length) {
                return Err(BadStatement {
                    key,
                    why: format!("it has {length} entries; a torus has one to three dimensions"),
                });
            }
            if let Some(sizes) = &self.sizes
                && length != sizes.len()
            {
                return Err(BadStatement {
                    key,
                    why: format!("it has {length} entries, but `sizes` has {}", sizes.len()),
                });
            }
        }
        if self.rings.is_some() && self.sizes.is_none() {
            return Err(BadStatement { key: "rings", why: "`sizes` must be given as well".to_owned() });
        }
        for (key, list, least) in [("sizes", &self.sizes, 2), ("regions", &self.regions, 1)] {
            if let Some(number) = list.iter().flatten().find(|&&number| number < least) {
                let why = format!("{number} is no size here; expected {least} to 255");
                return Err(BadStatement { key, why });
            }
        }
        self.check_datelines()?;
        let twice = (0..6).flat_map(|i| (0..i).map(move |j| (i, j))).find_map(|(i, j)| {
            self.ports[i]
                .intersection(&self.ports[j])
                .next()
                .map(|port| (port, Self::DIRECTIONS[j], Self::DIRECTIONS[i]))
        });
        twice.map_or(Ok(()), |(port, a, b)| {
            Err(BadStatement {
                key: "ports",
                why: format!("port {port} is both {a} and {b}; it can be one of them"),
            })
        })
    }

    fn check_datelines(&self) -> Result<(), BadStatement> {
        let (Some(datelines), Some(sizes)) = (&self.datelines, &self.sizes) else { return Ok(()) };
        let outside = datelines.iter().zip(sizes).find(|(dateline, size)| dateline >= size);
        outside.map_or(Ok(()), |(dateline, size)| {
            let why = format!(
                "there is no coordinate {dateline} where the size is {size}; expected 0 to {}",
                size - 1
            );
            Err(BadStatement { key: "datelines", why })
        })
    }
}

/// A statement that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{key}`: {why}")]
pub struct BadStatement {
    /// What of it is wrong.
    pub key: &'static str,
    /// Why, and what was expected.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(change: impl FnOnce(&mut TorusStatement)) -> String {
        let mut statement = TorusStatement { sizes: Some(vec![6, 5, 2]), ..TorusStatement::default() };
        change(&mut statement);
        statement.check().map_or_else(|bad| bad.to_string(), |()| "good".to_owned())
    }

    #[test]
    fn what_cannot_be_is_told() {
        assert_eq!(problem(|_| {}), "good");
        assert_eq!(
            problem(|s| s.sizes = Some(vec![])),
            "`sizes`: it has 0 entries; a torus has one to three dimensions"
        );
        assert_eq!(problem(|s| s.rings = Some(vec![true])), "`rings`: it has 1 entries, but `sizes` has 3");
        assert_eq!(
            problem(|s| (s.sizes, s.rings) = (None, Some(vec![true]))),
            "`rings`: `sizes` must be given as well"
        );
        assert_eq!(
            problem(|s| s.regions = Some(vec![3, 0, 1])),
            "`regions`: 0 is no size here; expected 1 to 255"
        );
        assert_eq!(
            problem(|s| s.datelines = Some(vec![5, 5, 0])),
            "`datelines`: there is no coordinate 5 where the size is 5; expected 0 to 4"
        );
        assert_eq!(
            problem(|s| (s.ports[0], s.ports[5]) = ([1, 2].into(), [2].into())),
            "`ports`: port 2 is both x-plus and z-minus; it can be one of them"
        );
    }

    #[test]
    fn shapes_are_those_of_the_sizes() {
        let mut statement = TorusStatement { sizes: Some(vec![6, 2]), ..TorusStatement::default() };
        let shape = |is_ring| vec![Dimension { size: 6, is_ring }, Dimension { size: 2, is_ring: false }];
        assert_eq!(statement.shapes(), Some(vec![shape(false), shape(true)]));
        statement.rings = Some(vec![true, true]);
        assert_eq!(statement.shapes(), Some(vec![shape(true)]), "two xbars are a line");
    }
}
