//! A path from port to port.

use super::{Gid, Limit};
use crate::mad::{put, u16_at, u32_at, u64_at};

/// The attribute PathRecord.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathRecord {
    /// The service that it is for; 0 for any.
    pub service: u64,
    /// Where it leads.
    pub destination: Gid,
    /// Where it begins.
    pub source: Gid,
    /// The LID that it leads to.
    pub destination_lid: u16,
    /// The LID that it begins at.
    pub source_lid: u16,
    /// The flow label (20 bits) and the hop limit (8 bits), and the flag of raw traffic above them.
    pub flow: u32,
    /// The class of traffic between subnets.
    pub traffic_class: u8,
    /// Whether answers may go back the same way.
    pub is_reversible: bool,
    /// How many paths are wanted at most.
    pub count: u8,
    /// The partition.
    pub partition: u16,
    /// The class of service, 12 bits.
    pub quality: u16,
    /// The service level.
    pub level: u8,
    /// The MTU's code.
    pub mtu: Limit,
    /// The rate's code.
    pub rate: Limit,
    /// How long packets are under way at most: 4.096 µs times two to the power of this.
    pub life_time: Limit,
    /// The preference among several paths: the lower, the better.
    pub preference: u8,
}

impl PathRecord {
    /// The length in bytes.
    pub const BYTES: usize = 64;

    /// The destination's GID is named.
    pub const DESTINATION: u64 = 1 << 2;
    /// The source's GID is named.
    pub const SOURCE: u64 = 1 << 3;
    /// The destination's LID is named.
    pub const DESTINATION_LID: u64 = 1 << 4;
    /// The source's LID is named.
    pub const SOURCE_LID: u64 = 1 << 5;
    /// It is said whether the path is to be reversible.
    pub const REVERSIBLE: u64 = 1 << 11;
    /// It is said how many paths are wanted.
    pub const COUNT: u64 = 1 << 12;
    /// The partition is named.
    pub const PARTITION: u64 = 1 << 13;
    /// The service level is named.
    pub const LEVEL: u64 = 1 << 15;
    /// The MTU is bounded, if its selector (the bit before) is meant as well.
    pub const MTU: u64 = 1 << 17;
    /// The rate is bounded, if its selector (the bit before) is meant as well.
    pub const RATE: u64 = 1 << 19;
    /// The life time is bounded, if its selector (the bit before) is meant as well.
    pub const LIFE_TIME: u64 = 1 << 21;

    /// Reads a record. Any bytes are valid, and bytes that are missing count as zeros.
    pub fn parse(data: &[u8]) -> Self {
        let mut whole = [0; Self::BYTES];
        let length = data.len().min(Self::BYTES);
        put(&mut whole, 0, &data[..length]);
        let data = &whole;
        let reversible = data[49];
        Self {
            service: u64_at(data, 0),
            destination: Gid::parse(data, 8),
            source: Gid::parse(data, 24),
            destination_lid: u16_at(data, 40),
            source_lid: u16_at(data, 42),
            flow: u32_at(data, 44),
            traffic_class: data[48],
            is_reversible: reversible & 0x80 != 0,
            count: reversible & 0x7F,
            partition: u16_at(data, 50),
            quality: u16_at(data, 52) >> 4,
            level: data[53] & 0xF,
            mtu: Limit::parse(data[54]),
            rate: Limit::parse(data[55]),
            life_time: Limit::parse(data[56]),
            preference: data[57],
        }
    }

    /// The bytes as they travel.
    pub fn emit(&self) -> [u8; Self::BYTES] {
        let mut data = [0; Self::BYTES];
        put(&mut data, 0, &self.service.to_be_bytes());
        put(&mut data, 8, &self.destination.emit());
        put(&mut data, 24, &self.source.emit());
        put(&mut data, 40, &self.destination_lid.to_be_bytes());
        put(&mut data, 42, &self.source_lid.to_be_bytes());
        put(&mut data, 44, &self.flow.to_be_bytes());
        data[48] = self.traffic_class;
        data[49] = u8::from(self.is_reversible) << 7 | self.count & 0x7F;
        put(&mut data, 50, &self.partition.to_be_bytes());
        put(&mut data, 52, &(self.quality << 4 | u16::from(self.level & 0xF)).to_be_bytes());
        put(&mut data, 54, &[self.mtu.emit(), self.rate.emit(), self.life_time.emit(), self.preference]);
        data
    }
}

impl Default for PathRecord {
    fn default() -> Self {
        Self::parse(&[])
    }
}
