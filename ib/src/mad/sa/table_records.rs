//! Records of tables that switches and ports hold. They are only sent in answers, and never read from
//! requests.
//!
//! Each begins with eight bytes that say whose table it is and which part of it. The part follows as the port
//! told it.

use super::Field;
use crate::mad::put;

/// The parts of a record of a switch's forwarding table that a request can name: LID and block.
pub const LINEAR_TABLE_FIELDS: &[Field] = &[Field::bytes(0, 0, 2), Field::bytes(1, 2, 2)];
/// The parts of a record of a multicast table: LID, position of the ports, block.
pub const MULTICAST_TABLE_FIELDS: &[Field] =
    &[Field::bytes(0, 0, 2), Field::bits(1, 2, 0, 4), Field::bits(3, 2, 7, 9)];
/// The parts of an SLtoVLMappingTableRecord: LID, port that packets come in by, port that they
/// leave by.
pub const SL_TO_VL_FIELDS: &[Field] = &[Field::bytes(0, 0, 2), Field::bytes(1, 2, 1), Field::bytes(2, 3, 1)];
/// The parts of a VLArbitrationTableRecord: LID, port, block.
pub const VL_ARBITRATION_FIELDS: &[Field] =
    &[Field::bytes(0, 0, 2), Field::bytes(1, 2, 1), Field::bytes(2, 3, 1)];
/// The parts of a record of partitions: LID, block, port.
pub const PARTITION_FIELDS: &[Field] = &[Field::bytes(0, 0, 2), Field::bytes(1, 2, 2), Field::bytes(2, 4, 1)];
/// The parts of a record of GUIDs: LID and block.
pub const GUID_FIELDS: &[Field] = &[Field::bytes(0, 0, 2), Field::bytes(1, 2, 1)];

/// Whose table it is, and which part of it: the beginning of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TablePlace([u8; Self::BYTES]);

impl TablePlace {
    /// The length in bytes.
    pub const BYTES: usize = 8;

    /// A block of 64 entries of the forwarding table of the switch with a LID.
    pub fn linear_table(lid: u16, block: u16) -> Self {
        Self::at(lid).with(2, &block.to_be_bytes())
    }

    /// A block of 32 groups of a switch's multicast table, and 16 ports by their position.
    pub fn multicast_table(lid: u16, block: u16, position: u8) -> Self {
        Self::at(lid).with(2, &(u16::from(position) << 12 | block & 0x1FF).to_be_bytes())
    }

    /// The lanes of packets that come by a port and leave by another; both are 0 for an adapter's port.
    pub fn sl_to_vl(lid: u16, comes_by: u8, leaves_by: u8) -> Self {
        Self::at(lid).with(2, &[comes_by, leaves_by])
    }

    /// A block of the table by which lanes take turns at a port.
    pub fn vl_arbitration(lid: u16, port: u8, block: u8) -> Self {
        Self::at(lid).with(2, &[port, block])
    }

    /// A block of 32 partitions of a port.
    pub fn partitions(lid: u16, port: u8, block: u16) -> Self {
        Self::at(lid).with(2, &block.to_be_bytes()).with(4, &[port])
    }

    /// A block of eight GUIDs of a port.
    pub fn guids(lid: u16, block: u8) -> Self {
        Self::at(lid).with(2, &[block])
    }

    /// The bytes as they travel.
    pub const fn emit(&self) -> [u8; Self::BYTES] {
        self.0
    }

    fn at(lid: u16) -> Self {
        Self([0; Self::BYTES]).with(0, &lid.to_be_bytes())
    }

    fn with(mut self, at: usize, value: &[u8]) -> Self {
        put(&mut self.0, at, value);
        self
    }
}

/// The record of a part of a table.
pub fn table_record(place: TablePlace, part: &[u8]) -> Vec<u8> {
    [&place.emit()[..], part].concat()
}
