//! What the data path counts.

use std::fmt;

use enum_map::Enum;
use mapper_proto::Tally;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
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
    TooLong {
        /// The longest frame of the user that gets through, in bytes.
        most_bytes: usize,
    },
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

/// What is counted of users' frames beside drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum DataCount {
    /// Frames of the user that were sent. A broadcast counts once.
    FramesOut,
    /// Bytes of the frames sent, from the destination address on.
    BytesOut,
    /// Frames delivered to the user.
    FramesIn,
    /// Bytes of the frames delivered, from the destination address on.
    BytesIn,
    /// Broadcasts and multicasts among the frames sent.
    Broadcasts,
    /// Copies that were made of broadcasts and multicasts, one for each host.
    BroadcastCopies,
    /// Notices that a frame could not be delivered.
    Notices,
    /// Notices that were not believed, as they had no token of a frame sent lately or named a cable that
    /// the frame was not sent over.
    NoticesIgnored,
    /// Frames sent again along another route, after a notice.
    Resent,
    /// Frames about which a notice came and that were not sent again, as there was no other route or they
    /// had been tried often enough.
    GivenUp,
    /// Flows in use that had to leave their route for another. Flows that share a bucket move together and
    /// count once.
    FlowsMoved,
    /// How often a new table was put to use.
    RouteSwaps,
    /// Routes that carried frames during the last second.
    RoutesInUse,
}

/// What the data path did since its start.
///
/// Programs get one map: the name of each [`DataCount`] with its count, and `dropped` with those of the drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataStatus {
    /// What became of frames, and what was heard of them.
    pub counts: Tally<DataCount>,
    /// Frames dropped, by reason.
    pub dropped: Tally<DataDropKind>,
}

/// The name under which programs find the drops.
const DROPPED: &str = "dropped";

impl Serialize for DataStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The encoding of the status sockets has to know the length beforehand.
        let mut map = serializer.serialize_map(Some(self.counts.iter().count() + 1))?;
        for (_, name, number) in self.counts.iter() {
            map.serialize_entry(name, &number)?;
        }
        map.serialize_entry(DROPPED, &self.dropped)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for DataStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StatusVisitor)
    }
}

/// Reads a [`DataStatus`].
struct StatusVisitor;

impl<'de> Visitor<'de> for StatusVisitor {
    type Value = DataStatus;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counts of users' frames by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DataStatus, A::Error> {
        let mut status = DataStatus::default();
        while let Some(name) = map.next_key::<String>()? {
            if name == DROPPED {
                status.dropped = map.next_value()?;
            } else {
                let number = map.next_value()?;
                let kind = status.counts.iter().find(|(_, known, _)| *known == name).map(|(kind, ..)| kind);
                kind.into_iter().for_each(|kind| status.counts.add(kind, number));
            }
        }
        Ok(status)
    }
}
