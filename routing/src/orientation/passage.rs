//! When a route may take a channel.

/// When a route may take a channel.
///
/// A route begins in phase 0 and never returns to an earlier phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Passage {
    /// The last phase in which routes may take it.
    pub(super) until: u8,
    /// The phase that routes are in afterwards, unless they were in a later one already.
    pub(super) then: u8,
}

impl Passage {
    pub(super) const UP: Self = Self { until: 0, then: 0 };
    pub(super) const DOWN: Self = Self { until: 1, then: 1 };
    /// The passage of a channel that no route may take, as there is no phase to be in afterwards.
    pub(super) const BARRED: Self = Self { until: 0, then: u8::MAX };

    /// The last phase before the channel, for a route that is in `after` or an earlier one behind it; none if no
    /// such route takes it.
    pub(crate) fn before(self, after: u8) -> Option<u8> {
        (self.then <= after).then(|| self.until.min(after))
    }

    /// The phase after the channel, for a route that takes it in a phase; none if it may not.
    pub(super) fn after(self, phase: u8) -> Option<u8> {
        (phase <= self.until && !self.is_barred()).then(|| self.then.max(phase))
    }

    /// Whether a route may take another channel right after this one.
    pub(super) fn leads_on_to(self, next: Self) -> bool {
        !self.is_barred() && !next.is_barred() && self.then <= next.until
    }

    /// Whether no route takes the channel.
    pub(super) fn is_barred(self) -> bool {
        self == Self::BARRED
    }
}
