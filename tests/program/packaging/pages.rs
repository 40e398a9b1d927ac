//! Tests of the manual pages and completions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{MAPPER, run};

fn files(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_manual_page_is_set_without_a_warning() {
    if !mapper_needs::programs(&["man"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    run(Command::new(MAPPER).arg("generate-docs").arg(dir.path()));
    let pages: Vec<_> = files(&dir.path().join("man")).iter().flat_map(|section| files(section)).collect();
    assert!(pages.len() > 8);
    for page in pages {
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-l"]).arg(&page);
        man.env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8").env("MANPAGER", "cat");
        let output = man.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{}", page.display());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("NAME") && text.contains("SEE ALSO"), "{text}");
    }
}

#[test]
fn manual_pages_refer_to_pages_that_exist() {
    let dir = tempfile::tempdir().unwrap();
    run(Command::new(MAPPER).arg("generate-docs").arg(dir.path()));
    let pages: Vec<_> = files(&dir.path().join("man")).iter().flat_map(|section| files(section)).collect();
    let named = |page: &Path| page.file_name().unwrap().to_str().unwrap().to_owned();
    let all: Vec<String> = pages.iter().map(|page| named(page)).collect();
    for page in &pages {
        let text = fs::read_to_string(page).unwrap().replace("\\-", "-");
        let (_, others) = text.rsplit_once("SEE ALSO\"\n").or(text.rsplit_once("SEE ALSO\n")).unwrap();
        // A reference is a line such as `\fBmapper-acm\fR(1)`.
        for other in others.lines().filter_map(|line| line.strip_prefix("\\fB")) {
            let (name, section) = other.trim_end_matches(',').split_once("\\fR(").unwrap();
            let other = format!("{name}.{}", section.trim_end_matches(')'));
            assert!(all.contains(&other), "{}: {other}", page.display());
        }
    }
}

#[test]
fn bash_understands_its_completions() {
    let dir = tempfile::tempdir().unwrap();
    run(Command::new(MAPPER).arg("generate-docs").arg(dir.path()));
    let file = dir.path().join("completions/bash/mapper.bash");
    let ask = format!(
        "source {}; COMP_WORDS=(mapper ag); COMP_CWORD=1; _mapper mapper ag mapper; \
                       echo ${{COMPREPLY[@]}}",
        file.display()
    );
    assert_eq!(run(Command::new("bash").args(["-c", &ask])), "agent\n");
}
