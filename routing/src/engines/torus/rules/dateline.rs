//! R4's last sentence: where the datelines are.

use super::super::heading::Heading;
use super::super::lattice::Lattice;

/// Places the dateline of each ring.
///
/// A frame that goes round a broken link by y+ or z+ must not cross a dateline there, or it could not go
/// on along X or Y (R2). So Z's dateline is where no router lacks both its X and its y+ link (it would have
/// to take z+), or its Y link; Y's dateline where no router lacks an X link (it would take y+). A broken
/// link across Z's dateline could not be gone round at all: R6's y+, z+ would bar the way back along Y.
/// Where no place is free of all these, the one with the fewest serves. The X dateline bars nothing.
///
/// ```text
///   y=3  o   o   o   o
///       ===============  the dateline: every x link of the row below is good
///   y=2  o---o---o---o
///   y=1  o---o # o---o   y+ from here must not cross it
/// ```
///
/// Returns all places, the best first; of equal ones, those with the highest coordinates, where coordinates
/// wrap. `stated` are datelines that are not for choice.
pub(in super::super) fn place_datelines(lattice: &Lattice, stated: [Option<u8>; 3]) -> Vec<[u8; 3]> {
    let choice = |dimension: usize| -> Vec<(u8, (usize, usize))> {
        if let Some(stated) = stated[dimension].filter(|&at| at < lattice.sizes[dimension]) {
            return vec![(stated, (0, 0))];
        }
        if dimension == 0 || !lattice.rings[dimension] {
            return vec![(lattice.datelines[dimension], (0, 0))];
        }
        (0..lattice.sizes[dimension]).rev().map(|at| (at, cost(lattice, dimension, at))).collect()
    };
    let (x, y, z) = (choice(0), choice(1), choice(2));
    let mut all = Vec::with_capacity(x.len() * y.len() * z.len());
    for &(at_z, cost_z) in &z {
        for &(at_y, cost_y) in &y {
            let cost = (cost_y.0 + cost_z.0, cost_y.1 + cost_z.1);
            all.extend(x.iter().map(|&(at_x, _)| (cost, [at_x, at_y, at_z])));
        }
    }
    all.sort_by_key(|&(cost, _)| cost);
    all.into_iter().map(|(_, datelines)| datelines).collect()
}

/// What a dateline above a coordinate would cost: how many routers would have to cross it to go round a
/// broken link, and then how many might.
fn cost(lattice: &Lattice, dimension: usize, at: u8) -> (usize, usize) {
    let lacks = |router: u32, headings: &[Heading]| headings.iter().any(|&h| lattice.is_missing(router, h));
    let (x, y) = (&Heading::ALL[..2], &Heading::ALL[2..4]);
    let routers =
        (0..lattice.router_count() as u32).filter(|&router| lattice.coordinates(router)[dimension] == at);
    let (mut must, mut might) = (0, 0);
    for router in routers {
        let around_x = lacks(router, x);
        let boxed_in = match dimension {
            1 => around_x,
            _ => {
                around_x && !lattice.has(router, Heading::Y_PLUS)
                    || lattice.is_missing(router, Heading::Z_PLUS)
            }
        };
        must += usize::from(boxed_in);
        might += usize::from(around_x || (dimension == 2 && lacks(router, y)));
    }
    (must, might)
}

#[cfg(test)]
mod tests {
    use crate::engines::torus::fabrics::Broken;

    use super::*;

    #[test]
    fn datelines_are_where_nothing_must_go_round_across_them() {
        let rings = [(3, false), (3, true), (3, true)];
        let place = |broken: Broken| place_datelines(&broken.lattice(), [None; 3])[0];
        assert_eq!(place(Broken::new(&rings, 1)), [2, 2, 2]);
        // From (0,2,z) frames go y+ instead of x+, which must not cross a dateline.
        assert_eq!(place(Broken::new(&rings, 1).cut([0, 2, 1], "x+")), [2, 1, 2]);
        // Here frames can take neither x+ nor y+ and go z+, so Z's dateline is not above z = 2.
        let broken = Broken::new(&rings, 1).cut([0, 2, 2], "x+").cut([0, 2, 2], "y+");
        assert_eq!(place(broken), [2, 1, 1]);
        assert_eq!(place_datelines(&Broken::new(&rings, 1).lattice(), [None, Some(0), None])[0], [2, 0, 2]);
    }
}
