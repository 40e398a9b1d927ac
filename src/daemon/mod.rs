//! The tokio driver of an agent.
//!
//! - [`driver`]: the loop that drives one agent.
//! - [`map_file`]: the map as a file.
//! - [`keys`]: key files.
//! - [`options`]: what the user may set, on the command line and in a configuration file.
//! - [`status`]: the status socket: what it says, its bytes, server and client.
//! - [`interface_lock`]: one daemon an interface.
//! - [`process`]: running in the background: fork, pid file.
//! - [`privileges`]: giving up what a running daemon does not need.
//! - [`notify`]: what a service manager hears.
//! - [`signals`]: being told to stop.
//! - [`metrics`]: OpenMetrics text, served over HTTP and written to a file.
//! - [`log`]: where log lines go, and how often.

pub mod driver;
mod error;
mod fork;
mod freed;
pub mod interface_lock;
pub mod keys;
pub mod log;
pub mod map_file;
pub mod metrics;
pub mod notify;
pub mod options;
pub mod privileges;
pub mod process;
pub mod signals;
pub mod status;
mod whole_file;

pub use error::DaemonError;
