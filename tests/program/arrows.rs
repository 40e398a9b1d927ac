//! Tests that modules use each other as ARCHITECTURE.md draws it, where they are in one crate, and that crates which it
//! says do no I/O do none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The line of ARCHITECTURE.md before its table of modules.
const HEADING: &str = "```text\nmodule                  may use\n";

/// The folders of the crates whose modules are looked at.
const CRATES: [&str; 3] = ["formats/src", "daemon/src", "src"];

/// Whether a module of such a folder is looked at: readers and writers of files may use each other.
fn is_looked_at(folder: &str, module: &str) -> bool {
    !["lib", "main"].contains(&module) && (folder != "formats/src" || ["layout", "page"].contains(&module))
}

/// A module, and those of its crate that it uses, each by its folder.
type Arrows = BTreeMap<String, BTreeSet<String>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The table of ARCHITECTURE.md, in its order.
fn stated() -> Vec<(String, BTreeSet<String>)> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, table) = text.split_once(HEADING).expect("ARCHITECTURE.md has a table of modules");
    let rows = table.lines().take_while(|line| *line != "```");
    let mut stated = Vec::new();
    for row in rows {
        let mut words = row.split_whitespace().map(str::to_owned);
        stated.push((words.next().expect("no row is empty"), words.collect()));
    }
    stated
}

/// The modules of its crate that code names: behind `crate::`, or behind as many `super::` as lead from a module so `deep` in the
/// crate to its root. Comments may name any.
fn named(code: &str, deep: usize) -> BTreeSet<&str> {
    let mut named = BTreeSet::new();
    // The modules of the file itself around this line, each by the line that ends it.
    let mut within: Vec<String> = Vec::new();
    let mut at = 0;
    for line in code.split_inclusive('\n') {
        let (text, indent) = (line.trim(), line.len() - line.trim_start().len());
        let begins_module = text.ends_with('{') && text.split(' ').rev().nth(2) == Some("mod");
        if begins_module {
            within.push(format!("{}}}", &line[..indent]));
        } else if within.last().is_some_and(|end| *end == line.trim_end()) {
            within.pop();
        }
        if !text.starts_with("//") {
            let to_root = "super::".repeat(deep + within.len());
            for path in ["crate::", &to_root] {
                let begins = line.match_indices(path).map(|(from, _)| from);
                let is_whole = |from: &usize| !line[..*from].ends_with(|c: char| is_of_name(c) || c == ':');
                begins
                    .filter(is_whole)
                    .for_each(|from| add_first(&code[at + from + path.len()..], &mut named));
            }
        }
        at += line.len();
    }
    named
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_lowercase() || c == '_'
}

/// Adds the name that a path begins with, or those that the paths of a group begin with.
fn add_first<'a>(path: &'a str, named: &mut BTreeSet<&'a str>) {
    let name = |path: &'a str| &path[..path.find(|c| !is_of_name(c)).unwrap_or(path.len())];
    let Some(group) = path.strip_prefix('{') else {
        named.insert(name(path));
        return;
    };
    let (mut open, mut begins) = (0, true);
    for (at, c) in group.char_indices() {
        match c {
            '}' if open == 0 => return,
            '}' => open -= 1,
            '{' => open += 1,
            ',' if open == 0 => begins = true,
            _ if begins && !c.is_whitespace() => {
                named.insert(name(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
}

/// Adds what a file, or each file of a folder, uses. The module of a file is so `deep` in its crate, and those of the files in a
/// folder one deeper, but for `mod.rs`.
fn add_used(path: &Path, deep: usize, used: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let is_of_folder = path.file_name().is_some_and(|name| name == "mod.rs");
            add_used(&path, if is_of_folder { deep } else { deep + 1 }, used);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        let code = fs::read_to_string(path).unwrap();
        used.extend(named(&code, deep).into_iter().map(str::to_owned));
    }
}

/// What each module of these crates uses of the others, in its tests too.
fn found() -> Arrows {
    let mut found = Arrows::new();
    for folder in CRATES {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if !is_looked_at(folder, &module) {
                continue;
            }
            let mut used = BTreeSet::new();
            add_used(&path, 1, &mut used);
            used.remove(&module);
            let within = |module: &String| format!("{folder}/{module}");
            let of_module: &mut BTreeSet<String> = found.entry(within(&module)).or_default();
            of_module.extend(used.iter().map(within));
        }
    }
    found
}

#[test]
fn modules_use_those_alone_that_the_architecture_says_they_may() {
    let stated: Arrows = stated().into_iter().collect();
    let found = found();
    let modules = |arrows: &Arrows| arrows.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(modules(&stated), modules(&found), "the table of ARCHITECTURE.md lists each module");
    for (module, used) in &found {
        assert_eq!(
            &stated[module], used,
            "{module} uses other modules (right) than ARCHITECTURE.md says (left): move what both need into a module \
             that both may use, or, if the new arrow is meant, say so in the table of ARCHITECTURE.md"
        );
    }
}

#[test]
fn no_arrow_leads_back() {
    let mut above = BTreeSet::new();
    for (module, uses) in stated() {
        assert!(uses.is_subset(&above), "{module} uses {uses:?}, which do not all stand above it");
        above.insert(module);
    }
}

/// The crates that ARCHITECTURE.md says do no I/O.
const WITHOUT_IO: [&str; 10] = [
    "proto/src",
    "fabric/src",
    "fib/src",
    "ib/src",
    "acm/src",
    "routing/src",
    "host/src",
    "wiring/src",
    "sim/src",
    "src/consequences",
];
/// What they do not name, as it reaches out of the process or differs from run to run.
const OUTSIDE: [&str; 11] = [
    "std::fs",
    "std::net::Tcp",
    "std::net::Udp",
    "std::process",
    "std::thread",
    "std::env",
    "SystemTime",
    "Instant::now",
    "rustix::",
    "socket2::",
    "tokio::",
];
/// What they name all the same, and ARCHITECTURE.md says so.
const STATED: [(&str, &str); 4] = [
    ("routing/src/cache/file.rs", "std::fs"),
    ("routing/src/engines/dispersive/all_hosts.rs", "Instant::now"),
    ("routing/src/engines/selection.rs", "Instant::now"),
    ("sim/src/record/mod.rs", "std::fs"),
];

/// Adds what each file of a folder names of the outside, but for its tests.
fn add_outside(path: &Path, found: &mut BTreeSet<(String, &'static str)>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            add_outside(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        let relative = path.strip_prefix(root()).unwrap().to_str().unwrap();
        let code = fs::read_to_string(path).unwrap();
        let product = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = || product.lines().filter(|line| !line.trim_start().starts_with("//"));
        let is_of_tests = relative.contains("/tests");
        let named =
            OUTSIDE.into_iter().filter(|&what| !is_of_tests && lines().any(|line| line.contains(what)));
        found.extend(named.map(|what| (relative.to_owned(), what)));
    }
}

#[test]
fn crates_without_io_reach_out_of_the_process_where_the_architecture_says_so_alone() {
    let mut found = BTreeSet::new();
    for folder in WITHOUT_IO {
        add_outside(&root().join(folder), &mut found);
    }
    assert_eq!(found, STATED.map(|(file, what)| (file.to_owned(), what)).into());
}

#[test]
fn what_code_names_is_found_and_what_comments_name_is_not() {
    let code =
        "use crate::layout::Layout;\n// As crate::view.\nlet it = crate::formats::parse(crate::page::TITLE);";
    assert_eq!(named(code, 1), ["formats", "layout", "page"].into());
    let group = "use crate::{\n    layout::{Layout, page},\n    view,\n};\nuse mapper_crate::other;";
    assert_eq!(named(group, 1), ["layout", "view"].into());
}

#[test]
fn paths_that_lead_back_to_the_root_of_the_crate_are_found_however_deep_they_stand() {
    let code = "use super::super::view::Feed;\nuse super::sibling::One;\nmod tests {\n    use super::super::sibling;\n    use \
                super::super::super::layout::Layout;\n}\nfn f(it: super::super::page::Page) {}\n";
    assert_eq!(named(code, 2), ["layout", "page", "view"].into());
    assert_eq!(named("use super::{formats::parse, view};", 1), ["formats", "view"].into());
}
