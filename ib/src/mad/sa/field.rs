//! Parts of records that a request can name.

/// A part of a record, and the bit of the component mask by which a request says that it means something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    component: u8,
    first_bit: usize,
    bits: usize,
}

impl Field {
    /// A field of whole bytes.
    pub const fn bytes(component: u8, at: usize, count: usize) -> Self {
        Self { component, first_bit: at * 8, bits: count * 8 }
    }

    /// A field of bits, which are counted from the highest one of the byte at `at`.
    pub const fn bits(component: u8, at: usize, first: usize, bits: usize) -> Self {
        Self { component, first_bit: at * 8 + first, bits }
    }

    /// The bit of the component mask.
    pub const fn mask(&self) -> u64 {
        1 << self.component
    }

    /// Whether two records are the same in this part. What is beyond the end of a record counts as zeros.
    fn is_same(&self, a: &[u8], b: &[u8]) -> bool {
        let end = self.first_bit + self.bits;
        (self.first_bit / 8..end.div_ceil(8)).all(|at| {
            let before = self.first_bit.saturating_sub(at * 8).min(8);
            let after = ((at + 1) * 8).saturating_sub(end).min(8);
            let mask = (0xFF_u16 >> before) as u8 & (0xFF_u16 << after) as u8;
            let byte = |of: &[u8]| of.get(at).copied().unwrap_or_default();
            (byte(a) ^ byte(b)) & mask == 0
        })
    }
}

/// Whether a record matches a request in all parts that the request's component mask names.
pub fn matches(fields: &[Field], mask: u64, wanted: &[u8], record: &[u8]) -> bool {
    fields.iter().filter(|field| mask & field.mask() != 0).all(|field| field.is_same(wanted, record))
}
