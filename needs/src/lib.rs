//! What tests need of the machine: root, devices, other programs.
//!
//! A test that lacks something prints "skipped: needs X" and passes. If `MAPPER_REQUIRE_ALL` is 1 it fails.
//! The line is written to standard error directly, since libtest does not show what `println!` prints in
//! tests that pass.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// Whether the test runs as root.
pub fn root() -> bool {
    or_skip(rustix::process::geteuid().is_root(), "root")
}

/// Whether there is this file or device.
pub fn file(path: &str) -> bool {
    or_skip(Path::new(path).exists(), path)
}

/// Whether all these programs are in the path, or where only administrators have them.
pub fn programs(names: &[&str]) -> bool {
    names.iter().all(|name| or_skip(is_in_path(name), name))
}

/// The library that lets InfiniBand tools take ibsim for the network, if it is there.
pub fn umad2sim() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().filter_map(Result::ok);
    let folders = folders.map(|entry| entry.path());
    let folders = folders.chain(["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from));
    let found = folders.map(|folder| folder.join("umad2sim/libumad2sim.so")).find(|path| path.exists());
    or_skip(found.is_some(), "libumad2sim");
    found
}

/// Whether a test that needs `what` can run. If it cannot, this prints that the test is skipped.
///
/// # Panics
/// If the test cannot run and `MAPPER_REQUIRE_ALL` is 1.
pub fn or_skip(is_there: bool, what: &str) -> bool {
    if !is_there {
        let required = std::env::var_os("MAPPER_REQUIRE_ALL").is_some_and(|value| value == "1");
        assert!(!required, "this test needs {what}, and MAPPER_REQUIRE_ALL is set");
        let current = thread::current();
        let test = current.name().unwrap_or("a test");
        // If standard error is closed, nobody wants to read this line.
        let _ = writeln!(std::io::stderr(), "skipped: needs {what} ({test})");
    }
    is_there
}

/// Writes a program with this text, which everybody may run.
///
/// A process of its own writes it. What a test writes itself is for a moment also open in the processes that other tests
/// start meanwhile, and the kernel runs no file that anybody has open for writing.
///
/// # Panics
/// If it cannot be written.
pub fn write_program(to: &Path, text: &str) {
    let mut command = Command::new("install");
    let mut install = command.args(["-m", "755", "/dev/stdin"]).arg(to).stdin(Stdio::piped()).spawn();
    let written = install.as_mut().map(|install| {
        let stdin = install.stdin.take();
        stdin.map(|mut stdin| stdin.write_all(text.as_bytes()))
    });
    assert!(matches!(written, Ok(Some(Ok(())))), "cannot write {}: {written:?}", to.display());
    assert!(install.is_ok_and(|mut install| install.wait().is_ok_and(|ended| ended.success())));
}

/// Copies a program, by a process of its own as [`write_program`] does.
///
/// # Panics
/// If it cannot be copied.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("install").args(["-m", "755"]).args([from, to]).status();
    assert!(copied.is_ok_and(|ended| ended.success()), "cannot copy {} to {}", from.display(), to.display());
}

/// Whether a program of this name is in the path, or where only administrators have it.
fn is_in_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let administrators = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(Into::into);
    std::env::split_paths(&path).chain(administrators).any(|folder| folder.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_written_or_copied_runs() {
        let folder = tempfile::tempdir().unwrap();
        let [written, copied] = ["written", "copied"].map(|name| folder.path().join(name));
        write_program(&written, "#!/bin/sh\nexit 7\n");
        copy_program(&written, &copied);
        for program in [written, copied] {
            assert_eq!(Command::new(program).status().unwrap().code(), Some(7));
        }
    }

    #[test]
    fn a_shell_is_there_and_what_nobody_wrote_is_not() {
        assert!(programs(&["sh"]) && is_in_path("sh") && file("/dev/null"));
        assert!(!is_in_path("no-such-program-of-mapper"));
    }
}
