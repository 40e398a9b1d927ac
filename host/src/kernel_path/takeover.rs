//! What the kernel is to hold while packets may go by what an earlier run left, and when that goes.

use mapper_fib::takeover::Target;
use mapper_fib::{Nexthop, Objects};
use mapper_proto::Instant;

use super::KernelPath;

impl KernelPath {
    /// Takes in what the kernel holds, and returns what it is to hold instead. As long as packets may go by what an earlier run
    /// left, that is a part of it.
    pub(crate) fn target(&mut self, there: &Objects) -> Target {
        let mut taking_over = std::mem::take(&mut self.left.taking_over);
        let leads =
            |to, nexthop: &Nexthop| !self.cabled.is_dark(nexthop.interface()) && self.leads_on(to, nexthop);
        let target = taking_over.target(there, self.wanted(), leads);
        (self.left.taking_over, self.left.compared) = (taking_over, self.revision);
        target
    }

    /// Whether the kernel is to be read at once and [`Self::target`] to be asked, as something of what an earlier run left may have to
    /// go. Each change asks for that once.
    pub(crate) fn poll_read(&mut self) -> bool {
        let is_new = self.may_hold_left() && self.left.compared != self.revision;
        self.left.compared = self.revision;
        is_new
    }

    /// Whether packets may go by what an earlier run left.
    pub const fn is_taking_over(&self) -> bool {
        self.left.taking_over.is_under_way()
    }

    /// Whether the kernel may hold something that an earlier run left.
    pub const fn may_hold_left(&self) -> bool {
        !self.left.taking_over.is_done()
    }

    /// Has what an earlier run left go, if it is time to look and it is needed no more: new ways may be tried and all are, and all
    /// hosts are there to which it leads.
    pub(super) fn look_at_left(&mut self, now: Instant) {
        if self.left.is_due(now) {
            let tries = self.table.is_some() && self.new_ways_from().is_some_and(|from| from <= now);
            let is_needed = !tries || !self.has_tried_all() || self.misses_left_hosts();
            self.revision += u64::from(self.left.taking_over.look(now, is_needed));
        }
    }
}
