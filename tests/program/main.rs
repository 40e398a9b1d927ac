//! Tests of the program as a user runs it, and of whole fabrics. They need no root, and few need another
//! program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test and its helpers fail by panicking"
)]

mod acm;
mod arrows;
mod named_paths;
mod overwriting;
mod packaging;
mod pages;
mod plan;
mod route;
mod sim;
mod slurm;
mod topology;
mod torus;
mod view;
mod watch;
mod what_if;
mod whole_fabrics;
mod wireshark;
