//! Tests that run every command of the README and of the pages beside it, and follow their links.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shell blocks of a page, each as the words behind `sh` and the commands.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(kind) = line.trim_start().strip_prefix("```sh") {
            let body: Vec<_> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
            blocks.push((kind.trim().to_owned(), body.join("\n")));
        }
    }
    blocks
}

/// Runs a block in a folder of its own, with `mapper` in the path.
fn run(block: &str, folder: &Path) {
    let mapper = PathBuf::from(env!("CARGO_BIN_EXE_mapper"));
    let bin = mapper.parent().unwrap();
    // Nothing is built again: the program is the one of this build, and this test is one of those that the README
    // runs.
    let block = block
        .replace("cargo run --release --", "mapper")
        .replace("cargo test --workspace", "true")
        .replace("scripts/lab", &root().join("scripts/lab").display().to_string());
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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The README, and all pages of the folder `docs`, each with its path.
fn pages() -> Vec<(PathBuf, String)> {
    let folder = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = folder.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    paths.sort();
    paths.insert(0, root().join("README.md"));
    paths.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// Runs the blocks of this kind of all pages, with a line before each. Gives how many there were.
fn run_blocks(kind: &str, before: &str) -> usize {
    let mut count = 0;
    for (_, page) in pages() {
        // The blocks of a page follow each other, and may use files that an earlier one made.
        let folder = tempfile::tempdir().unwrap();
        for (_, block) in blocks(&page).iter().filter(|block| block.0 == kind) {
            run(&format!("{before}{block}"), folder.path());
            count += 1;
        }
    }
    count
}

#[test]
fn commands_that_need_nothing_run() {
    assert_eq!(run_blocks("", ""), 10);
}

#[test]
fn commands_that_need_root_run() {
    if !(mapper_needs::root() && mapper_needs::programs(&["ip"])) {
        return;
    }
    // A lab is taken down also where a command of it fails.
    assert_eq!(run_blocks("root", "trap 'scripts/lab down' EXIT\n"), 1);
}

#[test]
fn links_lead_to_files_and_no_page_is_left_out() {
    let mut linked = BTreeSet::new();
    for (path, page) in pages() {
        let folder = path.parent().unwrap();
        for target in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !target.contains("://") {
                let file = folder.join(target).canonicalize();
                linked.insert(file.unwrap_or_else(|_| panic!("{}: {target}", path.display())));
            }
        }
    }
    for (path, _) in pages().iter().skip(1) {
        assert!(linked.contains(&path.canonicalize().unwrap()), "no page leads to {}", path.display());
    }
}

#[test]
fn the_picture_is_what_the_command_draws() {
    let folder = tempfile::tempdir().unwrap();
    run("mapper topology generate clos:hosts=8,ports=4 -o clos.svg", folder.path());
    let drawn = std::fs::read_to_string(folder.path().join("clos.svg")).unwrap();
    let shown = std::fs::read_to_string(root().join("docs/clos.svg")).unwrap();
    assert_eq!(drawn, shown);
}

#[test]
fn every_bench_says_what_it_measures_and_needs_without_running() {
    let folder = root().join("scripts/bench");
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
    let page = std::fs::read_to_string(root().join("docs/tables.md")).unwrap();
    for engine in mapper_routing::engines::Engine::ALL {
        assert!(page.contains(&format!("`{engine}`")), "{engine}");
    }
}
