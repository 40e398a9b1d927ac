//! R4: around X links.

use super::super::heading::Heading;
use super::super::lattice::Lattice;
use super::super::regions::Regions;
use super::{Aim, is_open};

/// R4: what to do where an X link is wanted.
///
/// Broken: y+ if it is there, else z+. Neither may cross its dateline, for X is still to come.
///
/// ```text
///   y        o-->o-->D        o = router
///   ^        ^                S's x+ is broken:
///   |        S # o   o        y+, then on along X
/// ```
///
/// Good, but the router behind it (E) has neither y+ nor z+: z+ at once, if that router is in the
/// destination's region and this one is not, or if this is the destination's region and its y. A frame
/// that went on to E might find the next X link broken, too, and be boxed in. Not so if E is the
/// destination.
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
    if regions.of(here) == region {
        here[1] == aim.first[1]
    } else {
        regions.of(there) == region
    }
}
