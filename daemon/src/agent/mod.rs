//! The tokio driver of an agent. An *agent alone* is at one interface. A *node* has a crossbar of its own,
//! whose ports are interfaces of the machine, and its agent is at the crossbar's last port.
//!
//! - `crossbar_tag`: what the tag of a node's crossbar is made of.
//! - [`driver`]: the loop that drives one agent.
//! - [`history`]: the log of maps on disk.
//! - `map_file`: the map as a file.
//! - `on_change`: tells others what is not as planned.
//! - [`keys`]: key files.
//! - [`options`]: what the user may set, on the command line and in a configuration file.
//! - [`status`]: what the status socket says.
//! - `metrics`: what the status socket says, as OpenMetrics text.

mod crossbar_tag;
pub mod driver;
mod error;
pub mod history;
pub mod keys;
pub(crate) mod map_file;
pub(crate) mod metrics;
mod on_change;
pub mod options;
pub mod status;

pub use error::DaemonError;
