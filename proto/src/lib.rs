//! The protocol of the mapper, without I/O.
//!
//! Nothing here reads a clock, opens a socket or starts a thread. Time is passed in, frames
//! go in and come out as bytes, and randomness comes from a seeded generator, so a seed and
//! a version reproduce a run bit for bit. The simulator and the daemon drive the same code.
//!
//! - [`wire`]: what travels: route elements, frames, messages.
//! - [`map`]: what is known of a fabric: hosts, xbars, cables; pieces, difference, isomorphism.
//! - [`explore`]: how a fabric becomes known: what to probe next, which xbar is which.
//! - [`neighbours`]: who is at the other end of each cable.
//! - [`quote`]: what others wrote, as messages repeat it.
//! - [`agent`]: the life of one agent: election, trees, distribution, verify.

#![forbid(unsafe_code)]

pub mod agent;
mod answer_wait;
pub mod crossbar_tag;
pub mod explore;
mod ip;
pub mod mac;
pub mod map;
pub mod neighbours;
mod port_set;
pub mod quote;
mod tally;
pub mod time;
pub mod wire;

pub use ip::{IpNetworkAddress, NotANetworkAddress};
pub use mac::Mac;
pub use port_set::PortSet;
pub use tally::{Counted, Tally};
pub use time::Instant;

// Tests that stand beside the code share helpers with those in `tests`, which name the crate from outside.
#[cfg(test)]
extern crate self as mapper_proto;
