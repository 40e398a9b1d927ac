//! The fabric mapper: everything around the protocol of `mapper-proto`.
//!
//! - [`cli`]: one file a subcommand.
//! - [`daemon`]: the tokio driver of an agent: timers, status socket, pid file, signals.
//! - [`doctor`]: what keeps an agent from working on this machine.
//! - [`xbar`]: the software crossbar.
//! - [`formats`]: fabrics, routes and tables as files.

pub mod cli;
pub mod daemon;
pub mod doctor;
pub mod formats;
pub mod xbar;
