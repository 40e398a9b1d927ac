//! What subnet managers tell each other.

use strum::{IntoStaticStr, VariantArray};

use super::{DATA_BYTES, Data, bytes, put, u32_at, u64_at};

/// The key of managers (SM_Key) that this manager has, and OpenSM unless it is told otherwise. Everybody knows it: it keeps apart
/// managers of different subnets, and whoever asks by mistake, and guards nothing from strangers.
pub const MANAGERS_KEY: u64 = 1;

const GUID_AT: usize = 0;
const KEY_AT: usize = 8;
const ACTIVITY_AT: usize = 16;
const STATE_AT: usize = 20;
/// The offset of the mark, which is behind the last byte to which the specification gives a meaning.
const MARK_AT: usize = 24;
/// The mark by which an agent of this program shows that it is one. Other managers ignore it.
const MARK: [u8; 8] = *b"mapper\0\x01";

/// What a subnet manager is doing, in the order of the numbers that messages have for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum SmState {
    /// It was told to do nothing.
    NotActive,
    /// It explores, and does not know yet whether there is another.
    Discovering,
    /// It waits for the master to go.
    Standby,
    /// It manages the subnet.
    Master,
}

/// What one subnet manager tells another to do, in the modifier of a Set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// The master hands the subnet over.
    Handover,
    /// The new master says that it has taken the subnet over.
    Acknowledge,
    /// The receiver is to do nothing any more.
    Disable,
    /// The receiver is to stand by.
    Standby,
    /// The receiver is to explore again.
    Discover,
}

impl Command {
    const ALL: [Self; 5] = [Self::Handover, Self::Acknowledge, Self::Disable, Self::Standby, Self::Discover];

    /// The modifier.
    pub const fn modifier(self) -> u32 {
        self as u32 + 1
    }

    /// The command of a modifier, if it is one.
    pub fn of(modifier: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.modifier() == modifier)
    }
}

/// The attribute SMInfo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SmInfo {
    /// The GUID of the manager's port.
    pub guid: u64,
    /// A key that all managers of a subnet share; 0 for none.
    pub key: u64,
    /// A number that rises while the manager works.
    pub activity: u32,
    /// The priority, 0 to 15. Of two managers the one with the higher priority becomes master, and of equals
    /// the one with the lower GUID.
    pub priority: u8,
    /// What it is doing.
    pub state: SmState,
    /// Whether it is an agent of this program, which understands what agents tell each other by LID.
    pub is_agent: bool,
}

impl SmInfo {
    /// Reads an answer. A state without a meaning counts as [`SmState::NotActive`].
    pub fn parse(data: &Data) -> Self {
        let [state] = bytes(data, STATE_AT);
        let known = SmState::VARIANTS.get(usize::from(state & 0xF));
        Self {
            guid: u64_at(data, GUID_AT),
            key: u64_at(data, KEY_AT),
            activity: u32_at(data, ACTIVITY_AT),
            priority: state >> 4,
            state: known.copied().unwrap_or(SmState::NotActive),
            is_agent: bytes(data, MARK_AT) == MARK,
        }
    }

    /// The bytes as they travel.
    pub fn emit(&self) -> Data {
        let mut data = [0; DATA_BYTES];
        put(&mut data, GUID_AT, &self.guid.to_be_bytes());
        put(&mut data, KEY_AT, &self.key.to_be_bytes());
        put(&mut data, ACTIVITY_AT, &self.activity.to_be_bytes());
        data[STATE_AT] = self.priority << 4 | self.state as u8;
        if self.is_agent {
            put(&mut data, MARK_AT, &MARK);
        }
        data
    }

    /// Whether this one is to be master rather than the other.
    pub fn outranks(&self, other: &Self) -> bool {
        (self.priority, std::cmp::Reverse(self.guid)) > (other.priority, std::cmp::Reverse(other.guid))
    }
}
