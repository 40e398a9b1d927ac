//! R1: the default, X then Y then Z, the shorter way round.

use super::super::heading::Heading;
use super::super::lattice::Lattice;
use super::Aim;

/// R1: the heading along the first dimension whose coordinate is not right yet, the shorter way round a ring;
/// `None` at the aim.
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
pub(in super::super) fn along(lattice: &Lattice, dimension: usize, at: u8, aim: &Aim) -> Option<Heading> {
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

#[cfg(test)]
mod tests {
    use crate::engines::torus::fabrics::Broken;

    #[test]
    fn x_goes_before_y_and_y_before_z_the_shorter_way_round() {
        let torus = Broken::new(&[(5, true), (5, true), (5, true)], 1);
        assert_eq!(torus.choose([0, 0, 0], [2, 3, 4]), "x+");
        assert_eq!(torus.choose([0, 0, 0], [3, 3, 4]), "x-");
        assert_eq!(torus.choose([3, 0, 0], [3, 3, 4]), "y-");
        assert_eq!(torus.choose([3, 3, 0], [3, 3, 4]), "z-");
        assert_eq!(torus.choose([3, 3, 4], [3, 3, 4]), "none");
        let mesh = Broken::new(&[(5, false)], 1);
        assert_eq!(mesh.choose([0, 0, 0], [4, 0, 0]), "x+");
    }

    #[test]
    fn ties_are_shared() {
        let ring = Broken::new(&[(4, true)], 1);
        let chosen = [0, 1, 2, 3].map(|at| ring.choose([at, 0, 0], [(at + 2) % 4, 0, 0]));
        assert_eq!(chosen, ["x+", "x-", "x+", "x-"]);
    }
}
