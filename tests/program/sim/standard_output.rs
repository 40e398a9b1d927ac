//! Tests of the program with a standard output that is full or closed.

use std::process::Command;

#[test]
fn full_and_closed_standard_output_do_not_panic() {
    use std::process::Stdio;
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let run = |stdout: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mapper"));
        command.args(["sim", "ring:n=2"]).stdout(stdout).output().expect("the program runs")
    };
    let output = run(full.into());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write standard output"));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    // The status is that of a program that SIGPIPE ended, and nothing is printed.
    let output = run(writer.into());
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(141), ""));
}

#[test]
fn nothing_is_written_to_a_closed_standard_output_and_that_is_said() {
    let run = |line: &str| {
        let command = format!("exec \"$0\" {line} >&-");
        Command::new("sh").args(["-c", &command, env!("CARGO_BIN_EXE_mapper")]).output().expect("a shell")
    };
    for line in [
        "sim ring:n=2",
        "sim ring:n=2 --format json",
        "--help",
        "--version",
        "topology generate ring:n=3 -o -",
    ] {
        let output = run(line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {stderr}");
        assert!(stderr.contains("cannot write standard output: Bad file descriptor"), "{line}: {stderr}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let line = format!("topology generate ring:n=3 -o {}/ring.json", folder.path().display());
    assert_eq!(run(&line).status.code(), Some(1), "what was written is not told");
}
