//! The ACM service without I/O: who asks it for a name or an address gets the path to that host as a record of
//! InfiniBand's (*InfiniBand Architecture Specification*, volume 1, 15.2.5.16).
//!
//! - [`wire`]: the messages between a client and the service on its machine, as rdma-core's `ibacm` has them.
//! - [`files`]: the files that `ibacm` reads.
//! - [`fabric`]: what an agent of this machine knows, and the numbers that InfiniBand has for it.
//! - [`cache`]: bounded tables of answers that grow old.
//! - [`service`]: the state machine that takes requests and gives replies.

#[cfg(test)]
mod any_bytes;
pub mod cache;
pub mod fabric;
pub mod files;
pub mod service;
pub mod wire;

pub use mapper_ib::codes;

// The bodies of the fuzz targets name the crate as these targets do.
#[cfg(test)]
extern crate self as mapper_acm;
