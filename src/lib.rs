//! The fabric mapper: everything around the protocol of `mapper-proto`.
//!
//! - [`cli`]: the command line, with one file for each subcommand.
//! - [`daemon`]: the tokio driver of an agent, with its timers, status socket, pid file and signals.
//! - [`dissector`]: what shows the frames in Wireshark.
//! - [`doctor`]: what keeps an agent from working on this machine.
//! - [`pcapng`]: recorded frames as a file.
//! - [`xbar`]: the software crossbar.
//! - [`formats`]: fabrics, routes and tables as files.

pub mod cli;
pub mod daemon;
pub mod dissector;
pub mod doctor;
pub mod formats;
pub mod pcapng;
pub mod xbar;
