//! R1: the default, X then Y then Z, the shorter way round.

use super::super::heading::Heading;
use super::super::lattice::Lattice;
use super::Aim;

/// R1: the heading of the first dimension that is not right yet, the shorter way round a ring. None at
/// the aim.
///
/// ```text
///   y
///   ^   o   o   D        from S first along X,
///   |   o   o   ^        then along Y,
///   |   S-->o-->o        then along Z
///   +------------> x
/// ```
///
/// Where both ways round are equally long, half of the routers go each way, so that neither is loaded
/// more: by the parity of the coordinate where the frame is and of the aim's other coordinates.
pub(in super::super) fn wanted(lattice: &Lattice, router: u32, aim: &Aim) -> Option<Heading> {
    let at = lattice.coordinates(router);
    (0..3).find_map(|dimension| along(lattice, dimension, at[dimension], aim))
}

/// The shorter way along a dimension. None if the coordinate is right.
pub(in super::super) fn along(
    lattice: &Lattice,
    dimension: usize,
    at: u8,
    aim: &Aim,
) -> Option<Heading> {
    if aim.holds(dimension, at) {
        return None;
    }
    let (first, last) = aim.ends(dimension);
    let (plus, minus) = (Heading::along(dimension, true), Heading::along(dimension, false));
    match (lattice.distance(at, first, plus), lattice.distance(at, last, minus)) {
        (Some(up), Some(down)) if up == down => {
            let others = (0..3).filter(|&other| other != dimension).map(|other| u32::from(aim.first[other]));
            let odd = (u32::from(at) + others.sum::<u32>()) % 2 == 1;
            Some(if odd { minus } else { plus })
        }
        (Some(up), Some(down)) => Some(if up < down { plus } else { minus }),
        (Some(_), None) => Some(plus),
        (None, _) => Some(minus),
    }
}
