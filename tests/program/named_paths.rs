//! A test that the files which pages name between backquotes exist, so that nobody looks for what has moved.

use std::fs;
use std::path::{Path, PathBuf};

/// Files of other projects that pages speak of.
const FOREIGN: [&str; 1] = ["src/graph/xml.cc"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages that name files of the sources.
fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"]
        .map(|name| root().join(name))
        .into_iter()
        .chain(docs)
        .collect()
}

/// All files and folders of the sources, from the root on. A folder ends with a slash.
fn add_paths(folder: &Path, paths: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && !["target", ".git"].contains(&name.as_str()) {
            add_paths(&path, paths);
            paths.push(name + "/");
        } else if path.is_file() {
            paths.push(name);
        }
    }
}

/// Whether a word between backquotes names a file or folder of the sources: a source or page, by the end of its path,
/// or whatever is in a folder of the root. Commands, patterns and paths of a machine are none.
fn names_path(word: &str, folders: &[&str]) -> bool {
    let is_path = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-/@".contains(&byte));
    let is_source = word.ends_with(".rs") || word.ends_with(".md");
    let is_in_folder = word.split_once('/').is_some_and(|(first, _)| folders.contains(&first));
    // A word in capitals stands for any name.
    let is_pattern = word.contains("NAME");
    is_path && (is_source || is_in_folder) && !is_pattern && !FOREIGN.contains(&word)
}

#[test]
fn files_that_pages_name_exist() {
    let mut paths = Vec::new();
    add_paths(root(), &mut paths);
    let folders: Vec<&str> =
        paths.iter().filter_map(|path| path.strip_suffix('/')).filter(|path| !path.contains('/')).collect();
    let exists = |word: &str| {
        let word = word.trim_end_matches('/');
        let is_it = |path: &String| {
            let rest = path.trim_end_matches('/').strip_suffix(word);
            rest.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        paths.iter().any(is_it)
    };
    let mut missing = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for (line, text) in text.lines().enumerate() {
            let words = text.split('`').skip(1).step_by(2);
            let gone = words.filter(|word| names_path(word, &folders) && !exists(word));
            missing.extend(gone.map(|word| format!("{}:{}: {word}", page.display(), line + 1)));
        }
    }
    assert!(missing.is_empty(), "these files are not there, so say where they are now: {missing:#?}");
}
