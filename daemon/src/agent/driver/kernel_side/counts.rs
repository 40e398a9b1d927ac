//! Counts the packets that the kernel sent along each of its ways, so that ways that carry packets are watched.

use std::time::Duration;

use mapper_host::kernel_path::KernelPath;
use mapper_proto::Instant;

use crate::agent::driver::state::Driver;

/// How often the packets that the kernel sent are counted while users' packets take some of its ways. This is
/// also how soon a further way is watched after packets begin to take it.
const COUNT_USED_EVERY: Duration = Duration::from_millis(100);
/// How often packets are counted while they take none of the kernel's ways. To list the nexthops is most of
/// what an agent at rest costs. Dead cables are found without it, by the hellos that the ends of a cable send
/// each other. [`WAY_LEFT_WITHIN`](mapper_host::kernel_path::WAY_LEFT_WITHIN) counts on it.
const COUNT_UNUSED_EVERY: Duration = Duration::from_millis(250);
/// The time between two counts is multiplied by one more for each so many nexthops, as the kernel lists all
/// of them.
const COUNTED_AT_ONCE: u32 = 256;
/// The most that the time between two counts is multiplied by.
const MAX_COUNT_PAUSES: u32 = 5;

/// What the time between two counts is multiplied by for so many nexthops.
fn pauses_between_counts(nexthops: usize) -> u32 {
    let pauses = u32::try_from(nexthops).unwrap_or(u32::MAX).div_ceil(COUNTED_AT_ONCE);
    pauses.clamp(1, MAX_COUNT_PAUSES)
}

impl Driver {
    /// When the packets that the kernel sent are to be counted.
    pub(in crate::agent::driver) fn count_at(&self) -> Option<Instant> {
        let has_routes = self.host.kernel_path().is_some_and(KernelPath::may_carry);
        self.kernel.as_ref().ok().filter(|_| has_routes).map(|side| side.count_at)
    }

    /// Counts the packets that the kernel sent, if it is time, so that paths that carry packets are watched.
    pub(in crate::agent::driver) fn count_packets(&mut self) {
        let Some(at) = self.count_at() else { return };
        let now = self.now();
        if now < at {
            return;
        }
        let Ok(side) = &mut self.kernel else { return };
        let packets = side.forwarding.packets();
        let any_is_used = self.host.count_kernel_packets(now, &packets);
        let every = if any_is_used { COUNT_USED_EVERY } else { COUNT_UNUSED_EVERY };
        side.count_at = now + every * pauses_between_counts(packets.len());
    }
}
