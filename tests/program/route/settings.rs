//! Tests of service levels and of the files of settings.

use crate::route::command::{CLOS, Folder, RING, error, json, shortest, text};

#[test]
fn service_levels_are_written_and_checked() {
    let folder = Folder::new();
    let file = folder.write("a.lfts", &shortest(RING));
    let sls = folder.path("a.sls");
    let engine = ["route", RING, "--engine", "file", "--lfts-file", &file, "--unsafe", "--sls", &sls];
    text(0, &engine);
    let levels = folder.read("a.sls");
    assert_eq!((levels.lines().count(), levels.lines().next()), (90, Some("0x0001 0x0002 0")));
    assert_eq!(json(3, &["check", RING, "--lfts", &file, "--sls", &sls])["layers"], 1);
    // With the routes that begin at the first two xbars in a layer of their own, no layer has a whole circle.
    let two: String = levels
        .lines()
        .map(|line| {
            let apart = ["0x0001", "0x0002", "0x0003", "0x0004"].contains(&&line[..6]);
            format!("{} {}\n", &line[..13], if apart { 5 } else { 2 })
        })
        .collect();
    let sls = folder.write("two.sls", &two);
    let report = json(0, &["check", RING, "--lfts", &file, "--sls", &sls]);
    assert_eq!((&report["layers"], &report["proof"]["deadlock_free"]), (&2.into(), &true.into()));
    // One route of one host is in a third layer.
    let sls = folder.write("mixed.sls", &two.replacen("0x0001 0x0009 5", "0x0001 0x0009 7", 1));
    let report = json(0, &["check", RING, "--lfts", &file, "--sls", &sls]);
    assert_eq!((&report["layers"], &report["proof"]["deadlock_free"]), (&3.into(), &true.into()));
}

#[test]
fn files_of_settings_are_read_and_written() {
    let folder = Folder::new();
    let roots = folder.write("roots", "0x0200000000000005 # spine1\n0x0200000000000006\nnonsense\n");
    let (lfts, matrix) = (folder.path("a.lfts"), folder.path("a.matrix"));
    let updn = ["route", CLOS, "--engine", "updn", "--no-fallback", "--balance", "opensm"];
    let files = ["--root_guid_file", &roots, "--lfts", &lfts, "--dump-lid-matrix", &matrix];
    let report = json(0, &[&updn[..], &files].concat());
    let notes = report["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().starts_with(&roots)), "{notes:?}");
    assert!(folder.read("a.matrix").starts_with("Switch: guid 0x0200000000000001\n"));
    assert_eq!(report["written"]["lid_matrix"], matrix.as_str());
    let again = ["route", CLOS, "--engine", "minhop", "--lid-matrix-file", &matrix];
    assert_eq!(json(0, &again)["proof"]["deadlock_free"], true);
    let order = folder.path("order");
    let ftree = ["route", CLOS, "--engine", "ftree", "--no-fallback", "--ftree-order", &order];
    assert_eq!(json(0, &ftree)["engine"], "ftree");
    assert!(folder.read("order").starts_with("0x0001\th1\n0x0002\th2\n0x0003\th3\n"));
    let wrong = error(&["route", CLOS, "--engine", "minhop", "--balance", "opensm", "--ftree-order", &order]);
    assert!(wrong.starts_with("--ftree-order: minhop served"), "{wrong}");
}
