//! The Internet checksum: the ones' complement of the ones' complement sum of 16-bit words
//! (RFC 1071).

/// A sum that is not yet folded to 16 bits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum(u64);

impl Sum {
    /// The sum over some bytes. An odd last byte is the high half of a word.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<4>();
        // Words are summed up in the machine's own byte order, and the bytes of the sum are swapped at the
        // end. The result is the same (RFC 1071, section 2 B).
        let sum: u64 = words.iter().map(|&word| u64::from(u32::from_ne_bytes(word))).sum();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        Self(u64::from(fold(sum + u64::from(u32::from_ne_bytes(last))).to_be()))
    }

    /// Adds a number of up to 32 bits.
    pub(super) fn add(self, value: u32) -> Self {
        Self(self.0 + u64::from(value))
    }

    /// Adds the sum over other bytes, which must begin at an even offset.
    pub(super) fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// Subtracts a number of up to 32 bits.
    pub(super) fn less(self, value: u32) -> Self {
        Self(self.0 + u64::from(!fold(value.into())))
    }

    /// The sum in 16 bits.
    pub(super) fn folded(self) -> u16 {
        fold(self.0)
    }

    /// The value of a checksum field, which is the complement of the sum.
    pub(super) fn checksum(self) -> u16 {
        !fold(self.0)
    }
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_standard_comes_out() {
        let sum = Sum::of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.folded(), 0xddf2);
        assert_eq!(sum.checksum(), 0x220d);
    }

    proptest! {
        #[test]
        fn it_is_the_sum_of_big_endian_words(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            more in any::<u32>(),
        ) {
            let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
            let mut sum: u32 = bytes.chunks(2).map(word).sum();
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            prop_assert_eq!(u32::from(Sum::of(&bytes).folded()), sum);
            let there_and_back = Sum::of(&bytes).add(more).less(more).folded();
            // In ones' complement zero has two forms, which the remainder makes one.
            prop_assert_eq!(u32::from(there_and_back) % 0xffff, sum % 0xffff);
        }
    }
}
