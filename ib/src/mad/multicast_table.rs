//! A part of a switch's multicast table.

use super::{DATA_BYTES, Data, put, u16_at};

/// The attribute MulticastForwardingTable: for 32 multicast LIDs, which of 16 ports packets leave by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MulticastTable(Data);

impl MulticastTable {
    /// How many multicast LIDs are in a part.
    pub const LIDS: u16 = 32;
    /// How many ports are in a part.
    pub const PORTS: u8 = 16;
    /// A part that leads nowhere.
    pub const EMPTY: Self = Self([0; DATA_BYTES]);

    /// Reads an answer. Any bytes are valid.
    pub const fn parse(data: &Data) -> Self {
        Self(*data)
    }

    /// The bytes as they travel.
    pub const fn emit(&self) -> Data {
        self.0
    }

    /// The modifier that names a part: the block of LIDs, counted from the first multicast LID, and the position of its
    /// ports, which is the number of the first of them divided by [`Self::PORTS`].
    pub const fn modifier(block: u16, position: u8) -> u32 {
        (position as u32) << 28 | block as u32
    }

    /// The ports of the LID at a place below [`Self::LIDS`], the first in bit 0.
    pub fn ports(&self, place: u16) -> u16 {
        u16_at(&self.0, usize::from(place % Self::LIDS) * 2)
    }

    /// Sets the ports of the LID at a place below [`Self::LIDS`].
    pub fn set(&mut self, place: u16, ports: u16) {
        put(&mut self.0, usize::from(place % Self::LIDS) * 2, &ports.to_be_bytes());
    }
}
