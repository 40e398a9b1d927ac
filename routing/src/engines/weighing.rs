//! Whether trees are worth the layers that they need.

/// Trees in layers, as far as it matters for a choice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight {
    /// How many layers they need.
    pub(super) layers: usize,
    /// How much routes meet each other. A cable that all must pass is only a part of this, whereas it alone
    /// would decide how busy the busiest channel is.
    pub(super) crowding: u128,
}

impl Weight {
    /// Whether these trees are to be taken rather than others, which mostly need fewer layers. Each further
    /// layer is worth it if routes then meet less by more than one of so many `parts`.
    ///
    /// Trees for all hosts of an xbar need few layers, but lead them all through one of many parallel ways.
    /// Trees that fit into `most` layers go before those that do not; if neither fit, fewer layers are
    /// better.
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
