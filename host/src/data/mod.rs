//! IP over the fabric: the data path of a host, without I/O.
//!
//! ```text
//!   tap --> DataPath::outbound: flow -> bucket -> route --> data frame --> fabric
//!   tap <-- DataPath::inbound                           <-- data frame <-- fabric
//!           DataPath::undeliverable                     <-- notice     <-- fabric
//! ```
//!
//! Each destination has a few proved routes, which its flows share: a flow is hashed to one of 64
//! buckets, and a bucket keeps to one route, so that frames of a flow stay in order. Only when that
//! route is gone or dead, or when the bucket was silent for a second, it takes another.
//!
//! The frames sent last are kept for 50 ms. When a crossbar sends a notice that a port has no
//! carrier, the flows over that cable move at once, and the frame is sent again; where the table has
//! no other route, as soon as there is a table around the cable.
//!
//! Flows keep off cables that carry shorter frames than others, where they can. Where they cannot, a frame that is
//! too long is dropped, and the kernel told what gets through.

mod counters;
mod data_path;
mod destination;
mod destinations;
mod ethernet;
mod flow;
mod mtu;
mod sent;
mod sources;
#[cfg(test)]
mod tests;
mod too_big;
mod uses;
mod waiting;

use mapper_proto::agent::PathId;

pub use counters::{DataDrop, DataDropKind, DataStatus};
pub use data_path::{DataPath, DeadPort, PathInUse};
pub use mtu::{MtuTooSmall, tap_mtu};
pub use uses::PathTraffic;
