//! Tests of what an operator installs: manual pages, units, init script and Debian package.
//!
//! A test says what it needs and this machine lacks, and passes, or fails if `MAPPER_REQUIRE_ALL=1`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail by panicking, and say what they found"
)]

mod debian;
mod init_script;
mod pages;
mod units;

use std::path::Path;
use std::process::Command;

/// The program under test.
const MAPPER: &str = env!("CARGO_BIN_EXE_mapper");

/// Whether this machine has all these programs.
fn has(programs: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap();
    let found = |program: &&&str| !path.split(':').any(|dir| Path::new(dir).join(program).is_file());
    programs.iter().find(found).is_none_or(|program| skip(program))
}

/// Whether the test runs as root.
fn is_root() -> bool {
    rustix::process::geteuid().is_root() || skip("root")
}

/// Says what the test needs and that it is skipped, or fails if no test may be.
fn skip(needed: &str) -> bool {
    assert!(std::env::var_os("MAPPER_REQUIRE_ALL").is_none_or(|value| value != "1"), "needs {needed}");
    println!("skipped: needs {needed}");
    false
}

/// Runs a command, which must succeed, and returns all that it prints.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    said
}

fn packaging() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/packaging"))
}
