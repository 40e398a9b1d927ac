//! R3: the one exception from the order of phases.

use super::super::heading::Heading;
use super::super::lattice::Lattice;
use super::Phase;

/// R3: at the highest y of a mesh, y- may be followed by x+ or x-.
///
/// ```text
///   y=2  S # o   o      S's x+ is broken and there is no y+: down, and on along X
///   y=1  v-->o-->D
///   ------------------ x
/// ```
///
/// Along a ring of Y the row at y = Ymax is like any other, and the exception does not exist. On a mesh
/// it is free of circles only as far as no route goes the other way round: up by y+ into the highest row
/// and along it. So it is used only for destinations that cannot be reached without it, and the layers
/// are proved with it.
///
/// The phase after a step, with the exception.
pub(in super::super) fn after_dodge(
    lattice: &Lattice,
    router: u32,
    phase: Phase,
    heading: Heading,
) -> Option<Phase> {
    let highest = lattice.coordinates(router)[1] + 1 == lattice.sizes[1];
    if phase == Phase::A && heading == Heading::Y_MINUS && highest && !lattice.rings[1] {
        return Some(phase);
    }
    phase.after(heading, lattice.crosses(router, heading))
}
