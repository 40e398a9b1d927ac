//! Finds the torus or mesh in a map: its dimensions, and where each xbar stands.
//!
//! Ports prove nothing, as those of plain xbars are known only up to an offset. So only the links are used.
//! [`shapes`] lists what a fabric may be, the fewest missing links first; [`embedding`] tries to put the
//! xbars at the places of a shape so that each link joins neighbours. The first shape that takes them all is
//! chosen. Between shapes with equally many links, ports decide, and then the cost of routing. [`frame`] says
//! which dimension is X, and where coordinates begin.

mod embedding;
mod frame;
mod hint;
mod links;
mod refusal;
mod shapes;
mod space;
#[cfg(test)]
mod tests;
mod tidy;
mod walks;

pub use refusal::NoTorus;

use std::cell::OnceCell;

use embedding::{Outcome, embed, entries};
use links::Links;
use shapes::{ShapeCandidate, link_count, place_count};
use space::Space;

use super::grid::{Dimension, Grid};
use super::statement::TorusStatement;
use crate::Topology;

/// Finds the torus or mesh that a topology is, with cables and xbars missing.
///
/// Dead cables ([`Topology::without`]) count for its shape, but are no channels of the grid: the shape does
/// not change when a cable dies. A statement may leave everything open ([`TorusStatement::default`]).
///
/// # Errors
/// If it is no torus or mesh, or not the one that is stated. The error names the first cable that does not fit.
pub fn recognise(topology: &Topology, statement: &TorusStatement) -> Result<Grid, NoTorus> {
    statement.check()?;
    let xbars = topology.xbar_count();
    if let Some(origin) = statement.origin.filter(|&origin| origin as usize >= xbars) {
        return Err(NoTorus::NoOrigin { origin, xbars });
    }
    if xbars == 0 {
        return Err(NoTorus::NoXbars);
    }
    if xbars == 1 && statement.sizes.is_none() {
        let grid = Grid::from_parts(topology, &[], vec![[0; 3]])?;
        statement.check_against(&grid)?;
        return Ok(grid);
    }
    let links = refusal::restricted_links(topology, statement)?;
    let is_open = !statement.has_ports() && statement.sizes.is_none();
    let shapes = Shapes::new();
    let by_ports = hint::of(topology).filter(|_| is_open).and_then(|hint| {
        let links = refusal::restricted_links(topology, &hint).ok()?;
        search(topology, &links, statement, &shapes, BUDGET, None).ok()
    });
    let placed = match search(topology, &links, statement, &shapes, BUDGET, by_ports) {
        Ok(placed) => frame::settle(topology, placed, statement),
        Err(failure) => return Err(refusal::of(topology, &links, statement, &failure)),
    };
    refusal::check_origin(&placed, statement)?;
    let grid = Grid::from_parts(topology, &placed.0, placed.1)?;
    statement.check_against(&grid)?;
    Ok(grid)
}

/// Most neighbours of an xbar: two in each dimension.
const MOST_NEIGHBOURS: usize = 6;

/// What is known after all shapes failed.
#[derive(Debug, Default)]
struct Failure {
    /// Most xbars that stood in a shape.
    deepest: usize,
    /// The link that then had no place.
    link: Option<(u32, u32)>,
}

/// Most steps of a search, in xbars put down. Each limit is a number for each xbar of the fabric, and a
/// number to add.
#[derive(Debug, Clone, Copy)]
struct Budget {
    for_each_shape: (u64, u64),
    for_all_shapes: (u64, u64),
}

/// The budget for the fabric itself.
const BUDGET: Budget = Budget { for_each_shape: (20, 5_000), for_all_shapes: (100, 200_000) };

/// The budget for the fabric without one of its links, to tell which does not fit.
const SMALL_BUDGET: Budget = Budget { for_each_shape: (5, 500), for_all_shapes: (10, 5_000) };

/// The shapes of a fabric, once they are asked for. They do not depend on what ports suggest.
type Shapes = OnceCell<Vec<ShapeCandidate>>;

/// The places of the shape with the fewest missing links, or those that ports suggest, if no other is better.
fn search(
    topology: &Topology,
    links: &Links,
    statement: &TorusStatement,
    shapes: &Shapes,
    budget: Budget,
    by_ports: Option<frame::Placed>,
) -> Result<frame::Placed, Failure> {
    if links.degree() > MOST_NEIGHBOURS {
        return Err(Failure::default());
    }
    let mut order = None;
    let steps = |(for_each_xbar, more): (u64, u64)| for_each_xbar * links.xbars() as u64 + more;
    let (for_each, mut for_all) = (steps(budget.for_each_shape), steps(budget.for_all_shapes));
    let mut failure = Failure::default();
    let mut best = by_ports.map(|placed| (Rank::of(topology, &placed), placed));
    for ShapeCandidate { links: whole, dimensions } in candidates(links, statement, shapes) {
        // Among equals, those that agree with ports are preferred.
        let is_no_better = |(rank, _): &(Rank, _)| rank.links + u64::from(rank.is_against_ports) <= whole;
        if best.as_ref().is_some_and(is_no_better) || for_all == 0 {
            break;
        }
        let budget = for_each.min(for_all);
        let mut steps = budget;
        let order = order.get_or_insert_with(|| entries(links));
        let outcome = embed(links, order, Space::new(&dimensions), &mut steps);
        for_all -= budget - steps;
        match outcome {
            Outcome::Found { dimensions, coordinates } => {
                let placed = if statement.sizes.is_some() {
                    (dimensions, coordinates)
                } else {
                    trimmed(&dimensions, &coordinates)
                };
                let placed = tidy::tidy(links, placed);
                let rank = Rank::of(topology, &placed);
                if best.as_ref().is_none_or(|(least, _)| rank < *least) {
                    best = Some((rank, placed));
                }
            }
            Outcome::Failed { deepest, link } if deepest > failure.deepest => {
                failure = Failure { deepest, link }
            }
            Outcome::Failed { .. } => {}
        }
    }
    best.map(|(_, placed)| placed).ok_or(failure)
}

/// The shapes to try, in the order of X, Y, Z where that matters.
fn candidates(links: &Links, statement: &TorusStatement, shapes: &Shapes) -> Vec<ShapeCandidate> {
    if let Some(shapes) = statement.shapes() {
        let fits = |shape: &Vec<Dimension>| place_count(shape) >= links.xbars() as u64;
        let stated = shapes.into_iter().filter(fits);
        let mut stated: Vec<_> =
            stated.map(|dimensions| ShapeCandidate { links: link_count(&dimensions), dimensions }).collect();
        stated.sort_unstable();
        return stated;
    }
    let all = shapes.get_or_init(|| shapes::candidates(links));
    if !links.are_restricted() {
        return all.clone();
    }
    let ordered = all.iter().flat_map(|&ShapeCandidate { links, ref dimensions }| {
        orders(dimensions).into_iter().map(move |dimensions| ShapeCandidate { links, dimensions })
    });
    ordered.collect()
}

/// The dimensions in every order.
fn orders(dimensions: &[Dimension]) -> Vec<Vec<Dimension>> {
    if dimensions.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for i in 0..dimensions.len() {
        let mut rest = dimensions.to_vec();
        let first = rest.remove(i);
        all.extend(orders(&rest).into_iter().map(|rest| [&[first], rest.as_slice()].concat()));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The placement without dimensions of which only one coordinate is in use.
fn trimmed(dimensions: &[Dimension], coordinates: &[[u8; 3]]) -> frame::Placed {
    let kept: Vec<usize> = (0..dimensions.len()).filter(|&i| dimensions[i].size > 1).collect();
    let moved = |at: &[u8; 3]| std::array::from_fn(|i| kept.get(i).map_or(0, |&from| at[from]));
    (kept.iter().map(|&i| dimensions[i]).collect(), coordinates.iter().map(moved).collect())
}

/// The cost of a way to see a fabric. The one with the least cost is chosen.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Links of the whole shape.
    links: u64,
    /// Whether ports tell no directions.
    is_against_ports: bool,
    /// Whether there are rings, which need a second layer. A ring of four can also be seen as a square of
    /// lines.
    has_rings: bool,
    dimensions: usize,
}

impl Rank {
    fn of(topology: &Topology, placed: &frame::Placed) -> Self {
        Self {
            links: link_count(&placed.0),
            is_against_ports: !frame::ports_tell(topology, placed),
            has_rings: placed.0.iter().any(|dimension| dimension.is_ring),
            dimensions: placed.0.len(),
        }
    }
}
