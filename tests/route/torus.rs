//! Tori, by the engine of that name.

use mapper::formats;

use crate::command::{Folder, error, json, text};

#[test]
fn a_torus_is_served_in_direction_order_in_few_layers() {
    let folder = Folder::new();
    let (lfts, sls) = (folder.path("a.lfts"), folder.path("a.sls"));
    let spec = "torus:x=6,y=5,z=5,hosts=16";
    let engine = ["route", spec, "--engine", "torus,updn", "--lfts", &lfts, "--sls", &sls];
    let report = json(0, &engine);
    assert_eq!((&report["engine"], &report["proof"]["deadlock_free"]), (&"torus".into(), &true.into()));
    assert!(report["layers"].as_u64().unwrap() <= 4, "{report}");
    let check = json(0, &["check", spec, "--lfts", &lfts, "--sls", &sls]);
    assert_eq!((&check["proof"], &check["layers"]), (&report["proof"], &report["layers"]));
}

#[test]
fn a_torus_has_the_same_tables_whatever_the_threads() {
    let folder = Folder::new();
    let mut written = Vec::new();
    for threads in ["1", "2"] {
        let (lfts, sls) = (folder.path("a.lfts"), folder.path("a.sls"));
        let engine = ["route", "torus:x=5,y=4,z=3,hosts=2", "--engine", "torus", "--no-fallback"];
        text(0, &[&engine[..], &["--threads", threads, "--lfts", &lfts, "--sls", &sls]].concat());
        written.push((folder.read("a.lfts"), folder.read("a.sls")));
    }
    assert!(written[0] == written[1]);
}

#[test]
fn a_torus_is_stated_by_a_file() {
    let folder = Folder::new();
    let stated = folder.write("t.toml", "sizes = [4, 3]\ndatelines = [2, 0]\n");
    let engine = ["route", "torus:x=4,y=3,hosts=1", "--engine", "torus", "--no-fallback", "--torus-file"];
    let report = json(0, &[&engine[..], &[&stated]].concat());
    let notes = report["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note == "torus: datelines from x 1 to 2, y 2 to 0"), "{notes:?}");
    let bad = folder.write("bad.toml", "sizes = [4, 3]\nrings = [true]\n");
    let message = error(&[&engine[..], &[&bad]].concat());
    assert!(message.contains("bad.toml:2: `rings`: it has 1 entries"), "{message}");
}

#[test]
fn what_is_no_torus_falls_back() {
    let folder = Folder::new();
    let mut fabric = formats::resolve("torus:x=5,y=4,hosts=1").unwrap();
    // Two cables cross.
    let [first, .., last] = &mut fabric.map.cables[..] else { panic!("a torus has cables") };
    std::mem::swap(&mut first.b, &mut last.b);
    let spec = folder.write("crossed.json", &formats::write(&fabric, formats::FileFormat::Json));
    let report = json(0, &["route", &spec, "--engine", "torus,lash"]);
    assert_eq!(report["engine"], "lash");
    let why = report["tried"][0].to_string();
    assert!(why.contains("torus") && why.contains("cable"), "{why}");
}
