//! Tests of LIDs that are given anew.

use mapper_formats::{self as formats, FileFormat};
use serde_json::Value;

use crate::route::command::{Folder, error, json};

/// A tree whose nodes have LIDs from 100 on, and in which a host and a switch share one if `collide`.
fn tree(folder: &Folder, collide: bool) -> String {
    let mut fabric = formats::resolve("xgft:h=2;m=4,6;w=1,4").unwrap();
    let mut lids = 100..;
    fabric.hosts.iter_mut().for_each(|label| label.lid = lids.next());
    fabric.xbars.iter_mut().for_each(|label| label.lid = lids.next());
    if collide {
        fabric.hosts[3].lid = fabric.xbars[1].lid;
    }
    folder
        .write(if collide { "collide.json" } else { "tree.json" }, &formats::write(&fabric, FileFormat::Json))
}

fn lids_in(dump: &str) -> Vec<u32> {
    let rows = dump.lines().filter_map(|line| line.strip_prefix("0x")?.get(..4));
    let mut lids: Vec<u32> = rows.map(|lid| u32::from_str_radix(lid, 16).unwrap()).collect();
    lids.sort_unstable();
    lids.dedup();
    lids
}

#[test]
fn a_fabric_whose_lids_collide_is_routed_with_other_lids() {
    let folder = Folder::new();
    let fabric = tree(&folder, true);
    let why = error(&["route", &fabric]);
    assert!(why.contains("both have LID 125") && why.contains("(--reassign-lids)"), "{why}");
    let lfts = folder.path("a.lfts");
    let report = json(0, &["route", &fabric, "--reassign-lids", "--lfts", &lfts]);
    assert_eq!(report["proof"]["deadlock_free"], true);
    assert_eq!(lids_in(&folder.read("a.lfts")), Vec::from_iter(1..=34), "24 hosts and 10 switches");
    assert!(error(&["check", &fabric, "--lfts", &lfts]).contains("(--reassign-lids)"));
    let check = json(0, &["check", &fabric, "--lfts", &lfts, "--reassign-lids"]);
    assert_eq!(check["proof"], report["proof"]);
}

#[test]
fn lids_and_routes_are_anew_whatever_was_in_force() {
    let folder = Folder::new();
    let fabric = tree(&folder, false);
    let (old, new, anew) = (folder.path("old.lfts"), folder.path("new.lfts"), folder.path("anew.lfts"));
    let route = |more: &[&str]| json(0, &[&["route", &fabric, "--engine", "minhop"], more].concat());
    // Tables by another engine are kept where they are as short, unless all is balanced anew.
    route(&["--lfts", &old, "--balance", "opensm"]);
    assert_eq!(lids_in(&folder.read("old.lfts"))[0], 100);
    let kept = route(&["--previous", &old]);
    let report = route(&["--previous", &old, "--reassign-lids", "--lfts", &new]);
    assert_eq!((&kept["changed_entries"], lids_in(&folder.read("new.lfts"))[0]), (&0.into(), 1));
    assert!(report["changed_entries"].as_u64() > Some(0), "{report}");
    route(&["--reassign-lids", "--lfts", &anew]);
    assert_eq!(folder.read("new.lfts"), folder.read("anew.lfts"));
    let notes = |report: &Value| report["notes"].to_string();
    assert!(notes(&report).contains("--reassign-lids: ") && !notes(&kept).contains("--reassign-lids"));
}
