//! Tori and meshes: unfolded into planes. A ring is a circle.
//!
//! A plane has a column for each x and a row for each y. Of a few planes, the boxes of all z stand on the diagonal of a
//! cell, one for each x and y, so that the next box along each dimension stands free to see. More planes stand beside each
//! other.

use mapper_routing::Topology;
use mapper_routing::engines::torus::{TorusStatement, recognise};

use super::part::{Part, Placed};
use super::{GAP, Point, Rect, Shape};

/// Most planes that are drawn in diagonals.
const MOST_DIAGONAL: i64 = 4;

/// The places of a part that is a torus, a mesh or a ring, and of which nothing else is in the fabric.
pub(super) fn place(part: &Part<'_>, topology: Option<&Topology>) -> Option<Placed> {
    if let Some(order) = ring(part) {
        return Some(circle(part, &order));
    }
    // The recognition takes whole fabrics.
    let topology = topology.filter(|topology| topology.xbar_count() == part.len())?;
    let grid = recognise(topology, &TorusStatement::default()).ok()?;
    if grid.dimensions().len() < 2 {
        return None;
    }
    let at: Vec<[i64; 3]> =
        (0..part.len() as u32).map(|xbar| grid.coordinates(xbar).map(i64::from)).collect();
    Some(unfold(part, &unfolded(&at)))
}

/// The xbars of a ring in their order, from the first one towards the one with the lower name.
fn ring(part: &Part<'_>) -> Option<Vec<u32>> {
    if part.len() < 3 || part.neighbours.iter().any(|near| near.len() != 2) {
        return None;
    }
    let rank = |xbar: u32| part.ranks[xbar as usize];
    let first = (0..part.len() as u32).min_by_key(|&xbar| rank(xbar))?;
    let mut next = *part.neighbours[first as usize].iter().min_by_key(|&&xbar| rank(xbar))?;
    let mut order = vec![first];
    while next != first {
        let last = order.last().copied()?;
        order.push(next);
        next = *part.neighbours[next as usize].iter().find(|&&far| far != last)?;
    }
    (order.len() == part.len()).then_some(order)
}

/// Boxes on a circle, clockwise from the top.
fn circle(part: &Part<'_>, order: &[u32]) -> Placed {
    let (width, height) = part.largest();
    let step = (width.max(height) + 2 * GAP) as f64;
    let radius = (step * order.len() as f64 / std::f64::consts::TAU).max(step);
    let mut boxes = vec![Rect::default(); part.len()];
    let mut places = vec![0; part.len()];
    for (place, &xbar) in order.iter().enumerate() {
        places[xbar as usize] = place as u32;
        let (sin, cos) = (std::f64::consts::TAU * place as f64 / order.len() as f64).sin_cos();
        let centre = ((radius * sin).round() as i64, (-radius * cos).round() as i64);
        let size = part.sizes[xbar as usize];
        boxes[xbar as usize] = Rect { at: (centre.0 - size.0 / 2, centre.1 - size.1 / 2), size };
    }
    Placed { shape: Shape::Circle(places), boxes, tiers: vec![0; part.len()], frames: Vec::new() }
}

/// Columns and rows for coordinates, and how many of them make a cell: cells stand a little apart.
fn unfolded(at: &[[i64; 3]]) -> (Vec<Point>, i64) {
    let size = |dimension: usize| at.iter().map(|at| at[dimension] + 1).max().unwrap_or(1);
    let depth = size(2);
    if depth <= MOST_DIAGONAL {
        return (at.iter().map(|[x, y, z]| (x * depth + z, y * depth + z)).collect(), depth);
    }
    let across = (1..=depth).find(|across| across * across >= depth).unwrap_or(1);
    let (wide, high) = (size(0) + 1, size(1) + 1);
    (at.iter().map(|[x, y, z]| (z % across * wide + x, z / across * high + y)).collect(), 1)
}

fn unfold(part: &Part<'_>, (at, depth): &(Vec<Point>, i64)) -> Placed {
    let (width, height) = part.largest();
    let (wide, high) = (width + 3 * GAP, height + 3 * GAP);
    let apart = if *depth > 1 { 2 * GAP } else { 0 };
    let boxes = at.iter().zip(&part.sizes).map(|(&(column, row), &size)| {
        let aside = (column / depth * apart, row / depth * apart);
        let centre = (column * wide + width / 2 + aside.0, row * high + height / 2 + aside.1);
        Rect { at: (centre.0 - size.0 / 2, centre.1 - size.1 / 2), size }
    });
    Placed {
        boxes: boxes.collect(),
        shape: Shape::Grid(at.clone()),
        tiers: vec![0; part.len()],
        frames: Vec::new(),
    }
}
