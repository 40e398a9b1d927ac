//! Where a way leaves this host, and what crossbars on it go by.

use mapper_fib::segments::{Element, Packing};

/// Where a way leaves this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Leaving {
    /// The port.
    pub(in super::super) port: u8,
    /// The number of its interface.
    pub(in super::super) interface: u32,
    /// The longest frame that all cables on the way carry by what their ends say, in bytes behind the Ethernet header.
    pub(in super::super) link_mtu: u32,
}

/// What crossbars go by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Course {
    /// The segments in the packet.
    Segments {
        /// The elements without the last one, which says what is in the packet.
        elements: Vec<Element>,
        /// Whether crossbars are taken to know several elements in one address.
        packing: Packing,
    },
    /// The destination, by tables of their own.
    Destination,
}

impl Course {
    /// How elements are packed; `None` where there are none.
    pub(super) const fn packing(&self) -> Option<Packing> {
        match self {
            Self::Segments { packing, .. } => Some(*packing),
            Self::Destination => None,
        }
    }

    /// Changes how elements are packed.
    pub(super) const fn set_packing(&mut self, wanted: Packing) {
        if let Self::Segments { packing, .. } = self {
            *packing = wanted;
        }
    }

    /// Whether both lead the same way, however elements are packed.
    pub(in super::super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Segments { elements, .. }, Self::Segments { elements: other, .. }) => elements == other,
            (Self::Destination, Self::Destination) => true,
            (Self::Segments { .. } | Self::Destination, _) => false,
        }
    }
}
