//! How a subnet is managed.

use std::time::Duration;

use crate::exchange::Manner;
use crate::sweep;

/// How a subnet is managed.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How it is explored, and how everything else is sent. The key in it is the key of management that is kept in all
    /// ports, 0 for none.
    pub sweep: sweep::Settings,
    /// The higher of two managers becomes master, 0 to 15; `None` for one that never does.
    pub priority: Option<u8>,
    /// Adapters have 2^lmc LIDs.
    pub lmc: u8,
    /// The time from one look at all switches to the next.
    pub watch_interval: Duration,
    /// The time from one question to the master to the next, while standing by.
    pub poll_interval: Duration,
    /// How long packets that are under way by old tables are waited for, where they could wait for new ones in a circle.
    pub drain: Duration,
    /// How soon it is tried again after something failed.
    pub retry_delay: Duration,
}

/// How questions and orders are sent.
pub(super) fn manner(settings: &Settings) -> Manner {
    Manner {
        window: settings.sweep.window.get(),
        timeout: settings.sweep.timeout,
        retries: settings.sweep.retries,
        key: settings.sweep.key,
    }
}
