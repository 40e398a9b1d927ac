//! Counts the packets that the kernel sent along each of its ways, so that ways that carry packets are watched.

use mapper_host::kernel_path::KernelPath;
use mapper_proto::Instant;

use crate::agent::driver::state::Driver;

impl Driver {
    /// When the packets that the kernel sent are to be counted.
    pub(in crate::agent::driver) fn count_at(&self) -> Option<Instant> {
        let has_routes = self.host.kernel_path().is_some_and(KernelPath::may_carry);
        self.kernel.as_ref().ok().filter(|_| has_routes).map(|side| side.count_at)
    }

    /// Counts the packets that the kernel sent, if it is time.
    pub(in crate::agent::driver) fn count_packets(&mut self) {
        let Some(at) = self.count_at() else { return };
        let now = self.now();
        if now < at {
            return;
        }
        let Ok(side) = &mut self.kernel else { return };
        let packets = side.forwarding.packets();
        side.count_at = self.host.count_kernel_packets(now, &packets);
    }
}
