//! The bodies of the fuzz targets. They are those of the tests of the crates that they are for.
//!
//! `scripts/fuzz` runs all of them for a while with a stable Rust; with cargo-fuzz and the sanitizers of a nightly one it is
//! `cargo +nightly fuzz run message`. Where a target has a folder in `seeds`, its files are inputs to start from.

#[path = "../../proto/tests/protocol/bodies.rs"]
pub mod bodies;

#[path = "../../acm/src/any_bytes/bodies.rs"]
pub mod acm_bodies;

#[path = "../../ib/tests/bodies/mod.rs"]
pub mod ib_bodies;
