//! What a subscriber wants to be told.

use super::Gid;
use crate::mad::{put, u16_at, u32_at};

/// The attribute InformInfo.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct InformInfo {
    /// Only notices of this port; 0 for all ports, or for those with the LIDs.
    pub gid: Gid,
    /// Only notices of ports with LIDs from this one on; 0xFFFF for all.
    pub first_lid: u16,
    /// The last of these LIDs.
    pub last_lid: u16,
    /// Whether it is about traps of the specification, and not about those of a vendor.
    pub is_generic: bool,
    /// Whether it subscribes; false to end a subscription.
    pub subscribes: bool,
    /// The type of trap; 0xFFFF for all.
    pub trap_type: u16,
    /// The number of the trap, or the vendor's device; 0xFFFF for all.
    pub trap: u16,
    /// The queue pair that wants to be told.
    pub queue_pair: u32,
    /// A code of how long the subscriber may take to confirm a report.
    pub response_time: u8,
    /// The kind of node that tells, or the vendor; 0xFF_FFFF for all.
    pub producer: u32,
}

impl InformInfo {
    /// The length in bytes.
    pub const BYTES: usize = 36;
    /// The LID, type or number that stands for all.
    pub const ALL: u16 = 0xFFFF;
    /// The kind of node that stands for all.
    pub const ALL_PRODUCERS: u32 = 0xFF_FFFF;

    /// Reads the attribute. Any bytes are valid, and bytes that are missing count as zeros.
    pub fn parse(data: &[u8]) -> Self {
        let mut whole = [0; Self::BYTES];
        let length = data.len().min(Self::BYTES);
        put(&mut whole, 0, &data[..length]);
        let data = &whole;
        Self {
            gid: Gid::parse(data, 0),
            first_lid: u16_at(data, 16),
            last_lid: u16_at(data, 18),
            is_generic: data[22] != 0,
            subscribes: data[23] != 0,
            trap_type: u16_at(data, 24),
            trap: u16_at(data, 26),
            queue_pair: u32_at(data, 28) >> 8,
            response_time: data[31] & 0x1F,
            producer: u32_at(data, 32) & Self::ALL_PRODUCERS,
        }
    }

    /// The bytes as they travel.
    pub fn emit(&self) -> [u8; Self::BYTES] {
        let mut data = [0; Self::BYTES];
        put(&mut data, 0, &self.gid.emit());
        put(&mut data, 16, &self.first_lid.to_be_bytes());
        put(&mut data, 18, &self.last_lid.to_be_bytes());
        put(&mut data, 22, &[u8::from(self.is_generic), u8::from(self.subscribes)]);
        put(&mut data, 24, &self.trap_type.to_be_bytes());
        put(&mut data, 26, &self.trap.to_be_bytes());
        put(&mut data, 28, &(self.queue_pair << 8 | u32::from(self.response_time & 0x1F)).to_be_bytes());
        put(&mut data, 32, &(self.producer & Self::ALL_PRODUCERS).to_be_bytes());
        data
    }
}
