//! Tests of hosts without a cable. No route leads to them, and none is missing.

use serde_json::json;

use crate::route::command::{Folder, json, text};

const NO_PAIR: &str = "no two hosts are joined by cables, so there was no pair to prove";

/// Two hosts without a cable, as each format lists them, alone and beside a switch.
const APART: [(&str, &str); 4] = [
    ("two.net", "Ca 1 \"a\"\n\nCa 1 \"b\"\n"),
    ("beside.net", "Ca 1 \"a\"\n\nCa 1 \"b\"\n\nSwitch 8 \"s\"\n"),
    ("two.map", "2 0\n\nh - \"a\"\n0\n\nh - \"b\"\n0\n"),
    ("beside.map", "2 1\n\ns 8 \"s\"\n0\n\nh - \"a\"\n0\n\nh - \"b\"\n0\n"),
];

/// Two hosts that one cable joins.
const PAIR: [(&str, &str); 2] = [
    ("pair.net", "Ca 1 \"a\"\n[1] \"b\"[1]\n\nCa 1 \"b\"\n"),
    ("pair.map", "2 0\n\nh - \"a\"\n1\n0 h - \"b\" 0\n\nh - \"b\"\n0\n"),
];

#[test]
fn two_hosts_without_a_cable_are_no_pair() {
    let folder = Folder::new();
    for (name, content) in APART {
        let spec = folder.write(name, content);
        let lfts = folder.path("two.lfts");
        for engine in ["minhop", "dispersive"] {
            let report = json(0, &["route", &spec, "--engine", engine]);
            let proof = &report["proof"];
            assert_eq!(
                (&proof["isolated"], &proof["pairs_apart"]),
                (&json!(["a", "b"]), &1.into()),
                "{name}"
            );
            assert_eq!(proof["parts"], json!([]), "{name}");
            assert!(report["notes"].to_string().contains(NO_PAIR), "{name}: {report}");
        }
        text(0, &["route", &spec, "--engine", "minhop", "--lfts", &lfts]);
        let shown = text(0, &["check", &spec, "--lfts", &lfts]);
        assert!(shown.contains("proof      no two hosts are joined by cables, no loop"), "{name}: {shown}");
        assert!(shown.contains("isolated   2 hosts without a cable: a, b\n"), "{name}: {shown}");
        assert!(!shown.contains("every pair"), "{name}: {shown}");
        let shown = text(0, &["topology", "show", &spec]);
        assert!(shown.contains("isolated: 2 hosts without a cable: a, b\n"), "{name}: {shown}");
        assert_eq!(json(0, &["topology", "show", &spec])["isolated_hosts"], 2, "{name}");
    }
}

#[test]
fn two_hosts_with_a_cable_are_a_pair_in_every_format() {
    let folder = Folder::new();
    for (name, content) in PAIR {
        let spec = folder.write(name, content);
        for to in ["net", "map", "json"] {
            let other = folder.path(&format!("{name}.{to}"));
            text(0, &["topology", "convert", &spec, "-o", &other]);
            let proof = json(0, &["route", &other, "--engine", "minhop"])["proof"].take();
            assert_eq!((&proof["isolated"], &proof["pairs_apart"]), (&json!([]), &0.into()), "{other}");
            assert_eq!(proof["parts"][0]["pairs"], 1, "{other}");
            let shown = text(0, &["topology", "show", &other]);
            assert!(shown.contains("\na and b are cabled to each other\n"), "{other}: {shown}");
        }
    }
}

#[test]
fn hosts_without_a_cable_stay_so_in_every_format_and_a_cable_is_missed() {
    let folder = Folder::new();
    let pair = folder.write(PAIR[0].0, PAIR[0].1);
    for (name, content) in APART {
        let spec = folder.write(name, content);
        for to in ["net", "map", "json"] {
            let other = folder.path(&format!("{name}.{to}"));
            text(0, &["topology", "convert", &spec, "-o", &other]);
            let proof = json(0, &["route", &other, "--engine", "minhop"])["proof"].take();
            assert_eq!(proof["isolated"], json!(["a", "b"]), "{other}");
        }
        if !name.starts_with("beside") {
            let missed = text(3, &["topology", "diff", &pair, &spec]);
            assert!(missed.contains("a - b"), "{name}: {missed}");
        }
    }
}

#[test]
fn many_hosts_without_a_cable_take_one_line() {
    let folder = Folder::new();
    let hosts: String = (1..=12).map(|n| format!("Ca 1 \"c{n}\" # \"node{n}\"\n\n")).collect();
    let only = folder.write("only.net", &hosts);
    let eight = "node1, node2, node3, node4, node5, node6, node7, node8, ..\n";
    let shown = text(0, &["route", &only, "--engine", "minhop"]);
    assert!(shown.contains("proof      no two hosts are joined by cables"), "{shown}");
    assert!(shown.contains(&format!("isolated   12 hosts without a cable: {eight}")), "{shown}");
    let proof = json(0, &["route", &only, "--engine", "minhop"])["proof"].take();
    assert_eq!((proof["isolated"].as_array().unwrap().len(), &proof["pairs_apart"]), (12, &66.into()));
    let some = format!("Switch 8 \"s\"\n[1] \"a\"[1]\n[2] \"b\"[1]\n\nCa 1 \"a\"\n\nCa 1 \"b\"\n\n{hosts}");
    let some = folder.write("some.net", &some);
    let shown = text(0, &["route", &some, "--engine", "minhop"]);
    assert!(shown.contains("proof      every pair of cabled hosts has a route"), "{shown}");
    assert_eq!(shown.matches("node1").count(), 1, "{shown}");
    assert!(!shown.contains("cut off") && !shown.contains("parts  "), "{shown}");
    let shown = text(0, &["topology", "show", &some]);
    assert!(shown.contains(&format!("isolated: 12 hosts without a cable: {eight}")), "{shown}");
    assert!(!shown.contains("not connected"), "{shown}");
    let proof = json(0, &["route", &some, "--engine", "minhop"])["proof"].take();
    assert_eq!((&proof["parts"].as_array().unwrap().len(), &proof["pairs_apart"]), (&1, &90.into()));
}
