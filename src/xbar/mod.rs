//! The software crossbar: strips one route element of a frame and sends the rest on.
//!
//! What becomes of a frame is decided in one place for all crossbars,
//! [`Crossbar::decide`](mapper_proto::wire::Crossbar::decide). This module adds the links and the process.
//!
//! - [`switch`]: the ports, and what goes from one to the other.
//! - [`counters`]: what is counted at each port.
//! - [`status`]: what a crossbar says of itself.
//! - [`metrics`]: what a crossbar says of itself, as OpenMetrics text.
//! - [`socket`]: the unix socket that a crossbar is asked on.
//! - [`process`]: a crossbar as a process of its own.
//! - [`options`]: what the user may set of a crossbar.
//! - [`ports`]: which interface is behind which port.

mod bucket;
pub mod counters;
pub mod metrics;
pub mod options;
mod port_table;
pub mod ports;
pub mod process;
pub mod socket;
pub mod status;
pub mod switch;

pub use process::{Config, Kind, XbarError, run};
pub use status::{PortStatus, XbarStatus};
pub use switch::Switch;
