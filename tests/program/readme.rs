//! A test that runs every command of the README.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The shell blocks of the README, each as the words behind `sh` and the commands.
fn blocks(readme: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        if let Some(kind) = line.strip_prefix("```sh") {
            let body: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((kind.trim().to_owned(), body.join("\n")));
        }
    }
    blocks
}

/// Runs a block in a folder of its own, with `mapper` in the path.
fn run(block: &str, folder: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mapper = PathBuf::from(env!("CARGO_BIN_EXE_mapper"));
    let bin = mapper.parent().unwrap();
    // Nothing is built again: the program is the one of this build, and this test is one of the README's
    // tests.
    let block = block
        .replace("cargo run --release --", "mapper")
        .replace("cargo test --workspace", "true")
        .replace("scripts/lab", &root.join("scripts/lab").display().to_string());
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &block])
        .current_dir(folder)
        .env("PATH", path)
        .env("MAPPER", &mapper)
        .env("LAB_NAME", format!("readme{}", std::process::id()))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{block}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn readme() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

#[test]
fn commands_that_need_nothing_run() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&readme());
    assert_eq!(blocks.iter().filter(|(kind, _)| kind.is_empty()).count(), 7);
    for (_, block) in blocks.iter().filter(|(kind, _)| kind.is_empty()) {
        run(block, folder.path());
    }
}

#[test]
fn commands_that_need_root_run() {
    if !(mapper_needs::root() && mapper_needs::programs(&["ip"])) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let down = "trap 'scripts/lab down' EXIT\n".to_owned();
    for (_, block) in blocks(&readme()).iter().filter(|(kind, _)| kind == "root") {
        // The lab is taken down at the end in any case.
        run(&format!("{down}{}", block.replace("scripts/lab down", "true")), folder.path());
    }
}

#[test]
fn the_picture_is_what_the_command_draws() {
    let folder = tempfile::tempdir().unwrap();
    run("mapper topology generate clos:hosts=8,ports=4 -o clos.svg", folder.path());
    let drawn = std::fs::read_to_string(folder.path().join("clos.svg")).unwrap();
    let shown = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/clos.svg")).unwrap();
    assert_eq!(drawn, shown);
}

#[test]
fn every_bench_says_what_it_measures_and_needs_without_running() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/bench");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let benches: Vec<_> = entries.filter(|path| path.is_file() && path.extension().is_none()).collect();
    assert!(benches.len() > 6);
    for bench in benches {
        let output = Command::new(&bench).arg("--help").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let tells = ["usage: scripts/bench/", "Needs "].iter().all(|part| text.contains(part));
        assert!(output.status.success() && tells, "{}: {text}", bench.display());
    }
}

#[test]
fn every_engine_is_named() {
    let readme = readme();
    for engine in mapper_routing::engines::Engine::ALL {
        assert!(readme.contains(&format!("`{engine}`")), "{engine}");
    }
}
