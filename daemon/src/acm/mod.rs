//! The ACM service of this machine: it tells programs the path to a name or an address, as `ibacm` does.
//!
//! It stands beside the machine's agents, which tell it what they know by their sockets of requests, and which it follows
//! as that changes. What is answered, and what is remembered, is decided in `mapper-acm`, without I/O.
//!
//! - `options`: the command line, `[acm]` of mapper.toml and the files of `ibacm`.
//! - `process`: the service as a process.

mod agents;
mod connection;
mod finding;
mod listener;
pub(crate) mod options;
mod places;
pub(crate) mod process;
mod state;
#[cfg(test)]
mod tests;

pub use options::AcmSource;
pub use process::run;
