//! `mapper route --cache`, `--compare` and `--plot` as a user runs them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The answer of `mapper route` with these arguments, which must succeed.
fn route(arguments: &[&str]) -> Value {
    let arguments = [&["route"], arguments, &["--format", "json"]].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_mapper")).args(&arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A tree as a file with LIDs, and the same without the host of some name.
fn fabrics(folder: &Path) -> (String, String) {
    let mut fabric = mapper::formats::resolve("xgft:h=2;m=4,6;w=1,4").unwrap();
    let mut lids = 1..;
    fabric.xbars.iter_mut().for_each(|label| label.lid = lids.next());
    fabric.hosts.iter_mut().for_each(|label| label.lid = lids.next());
    let write = |name: &str, fabric: &mapper_proto::map::Fabric| {
        let path = folder.join(name);
        fs::write(&path, mapper::formats::write(fabric, mapper::formats::FileFormat::Json)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let all = write("all.json", &fabric);
    fabric.map.hosts.remove(5);
    fabric.hosts.remove(5);
    (all, write("less.json", &fabric))
}

#[test]
fn a_host_that_reboots_computes_nothing_and_gets_its_tables_back() {
    let folder = tempfile::tempdir().unwrap();
    let (all, less) = fabrics(folder.path());
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (cache, first, back) = (file("cache"), file("first.lfts"), file("back.lfts"));
    let cached = |fabric: &str, lfts: &str| {
        route(&[fabric, "--engine", "ftree", "--no-fallback", "--cache", &cache, "--lfts", lfts])
    };
    let made = cached(&all, &first);
    assert_eq!((&made["cache"]["used"], &made["engine"]), (&Value::Bool(false), &"ftree".into()));
    let held = fs::read(&cache).unwrap();
    let down = cached(&less, &file("less.lfts"));
    assert_eq!(down["cache"]["used"], true, "{down}");
    assert!(down["proof"]["violations"].as_array().unwrap().is_empty());
    let up = cached(&all, &back);
    assert_eq!(up["cache"]["used"], true, "{up}");
    assert_eq!(fs::read(&first).unwrap(), fs::read(&back).unwrap());
    assert_eq!(fs::read(&cache).unwrap(), held, "what is used is not written");
    // Another seed is another request; and a file that is no cache is told, and replaced.
    let other = route(&[&all, "--engine", "ftree", "--no-fallback", "--seed", "7", "--ucast-cache", &cache]);
    assert!(other["cache"]["why_not"].as_str().unwrap().contains("settings"), "{other}");
    fs::write(&cache, "something else\n").unwrap();
    let foreign = cached(&all, &back);
    assert!(foreign["cache"]["why_not"].as_str().unwrap().contains("no unicast cache"), "{foreign}");
    assert_eq!(fs::read(&cache).unwrap(), held);
}

#[test]
fn engines_are_compared_and_loads_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("loads.svg");
    let spec = "xgft:h=3;m=3,3,4;w=1,3,3";
    let compared = route(&[spec, "--compare", "ftree,file,dispersive"]);
    assert_eq!(compared["schema"], "mapper.compare/1");
    let served: Vec<_> = compared["engines"].as_array().unwrap().iter().map(|one| &one["served"]).collect();
    assert_eq!(served, [true, false, true]);
    assert_eq!(compared["engines"][0]["quality"]["congestion_shift"], 1, "a full fat tree");
    route(&[spec, "--engine", "dispersive", "--plot", plot.to_str().unwrap()]);
    let svg = fs::read_to_string(&plot).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("tier 1 to tier 2 (up)"), "{svg}");
}
