//! R0 and R2: the phases of a route.

use super::super::heading::Heading;

/// R0: how far a frame has come in the order of directions.
///
/// ```text
///      phase A              phase B              phase C
///   x+ x- y+ z+   ----->   y+ y- z+   ----->     z+ z-
///                 by y-               by z-
///        \___________________________________/
///                        by z-
/// ```
///
/// Directions mix freely inside a phase, and a frame never returns to an earlier one: after y- no X,
/// after z- no X and no Y. No frame turns by 180 degrees.
///
/// On a mesh these turns close no circle. A circle goes as far back as it goes forth. After z- come only
/// z-, so no circle has a z-, and so none has a z+. Of what is left, after y- come only y-, so no circle
/// has a y-, and so none a y+; and x+ and x- alone close none without turning by 180 degrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Phase {
    /// x+, x-, y+, z+.
    A,
    /// y+, y-, z+.
    B,
    /// z+, z-.
    C,
}

impl Phase {
    /// All phases, in their order.
    pub(in super::super) const ALL: [Self; 3] = [Self::A, Self::B, Self::C];

    /// The phase after a step, if the step is allowed.
    ///
    /// R2: once a frame has crossed the dateline of a dimension, it may not go in a higher one (X is
    /// highest). So crossing Y's dateline ends phase A, and crossing Z's ends phases A and B.
    ///
    /// ```text
    ///   Y dateline
    ///  y=3 | y=0     a frame that goes y+ from 3 to 0 is in phase B then:
    ///   o==|==>o--x  no X any more, neither x+ nor x-
    ///      |   |
    ///      |   v     y, z are still free
    /// ```
    pub(in super::super) fn after(self, heading: Heading, crosses_dateline: bool) -> Option<Self> {
        let least = match (heading, crosses_dateline) {
            (Heading::X_PLUS | Heading::X_MINUS, _) | (Heading::Y_PLUS | Heading::Z_PLUS, false) => Self::A,
            (Heading::Y_PLUS, true) | (Heading::Y_MINUS, _) => Self::B,
            _ => Self::C,
        };
        (self <= Self::last_for(heading)).then(|| self.max(least))
    }

    /// The last phase that has a heading.
    fn last_for(heading: Heading) -> Self {
        match heading.dimension() {
            0 => Self::A,
            1 => Self::B,
            _ => Self::C,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_directions() {
        let allowed = |phase: Phase| {
            let all = Heading::ALL.into_iter().filter(|&heading| phase.after(heading, false).is_some());
            all.map(|heading| heading.to_string()).collect::<Vec<_>>().join(" ")
        };
        // y- and z- end the phase that they are taken in.
        assert_eq!(allowed(Phase::A), "x+ x- y+ y- z+ z-");
        assert_eq!(allowed(Phase::B), "y+ y- z+ z-");
        assert_eq!(allowed(Phase::C), "z+ z-");
    }

    #[test]
    fn no_phase_comes_back() {
        let after_y_minus = Phase::A.after(Heading::Y_MINUS, false).unwrap();
        assert_eq!(after_y_minus, Phase::B);
        assert_eq!(after_y_minus.after(Heading::Z_PLUS, false), Some(Phase::B));
        assert_eq!(after_y_minus.after(Heading::X_PLUS, false), None);
        let after_z_minus = Phase::A.after(Heading::Z_MINUS, false).unwrap();
        assert_eq!(after_z_minus.after(Heading::Y_PLUS, false), None);
        for first in Phase::ALL {
            for heading in Heading::ALL {
                for crosses in [false, true] {
                    assert!(first.after(heading, crosses).is_none_or(|second| second >= first));
                }
            }
        }
    }

    #[test]
    fn a_crossed_dateline_bars_the_higher_dimensions() {
        assert_eq!(Phase::A.after(Heading::X_PLUS, true), Some(Phase::A));
        assert_eq!(Phase::A.after(Heading::Y_PLUS, true), Some(Phase::B));
        assert_eq!(Phase::A.after(Heading::Z_PLUS, true), Some(Phase::C));
        assert_eq!(Phase::B.after(Heading::Z_PLUS, true), Some(Phase::C));
    }
}
