//! R5: around Y links.

use super::super::heading::Heading;
use super::super::lattice::Lattice;
use super::{Aim, is_open, wanted, z_links};

/// R5: what to do where a Y link is wanted.
///
/// If the link is broken, the frame goes z+, to find a good Y link there. If that link is broken, too, it goes the
/// opposite way along Y, and the router that it reaches looks ahead so as not to send it straight back.
///
/// ```text
///   z    o-->o-->D      S's y+ is broken: z+, then on along Y
///   ^    ^
///   |    S # o   o
/// ```
///
/// If the link is good, but the next router's default is z+ and its z+ is broken, the frame goes z+ here.
///
/// ```text
///   z    o-->D          from S along Y, E would be next and want z+
///   ^    ^   #
///   |    S---E
/// ```
///
/// A z+ that crosses its dateline leaves no way along Y, and does not count.
pub(super) fn choose(lattice: &Lattice, router: u32, aim: &Aim, wanted: Heading) -> Option<Heading> {
    let rises = is_open(lattice, router, Heading::Z_PLUS);
    let Some(behind) = lattice.next(router, wanted) else {
        let back = wanted.back();
        return match rises {
            true => Some(Heading::Z_PLUS),
            false => lattice.has(router, back).then_some(back),
        };
    };
    if rises && (stops_before_z(lattice, behind, aim) || sends_back(lattice, behind, aim, wanted)) {
        return Some(Heading::Z_PLUS);
    }
    Some(wanted)
}

/// Whether frames would want z+ at a router, and its z+ is broken.
fn stops_before_z(lattice: &Lattice, router: u32, aim: &Aim) -> bool {
    let here = lattice.coordinates(router);
    !lattice.has(router, Heading::Z_PLUS)
        && wanted(lattice, router, aim).is_some_and(|heading| heading.dimension() == 2)
        && z_links::wished(lattice, here, router, aim) == Some(Heading::Z_PLUS)
}

/// Whether a router would send frames straight back: it wants to go on the same way, cannot, and cannot
/// rise either.
fn sends_back(lattice: &Lattice, router: u32, aim: &Aim, heading: Heading) -> bool {
    wanted(lattice, router, aim) == Some(heading)
        && !lattice.has(router, heading)
        && !is_open(lattice, router, Heading::Z_PLUS)
}

#[cfg(test)]
mod tests {
    use crate::engines::torus::fabrics::Broken;

    const LINES: [(u8, bool); 3] = [(2, false); 3];

    #[test]
    fn a_broken_y_link_is_gone_round_by_z_plus_else_the_opposite_way() {
        let broken = Broken::new(&LINES, 1).cut([0, 0, 0], "y+");
        assert_eq!(broken.choose([0, 0, 0], [0, 1, 0]), "z+");
        let long = [(2, false), (3, false), (2, false)];
        let broken = Broken::new(&long, 1).cut([0, 1, 0], "y+").cut([0, 1, 0], "z+");
        assert_eq!(broken.choose([0, 1, 0], [0, 2, 0]), "y-");
    }

    #[test]
    fn the_router_reached_the_opposite_way_does_not_send_frames_back() {
        let long = [(2, false), (3, false), (2, false)];
        let broken = Broken::new(&long, 1).cut([0, 1, 0], "y+").cut([0, 1, 0], "z+");
        assert_eq!(broken.choose([0, 0, 0], [0, 2, 0]), "z+");
        assert_eq!(broken.choose([0, 0, 0], [0, 1, 0]), "y+", "that router is the destination");
    }

    #[test]
    fn a_router_that_would_want_a_broken_z_plus_is_avoided() {
        let broken = Broken::new(&LINES, 1).cut([0, 1, 0], "z+");
        assert_eq!(broken.choose([0, 0, 0], [0, 1, 1]), "z+");
        assert_eq!(broken.choose([0, 0, 0], [0, 1, 0]), "y+");
    }
}
