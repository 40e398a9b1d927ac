//! What the data path counts.

use enum_map::Enum;
use mapper_proto::Tally;
use serde::{Deserialize, Serialize};
use strum::{EnumDiscriminants, IntoStaticStr};
use thiserror::Error;

/// Why a user's frame is dropped. Drops are counted by [`DataDropKind`], the reason without its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error, EnumDiscriminants)]
#[strum_discriminants(name(DataDropKind), derive(Enum, IntoStaticStr), strum(serialize_all = "snake_case"))]
#[strum_discriminants(doc = "Kinds of reasons why a user's frame is dropped.")]
pub enum DataDrop {
    /// There is no map yet, or no route leads to the destination for now.
    #[error("no route leads to the destination")]
    NoRoute,
    /// A unicast destination that is no host of the map.
    #[error("the destination is no host of the fabric")]
    UnknownDestination,
    /// The source is not this host: something is bridged to the tap interface.
    #[error("the source is not this host's address; nothing may be bridged to the tap interface")]
    ForeignSource,
    /// The frame does not fit this host's link together with its route.
    #[error("the frame is too long for the link")]
    TooLong,
    /// The frame fits this host's link, but every way to the destination has a cable that it does not fit.
    #[error("a cable on the way carries no frames of that length")]
    TooLongForCable {
        /// The longest frame of the user that gets through, in bytes.
        most_bytes: usize,
    },
    /// The user's frame is no Ethernet frame, or what arrived is no data frame.
    #[error("the frame is malformed")]
    Malformed,
    /// What arrived is for another host, or comes from this one.
    #[error("the frame is not for this host")]
    NotForMe,
    /// What arrived comes from no host of the map.
    #[error("the frame comes from no host of the fabric")]
    UnknownSource,
    /// What arrived is an ARP or neighbour message that gives another address than its own, or has more VLAN
    /// tags than are looked behind.
    #[error("an ARP or neighbour message gives another address than the one that it comes from")]
    ForgedNeighbour,
}

/// What the data path did since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DataStatus {
    /// Frames of the user that were sent. A broadcast counts once.
    pub frames_out: u64,
    /// Bytes of the frames sent, from the destination address on.
    pub bytes_out: u64,
    /// Frames delivered to the user.
    pub frames_in: u64,
    /// Bytes of the frames delivered, from the destination address on.
    pub bytes_in: u64,
    /// Broadcasts and multicasts among the frames sent.
    pub broadcasts: u64,
    /// Copies that were made of broadcasts and multicasts, one for each host.
    pub broadcast_copies: u64,
    /// Frames dropped, by reason.
    pub dropped: Tally<DataDropKind>,
    /// Notices that a frame could not be delivered.
    pub notices: u64,
    /// Notices that were not believed, as they had no token of a frame sent lately or named a cable that
    /// the frame was not sent over.
    pub notices_ignored: u64,
    /// Frames sent again along another route, after a notice.
    pub resent: u64,
    /// Frames about which a notice came and that were not sent again, as there was no other route or they
    /// had been tried often enough.
    pub given_up: u64,
    /// Flows in use that had to leave their route for another. Flows that share a bucket move together and
    /// count once.
    pub flows_moved: u64,
    /// How often a new table was put to use.
    pub route_swaps: u64,
    /// Routes that carried frames during the last second.
    pub routes_in_use: u64,
}
