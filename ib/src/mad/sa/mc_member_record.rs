//! A multicast group, or a member of one.

use super::{Field, Gid, Limit};
use crate::mad::{put, u16_at, u32_at};

/// How a port takes part in a group, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct JoinState(pub u8);

impl JoinState {
    /// It sends and receives, and the group lives as long as it is there.
    pub const FULL: Self = Self(1);
    /// It sends and receives.
    pub const NON_MEMBER: Self = Self(2);
    /// It only sends.
    pub const SENDS_ONLY: Self = Self(4);
    /// It only sends, and the group lives as long as it is there.
    pub const SENDS_ONLY_FULL: Self = Self(8);

    /// Whether it takes part in no way at all.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether the group lives as long as it is there.
    pub const fn keeps_group(self) -> bool {
        self.0 & (Self::FULL.0 | Self::SENDS_ONLY_FULL.0) != 0
    }

    /// Whether packets to the group are for it.
    pub const fn receives(self) -> bool {
        self.0 & (Self::FULL.0 | Self::NON_MEMBER.0) != 0
    }

    /// The ways of both together.
    #[must_use]
    pub const fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// The ways that are left without those of `less`.
    #[must_use]
    pub const fn without(self, less: Self) -> Self {
        Self(self.0 & !less.0)
    }

    /// Whether it takes part in all the ways of `all`.
    pub const fn has(self, all: Self) -> bool {
        self.0 & all.0 == all.0
    }
}

/// The attribute MCMemberRecord.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct McMemberRecord {
    /// The group.
    pub group: Gid,
    /// The port.
    pub port: Gid,
    /// The key of the group's queue pairs.
    pub queue_key: u32,
    /// The LID of the group's packets.
    pub lid: u16,
    /// The MTU's code.
    pub mtu: Limit,
    /// The class of traffic between subnets.
    pub traffic_class: u8,
    /// The partition.
    pub partition: u16,
    /// The rate's code.
    pub rate: Limit,
    /// How long packets are under way at most.
    pub life_time: Limit,
    /// The service level.
    pub level: u8,
    /// The flow label (20 bits) and the hop limit (8 bits).
    pub flow: u32,
    /// How far the group reaches, 4 bits.
    pub scope: u8,
    /// How the port takes part.
    pub state: JoinState,
    /// Whether another port joined for it.
    pub is_proxy: bool,
}

impl McMemberRecord {
    /// The length in bytes.
    pub const BYTES: usize = 52;

    /// The group is named.
    pub const GROUP: u64 = 1 << 0;
    /// The port is named.
    pub const PORT: u64 = 1 << 1;
    /// The key of queue pairs is named.
    pub const QUEUE_KEY: u64 = 1 << 2;
    /// The MTU is bounded, if its selector (the bit before) is meant as well.
    pub const MTU: u64 = 1 << 5;
    /// The class of traffic is named.
    pub const TRAFFIC_CLASS: u64 = 1 << 6;
    /// The partition is named.
    pub const PARTITION: u64 = 1 << 7;
    /// The rate is bounded, if its selector (the bit before) is meant as well.
    pub const RATE: u64 = 1 << 9;
    /// The life time is bounded, if its selector (the bit before) is meant as well.
    pub const LIFE_TIME: u64 = 1 << 11;
    /// The service level is named.
    pub const LEVEL: u64 = 1 << 12;
    /// The flow label is named.
    pub const FLOW_LABEL: u64 = 1 << 13;
    /// The scope is named.
    pub const SCOPE: u64 = 1 << 15;
    /// The way in which the port takes part is named.
    pub const STATE: u64 = 1 << 16;

    /// The parts that must be equal. Those with selectors are not among them.
    pub const FIELDS: &[Field] = &[
        Field::bytes(0, 0, Gid::BYTES),
        Field::bytes(1, 16, Gid::BYTES),
        Field::bytes(2, 32, 4),
        Field::bytes(3, 36, 2),
        Field::bytes(6, 39, 1),
        Field::bytes(7, 40, 2),
        Field::bits(12, 44, 0, 4),
        Field::bits(13, 44, 4, 20),
        Field::bytes(14, 47, 1),
        Field::bits(15, 48, 0, 4),
        Field::bits(17, 49, 0, 1),
    ];

    /// Reads a record. Any bytes are valid, and bytes that are missing count as zeros.
    pub fn parse(data: &[u8]) -> Self {
        let mut whole = [0; Self::BYTES];
        let length = data.len().min(Self::BYTES);
        put(&mut whole, 0, &data[..length]);
        let data = &whole;
        let level_and_flow = u32_at(data, 44);
        Self {
            group: Gid::parse(data, 0),
            port: Gid::parse(data, 16),
            queue_key: u32_at(data, 32),
            lid: u16_at(data, 36),
            mtu: Limit::parse(data[38]),
            traffic_class: data[39],
            partition: u16_at(data, 40),
            rate: Limit::parse(data[42]),
            life_time: Limit::parse(data[43]),
            level: (level_and_flow >> 28) as u8,
            flow: level_and_flow & 0x0FFF_FFFF,
            scope: data[48] >> 4,
            state: JoinState(data[48] & 0xF),
            is_proxy: data[49] & 0x80 != 0,
        }
    }

    /// The bytes as they travel.
    pub fn emit(&self) -> [u8; Self::BYTES] {
        let mut data = [0; Self::BYTES];
        put(&mut data, 0, &self.group.emit());
        put(&mut data, 16, &self.port.emit());
        put(&mut data, 32, &self.queue_key.to_be_bytes());
        put(&mut data, 36, &self.lid.to_be_bytes());
        put(&mut data, 38, &[self.mtu.emit(), self.traffic_class]);
        put(&mut data, 40, &self.partition.to_be_bytes());
        put(&mut data, 42, &[self.rate.emit(), self.life_time.emit()]);
        let level_and_flow = u32::from(self.level & 0xF) << 28 | self.flow & 0x0FFF_FFFF;
        put(&mut data, 44, &level_and_flow.to_be_bytes());
        put(&mut data, 48, &[self.scope << 4 | self.state.0 & 0xF, u8::from(self.is_proxy) << 7]);
        data
    }
}
