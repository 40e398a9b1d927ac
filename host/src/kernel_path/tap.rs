//! The interface that carries what the kernels do not.

use crate::data::{MIN_TAP_MTU, tap_mtu};

/// The tap interface, as far as routes lead to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tap {
    /// The number of the interface.
    pub(super) interface: u32,
    /// The most crossbars that a route of the agent's frames leads through.
    max_hops: u8,
    /// The longest packet that the user wants it to carry, in bytes; `None` if that is as long as cables carry.
    limit: Option<u32>,
}

impl Tap {
    /// The interface with this number, for packets in frames whose routes lead through so many crossbars at most.
    pub(super) const fn new(interface: u32, max_hops: u8) -> Self {
        Self { interface, max_hops, limit: None }
    }

    /// Takes in how long packets are at most that the user wants it to carry, in bytes. Returns whether that is another length than
    /// before.
    pub(super) fn set_limit(&mut self, limit: Option<u32>) -> bool {
        std::mem::replace(&mut self.limit, limit) != limit
    }

    /// The longest packet that it carries to a host, all cables on whose ways carry frames of this length, in bytes. What the
    /// interface itself has as its MTU is the least of all cables, and counts for broadcasts.
    pub(super) fn mtu(&self, link_mtu: u32) -> u32 {
        let fits = tap_mtu(link_mtu, self.max_hops).unwrap_or(MIN_TAP_MTU);
        self.limit.map_or(fits, |limit| limit.min(fits))
    }
}
