//! A service that a port offers.

use super::{Field, Gid};
use crate::mad::{bytes, put, u16_at, u32_at, u64_at};

const KEY_AT: usize = 32;
const NAME_AT: usize = 48;
const PRIVATE_AT: usize = 112;
const PRIVATE_BYTES: usize = 64;

/// The attribute ServiceRecord.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceRecord {
    /// The service's number.
    pub id: u64,
    /// The port that offers it.
    pub gid: Gid,
    /// The partition that it is offered in.
    pub partition: u16,
    /// For how many more seconds it is offered; [`Self::FOR_EVER`] for ever.
    pub lease: u32,
    /// A key. Whoever has it may change the record.
    pub key: [u8; 16],
    /// What people call it, ended by a zero.
    pub name: [u8; 64],
    /// What its clients are to know, in numbers of 8, 16, 32 and 64 bits.
    pub private: [u8; PRIVATE_BYTES],
}

impl ServiceRecord {
    /// The length in bytes.
    pub const BYTES: usize = PRIVATE_AT + PRIVATE_BYTES;
    /// The lease of a service that is offered until it is removed.
    pub const FOR_EVER: u32 = u32::MAX;

    /// The number is named.
    pub const ID: u64 = 1 << 0;
    /// The port is named.
    pub const GID: u64 = 1 << 1;
    /// The partition is named.
    pub const PARTITION: u64 = 1 << 2;
    /// The lease is named.
    pub const LEASE: u64 = 1 << 4;
    /// The key is named.
    pub const KEY: u64 = 1 << 5;

    /// The parts that must be equal.
    pub const FIELDS: &[Field] = &[
        Field::bytes(0, 0, 8),
        Field::bytes(1, 8, Gid::BYTES),
        Field::bytes(2, 24, 2),
        Field::bytes(4, 28, 4),
        Field::bytes(5, KEY_AT, 16),
        Field::bytes(6, NAME_AT, 64),
        Field::bytes(7, 112, 1),
        Field::bytes(8, 113, 1),
        Field::bytes(9, 114, 1),
        Field::bytes(10, 115, 1),
        Field::bytes(11, 116, 1),
        Field::bytes(12, 117, 1),
        Field::bytes(13, 118, 1),
        Field::bytes(14, 119, 1),
        Field::bytes(15, 120, 1),
        Field::bytes(16, 121, 1),
        Field::bytes(17, 122, 1),
        Field::bytes(18, 123, 1),
        Field::bytes(19, 124, 1),
        Field::bytes(20, 125, 1),
        Field::bytes(21, 126, 1),
        Field::bytes(22, 127, 1),
        Field::bytes(23, 128, 2),
        Field::bytes(24, 130, 2),
        Field::bytes(25, 132, 2),
        Field::bytes(26, 134, 2),
        Field::bytes(27, 136, 2),
        Field::bytes(28, 138, 2),
        Field::bytes(29, 140, 2),
        Field::bytes(30, 142, 2),
        Field::bytes(31, 144, 4),
        Field::bytes(32, 148, 4),
        Field::bytes(33, 152, 4),
        Field::bytes(34, 156, 4),
        Field::bytes(35, 160, 8),
        Field::bytes(36, 168, 8),
    ];

    /// Reads a record. Any bytes are valid, and bytes that are missing count as zeros.
    pub fn parse(data: &[u8]) -> Self {
        let mut whole = [0; Self::BYTES];
        let length = data.len().min(Self::BYTES);
        put(&mut whole, 0, &data[..length]);
        let data = &whole;
        Self {
            id: u64_at(data, 0),
            gid: Gid::parse(data, 8),
            partition: u16_at(data, 24),
            lease: u32_at(data, 28),
            key: bytes(data, KEY_AT),
            name: bytes(data, NAME_AT),
            private: bytes(data, PRIVATE_AT),
        }
    }

    /// The bytes as they travel.
    pub fn emit(&self) -> [u8; Self::BYTES] {
        let mut data = [0; Self::BYTES];
        put(&mut data, 0, &self.id.to_be_bytes());
        put(&mut data, 8, &self.gid.emit());
        put(&mut data, 24, &self.partition.to_be_bytes());
        put(&mut data, 28, &self.lease.to_be_bytes());
        put(&mut data, KEY_AT, &self.key);
        put(&mut data, NAME_AT, &self.name);
        put(&mut data, PRIVATE_AT, &self.private);
        data
    }
}
