//! The numbers of nexthops and groups.

use std::collections::BTreeSet;

/// Gives out numbers, the lowest free ones first.
#[derive(Debug)]
pub(super) struct Numbers {
    next: u32,
    free: BTreeSet<u32>,
}

impl Numbers {
    /// All numbers from this one on are free.
    pub(super) const fn from(first: u32) -> Self {
        Self { next: first, free: BTreeSet::new() }
    }

    pub(super) fn take(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    pub(super) fn give_back(&mut self, number: u32) {
        self.free.insert(number);
    }
}
