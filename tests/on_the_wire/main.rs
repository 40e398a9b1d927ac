//! Tests of the real program on real interfaces: agents and crossbars are processes in network namespaces.
//!
//! The tests need root and `ip` (iproute2). Without them they say so and pass, or fail if
//! `MAPPER_REQUIRE_ALL=1`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests fail by panicking, and say why a test is skipped"
)]

mod agents;
mod clock;
mod crashes;
mod crossbar;
mod endless;
mod floods;
mod flows;
mod full_disk;
mod identity;
mod interfaces;
mod ip;
mod lab;
mod lab_commands;
mod mtu;
mod names;
mod namespace;
mod node;
mod observe;
mod recabling;
mod refusals;
mod service;
mod signals;
mod strangers;
mod tap;

use std::path::Path;
use std::process::Command;

/// The program under test.
const MAPPER: &str = env!("CARGO_BIN_EXE_mapper");

/// Whether this machine lets the test make network namespaces.
fn can_make_namespaces() -> bool {
    let missing = if !rustix::process::geteuid().is_root() {
        "needs root"
    } else if Command::new("ip").arg("-V").output().is_err() {
        "needs iproute2"
    } else if !Path::new("/proc/self/ns/net").exists() {
        "needs a kernel with network namespaces"
    } else {
        return true;
    };
    skip(missing)
}

/// Whether the hosts of a lab can carry IP here and ping each other.
fn can_carry_ip() -> bool {
    if !can_make_namespaces() {
        false
    } else if !Path::new("/dev/net/tun").exists() {
        skip("needs /dev/net/tun")
    } else if Command::new("ping").arg("-V").output().is_err() {
        skip("needs ping (iputils-ping)")
    } else {
        true
    }
}

/// Says why a test is skipped, or fails if no test may be.
fn skip(missing: &str) -> bool {
    assert!(std::env::var_os("MAPPER_REQUIRE_ALL").is_none_or(|value| value != "1"), "{missing}");
    eprintln!("skipped: {missing}");
    false
}
