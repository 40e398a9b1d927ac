//! The software crossbar: strips one route element of a frame and sends the rest on.
//!
//! What becomes of a frame is decided in one place for all crossbars,
//! [`Crossbar::decide`](mapper_proto::wire::Crossbar::decide). This module adds the links and the process.
//!
//! - `switch`: the ports, and what goes from one to the other.
//! - `forwarding`: the kernel as a crossbar of users' packets.
//! - `hellos`: what neighbours at the two ends of a cable tell each other.
//! - [`cable`]: what is shown of the cable at a port, and what is wrong with it.
//! - [`counters`]: what is counted at each port.
//! - `data_path`: what users' packets go by, as the status tells it.
//! - `status`: what a crossbar says of itself.
//! - `traffic`: what goes over the cable at a port.
//! - `metrics`: what a crossbar says of itself, as OpenMetrics text.
//! - [`socket`]: the unix socket that a crossbar is asked on.
//! - `process`: a crossbar as a process of its own.
//! - [`options`]: what the user may set of a crossbar.
//! - `port_interfaces`: the interfaces at a machine's ports, as they are looked up.
//! - [`ports`]: which interface is behind which port.

mod bucket;
pub mod cable;
pub mod counters;
mod data_path;
pub(crate) mod forwarding;
pub(crate) mod hellos;
mod kernel_crossbar;
pub(crate) mod metrics;
pub mod options;
pub(crate) mod port_interfaces;
mod port_table;
pub mod ports;
pub(crate) mod process;
pub mod socket;
mod speedups;
pub(crate) mod status;
pub(crate) mod switch;
pub(crate) mod traffic;

pub use data_path::XbarDataPath;
pub use process::{XbarConfig, XbarError, XbarKind, run};
pub use status::{PortStatus, XbarStatus};
pub use switch::Switch;
pub use traffic::PortTraffic;
