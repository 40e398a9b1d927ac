//! What a switch can do, and how far its tables reach.

use super::{DATA_BYTES, Data, put, u16_at};

const LINEAR_CAPACITY_AT: usize = 0;
const MULTICAST_CAPACITY_AT: usize = 4;
const LINEAR_TOP_AT: usize = 6;
const LIFE_TIME_AT: usize = 11;
const PARTITION_CAPACITY_AT: usize = 14;
/// The bit beside the life time that says that a port's state has changed. Writing it as 1 clears it.
const STATE_CHANGE: u8 = 1 << 2;

/// The attribute SwitchInfo. What this program does not look at stays as the switch told it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchInfo(Data);

impl SwitchInfo {
    /// Reads an answer. Any bytes are valid.
    pub const fn parse(data: &Data) -> Self {
        Self(*data)
    }

    /// The attribute of a switch with these capacities, and zeros otherwise.
    pub fn new(linear_capacity: u16, multicast_capacity: u16) -> Self {
        let mut data = [0; DATA_BYTES];
        put(&mut data, LINEAR_CAPACITY_AT, &linear_capacity.to_be_bytes());
        put(&mut data, MULTICAST_CAPACITY_AT, &multicast_capacity.to_be_bytes());
        Self(data)
    }

    /// How many LIDs the forwarding table has room for, counted from 0.
    pub fn linear_capacity(&self) -> u16 {
        u16_at(&self.0, LINEAR_CAPACITY_AT)
    }

    /// How many multicast LIDs the multicast table has room for.
    pub fn multicast_capacity(&self) -> u16 {
        u16_at(&self.0, MULTICAST_CAPACITY_AT)
    }

    /// The highest LID that the forwarding table is looked at for.
    pub fn linear_top(&self) -> u16 {
        u16_at(&self.0, LINEAR_TOP_AT)
    }

    /// How many partitions each port, except the switch's own, can let pass.
    pub fn partition_capacity(&self) -> u16 {
        u16_at(&self.0, PARTITION_CAPACITY_AT)
    }

    /// Whether the state of a port changed since the mark was cleared.
    pub const fn state_changed(&self) -> bool {
        self.0[LIFE_TIME_AT] & STATE_CHANGE != 0
    }

    /// This attribute with another top of the table, and with or without the mark of a change.
    #[must_use]
    pub fn with(mut self, linear_top: u16, state_change: bool) -> Self {
        put(&mut self.0, LINEAR_TOP_AT, &linear_top.to_be_bytes());
        self.0[LIFE_TIME_AT] &= !STATE_CHANGE;
        if state_change {
            self.0[LIFE_TIME_AT] |= STATE_CHANGE;
        }
        self
    }

    /// The bytes as they travel.
    pub const fn emit(&self) -> Data {
        self.0
    }
}
