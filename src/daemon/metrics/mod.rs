//! What a daemon measures, as OpenMetrics text: over HTTP on this machine, and as a file for
//! node_exporter.
//!
//! The text is made from the same picture as the status socket shows, so there is no registry to
//! keep in step. A fabric's cables and hosts are values: one that was seen since the start and is
//! gone reads 0.

mod agent;
mod causes;
mod exporter;
mod known;
mod server;
mod text;
mod xbar;

pub use agent::render;
pub use causes::{CauseCounters, Causes};
pub use exporter::{Exporter, MetricsError, Request};
pub use known::KnownFabric;
pub use text::Dialect;
pub use xbar::render_xbar;
