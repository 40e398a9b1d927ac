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
/// Along a ring of Y the row at y = Ymax is like any other, and there is no exception. On a mesh the
/// exception is free of circles only if no route goes the other way round, up by y+ into the highest row and
/// along it. So it is used only for destinations that cannot be reached without it, and the layers are proved
/// with it.
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

#[cfg(test)]
mod tests {
    use crate::engines::torus::fabrics::Broken;

    use super::*;

    #[test]
    fn only_the_highest_row_of_a_mesh_may_dodge() {
        let mesh = Broken::new(&[(3, false), (3, false)], 1);
        let after = |broken: &Broken, y: u8, phase: Phase| {
            after_dodge(&broken.lattice(), broken.at([0, y, 0]), phase, Heading::Y_MINUS)
        };
        assert_eq!(after(&mesh, 2, Phase::A), Some(Phase::A));
        assert_eq!(after(&mesh, 1, Phase::A), Some(Phase::B));
        assert_eq!(after(&mesh, 2, Phase::B), Some(Phase::B));
        let ring = Broken::new(&[(3, false), (3, true)], 1);
        assert_eq!(after(&ring, 2, Phase::A), Some(Phase::B));
    }

    #[test]
    fn a_mesh_that_needs_it_is_routed() {
        use crate::engines::Settings;
        use crate::engines::torus::fabrics::prove;

        // S at the left of the highest row can leave it downwards only.
        let broken = Broken::new(&[(3, false), (2, false)], 1).cut([0, 1, 0], "x+");
        let (subnet, routing) = broken.route(&Settings::default()).unwrap();
        let figures = prove(&subnet, &routing);
        assert_eq!(figures.pairs, 30);
    }
}
