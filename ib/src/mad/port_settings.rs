//! The settings of a port, which a manager reads, changes and writes back.

use super::{DATA_BYTES, Data, put, u16_at, u32_at, u64_at};

const KEY_AT: usize = 0;
const PREFIX_AT: usize = 8;
const LID_AT: usize = 16;
const MANAGER_LID_AT: usize = 18;
const CAPABILITIES_AT: usize = 20;
/// Where the enabled link widths are. Writing 0 changes nothing.
const WIDTH_ENABLED_AT: usize = 29;
const STATE_AT: usize = 32;
/// Where the physical state is, and the default when down. Writing 0 changes nothing.
const PHYSICAL_AT: usize = 33;
const LMC_AT: usize = 34;
const SPEED_ENABLED_AT: usize = 35;
const MTU_AT: usize = 36;
const LANES_CAPACITY_AT: usize = 37;
const HIGH_TURNS_AT: usize = 39;
const LOW_TURNS_AT: usize = 40;
const MTU_CAPACITY_AT: usize = 41;
const LANES_AT: usize = 43;
const GUID_CAPACITY_AT: usize = 50;
const TIMEOUT_AT: usize = 51;
const EXTENDED_SPEED_ENABLED_AT: usize = 63;

/// The capability of a port behind which a subnet manager runs.
const IS_MANAGER: u32 = 1 << 1;
/// The bit beside the time-out that asks a host to join groups and subscribe again.
const REREGISTER: u8 = 1 << 7;
/// How far the bits of the key's protection are shifted in their byte.
const PROTECTION_SHIFT: u8 = 6;

/// How far a port is on its way to carrying users' packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PortState {
    /// There is no cable that works.
    Down,
    /// The cable works, and carries management by directed routes.
    Initialize,
    /// It takes packets but sends none.
    Armed,
    /// It takes and sends packets.
    Active,
}

impl PortState {
    const ALL: [Self; 4] = [Self::Down, Self::Initialize, Self::Armed, Self::Active];

    const fn code(self) -> u8 {
        match self {
            Self::Down => 1,
            Self::Initialize => 2,
            Self::Armed => 3,
            Self::Active => 4,
        }
    }
}

/// The attribute PortInfo as it was read. What this program does not look at stays as the port told it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortSettings(Data);

impl PortSettings {
    /// Reads an answer. Any bytes are valid.
    pub const fn parse(data: &Data) -> Self {
        Self(*data)
    }

    /// The bytes as they were read.
    pub const fn emit(&self) -> Data {
        self.0
    }

    /// The bytes that write these settings. Widths, speeds and the physical state are not changed, and the
    /// port's state is changed only to `state`.
    pub fn emit_set(&self, state: Option<PortState>) -> Data {
        let mut data = self.0;
        data[WIDTH_ENABLED_AT] = 0;
        data[STATE_AT] = state.map_or(0, PortState::code);
        data[PHYSICAL_AT] = 0;
        data[SPEED_ENABLED_AT] &= 0xF0;
        data[EXTENDED_SPEED_ENABLED_AT] &= 0xE0;
        data
    }

    /// The key of management that the port has; 0 for none, or if it does not say.
    pub fn key(&self) -> u64 {
        u64_at(&self.0, KEY_AT)
    }

    /// Whether the port says that a key of management keeps others from writing to it.
    pub fn is_protected(&self) -> bool {
        self.key() != 0 || self.0[LMC_AT] >> PROTECTION_SHIFT != 0
    }

    /// The prefix of the subnet.
    pub fn prefix(&self) -> u64 {
        u64_at(&self.0, PREFIX_AT)
    }

    /// The first LID; 0 for none.
    pub fn lid(&self) -> u16 {
        u16_at(&self.0, LID_AT)
    }

    /// The LID of the manager; 0 for none.
    pub fn manager_lid(&self) -> u16 {
        u16_at(&self.0, MANAGER_LID_AT)
    }

    /// The service level to the manager.
    pub const fn manager_level(&self) -> u8 {
        self.0[MTU_AT] & 0xF
    }

    /// Whether a subnet manager runs behind the port.
    pub fn is_manager(&self) -> bool {
        u32_at(&self.0, CAPABILITIES_AT) & IS_MANAGER != 0
    }

    /// The capabilities of the port, a bit for each.
    pub fn capabilities(&self) -> u32 {
        u32_at(&self.0, CAPABILITIES_AT)
    }

    /// How far the port is. A number without a meaning counts as [`PortState::Down`].
    pub fn state(&self) -> PortState {
        let code = self.0[STATE_AT] & 0xF;
        PortState::ALL.into_iter().find(|state| state.code() == code).unwrap_or(PortState::Down)
    }

    /// 2^lmc LIDs belong to the port.
    pub const fn lmc(&self) -> u8 {
        self.0[LMC_AT] & 7
    }

    /// The code of the MTU in force (1: 256 bytes, 5: 4096).
    pub const fn mtu(&self) -> u8 {
        self.0[MTU_AT] >> 4
    }

    /// The code of the largest MTU that the port can carry.
    pub const fn mtu_capacity(&self) -> u8 {
        self.0[MTU_CAPACITY_AT] & 0xF
    }

    /// The code of the most data lanes that the port can use (1: one, 2: two, 3: four, 4: eight, 5: fifteen).
    pub const fn lanes_capacity(&self) -> u8 {
        self.0[LANES_CAPACITY_AT] >> 4
    }

    /// How many entries the table has by which lanes of low priority take turns.
    pub const fn low_turns(&self) -> u8 {
        self.0[LOW_TURNS_AT]
    }

    /// How many entries the table has by which lanes of high priority take turns.
    pub const fn high_turns(&self) -> u8 {
        self.0[HIGH_TURNS_AT]
    }

    /// How many GUIDs the port has room for.
    pub const fn guid_capacity(&self) -> u8 {
        self.0[GUID_CAPACITY_AT]
    }

    /// The code of the data lanes in use.
    pub const fn lanes(&self) -> u8 {
        self.0[LANES_AT] >> 4
    }

    /// How many data lanes a code stands for; 1 for a code without a meaning.
    pub const fn lane_count(code: u8) -> u8 {
        match code {
            2 => 2,
            3 => 4,
            4 => 8,
            5 => 15,
            _ => 1,
        }
    }

    /// These settings with another prefix of the subnet.
    #[must_use]
    pub fn with_prefix(mut self, prefix: u64) -> Self {
        put(&mut self.0, PREFIX_AT, &prefix.to_be_bytes());
        self
    }

    /// These settings with the port in another state.
    #[must_use]
    pub const fn with_state(mut self, state: PortState) -> Self {
        self.0[STATE_AT] = self.0[STATE_AT] & 0xF0 | state.code();
        self
    }

    /// These settings with LIDs of the port's own.
    #[must_use]
    pub fn with_lid(mut self, lid: u16, lmc: u8) -> Self {
        put(&mut self.0, LID_AT, &lid.to_be_bytes());
        self.0[LMC_AT] = self.0[LMC_AT] & !7 | lmc & 7;
        self
    }

    /// These settings with another manager: its LID, and the service level to it.
    #[must_use]
    pub fn with_manager(mut self, lid: u16, level: u8) -> Self {
        put(&mut self.0, MANAGER_LID_AT, &lid.to_be_bytes());
        self.0[MTU_AT] = self.0[MTU_AT] & 0xF0 | level & 0xF;
        self
    }

    /// These settings with another MTU and number of lanes, both as codes.
    #[must_use]
    pub const fn with_link(mut self, mtu: u8, lanes: u8) -> Self {
        self.0[MTU_AT] = self.0[MTU_AT] & 0xF | mtu << 4;
        self.0[LANES_AT] = self.0[LANES_AT] & 0xF | lanes << 4;
        self
    }

    /// These settings with a key of management that protects the port: whoever does not have it can neither
    /// write to the port nor read the key.
    #[must_use]
    pub fn with_key(mut self, key: u64) -> Self {
        put(&mut self.0, KEY_AT, &key.to_be_bytes());
        let protected = if key == 0 { 0 } else { 1 << PROTECTION_SHIFT };
        self.0[LMC_AT] = self.0[LMC_AT] & 0x3F | protected;
        self
    }

    /// These settings with or without the request that hosts join groups and subscribe again.
    #[must_use]
    pub const fn with_reregistration(mut self, wanted: bool) -> Self {
        self.0[TIMEOUT_AT] &= !REREGISTER;
        if wanted {
            self.0[TIMEOUT_AT] |= REREGISTER;
        }
        self
    }
}

impl Default for PortSettings {
    fn default() -> Self {
        Self([0; DATA_BYTES])
    }
}
