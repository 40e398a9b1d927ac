//! Tests that no command overwrites what it reads, or writes two results into one file.

use crate::route::command::{Folder, error, json};

const RING: &str = "ring:n=3,hosts=1";

/// Runs a command that must refuse a file that is read, and checks that the file stays as it is.
fn refuses_to_replace(folder: &Folder, file: &str, reader: &str, arguments: &[&str]) {
    let before = folder.read(file);
    let said = error(arguments);
    let expected = format!("{} is read by {reader}; name another file", folder.path(file));
    assert!(said.contains(&expected), "{arguments:?}: {said}");
    assert_eq!(folder.read(file), before, "{arguments:?}");
}

#[test]
fn what_is_read_stays_as_it_is() {
    let folder = Folder::new();
    let fabric = mapper_formats::resolve(RING).unwrap();
    let k = folder.write("k.net", &mapper_formats::write(&fabric, mapper_formats::FileFormat::Ibnetdiscover));
    let f = folder.write("f.txt", "at 500ms cut xbar1:1\n");
    for option in ["--trace", "--map-file", "--pcapng"] {
        refuses_to_replace(&folder, "f.txt", "--faults", &["sim", RING, "--faults", &f, option, &f]);
        refuses_to_replace(&folder, "k.net", "TOPOLOGY", &["sim", &k, option, &k]);
    }
    let plotted = ["sim", RING, "--faults", &f, "--traffic", "100", "-o", &f];
    refuses_to_replace(&folder, "f.txt", "--faults", &plotted);
    refuses_to_replace(&folder, "k.net", "TOPOLOGY", &["route", &k, "--compare", "updn", "-o", &k]);
    refuses_to_replace(&folder, "k.net", "TOPOLOGY", &["route", &k, "--cache", &k]);
    refuses_to_replace(&folder, "k.net", "IN", &["topology", "convert", &k, "-o", &k]);
    let lfts = folder.path("old.lfts");
    json(0, &["route", &k, "--engine", "updn", "--lfts", &lfts]);
    let previous = ["route", &k, "--engine", "updn", "--previous", &lfts];
    refuses_to_replace(&folder, "old.lfts", "--previous", &[&previous[..], &["--plot", &lfts]].concat());
    let compared = ["route", &k, "--compare", "updn", "--previous", &lfts, "-o", &lfts];
    refuses_to_replace(&folder, "old.lfts", "--previous", &compared);
    // New tables may replace those in force.
    json(0, &[&previous[..], &["--lfts", &lfts]].concat());
    let trace = folder.path("run.trace");
    json(0, &["sim", RING, "--trace", &trace]);
    refuses_to_replace(&folder, "run.trace", "--replay", &["sim", "--replay", &trace, "--map-file", &trace]);
}

#[test]
fn two_results_go_to_two_files() {
    let folder = Folder::new();
    let x = folder.path("x");
    let all = [("--map-file", "--trace"), ("--map-file", "--pcapng"), ("--trace", "--pcapng")];
    for (first, second) in all {
        let said = error(&["sim", RING, first, &x, second, &x]);
        assert!(said.contains(&format!("{second}: {x} is written by {first}, too; name another")), "{said}");
    }
    let said = error(&["acm", "config", "-D", &folder.path(""), "-A", "x", "-O", "x"]);
    assert!(said.contains("is written by -A, too"), "{said}");
    let said = error(&["board-info", "--routes", "--map-file", &x, "--routes-dir", &x]);
    assert!(said.contains("is written by --routes-dir, too"), "{said}");
    assert!(!std::path::Path::new(&x).exists());
}
