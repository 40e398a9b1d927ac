//! Tests of the unicast cache, which is kept as a file.

use std::fs;

use mapper_formats::{self as formats, FileFormat};
use mapper_proto::map::Fabric;
use serde_json::Value;

use crate::route::command::{Folder, error, json};

/// Routes a fabric by ftree with a cache, and gives the report.
fn cached(folder: &Folder, fabric: &str, lfts: &str) -> Value {
    let (cache, lfts) = (folder.path("cache"), folder.path(lfts));
    let engine = ["route", fabric, "--engine", "ftree", "--no-fallback"];
    json(0, &[&engine[..], &["--cache", &cache, "--lfts", &lfts]].concat())
}

/// Writes a fabric as JSON.
fn write(folder: &Folder, name: &str, fabric: &Fabric) -> String {
    folder.write(name, &formats::write(fabric, FileFormat::Json))
}

/// Writes a tree as two files: the whole tree, and the tree without some hosts. They have LIDs if
/// `with_lids`.
fn trees(folder: &Folder, with_lids: bool) -> [String; 2] {
    let mut fabric = formats::resolve("xgft:h=2;m=4,6;w=1,4").unwrap();
    if with_lids {
        let mut lids = 1..;
        fabric.xbars.iter_mut().for_each(|label| label.lid = lids.next());
        fabric.hosts.iter_mut().for_each(|label| label.lid = lids.next());
    }
    let all = write(folder, "all.json", &fabric);
    for host in [17, 5] {
        fabric.map.hosts.remove(host);
        fabric.hosts.remove(host);
    }
    [all, write(folder, "less.json", &fabric)]
}

#[test]
fn hosts_that_reboot_compute_nothing_and_get_their_tables_back() {
    // Without LIDs in the file, they are counted from 1 each time, so the LIDs of all hosts behind one that
    // is gone change.
    for with_lids in [true, false] {
        let folder = Folder::new();
        let [all, less] = trees(&folder, with_lids);
        let made = cached(&folder, &all, "first.lfts");
        assert_eq!((&made["cache"]["used"], &made["engine"]), (&false.into(), &"ftree".into()));
        let held = fs::read(folder.path("cache")).unwrap();
        let down = cached(&folder, &less, "less.lfts");
        assert_eq!(down["cache"]["used"], true, "{down}");
        assert!(down["proof"]["violations"].as_array().unwrap().is_empty());
        let check = json(0, &["check", &less, "--lfts", &folder.path("less.lfts")]);
        assert_eq!((&check["proof"], &check["notes"]), (&down["proof"], &Value::Array(Vec::new())));
        let up = cached(&folder, &all, "back.lfts");
        assert_eq!(up["cache"]["used"], true, "{up}");
        assert_eq!(folder.read("first.lfts"), folder.read("back.lfts"));
        assert_eq!(fs::read(folder.path("cache")).unwrap(), held, "what is used is not written");
    }
}

#[test]
fn what_was_asked_for_otherwise_is_computed_and_a_cache_of_another_version_is_replaced() {
    let folder = Folder::new();
    let [all, _] = trees(&folder, true);
    cached(&folder, &all, "first.lfts");
    let (cache, held) = (folder.path("cache"), fs::read(folder.path("cache")).unwrap());
    let seed = ["route", &all, "--engine", "ftree", "--no-fallback", "--seed", "7", "--ucast-cache", &cache];
    let other = json(0, &seed);
    assert!(other["cache"]["why_not"].as_str().unwrap().contains("settings"), "{other}");
    folder.write("cache", "mapper.unicast-cache/0 1 2\n");
    let foreign = cached(&folder, &all, "back.lfts");
    assert!(foreign["cache"]["why_not"].as_str().unwrap().contains("no unicast cache"), "{foreign}");
    assert_eq!(fs::read(cache).unwrap(), held);
}

#[test]
fn what_is_no_cache_stays_as_it_is() {
    let folder = Folder::new();
    let notes = folder.write("notes.txt", "What I must not lose.\n");
    let said = error(&["route", "ring:n=3,hosts=1", "--cache", &notes]);
    assert!(said.contains("notes.txt is no unicast cache, and stays as it is"), "{said}");
    assert_eq!(folder.read("notes.txt"), "What I must not lose.\n");
    let empty = folder.write("empty", "");
    assert_eq!(json(0, &["route", "ring:n=3,hosts=1", "--cache", &empty])["cache"]["used"], false);
    assert!(fs::read(empty).unwrap().starts_with(b"mapper.unicast-cache/"), "an empty file is nobody's loss");
}
