//! The bodies of the fuzz targets. They are those of the tests of the crates that they are for.
//!
//! Run one with `cargo +nightly fuzz run message`.

#[path = "../../proto/tests/protocol/bodies.rs"]
pub mod bodies;

#[path = "../../acm/src/any_bytes/bodies.rs"]
pub mod acm_bodies;

#[path = "../../ib/tests/bodies/mod.rs"]
pub mod ib_bodies;
