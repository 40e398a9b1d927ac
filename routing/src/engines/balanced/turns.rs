//! Takes the ports of a set in turn.

/// The bit of a set whose turn it is.
pub(super) fn nth(set: &[u64], turn: usize) -> Option<usize> {
    BitsInTurn::new(set, turn).next()
}

/// The bits of a set, again and again, beginning with one of them.
pub(super) struct BitsInTurn<'a> {
    set: &'a [u64],
    word: usize,
    left: u64,
}

impl<'a> BitsInTurn<'a> {
    pub(super) fn new(set: &'a [u64], turn: usize) -> Self {
        let start = turn % (set.len() * 64);
        Self { set, word: start / 64, left: set[start / 64] & u64::MAX << (start % 64) }
    }

    pub(super) fn next(&mut self) -> Option<usize> {
        for _ in 0..=self.set.len() {
            if self.left != 0 {
                let bit = self.left.trailing_zeros() as usize;
                self.left &= self.left - 1;
                return Some(self.word * 64 + bit);
            }
            self.word = (self.word + 1) % self.set.len();
            self.left = self.set[self.word];
        }
        None
    }
}
