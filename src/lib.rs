//! The fabric mapper: everything around the protocol of `mapper-proto`.
//!
//! - [`cli`]: one file a subcommand.
//! - [`daemon`]: the tokio driver of an agent: timers, status socket, pid file, signals.
//! - [`data`]: IP over the fabric: user frames from one host to another, without I/O.
//! - [`doctor`]: what keeps an agent from working on this machine.
//! - [`xbar`]: the software crossbar.
//! - [`link`]: sends and receives frames for an agent.
//! - [`formats`]: fabrics, routes and tables as files.
//! - [`names`]: what people call nodes.
//! - [`routing`]: routes and tables, proved free of deadlock.

pub mod cli;
pub mod daemon;
pub mod data;
pub mod doctor;
pub mod formats;
pub mod link;
pub mod names;
pub mod routing;
pub mod xbar;

mod wording;
