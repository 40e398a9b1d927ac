//! Tables as files, and what is said of them.

use std::fs;

use serde_json::Value;

use crate::command::{CLOS, Folder, data, json, shortest, text};

#[test]
fn tables_are_written_as_they_always_were() {
    let folder = Folder::new();
    let file = folder.write("shortest.lfts", &shortest(CLOS));
    text(0, &["route", CLOS, "--engine", "file", "--lfts-file", &file, "--lfts", &folder.path("a.lfts")]);
    let written = folder.read("a.lfts");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(data("clos8.lfts"), &written).unwrap();
    }
    let golden = fs::read_to_string(data("clos8.lfts")).unwrap_or_default();
    assert!(written == golden, "clos8.lfts differs; UPDATE_GOLDEN=1 rewrites it:\n{written}");
}

#[test]
fn json_has_the_keys_that_others_rely_on() {
    let folder = Folder::new();
    let file = folder.write("a.lfts", &shortest(CLOS));
    let route = json(0, &["route", CLOS, "--engine", "file", "--lfts-file", &file, "--threads", "2"]);
    assert_eq!((route["schema"].as_str(), route["engine"].as_str()), (Some("mapper.route/1"), Some("file")));
    assert_eq!((route["hosts"].as_u64(), route["xbars"].as_u64()), (Some(8), Some(6)));
    assert_eq!((route["threads"].as_u64(), route["layers"].as_u64()), (Some(2), Some(1)));
    assert!(route["compute_ms"].as_f64().unwrap() <= route["total_ms"].as_f64().unwrap());
    assert_eq!((&route["tried"], &route["changed_entries"]), (&serde_json::json!([]), &Value::Null));
    let check = json(0, &["check", CLOS, "--lfts", &file]);
    assert_eq!(check["schema"], "mapper.check/1");
    for report in [&route, &check] {
        let proof = &report["proof"];
        for key in ["reachable", "loop_free", "deadlock_free"] {
            assert_eq!(proof[key], true, "{key}");
        }
        assert_eq!((&proof["max_hops"], &proof["violations"]), (&3.into(), &serde_json::json!([])));
    }
}

#[test]
fn changed_entries_are_counted_against_the_tables_before() {
    let folder = Folder::new();
    let tables = shortest(CLOS);
    let file = folder.write("a.lfts", &tables);
    let other = tables.replacen("0x0008 003", "0x0008 004", 1).replacen(
        "0x0007 003 # Channel Adapter: 'h7'\n",
        "",
        1,
    );
    // That an xbar's own row is gone is no change.
    let other = other.replacen("0x0009 000 # Switch portguid 0x0200000000000001: 'leaf1'\n", "", 1);
    let previous = folder.write("b.lfts", &other);
    let changed = |previous: &str| {
        let engine = ["route", CLOS, "--engine", "file", "--lfts-file", &file, "--previous", previous];
        json(0, &engine)["changed_entries"].as_u64()
    };
    assert_eq!((changed(&file), changed(&previous)), (Some(0), Some(2)));
}

#[test]
fn what_opensm_dumped_is_checked() {
    let (fabric, tables) = (data("opensm-clos8.net"), data("opensm-clos8.lfts"));
    let (fabric, tables) = (fabric.to_str().unwrap(), tables.to_str().unwrap());
    let report = json(0, &["check", fabric, "--lfts", tables]);
    assert_eq!((&report["notes"], &report["proof"]["max_hops"]), (&serde_json::json!([]), &3.into()));
    let folder = Folder::new();
    let out = folder.path("out.lfts");
    text(0, &["route", fabric, "--engine", "file", "--lfts_file", tables, "--lfts", &out]);
    assert!(folder.read("out.lfts") == fs::read_to_string(tables).unwrap(), "the same byte by byte");
}

#[test]
fn the_number_of_threads_changes_no_file() {
    let folder = Folder::new();
    let spec = "torus:x=4,y=3,hosts=3";
    let file = folder.write("a.lfts", &shortest(spec));
    let mut outputs = Vec::new();
    for threads in ["1", "2", "5"] {
        let (lfts, sls, dir) = (folder.path("o.lfts"), folder.path("o.sls"), folder.path(threads));
        let what = ["--lfts", &lfts, "--sls", &sls, "--routes-dir", &dir, "--threads", threads, "--unsafe"];
        let engine = ["route", spec, "--engine", "file", "--lfts-file", &file];
        let mut report = json(0, &[&engine[..], &what].concat());
        let mut check = json(3, &["check", spec, "--routes-dir", &dir, "--threads", threads]);
        for key in ["compute_ms", "total_ms", "threads", "written"] {
            report[key].take();
        }
        let routes: Vec<String> =
            (1..=36).map(|host| folder.read(&format!("{threads}/02-00-00-00-00-{host:02x}.json"))).collect();
        outputs.push((folder.read("o.lfts"), folder.read("o.sls"), routes, report, check.take()));
    }
    assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]));
}
