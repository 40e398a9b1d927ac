//! What a manager counts.

use enum_map::Enum;
use strum::IntoStaticStr;

use crate::mad::KeyKind;

/// What is counted of what a manager did and was told since its start. The boards of agents have these counts, and their
/// metrics are made of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum SubnetCount {
    /// Explorations of the whole subnet.
    Sweeps,
    /// Looks at the ports of switches that told of a change.
    Glances,
    /// Traps that came while this manager was master.
    Traps,
    /// Blocks of tables written, those of multicast tables among them.
    Blocks,
    /// How often the subnet was brought up.
    Ups,
    /// Shares of switches that this manager looked at for a master while it stood by.
    Shares,
    /// Shares that agents did not report on in time, so that this master looked at them itself.
    SharesReturned,
    /// Packets with a wrong key of management (M_Key) that ports told of while this manager was master (trap 256).
    WrongManagementKeys,
    /// Packets with a wrong key of a partition (P_Key) that ports told of while this manager was master (trap 257).
    WrongPartitionKeys,
    /// Packets with a wrong key of a queue pair (Q_Key) that ports told of while this manager was master (trap 258).
    WrongQueueKeys,
}

impl From<KeyKind> for SubnetCount {
    /// The count of packets with a wrong key of this kind.
    fn from(kind: KeyKind) -> Self {
        match kind {
            KeyKind::Management => Self::WrongManagementKeys,
            KeyKind::Partition => Self::WrongPartitionKeys,
            KeyKind::Queue => Self::WrongQueueKeys,
        }
    }
}

/// How many datagrams a manager exchanged since its start. Boards count them with the frames of agents of all kinds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Datagrams {
    /// Datagrams sent to ports and managers; answers to hosts are not counted.
    pub sent: u64,
    /// Datagrams that came.
    pub received: u64,
}
