//! IP over the fabric: the data path of a host, without I/O.
//!
//! ```text
//!   tap --> DataPath::outbound: flow -> bucket -> route --> data frame --> fabric
//!   tap <-- DataPath::inbound                           <-- data frame <-- fabric
//!           DataPath::undeliverable                     <-- notice     <-- fabric
//! ```
//!
//! Each destination has a few proved routes, which its flows share: a flow is hashed to one of 64
//! buckets, and a bucket keeps to one route, so that frames of a flow stay in order. A bucket takes another
//! route only when its own is gone or dead, or when it was silent for a second.
//!
//! Frames are kept for 50 ms after they were sent. When a crossbar sends a notice that a port has no
//! carrier, the flows over that port's cable move at once, and the frame is sent again. Where the table has
//! no other route, the frame waits for a repaired table, which avoids the cable.
//!
//! Flows keep off cables that carry shorter frames than others, where they can. Where they cannot, a frame
//! that is too long is dropped, and the sender's kernel is told how long a packet may be.

mod counters;
mod data_path;
mod destination;
mod destinations;
mod ethernet;
mod flow;
mod mtu;
mod notices;
mod sent;
mod sources;
#[cfg(test)]
mod tests;
mod too_big;
mod upkeep;
mod uses;
mod waiting;

use mapper_proto::agent::PathId;

pub use counters::{DataCount, DataDrop, DataDropKind, DataStatus};
pub use data_path::{DataPath, PathInUse};
pub use mtu::{MIN_TAP_MTU, MtuTooSmall, tap_mtu};
pub use notices::DeadPort;
pub use uses::PathTraffic;
