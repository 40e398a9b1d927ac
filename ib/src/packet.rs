//! Datagrams, each with the address that it goes to or comes from.

use crate::mad::MAD_BYTES;

/// The other end of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    /// Whoever is at the end of the directed route that the datagram carries.
    Directed,
    /// A port by its LID.
    Lid {
        /// The LID.
        lid: u16,
        /// The queue pair: 0 for management of the subnet, 1 for other management, higher for programs.
        queue_pair: u32,
        /// The service level.
        level: u8,
    },
}

/// A datagram and its other end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Where it goes, or came from.
    pub address: Address,
    /// The datagram.
    pub mad: [u8; MAD_BYTES],
}
