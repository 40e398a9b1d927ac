//! The bodies of the fuzz targets. They are those of the protocol crate's own tests.
//!
//! Run one with `cargo +nightly fuzz run message`.

#[path = "../../proto/tests/bodies/mod.rs"]
pub mod bodies;
