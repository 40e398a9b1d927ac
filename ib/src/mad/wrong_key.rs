//! Uses of wrong keys, as the traps 256 to 258 tell of them.

use super::{Data, Notice, u16_at, u32_at, u64_at};

const FIRST_LID_AT: usize = 12;
const SECOND_LID_AT: usize = 14;
const KEY_AT: usize = 16;
const MANAGEMENT_KEY_AT: usize = 24;
const HOPS_AT: usize = 33;
/// The bit beside the hops that says that the datagram came by a directed route.
const IS_DIRECTED: u8 = 1 << 7;

/// What a key is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KeyKind {
    /// It lets a manager write to a port (M_Key, trap 256).
    Management,
    /// It is of a partition (P_Key, trap 257).
    Partition,
    /// It is of a queue pair (Q_Key, trap 258).
    Queue,
}

/// A packet that was dropped for its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongKey {
    /// What the key is for.
    pub kind: KeyKind,
    /// The key that the packet had.
    pub key: u64,
    /// The LID that the packet came from; 0 or 0xFFFF if it came by a directed route all the way.
    pub from: u16,
    /// The LID that it was sent to.
    pub to: u16,
    /// Over how many cables the packet came, if it came by a directed route.
    pub hops: Option<u8>,
}

impl WrongKey {
    /// Reads a trap; `None` if it is about anything else.
    pub fn parse(data: &Data) -> Option<Self> {
        let notice = Notice::parse(data);
        let kind = match notice.number? {
            Notice::MANAGEMENT_KEY => KeyKind::Management,
            Notice::PARTITION_KEY => KeyKind::Partition,
            Notice::QUEUE_KEY => KeyKind::Queue,
            _ => return None,
        };
        let from = u16_at(data, FIRST_LID_AT);
        Some(match kind {
            KeyKind::Management => {
                let hops = data[HOPS_AT];
                let hops = Some(hops & 0x3F).filter(|_| hops & IS_DIRECTED != 0);
                Self { kind, key: u64_at(data, MANAGEMENT_KEY_AT), from, to: notice.issuer, hops }
            }
            KeyKind::Partition | KeyKind::Queue => {
                let (key, to) = (u32_at(data, KEY_AT).into(), u16_at(data, SECOND_LID_AT));
                Self { kind, key, from, to, hops: None }
            }
        })
    }
}
