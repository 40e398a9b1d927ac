//! Tests of where results are written.

use std::fs::{self, File};
use std::process::Command;

use crate::route::command::{CLOS, Folder, error, json, mapper};

const ROUTE: [&str; 5] = ["route", CLOS, "--engine", "ftree", "--no-fallback"];

#[test]
fn tables_on_standard_output_are_alone_there() {
    let folder = Folder::new();
    let file = folder.path("a.lfts");
    json(0, &[&ROUTE[..], &["--lfts", &file]].concat());
    for name in ["-", "/dev/stdout", "/proc/self/fd/1"] {
        for format in ["text", "json"] {
            let output = mapper(&[&ROUTE[..], &["--lfts", name, "--format", format]].concat());
            assert!(output.status.success());
            assert_eq!(String::from_utf8(output.stdout).unwrap(), folder.read("a.lfts"), "{name}");
            let report = String::from_utf8(output.stderr).unwrap();
            assert!(report.contains("ftree"), "{report}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&report).is_ok(), format == "json");
        }
    }
    // Standard output may also be a file, even if the option names that file.
    for name in ["-", "/dev/stdout", &folder.path("out")] {
        let out = File::create(folder.path("out")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_mapper"));
        let output = command.args(ROUTE).args(["--lfts", name]).stdout(out).output().unwrap();
        assert!(output.status.success() && !output.stderr.is_empty());
        assert_eq!(folder.read("out"), folder.read("a.lfts"), "{name}");
    }
    let twice = error(&[&ROUTE[..], &["--lfts", "-", "--sls", "/dev/stdout"]].concat());
    assert_eq!(twice, "--sls: /dev/stdout is written by --lfts, too; name another");
    for option in ["--cache", "--routes-dir"] {
        let again = error(&[&ROUTE[..], &[option, "-"]].concat());
        assert_eq!(again, format!("{option}: - is standard output; name another"));
    }
}

#[test]
fn a_failure_leaves_all_files_as_they_were() {
    let folder = Folder::new();
    let (lfts, dir) = (folder.path("a.lfts"), folder.path("deep/routes"));
    let outputs = ["--lfts", &lfts, "--routes-dir", &dir];
    // The plot goes to a device that is full, which is found out when other files may be written already.
    let failing = |fresh: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mapper"));
        let engine = if fresh { "ftree" } else { "updn" };
        command.args(["route", CLOS, "--engine", engine]).args(outputs).args(["--plot", "/dev/full"]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("cannot write /dev/full: No space left"), "{said}");
    };
    failing(true);
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 0, "nothing is there");
    folder.write("a.lfts", "old");
    fs::create_dir_all(&dir).unwrap();
    folder.write("deep/routes/02-00-00-00-00-01.json", "old");
    folder.write("deep/routes/mine", "old");
    failing(false);
    assert_eq!((folder.read("a.lfts").as_str(), fs::read_dir(&dir).unwrap().count()), ("old", 2));
    assert_eq!(folder.read("deep/routes/02-00-00-00-00-01.json"), "old");
    json(0, &[&ROUTE[..], &outputs].concat());
    assert_eq!((folder.read("deep/routes/mine").as_str(), fs::read_dir(&dir).unwrap().count()), ("old", 9));
    assert!(folder.read("deep/routes/02-00-00-00-00-01.json").contains("mapper.routes/1"));
}

#[test]
fn a_proof_without_a_pair_says_so() {
    let folder = Folder::new();
    let mut fabric = mapper_formats::resolve(CLOS).unwrap();
    let note = "no two hosts are joined by cables, so there was no pair to prove";
    for hosts in [1, 0] {
        fabric.map.hosts.truncate(hosts);
        fabric.hosts.truncate(hosts);
        let text = mapper_formats::write(&fabric, mapper_formats::FileFormat::Json);
        let (spec, lfts) = (folder.write("few.json", &text), folder.path("few.lfts"));
        let route = json(0, &["route", &spec, "--engine", "minhop", "--lfts", &lfts]);
        let check = json(0, &["check", &spec, "--lfts", &lfts]);
        let compare = json(0, &["route", &spec, "--compare", "minhop"]);
        for report in [route, check, compare] {
            assert!(report["notes"].to_string().contains(note), "{hosts}: {report}");
        }
    }
}
