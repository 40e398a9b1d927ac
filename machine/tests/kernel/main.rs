//! The kernel's forwarding tables in network namespaces: what is installed, read back, told and taken away, and the
//! packets that go by it.
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

mod abilities;
mod machines;
#[path = "../../../tests/on_the_wire/namespace.rs"]
mod namespace;
mod notices;
mod read_back;
mod settings;
mod traffic;

/// Whether this machine lets the test make network namespaces.
fn can_make_namespaces() -> bool {
    mapper_needs::root()
        && mapper_needs::programs(&["ip"])
        && mapper_needs::file("/proc/self/ns/net")
        && mapper_needs::file("/dev/net/tun")
}
