//! Whether trees are worth the layers that they need.

/// Trees in layers, as far as it matters for a choice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight {
    /// How many layers they need.
    pub(super) layers: usize,
    /// How much routes meet each other. One cable that all must pass is in this but a part, where it would be all of what
    /// the busiest channel says.
    pub(super) crowding: u128,
}

impl Weight {
    /// Whether trees are to be taken rather than others, most often such that need fewer layers. Each layer more is
    /// worth it if routes then meet less by more than one of so many `parts`.
    ///
    /// A tree for all hosts of an xbar needs few layers, but leads them all through one of many parallel ways. What fits
    /// into `most` layers goes before what does not; if nothing fits, fewer layers are better.
    pub(super) fn is_worth_more_than(self, fewer: Self, most: usize, parts: u8) -> bool {
        if self.layers > most || fewer.layers > most {
            return self.layers < fewer.layers;
        }
        if self.layers < fewer.layers {
            return !fewer.is_worth_more_than(self, most, parts);
        }
        let more = self.layers - fewer.layers;
        let eased = (0..more).fold(fewer.crowding, |crowding, _| crowding - crowding.div_ceil(parts.into()));
        self.crowding < eased
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layer_more_must_ease_the_crowding() {
        let weight = |layers, crowding| Weight { layers, crowding };
        let is_worth = |one: Weight, fewer: Weight, most| one.is_worth_more_than(fewer, most, 20);
        let one = weight(1, 1000);
        assert!(is_worth(weight(2, 940), one, 8) && !is_worth(weight(2, 960), one, 8));
        assert!(is_worth(weight(4, 850), one, 8) && !is_worth(weight(4, 900), one, 8));
        assert!(!is_worth(weight(2, 10), one, 1), "one layer is all there is");
        assert!(!is_worth(weight(3, 10), weight(2, 1000), 1), "nothing fits");
        assert!(is_worth(one, weight(2, 10), 1) && is_worth(one, weight(2, 960), 8));
    }
}
