//! R6: around Z links.

use super::super::heading::Heading;
use super::super::lattice::Lattice;
use super::{Aim, wanted};

/// R6: what to do where a Z link is wanted.
///
/// If z+ is wanted and broken, the frame goes y+, and R5's look-ahead there sends it up rather than back. Where there
/// is no y+, at the edge of a mesh, it goes y-.
///
/// ```text
///   z    D<--o          S's z+ is broken: y+, z+, y-
///   ^    #   ^
///   |    S-->o
/// ```
///
/// If z- is wanted, nothing but z- may follow it, so the whole run down to the destination is looked at. If any link
/// of it is broken, the frame goes z+, the long way round.
///
/// ```text
///   z
///   3    S  -+ up, across the dateline,
///   2    o   |
///        #   |
///   1    D  <+ down from nowhere: the ring closes at 0
///   0    o
/// ```
pub(super) fn choose(lattice: &Lattice, router: u32, aim: &Aim) -> Option<Heading> {
    let wish = wished(lattice, lattice.coordinates(router), router, aim)?;
    let around = match wish {
        Heading::Z_PLUS => [Heading::Z_PLUS, Heading::Y_PLUS, Heading::Y_MINUS].as_slice(),
        _ => &[Heading::Z_MINUS],
    };
    around.iter().copied().find(|&heading| lattice.has(router, heading))
}

/// The way along Z that a frame is to take at a router whose x and y are right: the shorter one, but z+ if
/// the run of z- is broken.
pub(super) fn wished(lattice: &Lattice, here: [u8; 3], router: u32, aim: &Aim) -> Option<Heading> {
    let wish = wanted(lattice, router, aim)?;
    if wish != Heading::Z_MINUS || !lattice.has_broken_column(router) || !lattice.rings[2] {
        return Some(wish);
    }
    let mut at = router;
    let mut place = here;
    while !aim.contains(place) {
        let Some(below) = lattice.next(at, Heading::Z_MINUS) else {
            return Some(Heading::Z_PLUS);
        };
        at = below;
        place = lattice.coordinates(at);
    }
    Some(wish)
}

#[cfg(test)]
mod tests {
    use crate::engines::torus::fabrics::Broken;

    const LINES: [(u8, bool); 3] = [(2, false); 3];

    #[test]
    fn a_broken_z_plus_is_gone_round_by_y_plus_else_by_y_minus() {
        let broken = Broken::new(&LINES, 1).cut([0, 0, 0], "z+");
        assert_eq!(broken.choose([0, 0, 0], [0, 0, 1]), "y+");
        let broken = Broken::new(&LINES, 1).cut([0, 1, 0], "z+");
        assert_eq!(broken.choose([0, 1, 0], [0, 1, 1]), "y-");
    }

    #[test]
    fn a_broken_run_of_z_minus_is_gone_round_the_long_way() {
        let ring = [(2, false), (2, false), (5, true)];
        let broken = Broken::new(&ring, 1).cut([0, 0, 1], "z-");
        assert_eq!(broken.choose([0, 0, 2], [0, 0, 0]), "z+");
        assert_eq!(broken.choose([0, 0, 2], [0, 0, 1]), "z-", "the break is behind the destination");
        assert_eq!(broken.choose([1, 0, 2], [1, 0, 0]), "z-", "another column");
        // On a line there is no long way.
        let broken = Broken::new(&[(2, false), (2, false), (3, false)], 1).cut([0, 0, 1], "z-");
        assert_eq!(broken.choose([0, 0, 2], [0, 0, 0]), "z-");
        assert_eq!(broken.choose([0, 0, 1], [0, 0, 0]), "none");
    }
}
