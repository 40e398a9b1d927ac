//! Tests of the protocol through the interface that drivers use. They are one program, as linking costs more
//! than running them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, also in what it shares with others"
)]

mod any_bytes;
mod bodies;
mod explore;
mod signed;
