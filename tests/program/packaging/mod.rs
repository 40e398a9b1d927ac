//! Tests of what an operator installs: manual pages, units, init script and Debian package.
//!
//! A test says what it needs and this machine lacks, and passes, or fails if `MAPPER_REQUIRE_ALL=1`.

#[path = "../../opensm/built.rs"]
mod built;
mod copy;
mod debian;
mod init_script;
mod opensm_plugin;
mod pages;
mod shipped_pages;
mod units;

use std::path::Path;
use std::process::Command;

/// The program under test.
const MAPPER: &str = env!("CARGO_BIN_EXE_mapper");

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
