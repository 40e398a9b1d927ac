//! Whether a path that answers loses frames.

/// How many checks are looked at together.
const LOOKED_AT: u32 = u64::BITS;
/// If so many of these got lost, a tenth or more, the path is worth a closer look.
const MOST_LOST: u32 = 7;

/// What became of the latest checks of a path that are as long as each other. A cable with bit errors loses more long frames
/// than short ones. A check that repeats one without an answer is not among them: these are
/// sent where something is amiss already, and a short pause would count for many losses.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// A bit for each check, the latest is the lowest; it is set if the check got lost.
    lost: u64,
    /// How many bits are of checks, up to all of them.
    seen: u32,
}

impl Losses {
    /// Takes in what became of a check. Returns whether so many got lost that the path is worth a closer look, and begins anew if so.
    pub(super) fn note(&mut self, is_lost: bool) -> bool {
        self.lost = self.lost << 1 | u64::from(is_lost);
        self.seen = (self.seen + 1).min(LOOKED_AT);
        let loses = self.seen == LOOKED_AT && self.lost.count_ones() >= MOST_LOST;
        if loses {
            *self = Self::default();
        }
        loses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many checks a path is looked at of which one in `every` gets lost.
    fn looked_at_after(every: u32) -> Option<u32> {
        let mut losses = Losses::default();
        (1..=1000).find(|check| losses.note(check % every == 0))
    }

    #[test]
    fn a_path_that_loses_a_tenth_is_looked_at_and_one_that_loses_less_is_not() {
        for every in [2, 5, 9] {
            assert_eq!(looked_at_after(every), Some(64), "one in {every}");
        }
        for every in [11, 20, 1001] {
            assert_eq!(looked_at_after(every), None, "one in {every}");
        }
    }

    #[test]
    fn it_is_looked_at_again_only_after_as_many_checks() {
        let mut losses = Losses::default();
        let looked_at: Vec<u32> = (1..=200).filter(|check| losses.note(check % 3 == 0)).collect();
        assert_eq!(looked_at, [64, 128, 192]);
    }
}
