//! One file an engine. Each is deterministic for its seed.

pub mod dispersive;
