//! How a subnet is managed.

use std::time::Duration;

use crate::exchange::Manner;
use crate::sweep::SweepSettings;

/// How a subnet is managed.
#[derive(Clone, Copy, Debug)]
pub struct ManagerSettings {
    /// How the subnet is explored, and how all other datagrams are sent. The key in it is the key of
    /// management that all ports are given, 0 for none.
    pub sweep: SweepSettings,
    /// The priority, 0 to 15. Of two managers the one with the higher priority becomes master. `None` for one
    /// that never becomes master.
    pub priority: Option<u8>,
    /// Adapters have 2^lmc LIDs.
    pub lmc: u8,
    /// The time from one look at all switches to the next.
    pub watch_interval: Duration,
    /// The time from one question to the master to the next, while standing by.
    pub poll_interval: Duration,
    /// How long packets that are under way by old tables get to arrive, if they and packets by new tables
    /// could wait for each other in a circle.
    pub drain: Duration,
    /// How soon after a failure the manager tries again.
    pub retry_delay: Duration,
}

/// The manner in which questions and orders are sent.
pub(super) fn manner(settings: &ManagerSettings) -> Manner {
    Manner {
        window: settings.sweep.window.get(),
        timeout: settings.sweep.timeout,
        retries: settings.sweep.retries,
        key: settings.sweep.key,
    }
}
