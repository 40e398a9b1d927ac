//! A daemon's metrics as text, which is served over HTTP on this machine and written to a file for
//! node_exporter.

mod exporter;
mod server;
mod text;

pub use exporter::{Exporter, MetricsError, MetricsRequest};
pub use text::{Dialect, Exposition, Family, FamilyKind, Unit};
