//! What a daemon measures, as OpenMetrics text: over HTTP on this machine, and as a file for
//! node_exporter.

mod exporter;
mod server;
mod text;

pub use exporter::{Exporter, MetricsError, Request};
pub use text::{Dialect, Exposition, Family, FamilyKind, Unit};
