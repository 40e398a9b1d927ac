//! What a trap tells.

use super::{DATA_BYTES, Data, put, u16_at};

const TYPE_AT: usize = 0;
const NUMBER_AT: usize = 4;
const ISSUER_AT: usize = 6;
const SUBJECT_AT: usize = 10;
/// The bit of the first byte that says that the number is one of the specification's.
const IS_GENERIC: u8 = 1 << 7;

/// The attribute Notice, as far as traps that are acted upon go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The number of a trap of the specification; `None` for one of a vendor.
    pub number: Option<u16>,
    /// The LID of the port that tells.
    pub issuer: u16,
    /// The LID of what the trap is about. It means something for traps that name a LID at the start of their
    /// details.
    pub subject: u16,
}

impl Notice {
    /// A port of a switch changed its state.
    pub const LINK_STATE: u16 = 128;
    /// A port has other capabilities or another name, for instance because a manager came.
    pub const CAPABILITIES: u16 = 144;

    /// A datagram of a manager had a wrong key of management.
    pub const MANAGEMENT_KEY: u16 = 256;
    /// A packet had a wrong key of a partition.
    pub const PARTITION_KEY: u16 = 257;
    /// A packet had a wrong key of a queue pair.
    pub const QUEUE_KEY: u16 = 258;

    /// Reads a trap. Any bytes are valid.
    pub fn parse(data: &Data) -> Self {
        let number = u16_at(data, NUMBER_AT);
        Self {
            number: Some(number).filter(|_| data[TYPE_AT] & IS_GENERIC != 0),
            issuer: u16_at(data, ISSUER_AT),
            subject: u16_at(data, SUBJECT_AT),
        }
    }

    /// The bytes as they travel. Those of a vendor's trap do not have its number.
    pub fn emit(&self) -> Data {
        let mut data = [0; DATA_BYTES];
        data[TYPE_AT] = if self.number.is_some() { IS_GENERIC | 1 } else { 0 };
        put(&mut data, NUMBER_AT, &self.number.unwrap_or_default().to_be_bytes());
        put(&mut data, ISSUER_AT, &self.issuer.to_be_bytes());
        put(&mut data, SUBJECT_AT, &self.subject.to_be_bytes());
        data
    }
}
