//! Which sequence numbers of a sender have been heard: the sliding window of RFC 4303, 3.4.3.

/// How far behind the highest number a frame may come.
pub(super) const WINDOW: u64 = 256;

/// How far behind the frame that proved a session a frame may have been sent, and not be taken for
/// an earlier recording of that session: what a mapper sends in a round trip.
pub(super) const REACH: u64 = 128;

const WORDS: usize = (WINDOW / 64) as usize;

/// The highest number heard, and which of those just below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Window {
    highest: u64,
    /// Bit n, counted from the lowest of the first word: whether `highest - n` was heard.
    heard: [u64; WORDS],
}

impl Window {
    /// The window of a session that frame `highest` has proved. The frames sent just before that one may still come.
    pub(super) const fn begin(highest: u64) -> Self {
        let mut heard = [u64::MAX; WORDS];
        let mut nth = 0;
        while nth < (REACH / 64) as usize {
            heard[nth] = 0;
            nth += 1;
        }
        heard[0] = 1;
        Self { highest, heard }
    }

    /// Whether a number was not heard yet, and is not so far behind that nobody can say.
    pub(super) const fn is_fresh(&self, sequence: u64) -> bool {
        match self.highest.checked_sub(sequence) {
            None => true,
            Some(behind @ 0..WINDOW) => self.heard[(behind / 64) as usize] >> (behind % 64) & 1 == 0,
            Some(_) => false,
        }
    }

    /// Notes that a number was heard.
    pub(super) fn note(&mut self, sequence: u64) {
        match self.highest.checked_sub(sequence) {
            None => {
                self.slide(sequence - self.highest);
                self.highest = sequence;
                self.heard[0] |= 1;
            }
            Some(behind @ 0..WINDOW) => self.heard[(behind / 64) as usize] |= 1 << (behind % 64),
            Some(_) => {}
        }
    }

    fn slide(&mut self, by: u64) {
        let (words, bits) = ((by / 64) as usize, by % 64);
        if by >= WINDOW {
            self.heard = [0; WORDS];
            return;
        }
        for nth in (0..WORDS).rev() {
            let word = |at: Option<usize>| at.map_or(0, |at| self.heard[at]);
            let high = word(nth.checked_sub(words)) << bits;
            // The upper bits of the word below move into the lower bits of this one.
            let low = if bits == 0 { 0 } else { word(nth.checked_sub(words + 1)) >> (64 - bits) };
            self.heard[nth] = high | low;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_long_before_the_beginning_is_fresh() {
        let window = Window::begin(1000);
        assert!(window.is_fresh(1001) && window.is_fresh(u64::MAX));
        assert!(!window.is_fresh(1000), "the proof itself");
        assert!(window.is_fresh(999) && window.is_fresh(1001 - REACH), "on its way at the proof");
        assert!(!window.is_fresh(1000 - REACH) && !window.is_fresh(1) && !window.is_fresh(0));
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_which_the_far_past_counts_as_heard(
            steps in vec((prop_oneof![0..4u64, 0..70u64, 0..600u64], any::<bool>()), 0..200),
        ) {
            let mut window = Window::begin(1000);
            let mut heard = BTreeSet::from([1000]);
            let mut highest = 1000_u64;
            for (distance, ahead) in steps {
                let sequence = if ahead { highest + distance } else { highest - distance.min(highest) };
                let fresh = sequence > 1000 - REACH && highest.saturating_sub(sequence) < WINDOW
                    && !heard.contains(&sequence);
                prop_assert_eq!(window.is_fresh(sequence), fresh, "{} of {}", sequence, highest);
                window.note(sequence);
                heard.insert(sequence);
                highest = highest.max(sequence);
            }
        }
    }
}
