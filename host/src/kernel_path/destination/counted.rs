//! How many packets to a host the kernel has counted.

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_fib::NexthopId;
use mapper_proto::Instant;

use super::is_of_v6;

/// The least time from one moment at which counts begin anew to the next. A host counts as used for longer.
const ANEW_EVERY: Duration = Duration::from_millis(400);

/// What was counted of the nexthops to a host. The kernel's counts begin at 0 when a nexthop is made, or a group is put in the
/// place of one.
#[derive(Debug, Default)]
pub(super) struct Counted {
    nexthops: BTreeMap<NexthopId, Count>,
    /// When the kernel's counts last began anew.
    anew_at: Option<Instant>,
}

/// The packets that one nexthop took.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    /// What the kernel said last.
    last: u64,
    /// All together.
    total: u64,
}

impl Counted {
    /// Takes in what the kernel says of these nexthops, all that there are. Returns how many packets of IPv4 were counted since
    /// the last time, and how many of IPv6.
    pub(super) fn take(
        &mut self,
        nexthops: impl Iterator<Item = NexthopId>,
        counts: &BTreeMap<NexthopId, u64>,
    ) -> [u64; 2] {
        let mut sent = [0, 0];
        let mut before = std::mem::take(&mut self.nexthops);
        for id in nexthops {
            let Count { last, total } = before.remove(&id).unwrap_or_default();
            let told = counts.get(&id).copied().unwrap_or(last);
            let since = told.checked_sub(last).unwrap_or(told);
            sent[usize::from(is_of_v6(id))] += since;
            self.nexthops.insert(id, Count { last: told, total: total + since });
        }
        sent
    }

    /// Takes in that the kernel's counts of these nexthops begin at 0 again.
    pub(super) fn begin_at_0(&mut self, nexthops: &[NexthopId]) {
        for id in nexthops {
            self.nexthops.entry(*id).or_default().last = 0;
        }
    }

    /// Whether the kernel's counts may begin anew now.
    pub(super) fn may_begin_anew(&self, now: Instant) -> bool {
        self.anew_at.is_none_or(|at| now.since(at) >= ANEW_EVERY)
    }

    /// Takes in that the kernel's counts begin at 0 again.
    pub(super) fn begin_anew(&mut self, now: Instant) {
        self.anew_at = Some(now);
        self.nexthops.values_mut().for_each(|count| count.last = 0);
    }

    /// How many packets a nexthop took, as far as they were counted.
    pub(super) fn total(&self, id: NexthopId) -> u64 {
        self.nexthops.get(&id).map_or(0, |count| count.total)
    }
}
