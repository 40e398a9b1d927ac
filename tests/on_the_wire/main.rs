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

mod acm;
mod agents;
mod boards;
mod clock;
mod crashes;
mod crossbar;
mod daemon;
mod directory;
mod doctor;
mod doctor_faults;
mod endless;
mod fast_path;
mod floods;
mod flows;
mod full_disk;
mod hellos;
mod history;
mod identity;
mod interfaces;
mod ip;
mod kernel_agents;
mod kernel_choice;
mod kernel_datagrams;
mod kernel_ipv4;
mod kernel_left;
mod kernel_load;
mod kernel_path;
mod kernel_ports;
mod kernel_refusals;
mod kernel_routes_of_others;
mod kernel_tables;
mod lab;
mod lab_commands;
mod logs;
mod lossy_cable;
mod metrics;
mod mtu;
mod names;
mod namespace;
mod node;
mod node_patterns;
mod pinging;
mod plan;
mod rdmacm;
mod recabling;
mod refusals;
mod ring;
mod second_agent;
mod service;
mod signals;
mod soundings;
mod strangers;
mod tap;
mod urgency;

/// The program under test.
const MAPPER: &str = env!("CARGO_BIN_EXE_mapper");

/// Whether this machine lets the test make network namespaces.
fn can_make_namespaces() -> bool {
    mapper_needs::root() && mapper_needs::programs(&["ip"]) && mapper_needs::file("/proc/self/ns/net")
}

/// Whether hosts can have tap interfaces, too.
fn can_make_taps() -> bool {
    can_make_namespaces() && mapper_needs::file("/dev/net/tun")
}

/// Whether the hosts of a lab can carry IP here and ping each other.
fn can_carry_ip() -> bool {
    can_make_taps() && mapper_needs::programs(&["ping"])
}
