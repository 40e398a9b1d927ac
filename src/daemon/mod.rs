//! The tokio driver of an agent.
//!
//! - [`options`]: what the user may set, on the command line and in a configuration file.
//! - [`status`]: the status socket: what it says, its bytes, server and client.
//! - [`process`]: running in the background: fork, pid file.
//! - [`log`]: where log lines go, and how often.

mod fork;
pub mod log;
pub mod options;
pub mod process;
pub mod status;
