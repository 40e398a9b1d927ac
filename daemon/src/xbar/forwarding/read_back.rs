//! Reads back what the kernel holds for somebody who asks, beside whoever changes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mapper_fib::Objects;
use mapper_machine::kernel::{Kernel, KernelError};

use super::Forwarding;

/// How often the kernel was told something else.
#[derive(Debug, Clone, Default)]
pub(super) struct Renewals(Arc<AtomicU64>);

impl Renewals {
    /// Counts a change before the kernel is told of it, so that whoever read any part of the change from the kernel finds the count
    /// raised already.
    pub(super) fn begin_another(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Reads the kernel back, on whichever thread.
#[derive(Debug, Clone)]
pub(crate) struct ReadBack {
    renewals: Renewals,
    /// How often the kernel had been told something else when this was made.
    before: u64,
    /// Whether it may hold what an earlier run left.
    has_leavings: bool,
}

/// What the kernel was found to hold.
#[derive(Debug)]
pub(crate) struct Found {
    /// What it holds of ours.
    pub(crate) there: Objects,
    /// Why this cannot be held against what the kernel was told when it was asked for, in words; `None` if it can.
    pub(crate) not_comparable: Option<&'static str>,
}

impl Forwarding {
    /// What it takes to read the kernel back on another thread, which may hold what an earlier run left, or not.
    pub(crate) fn read_back(&self, has_leavings: bool) -> ReadBack {
        let Self { renewals, .. } = self;
        ReadBack { renewals: renewals.clone(), before: renewals.count(), has_leavings }
    }
}

impl ReadBack {
    /// Reads the kernel, by a socket of its own, and waits for it.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub(crate) fn read(&self) -> Result<Found, KernelError> {
        let there = Kernel::open()?.dump()?;
        Ok(Found { there, not_comparable: self.not_comparable() })
    }

    /// Why what was read just now cannot be held against what the kernel was told, in words; `None` if it can.
    fn not_comparable(&self) -> Option<&'static str> {
        if self.has_leavings {
            Some("packets may still go by what an earlier run of its agent left")
        } else if self.renewals.count() != self.before {
            Some("its agent changed what it holds while it was read; ask again")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_compared_unless_it_changed_meanwhile_or_an_earlier_run_left_some_of_it() {
        let renewals = Renewals::default();
        renewals.begin_another();
        let read_back =
            |has_leavings| ReadBack { renewals: renewals.clone(), before: renewals.count(), has_leavings };
        let (own_alone, with_leavings) = (read_back(false), read_back(true));
        assert_eq!(own_alone.not_comparable(), None);
        assert!(with_leavings.not_comparable().is_some_and(|why| why.contains("an earlier run")));
        renewals.begin_another();
        assert!(own_alone.not_comparable().is_some_and(|why| why.contains("ask again")));
        assert_eq!(read_back(false).not_comparable(), None, "it is asked again");
    }
}
