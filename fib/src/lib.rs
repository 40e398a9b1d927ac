//! What the kernel is to hold so that it forwards users' packets along the routes that were proved, without
//! I/O.
//!
//! - [`object`]: the objects of Linux's forwarding tables that this project installs, as plain values.
//! - [`difference`]: the changes that lead from what is installed to what is wanted, in an order in which no
//!   step depends on a later one.
//! - [`segments`]: source routes as lists of IPv6 segments (SRv6, RFC 8986, compressed as in RFC 9800).
//! - [`model`]: what Linux does with a packet, for those who have no kernel.
//! - [`probe`]: the packets by which a path through kernels is proved.
//! - [`crossbar`]: what a machine holds so that its ports obey segments, or forward by destination.
//! - [`shortcuts`]: how packets by segments get through a crossbar before routes are looked up.
//! - [`takeover`]: what a machine holds while a run of the daemon takes over from an earlier one.
//!
//! The daemon installs a set of objects by netlink, reads back what the kernel holds as the same type, and
//! installs the difference. So what is wanted, what is there, and what is to be mended are one type.

#![forbid(unsafe_code)]

pub mod crossbar;
pub mod difference;
pub mod model;
pub mod object;
pub mod probe;
pub mod segments;
pub mod shortcuts;
pub mod takeover;

pub use difference::{Change, changes};
pub use object::{GroupId, IpPrefix, Nexthop, NexthopId, Objects, Route, RouteKey, Rule, Strips, Table};

/// The least MTU that IPv6 works with, in bytes (RFC 8200, section 5). Linux switches IPv6 off on an interface with less, and takes
/// away addresses, routes and settings that it has there.
pub const LEAST_MTU_OF_IPV6: u32 = 1280;
