//! What a user states of a torus, if the map alone does not show it, or suggests something else.

use std::collections::BTreeMap;

use mapper_proto::PortSet;
use mapper_proto::map::PortRef;
use thiserror::Error;

use super::grid::{Dimension, Grid, shape};
use mapper_fabric::wording::counted;

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
    /// For each dimension, the coordinate that the dateline is just below: 0 is between the last one and 0.
    /// A line has none, and 0 keeps its place in the list.
    pub datelines: Option<Vec<u8>>,
    /// How many coordinates a region has in each dimension.
    pub regions: Option<Vec<u8>>,
    /// The ports that lead x-plus, x-minus, y-plus, y-minus, z-plus, z-minus, alike at each xbar.
    pub ports: [PortSet; 6],
    /// Where keys were written, such as `t.toml:3`, for errors. Those of a file's keys, by name.
    pub written_at: BTreeMap<&'static str, String>,
}

/// Most places that sizes may make, as no map has more xbars.
const MOST_PLACES: u64 = 65_535;

impl TorusStatement {
    /// The directions as files name them, in the order of `ports`.
    pub const DIRECTIONS: [&'static str; 6] = ["x-plus", "x-minus", "y-plus", "y-minus", "z-plus", "z-minus"];

    /// Whether anything is stated that depends on which dimension is X, Y or Z, or on where 0 is.
    pub(super) fn names_axes(&self) -> bool {
        self.sizes.is_some()
            || self.origin.is_some()
            || self.rings.is_some()
            || self.datelines.is_some()
            || self.regions.is_some()
            || self.has_ports()
    }

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

    /// The directions in which a port may lead, a bit each in the order of `ports`; all of them if none is
    /// stated.
    pub(super) fn directions_of(&self, port: PortRef) -> u8 {
        let bits = (0..6).filter(|&i| self.ports[i].contains(port.port)).fold(0, |bits, i| bits | 1 << i);
        if bits == 0 { ALL_DIRECTIONS } else { bits }
    }

    /// Whether any port's direction is stated.
    pub(super) fn has_ports(&self) -> bool {
        self.ports.iter().any(|ports| !ports.is_empty())
    }

    /// Checks what can be checked without a fabric.
    ///
    /// # Errors
    /// The first statement that is impossible.
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
                let why = format!(
                    "it has {}; a torus has one to three dimensions",
                    counted(length, "entry", "entries")
                );
                return Err(self.bad(key, why));
            }
            if let Some(sizes) = &self.sizes
                && length != sizes.len()
            {
                let why = format!(
                    "it has {}, but `sizes` has {}",
                    counted(length, "entry", "entries"),
                    sizes.len()
                );
                return Err(self.bad(key, why));
            }
        }
        if self.rings.is_some() && self.sizes.is_none() {
            return Err(self.bad("rings", "`sizes` must be given as well".to_owned()));
        }
        for (key, list, least) in [("sizes", &self.sizes, 2), ("regions", &self.regions, 1)] {
            if let Some(number) = list.iter().flatten().find(|&&number| number < least) {
                let why = format!("{number} is no size here; expected {least} to 255");
                return Err(self.bad(key, why));
            }
        }
        self.check_places()?;
        self.check_datelines()?;
        let twice = (0..6).flat_map(|i| (0..i).map(move |j| (i, j))).find_map(|(i, j)| {
            self.ports[i]
                .iter()
                .find(|&port| self.ports[j].contains(port))
                .map(|port| (port, Self::DIRECTIONS[j], Self::DIRECTIONS[i]))
        });
        twice.map_or(Ok(()), |(port, a, b)| {
            Err(self.bad("ports", format!("port {port} is both {a} and {b}; it can be one of them")))
        })
    }

    fn check_places(&self) -> Result<(), BadStatement> {
        let Some(sizes) = &self.sizes else { return Ok(()) };
        let places = sizes.iter().map(|&size| u64::from(size)).product::<u64>();
        if places <= MOST_PLACES {
            return Ok(());
        }
        Err(self.bad("sizes", format!("these are {places} places; a fabric has {MOST_PLACES} xbars at most")))
    }

    /// Checks what can be checked only with the dimensions that were found.
    ///
    /// # Errors
    /// If there are not as many dimensions as are stated, or a dateline is stated where there can be none.
    pub(super) fn check_against(&self, grid: &Grid) -> Result<(), BadStatement> {
        let dimensions = grid.dimensions();
        for (key, list) in [("datelines", &self.datelines), ("regions", &self.regions)] {
            if let Some(list) = list.as_ref().filter(|list| list.len() != dimensions.len()) {
                let why = format!(
                    "it has {}, but the fabric is {}: one for each dimension",
                    counted(list.len(), "entry", "entries"),
                    shape(dimensions)
                );
                return Err(self.bad(key, why));
            }
        }
        let datelines = self.datelines.iter().flatten().zip(dimensions).zip(["x", "y", "z"]);
        for ((&dateline, dimension), name) in datelines {
            if dateline > 0 && !dimension.is_ring {
                let why = format!(
                    "{dateline} is stated for {name}, but {name} is a line, and a line has no dateline; give 0 \
                     there"
                );
                return Err(self.bad("datelines", why));
            }
            self.check_dateline(dateline, dimension.size)?;
        }
        Ok(())
    }

    fn check_datelines(&self) -> Result<(), BadStatement> {
        let (Some(datelines), Some(sizes)) = (&self.datelines, &self.sizes) else { return Ok(()) };
        datelines.iter().zip(sizes).try_for_each(|(&dateline, &size)| self.check_dateline(dateline, size))
    }

    fn check_dateline(&self, dateline: u8, size: u8) -> Result<(), BadStatement> {
        if dateline < size {
            return Ok(());
        }
        let why = format!(
            "there is no coordinate {dateline} where the size is {size}; expected 0 to {}",
            size.saturating_sub(1)
        );
        Err(self.bad("datelines", why))
    }

    fn bad(&self, key: &'static str, why: String) -> BadStatement {
        BadStatement { key, why, written_at: self.written_at.get(key).cloned() }
    }
}

/// An impossible statement.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}`{key}`: {why}", .written_at.as_ref().map(|at| format!("{at}: ")).unwrap_or_default())]
pub struct BadStatement {
    /// The key that is wrong.
    pub key: &'static str,
    /// Why it is impossible, and what was expected.
    pub why: String,
    /// Where it was written, if in a file.
    pub written_at: Option<String>,
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
        assert_eq!(problem(|s| s.rings = Some(vec![true])), "`rings`: it has 1 entry, but `sizes` has 3");
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
            problem(|s| s.sizes = Some(vec![255, 255, 2])),
            "`sizes`: these are 130050 places; a fabric has 65535 xbars at most"
        );
        assert_eq!(
            problem(|s| {
                s.sizes = Some(vec![1]);
                s.written_at = [("sizes", "t.toml:3".to_owned())].into();
            }),
            "t.toml:3: `sizes`: 1 is no size here; expected 2 to 255"
        );
        assert_eq!(
            problem(|s| (s.ports[0], s.ports[5]) = (PortSet::from_iter([1, 2]), PortSet::from_iter([2]))),
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
