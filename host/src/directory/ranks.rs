//! Sets of hosts of one map.

/// Some of the hosts of a map, in the order of [`Basis::rank`](crate::routes::Basis::rank). Each host takes a
/// bit: there are as many of these sets as hosts, and each may hold nearly all hosts.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranks {
    words: Vec<u64>,
    count: usize,
}

impl Ranks {
    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn insert(&mut self, rank: usize) {
        let (word, bit) = (rank / 64, 1 << (rank % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.count += usize::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    pub(super) fn remove(&mut self, rank: usize) {
        let bit = 1 << (rank % 64);
        if let Some(word) = self.words.get_mut(rank / 64).filter(|word| **word & bit != 0) {
            *word &= !bit;
            self.count -= 1;
        }
    }

    /// All hosts of the set by rising rank.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(64 * at + bit)
            })
        })
    }
}

impl Extend<usize> for Ranks {
    fn extend<I: IntoIterator<Item = usize>>(&mut self, ranks: I) {
        ranks.into_iter().for_each(|rank| self.insert(rank));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_is_what_was_put_in_and_not_taken_out(steps in vec((any::<bool>(), 0..300usize), 0..200)) {
            let (mut set, mut model) = (Ranks::default(), BTreeSet::new());
            for (is_put_in, rank) in steps {
                if is_put_in {
                    set.insert(rank);
                    model.insert(rank);
                } else {
                    set.remove(rank);
                    model.remove(&rank);
                }
                prop_assert_eq!(set.is_empty(), model.is_empty());
            }
            prop_assert!(set.iter().eq(model));
        }
    }
}
