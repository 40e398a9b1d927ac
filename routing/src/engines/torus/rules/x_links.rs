//! R4: around X links.

use super::super::heading::Heading;
use super::super::lattice::Lattice;
use super::super::regions::Regions;
use super::{Aim, is_open};

/// R4: what to do where an X link is wanted.
///
/// If the link is broken, the frame goes y+ if that link is there, else z+. Neither may cross its dateline, for X
/// is still to come.
///
/// ```text
///   y        o-->o-->D        o = router
///   ^        ^                S's x+ is broken:
///   |        S # o   o        y+, then on along X
/// ```
///
/// If the link is good, but the router behind it (E) has neither y+ nor z+, the frame goes z+ at once. It does so
/// only if E is in the destination's region and this router is not, or if this router is in the destination's region
/// and at its y. A frame that went on to E might find the next X link broken, too, and be boxed in. Where E is the
/// destination, it goes to E.
///
/// ```text
///   z        o-->o-->o
///   ^        ^   #   |        S's x+ is good, E's z+ and y+ are not
///   |        S---E # D
/// ```
pub(super) fn choose(
    lattice: &Lattice,
    regions: &Regions,
    router: u32,
    aim: &Aim,
    wanted: Heading,
) -> Option<Heading> {
    let Some(behind) = lattice.next(router, wanted) else {
        let around = [Heading::Y_PLUS, Heading::Z_PLUS];
        return around.into_iter().find(|&heading| is_open(lattice, router, heading));
    };
    let boxes_in = !lattice.has(behind, Heading::Y_PLUS) && !lattice.has(behind, Heading::Z_PLUS);
    if boxes_in
        && !aim.contains(lattice.coordinates(behind))
        && is_near(lattice, regions, router, behind, aim)
        && is_open(lattice, router, Heading::Z_PLUS)
    {
        return Some(Heading::Z_PLUS);
    }
    Some(wanted)
}

/// Whether the destination's region begins behind the link, or is here and the destination at this y.
fn is_near(lattice: &Lattice, regions: &Regions, router: u32, behind: u32, aim: &Aim) -> bool {
    let (here, there) = (lattice.coordinates(router), lattice.coordinates(behind));
    let region = regions.of(aim.first);
    if regions.of(here) == region { here[1] == aim.first[1] } else { regions.of(there) == region }
}

#[cfg(test)]
mod tests {
    use crate::engines::torus::fabrics::Broken;

    const LINES: [(u8, bool); 3] = [(2, false); 3];

    #[test]
    fn a_broken_x_link_is_gone_round_by_y_plus_else_by_z_plus() {
        let broken = Broken::new(&LINES, 1).cut([0, 0, 0], "x+");
        assert_eq!(broken.choose([0, 0, 0], [1, 0, 0]), "y+");
        assert_eq!(broken.cut([0, 0, 0], "y+").choose([0, 0, 0], [1, 0, 0]), "z+");
        // At the edge of a mesh there is no y+.
        let broken = Broken::new(&LINES, 1).cut([0, 1, 0], "x+");
        assert_eq!(broken.choose([0, 1, 0], [1, 0, 0]), "z+");
        let broken = Broken::new(&LINES, 1).cut([0, 1, 1], "x+");
        assert_eq!(broken.choose([0, 1, 1], [1, 0, 0]), "none");
    }

    #[test]
    fn no_way_round_crosses_a_dateline() {
        let rings = [(2, false), (3, true), (3, true)];
        let broken = Broken::new(&rings, 1).cut([0, 2, 0], "x+").cut([0, 2, 2], "x+");
        // Datelines are above y = 2 and above z = 2.
        assert_eq!(broken.choose([0, 2, 0], [1, 0, 0]), "z+");
        assert_eq!(broken.choose([0, 2, 2], [1, 0, 0]), "none");
    }

    #[test]
    fn a_router_that_boxes_frames_in_is_avoided() {
        // E has no y+, being at the edge, and no z+.
        let broken = Broken::new(&[(3, false), (2, false), (2, false)], 1).cut([1, 1, 0], "z+");
        assert_eq!(broken.choose([0, 1, 0], [2, 1, 0]), "z+");
        assert_eq!(broken.choose([0, 1, 0], [2, 0, 0]), "x+", "another y: E can go on by y-");
        assert_eq!(broken.choose([0, 1, 0], [1, 1, 0]), "x+", "E is the destination");
    }
}
