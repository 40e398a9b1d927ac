//! A test that the pages in the Debian package lead to files that are in it, too.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of the sources that a pattern of an asset names: one file, or with an asterisk at its end a folder's.
fn sources(pattern: &str) -> Vec<PathBuf> {
    match pattern.strip_suffix("/*") {
        Some(folder) => {
            let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
            entries.filter(|path| path.is_file()).collect()
        }
        None => vec![root().join(pattern)],
    }
}

/// The pages and what lies beside them: where each is in the package, and where it is here.
fn documents() -> Vec<(PathBuf, PathBuf)> {
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    let mut documents = Vec::new();
    for asset in assets {
        let [pattern, to] = [0, 1].map(|nth| asset[nth].as_str().unwrap());
        if !to.starts_with("usr/share/doc/") {
            continue;
        }
        for source in sources(pattern) {
            let name = source.file_name().unwrap();
            let to = if to.ends_with('/') { Path::new(to).join(name) } else { PathBuf::from(to) };
            documents.push((to, source));
        }
    }
    documents
}

/// Where a link leads from this folder.
fn target(folder: &Path, link: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{link}"),
            part => path.push(part),
        }
    }
    path
}

#[test]
fn links_of_pages_in_the_package_lead_to_files_in_it() {
    let documents = documents();
    let there: BTreeSet<&PathBuf> = documents.iter().map(|(to, _)| to).collect();
    let mut dead = Vec::new();
    for (to, source) in documents.iter().filter(|(to, _)| to.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(source).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://")) {
            let leads_to = target(to.parent().unwrap(), link);
            if !there.contains(&leads_to) {
                dead.push(format!("{}: {link}", to.display()));
            }
        }
    }
    assert!(dead.is_empty(), "the package lacks what these links lead to: {dead:#?}");
}
