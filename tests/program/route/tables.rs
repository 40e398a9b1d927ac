//! Tests of forwarding tables as files, and of the reports on them.

use std::fs;
use std::time::Instant;

use serde_json::Value;

use crate::route::command::{CLOS, Folder, data, json, shortest, text};

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
    let began = Instant::now();
    let route = json(0, &["route", CLOS, "--engine", "file", "--lfts-file", &file, "--threads", "2"]);
    let took_ms = began.elapsed().as_secs_f64() * 1e3;
    assert_eq!((route["schema"].as_str(), route["engine"].as_str()), (Some("mapper.route/1"), Some("file")));
    assert_eq!((route["hosts"].as_u64(), route["xbars"].as_u64()), (Some(8), Some(6)));
    assert_eq!((route["threads"].as_u64(), route["layers"].as_u64()), (Some(2), Some(1)));
    let [compute_ms, total_ms] = ["compute_ms", "total_ms"].map(|key| route[key].as_f64().unwrap());
    assert!(0.0 < compute_ms && compute_ms < total_ms && total_ms < took_ms, "{took_ms}: {route:#}");
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
    // A row of an xbar's own LID that is gone does not count as a change.
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

#[test]
fn a_split_fabric_is_judged_part_by_part() {
    let folder = Folder::new();
    let mut fabric = mapper_formats::resolve("ring:n=6,hosts=2").unwrap();
    fabric.map.cables.retain(|cable| (cable.a.xbar < 2) == (cable.b.xbar < 2));
    let split = folder.write("split.json", &mapper_formats::write(&fabric, mapper_formats::FileFormat::Json));
    let shown = text(0, &["route", &split, "--engine", "minhop"]);
    assert!(shown.contains("proof      every pair within a part has a route"), "{shown}");
    assert!(
        shown
            .contains("parts      2 without a cable between them, so 32 pairs of hosts can have no route:\n"),
        "{shown}"
    );
    assert!(
        shown.contains("           8 hosts on 4 xbars, 28 pairs: h5, h6, h7, h8, h9, h10, h11, h12\n"),
        "{shown}"
    );
    assert!(shown.contains("           4 hosts on 2 xbars, 6 pairs: h1, h2, h3, h4\n"), "{shown}");
    let proof = json(0, &["route", &split, "--engine", "minhop"])["proof"].take();
    assert_eq!((&proof["reachable"], &proof["pairs_apart"]), (&true.into(), &32.into()));
    let part = serde_json::json!({ "hosts": 4, "xbars": 2, "pairs": 6, "first_host": "h1" });
    assert_eq!(proof["parts"][1], part);
    let whole = json(0, &["route", CLOS, "--engine", "minhop"])["proof"].take();
    assert_eq!((whole["parts"].as_array().unwrap().len(), &whole["pairs_apart"]), (1, &0.into()));
}

#[test]
fn a_dump_that_was_cut_off_is_told_by_its_causes() {
    let folder = Folder::new();
    let tables = shortest(CLOS);
    // The file is cut off in the third of six tables.
    let cut: usize = tables.match_indices("Unicast lids").nth(2).unwrap().0 + 120;
    let file = folder.write("cut.lfts", &tables[..cut]);
    let shown = text(3, &["check", CLOS, "--lfts", &file]);
    let place = |what: &str| shown.find(what).unwrap_or_else(|| panic!("{what}: {shown}"));
    assert!(place("the file has no table of 3 xbars") < place("PAIRS WITHOUT A ROUTE"), "{shown}");
    // There is one violation for each xbar whose entries are missing, with the worst first.
    let wrong: Vec<&str> = shown.lines().filter(|line| line.contains(" has no entry for LID ")).collect();
    assert!(
        wrong.len() <= 4 && wrong.iter().any(|line| line.contains("more wrong entries of it")),
        "{shown}"
    );
    assert!(!shown.contains("more violation"), "{shown}");
    let none = folder.write("none.lfts", &tables[..tables.find('\n').unwrap() + 1]);
    let shown = text(3, &["check", CLOS, "--lfts", &none]);
    assert!(shown.contains("quality    not measured: no two hosts have a route\n"), "{shown}");
    assert_eq!(json(3, &["check", CLOS, "--lfts", &none])["quality"], Value::Null);
}

#[test]
fn tables_of_several_addresses_a_host_hint_at_the_option_that_says_so() {
    let folder = Folder::new();
    let lfts = folder.path("a.lfts");
    text(0, &["route", CLOS, "--engine", "updn", "--lmc", "7", "--lfts", &lfts]);
    let shown = text(3, &["check", CLOS, "--lfts", &lfts]);
    assert!(shown.contains("say so with --lmc"), "{shown}");
    let shown = text(0, &["check", CLOS, "--lfts", &lfts, "--lmc", "7"]);
    assert!(!shown.contains("--lmc"), "{shown}");
}

#[test]
fn layers_are_not_lost_in_silence() {
    let folder = Folder::new();
    let (lfts, sls) = (folder.path("a.lfts"), folder.path("a.sls"));
    let torus = ["route", "torus:x=5,y=5,hosts=1", "--max-layers", "4", "--lfts", &lfts];
    let refused = json(2, &torus);
    assert!(refused["error"].as_str().unwrap().contains("write these, too, with --sls"), "{refused}");
    assert!(!std::path::Path::new(&lfts).exists(), "nothing is written");
    let report = json(0, &[&torus[..], &["--sls", &sls]].concat());
    assert!(report["layers"].as_u64() > Some(1));
    let notes = report["notes"].to_string();
    assert!(notes.contains("opensm -R file") && notes.contains("CAN DEADLOCK"), "{notes}");
    // The note is right: as one layer the tables fail the proof.
    json(3, &["check", torus[1], "--lfts", &lfts]);
    json(0, &["check", torus[1], "--lfts", &lfts, "--sls", &sls]);
    let one = json(0, &["route", torus[1], "--lfts", &lfts, "--sls", &sls]);
    assert!(!one["notes"].to_string().contains("opensm -R file"), "{one}");
}

#[test]
fn terse_tables_say_the_same_to_who_reads_them() {
    let folder = Folder::new();
    let (long, short) = (folder.path("long.lfts"), folder.path("short.lfts"));
    json(0, &["route", CLOS, "--engine", "ftree", "--lfts", &long]);
    json(0, &["route", CLOS, "--engine", "ftree", "--lfts", &short, "--terse"]);
    let rows = |name: &str| -> Vec<String> {
        let text = folder.read(name);
        let row = |line: &str| match line.split_once(" # ") {
            None => line.to_owned(),
            Some((row, comment)) => {
                let guid = comment.split_once("portguid ").map_or("", |(_, guid)| &guid[..18]);
                format!("{row} {guid}").trim_end().to_owned()
            }
        };
        text.lines().map(row).collect()
    };
    assert_eq!(rows("long.lfts"), rows("short.lfts"));
    assert!(!folder.read("short.lfts").contains("Channel Adapter"));
    let checked = |file: &str| json(0, &["check", CLOS, "--lfts", file]);
    assert_eq!(checked(&long), checked(&short));
    json(2, &["route", CLOS, "--terse"]);
}

#[test]
fn a_missing_file_of_levels_is_said() {
    let folder = Folder::new();
    let (lfts, sls) = (folder.path("a.lfts"), folder.path("a.sls"));
    let ring = "ring:n=5,hosts=2";
    let lash = ["route", ring, "--engine", "lash", "--no-fallback", "--lfts", &lfts, "--sls", &sls];
    assert!(json(0, &lash)["layers"].as_u64() > Some(1));
    text(0, &["check", ring, "--lfts", &lfts, "--sls", &sls]);
    let shown = text(3, &["check", ring, "--lfts", &lfts]);
    let (why, what) = (shown.find("name their file with --sls"), shown.find("DEADLOCK"));
    assert!(why.is_some() && why < what, "{shown}");
}
